package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app"
	"thalweg/internal/base/secret"
)

// The configurations that docs/fleet.md and deploy/ show can be read.
func TestShownConfigurationsOfClusters(t *testing.T) {
	t.Setenv("CASSANDRA_PASSWORD", "c")
	t.Setenv("RABBITMQ_PASSWORD", "r")
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "mq-password"), []byte("m"), 0o600))
	page, err := os.ReadFile("../../docs/fleet.md")
	require.NoError(t, err)
	found := regexp.MustCompile("(?ms)^```yaml[^\n]*\n(version: 1\n.*?)^```$").FindAllStringSubmatch(string(page), -1)
	require.GreaterOrEqual(t, len(found), 4)
	deployed, err := os.ReadFile("../../deploy/cluster.yaml")
	require.NoError(t, err)
	for i, text := range append(found, []string{"", string(deployed)}) {
		name := filepath.Join(dir, strconv.Itoa(i)+".yaml")
		require.NoError(t, os.WriteFile(name, []byte(text[1]), 0o600))
		_, err := app.LoadCluster(name, app.Process{Known: secret.New()})
		require.NoError(t, err, text[1])
	}
}
