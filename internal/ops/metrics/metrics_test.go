package metrics_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"thalweg/internal/base/fault"
	"thalweg/internal/ops/metrics"
	"thalweg/internal/store/state"
	"thalweg/internal/store/state/sqlite"
)

var update = flag.Bool("update", false, "rewrite docs/metrics.md")

func TestPageIsTheInventory(t *testing.T) {
	const path = "../../../docs/metrics.md"
	page := metrics.Page(metrics.New("").Inventory(), metrics.NewTable("", nil).Inventory())
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(page), 0o600))
	}
	have, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(have), page, "go test ./internal/ops/metrics -update")
}

// Names follow Prometheus' rules: the unit in the name, counters end in _total.
func TestNames(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range metrics.New("").Inventory() {
		require.Regexp(t, regexp.MustCompile(`^thalweg_[a-z_]+$`), m.Name)
		require.False(t, seen[m.Name], m.Name)
		seen[m.Name] = true
		require.Equal(t, m.Kind == metrics.Counter, strings.HasSuffix(m.Name, "_total"), m.Name)
		for _, unit := range []string{"seconds", "bytes"} {
			require.Equal(t, m.Unit == unit, strings.Contains(m.Name, unit), m.Name)
		}
		require.True(t, strings.HasSuffix(m.Help, "."), m.Name)
	}
}

// Each method of the state is measured under its name.
func TestEveryCallOfTheStateIsMeasured(t *testing.T) {
	store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "state.db"))
	require.NoError(t, err)
	m := metrics.New("")
	measured := m.State(store)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	methods := reflect.TypeFor[state.Store]()
	for i := range methods.NumMethod() {
		name := methods.Method(i).Name
		if name == "Close" {
			continue
		}
		f := reflect.ValueOf(measured).MethodByName(name)
		args := []reflect.Value{reflect.ValueOf(ctx)}
		for p := 1; p < f.Type().NumIn() && (p < f.Type().NumIn()-1 || !f.Type().IsVariadic()); p++ {
			args = append(args, reflect.Zero(f.Type().In(p)))
		}
		before := calls(t, m)
		f.Call(args)
		require.Equal(t, before+1, calls(t, m), name)
	}
	require.NoError(t, measured.Close())
	var operations []string
	for _, s := range family(t, m, "thalweg_state_calls_total").Samples {
		operations = append(operations, s.Labels["operation"])
	}
	require.Subset(t, operations, []string{"create_run", "begin_order", "hear", "end_order"}, "dashboards name them so")
}

// calls are those of the state that were counted.
func calls(t *testing.T, m *metrics.Metrics) (n float64) {
	for _, s := range family(t, m, "thalweg_state_calls_total").Samples {
		n += *s.Value
	}
	return n
}

func family(t *testing.T, m *metrics.Metrics, name string) metrics.Family {
	t.Helper()
	families, err := m.Gather()
	require.NoError(t, err)
	for _, f := range families {
		if f.Name == name {
			return f
		}
	}
	require.Fail(t, "there is no metric "+name)
	return metrics.Family{}
}

func TestServer(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	m := metrics.New("v1")
	var broken atomic.Bool
	server, err := m.Listen(t.Context(), ":0", func(context.Context) ([]string, error) {
		if broken.Load() {
			return nil, errors.New("the state cannot be reached")
		}
		return []string{"something is odd"}, nil
	}, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(server.Address(), "127.0.0.1:"), server.Address())
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}
	get := func(path string) (int, string) {
		r, err := client.Get("http://" + server.Address() + path)
		require.NoError(t, err)
		defer r.Body.Close()
		text, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		return r.StatusCode, string(text)
	}
	status, text := get("/metrics")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, text, `thalweg_worker_info{version="v1"} 1`)
	require.Contains(t, text, `thalweg_batches_total{outcome="failed"} 0`)
	status, text = get("/metrics.json")
	require.Equal(t, http.StatusOK, status)
	var families []metrics.Family
	require.NoError(t, json.Unmarshal([]byte(text), &families))
	require.Len(t, families, len(m.Inventory()))
	status, _ = get("/healthz")
	require.Equal(t, http.StatusOK, status)
	status, text = get("/readyz")
	require.Equal(t, http.StatusOK, status)
	require.JSONEq(t, `{"status": "ready", "notices": ["something is odd"]}`, text)
	broken.Store(true)
	status, text = get("/readyz")
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Contains(t, text, "cannot be reached")
	_, err = m.Listen(t.Context(), server.Address(), nil, slog.New(slog.DiscardHandler))
	var f *fault.Error
	require.ErrorAs(t, err, &f)
	require.Equal(t, fault.Environment, f.Kind)
	require.NoError(t, server.Close())
}
