package metrics_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/ops/metrics"
	"thalweg/internal/test/effort"
)

// A real Prometheus scrapes a real run: it has every metric that moved, and
// evaluates the alert rules without an error.
func TestPrometheusScrapesARun(t *testing.T) {
	t.Parallel()
	program, err := exec.LookPath("prometheus")
	if err != nil {
		t.Skip("there is no prometheus here (Debian: apt-get install prometheus)")
	}
	m := metrics.New("test")
	server, err := m.Listen(t.Context(), ":0", func(context.Context) ([]string, error) { return nil, nil },
		slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Close()) })
	at := prometheusOf(t, program, server.Address())
	measuredRun(t, m, func() {})
	for _, i := range m.Inventory() {
		if len(family(t, m, i.Name).Samples) == 0 {
			continue
		}
		name := i.Name
		if i.Kind == metrics.Histogram {
			name += "_bucket"
		}
		require.Eventually(t, func() bool {
			var answer struct{ Data struct{ Result []any } }
			return ask(t, at+"/api/v1/query?query="+url.QueryEscape(name), &answer) && len(answer.Data.Result) > 0
		}, effort.Patience, 100*time.Millisecond, name)
	}
	type rule struct{ Name, Health, LastError string }
	var rules struct {
		Data struct{ Groups []struct{ Rules []rule } }
	}
	require.Eventually(t, func() bool {
		if !ask(t, at+"/api/v1/rules", &rules) || len(rules.Data.Groups) == 0 {
			return false
		}
		for _, r := range rules.Data.Groups[0].Rules {
			if r.Health != "ok" {
				return false
			}
		}
		return true
	}, effort.Patience, 100*time.Millisecond, "%+v", &rules)
	require.NotEmpty(t, rules.Data.Groups[0].Rules)
}

// prometheusOf starts one that scrapes an address each second.
func prometheusOf(t *testing.T, program, target string) (at string) {
	t.Helper()
	dir := t.TempDir()
	rules, err := filepath.Abs(filepath.Join(deployed, "alerts.yaml"))
	require.NoError(t, err)
	config := fmt.Sprintf("global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: [%s]\nscrape_configs: "+
		"[{job_name: thalweg, static_configs: [{targets: [%q]}]}]\n", rules, target)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "prometheus.yaml"), []byte(config), 0o600))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	require.NoError(t, listener.Close())
	cmd := exec.Command(program, "--config.file="+filepath.Join(dir, "prometheus.yaml"), "--storage.tsdb.path="+
		filepath.Join(dir, "data"), "--web.listen-address="+address)
	log, err := os.Create(filepath.Join(dir, "log"))
	require.NoError(t, err)
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = log, log, &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started, ended := make(chan error), make(chan struct{})
	go func() {
		defer close(ended)
		runtime.LockOSThread() // it dies with the thread that started it, and the run's interpreters end theirs
		err := cmd.Start()
		if started <- err; err == nil {
			_ = cmd.Wait()
		}
	}()
	require.NoError(t, <-started)
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		<-ended
		_ = log.Close()
	})
	at = "http://" + address
	require.Eventually(t, func() bool { return ask(t, at+"/-/ready", nil) }, effort.Patience, 50*time.Millisecond)
	return at
}

// ask reads JSON; false: there is none yet.
func ask(t *testing.T, from string, into any) bool {
	ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
	defer stop()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return false
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return err == nil && answer.StatusCode == http.StatusOK && (into == nil || json.Unmarshal(text, into) == nil)
}
