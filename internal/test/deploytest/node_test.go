package deploytest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/secret"
	"thalweg/internal/base/settings"
	"thalweg/internal/ops/clusterconfig"
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
		out, err := exec.CommandContext(t.Context(), analyze, "security", "--offline=true", "--threshold=20", "--no-pager", unit).
			CombinedOutput()
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
	_, diags, err = serveconfig.Load(filepath.Join(node, "serve.yaml"), opts)
	require.NoError(t, err)
	for _, d := range diags {
		// The directory of scripts is made by install.
		require.True(t, strings.Contains(d.Message, "/var/lib/thalweg/scripts"), d.Message)
	}
}
