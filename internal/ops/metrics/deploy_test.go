package metrics_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v4"

	"thalweg/internal/ops/clusterconfig"
	"thalweg/internal/ops/metrics"
)

const deployed = "../../../deploy"

var metricName = regexp.MustCompile(`thalweg_[a-z_]+`)

// The dashboard and the alert rules name metrics that there are, and all of them.
func TestDashboardAndAlertsNameTheInventory(t *testing.T) {
	known := map[string]bool{}
	for _, m := range metrics.New("").Inventory() {
		known[m.Name] = true
		if m.Kind == metrics.Histogram {
			known[m.Name+"_bucket"], known[m.Name+"_sum"] = true, true
		}
	}
	shown := map[string]bool{}
	for _, file := range []string{"grafana.json", "alerts.yaml"} {
		for _, e := range expressions(t, file) {
			for _, name := range metricName.FindAllString(e, -1) {
				_, there := known[name]
				require.True(t, there, "%s: %s", file, name)
				shown[name] = true
			}
		}
	}
	for _, m := range metrics.New("").Inventory() {
		require.True(t, shown[m.Name] || shown[m.Name+"_bucket"] || shown[m.Name+"_sum"], "nobody is shown %s", m.Name)
	}
}

// expressions returns the Prometheus queries of a file.
func expressions(t *testing.T, name string) (out []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(deployed, name))
	require.NoError(t, err)
	var tree any
	if strings.HasSuffix(name, ".json") {
		require.NoError(t, json.Unmarshal(text, &tree))
	} else {
		require.NoError(t, yaml.Unmarshal(text, &tree))
	}
	var visit func(v any)
	visit = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if e, ok := v["expr"].(string); ok {
				out = append(out, e)
			}
			for _, inner := range v {
				visit(inner)
			}
		case []any:
			for _, inner := range v {
				visit(inner)
			}
		}
	}
	visit(tree)
	require.NotEmpty(t, out)
	return out
}

func TestRulesAreRight(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("there is no promtool here (Debian: apt-get install prometheus)")
	}
	for _, args := range [][]string{{"check", "rules", "alerts.yaml"}, {"check", "config", "prometheus.yaml"}} {
		cmd := exec.CommandContext(t.Context(), promtool, args...)
		cmd.Dir = deployed
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
}

// The cluster of the compose file is one.
func TestClusterOfTheComposeFile(t *testing.T) {
	t.Setenv("RABBITMQ_PASSWORD", "secret")
	cfg, diags, err := clusterconfig.Load(filepath.Join(deployed, "cluster.yaml"), clusterconfig.Options{})
	require.NoError(t, err)
	require.False(t, diags.HasErrors(), "%v", diags)
	require.True(t, cfg.Parts.Cassandra)
	text, err := os.ReadFile(filepath.Join(deployed, "compose.yaml"))
	require.NoError(t, err)
	var file struct{ Services map[string]any }
	require.NoError(t, yaml.Unmarshal(text, &file))
	for _, host := range append(cfg.State.Cassandra.Hosts, cfg.Queue.Hosts...) {
		name, _, _ := strings.Cut(host, ":")
		require.Contains(t, file.Services, name)
	}
}
