package sheet_test

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/run/sheet"
	"thalweg/internal/store/state"
	"thalweg/internal/store/state/sqlite"
)

// Sizes of what is measured: batches of half a second.
const (
	benchBatch = 500 * time.Millisecond
	benchCalls = 4 // of the state for a batch
)

// BenchmarkSheets measures what time sheets take of a run, in parts of the time of a worker's slots: looks each second,
// renewals each ten, and what is told of each batch. The three are to be at most 0.5 % together. Slots are processes,
// each with an interpreter below it.
func BenchmarkSheets(b *testing.B) {
	for _, slots := range []int{1, 64} {
		b.Run(fmt.Sprintf("slots=%d", slots), func(b *testing.B) { benchmarkSheets(b, slots) })
	}
}

func benchmarkSheets(b *testing.B, slots int) {
	b.Helper()
	store, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "state.db"))
	require.NoError(b, err)
	defer func() { require.NoError(b, store.Close()) }()
	m := sheet.NewMeter(sheet.Config{Worker: "host/1/2", Host: "host", Cores: slots, Slots: slots,
		Usage: sheet.UsageOf()})
	var places []*sheet.Place
	for range slots {
		defer sleeper(b)()
		places = append(places, m.Place())
	}
	m.Open(run)
	for _, p := range places[1:] {
		p.Claims(run)
		p.Claimed(claim(1), nil)
		sheet.Computes(p.Context(b.Context()))
	}
	keeper := sheet.NewKeeper(m, store)
	part := func(b *testing.B, of time.Duration) {
		b.Helper()
		b.ReportMetric(100*b.Elapsed().Seconds()/float64(b.N)/of.Seconds(), "%run")
	}
	b.Run("look", func(b *testing.B) {
		for b.Loop() {
			m.Look()
		}
		part(b, time.Duration(slots)*time.Second)
	})
	b.Run("renewal", func(b *testing.B) {
		for b.Loop() {
			require.NoError(b, keeper.Renew(b.Context()))
		}
		part(b, time.Duration(slots)*sheet.Every)
	})
	b.Run("batch", func(b *testing.B) {
		calls := m.Store(nodesOf{nodes: &[]state.Node{{NodeSpec: state.NodeSpec{Name: "a"}, Status: state.Running,
			BatchesTotal: 9}}})
		for b.Loop() {
			batchOf(b.Context(), places[0], calls)
		}
		part(b, benchBatch)
	})
}

// sleeper starts a process with one below it.
func sleeper(b *testing.B) (end func()) {
	b.Helper()
	cmd := exec.Command("sh", "-c", "sleep 3600 & wait")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(b, cmd.Start())
	return func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait() // it was killed
	}
}

// batchOf is all that is told of a batch.
func batchOf(ctx context.Context, p *sheet.Place, calls state.Store) {
	p.Claims(run)
	p.Claimed(claim(1), nil)
	exec := p.Context(ctx)
	for range benchCalls {
		_, _ = calls.Nodes(exec, run) // it is ours, and answers
	}
	sheet.Waits(exec)()
	sheet.Computes(exec)()
	p.Commits()
	p.Ended(true, sheet.Moved{})
}
