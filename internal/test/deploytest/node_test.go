package deploytest_test

import (
	"bytes"
	"encoding/csv"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v4"

	"thalweg/internal/base/secret"
	"thalweg/internal/base/settings"
	"thalweg/internal/ops/clusterconfig"
	"thalweg/internal/ops/price"
	"thalweg/internal/ops/serveconfig"
)

const node = "../../../deploy/node"

// Units are exposed by 2.0 of 10 at most, as systemd counts.
func TestUnitsAreHardened(t *testing.T) {
	analyze := program(t, "systemd-analyze")
	units, err := filepath.Glob(node + "/*.service")
	require.NoError(t, err)
	require.Len(t, units, 4)
	for _, unit := range units {
		cmd := exec.CommandContext(t.Context(), analyze, "security", "--offline=true", "--threshold=20", "--no-pager", unit)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Contains(t, string(out), "Overall exposure level for "+filepath.Base(unit))
	}
}

func TestScriptsPassShellcheck(t *testing.T) {
	check := program(t, "shellcheck")
	args := []string{"--external-sources", "scripts/deploy-check", "scripts/deploy-test", "scripts/deploy-test-inside"}
	for _, name := range []string{"install", "boot", "users", "password"} {
		args = append(args, "deploy/node/"+name)
	}
	cmd := exec.CommandContext(t.Context(), check, args...)
	cmd.Dir = "../../.."
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// The manifest's own files can be read, too.
func TestFilesOfTheManifest(t *testing.T) {
	text, err := os.ReadFile("../../../deploy/kubernetes.yaml")
	require.NoError(t, err)
	var settingsMap struct {
		Data map[string]string `yaml:"data"`
	}
	first, _, _ := strings.Cut(string(text), "\n---\n")
	require.NoError(t, yaml.Unmarshal([]byte(first), &settingsMap))
	password := filepath.Join(t.TempDir(), "cassandra")
	require.NoError(t, os.WriteFile(password, []byte("secret"), 0o600))
	opts := settings.Options{Known: secret.New(), Environment: os.LookupEnv}
	cluster := strings.Replace(settingsMap.Data["cluster.yaml"], "/run/secrets/thalweg/cassandra", password, 1)
	cfg, diags := clusterconfig.Parse("cluster.yaml", "/etc/thalweg/cluster.yaml", cluster, opts)
	require.Empty(t, diags)
	require.Equal(t, "secret", cfg.State.Cassandra.Password)
	canServe(t, settingsMap.Data["serve.yaml"], "/scripts")
}

// What Terraform writes for a cluster, which `terraform test` compares with this file, can be read; so can what the
// server gets.
func TestConfigurationsCanBeRead(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "cassandra"), []byte("secret\n"), 0o600))
	opts := settings.Options{Known: secret.New(), Environment: func(name string) (string, bool) {
		return dir, name == "CREDENTIALS_DIRECTORY"
	}}
	cluster, diags, err := clusterconfig.Load("../../../deploy/terraform/tests/cluster.team.json", opts)
	require.NoError(t, err)
	require.Empty(t, diags)
	require.Equal(t, []string{"10.5.0.11:9042", "10.5.0.12:9042", "10.5.0.13:9042"}, cluster.State.Cassandra.Hosts)
	require.Equal(t, "secret", cluster.State.Cassandra.Password)
	text, err := os.ReadFile(filepath.Join(node, "serve.yaml"))
	require.NoError(t, err)
	canServe(t, string(text), "/var/lib/thalweg/scripts")
}

// canServe requires a server's settings that can be read where their directory of scripts is, and on loopback only.
func canServe(t *testing.T, text, scripts string) {
	t.Helper()
	require.Contains(t, text, scripts)
	text = strings.Replace(text, scripts, t.TempDir(), 1)
	server, diags := serveconfig.Parse("serve.yaml", "/etc/thalweg/serve.yaml", text,
		settings.Options{Known: secret.New(), Environment: os.LookupEnv})
	require.Empty(t, diags)
	require.Equal(t, "127.0.0.1:8431", server.Listen)
}

// TestPricesAreThoseOfTheBook holds that Terraform and the price book know the same machines alike.
func TestPricesAreThoseOfTheBook(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../deploy/terraform/prices.csv")
	require.NoError(t, err)
	rows, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	require.NoError(t, err)
	book, err := price.Published()
	require.NoError(t, err)
	for _, row := range rows[1:] {
		line, known := book.Find(row[0])
		require.True(t, known, row[0])
		usd, err := price.Parse(row[3])
		require.NoError(t, err)
		require.Equal(t, line.PerHour, usd, row[0])
		require.Equal(t, strconv.Itoa(line.Cores), row[1], row[0])
	}
}
