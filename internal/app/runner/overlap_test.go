package runner_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app/runner"
	"thalweg/internal/app/runtime"
	"thalweg/internal/app/worker"
	"thalweg/internal/base/budget"
	"thalweg/internal/io/remote"
	"thalweg/internal/store/parts"
	"thalweg/internal/store/parts/cache"
	"thalweg/internal/store/state"
	"thalweg/internal/test/partstest"
)

const overlapScript = `
nodes:
  numbers:
    type: file_table
    r:
      urls: [DIR/0.csv, DIR/1.csv, DIR/2.csv, DIR/3.csv]
      csv: {hdr_line_idx: 0, first_data_line_idx: 1}
      columns: {id: {col_type: int, csv: {col_hdr: id}}}
    w: {name: numbers, fields: {id: {expression: r.id, type: int}}}
  stepped:
    type: table_custom_tfm_table
    custom_proc_type: py_calc
    r: {table: numbers}
    p:
      python_code_urls: [DIR/step.py]
      calculated_fields: {next: {expression: "step(r.id)", type: int}}
    w: {name: stepped, fields: {next: {expression: p.next, type: int}}}
  out:
    type: table_file
    r: {table: stepped}
    w:
      url_template: DIR/out.csv
      columns:
        - {name: next, expression: r.next, type: int, csv: {header: next, format: "%d"}}
`

// stepFormula says when a batch begins to compute, and does not go on before
// what the next one reads has been asked for.
const stepFormula = `
import os, time

def step(id: int) -> int:
    if id % EACH == 0:
        n = len([f for f in os.listdir("DIR/moments") if f.startswith("computing")]) + 1
        open("DIR/moments/computing-%d" % n, "w").close()
        while n < 4 and not os.path.exists("DIR/moments/fetched-%d" % (n + 1)):
            time.sleep(0.001)
    return id + 1
`

// momentous is a backend that says what is fetched, and does not end storing what
// a batch has written before the next one computes.
type momentous struct {
	parts.Backend
	dir     string
	mu      sync.Mutex
	fetched map[string]bool
	stored  int
}

func (m *momentous) Open(ctx context.Context, key string, offset, length int64) (io.ReadCloser, int64, error) {
	if strings.Contains(key, "-numbers/") {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.fetched[key] = true
		if err := os.WriteFile(fmt.Sprintf("%s/fetched-%d", m.dir, len(m.fetched)), nil, 0o600); err != nil {
			return nil, 0, err
		}
	}
	return m.Backend.Open(ctx, key, offset, length)
}

func (m *momentous) Put(ctx context.Context, key, path string) (parts.Info, error) {
	if strings.Contains(key, "-stepped/") {
		m.mu.Lock()
		m.stored++
		next := m.stored + 1
		m.mu.Unlock()
		look := time.NewTicker(time.Millisecond)
		defer look.Stop()
		for next <= 4 {
			if _, err := os.Stat(fmt.Sprintf("%s/computing-%d", m.dir, next)); err == nil {
				break
			}
			select {
			case <-look.C:
			case <-ctx.Done():
				return parts.Info{}, ctx.Err()
			}
		}
	}
	return m.Backend.Put(ctx, key, path)
}

// forgetful keeps no copies of what it has put.
type forgetful struct {
	*cache.Store
	far parts.Backend
}

func (f forgetful) Put(ctx context.Context, key, path string) (parts.Info, error) {
	return f.far.Put(ctx, key, path)
}

// TestSlotsMoveWhileTheyCompute has one slot that is a process, and one batch
// ahead: each batch computes until what the next one reads is asked for, and what it
// has written is not stored before the next one computes. Were one of the two not
// done beside computing, nothing would go on.
func TestSlotsMoveWhileTheyCompute(t *testing.T) {
	t.Parallel()
	const each = 20_000
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "moments"), 0o700))
	for i := range 4 {
		text := bytes.NewBufferString("id\n")
		for k := range each {
			fmt.Fprintf(text, "%d\n", 100_000+i*each+k)
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.csv", i)), text.Bytes(), 0o600))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "step.py"),
		[]byte(replaceAll(stepFormula, "DIR", dir, "EACH", strconv.Itoa(each))), 0o600))
	path := filepath.Join(dir, "script.yaml")
	require.NoError(t, os.WriteFile(path, []byte(replaceAll(overlapScript, "DIR", dir)), 0o600))
	far := &momentous{Backend: &partstest.Memory{}, dir: filepath.Join(dir, "moments"), fetched: map[string]bool{}}
	m := newMover(t, dir, "worker", far)
	m.home.Parts = forgetful{m.asked.Store, far}
	client := remote.New(remote.Config{})
	defer client.Close()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	key, _, err := runner.Submit(ctx, m.home, runner.Options{ScriptPath: path, Workspace: "main",
		Process: runtime.Process{MemoryBytes: 1 << 30, Cores: 1, Interpreter: "python3", Remote: client,
			Tune: func(b *budget.Budget) { b.BatchBytes, b.SmallBytes = each*8, 0 }}})
	require.NoError(t, err)
	t.Cleanup(func() {
		if moments, err := os.ReadDir(far.dir); t.Failed() {
			t.Log(m.batches, moments, err)
		}
	})
	require.NoError(t, m.serve(ctx,
		worker.WorkerOptions{Process: runtime.Process{MemoryBytes: 1 << 30, Cores: 1, RowTimeout: time.Minute},
			Isolate: &worker.Isolation{Client: remote.Config{},
				Command: slotCommand(strconv.FormatInt(rand.Int64(), 36))}}))
	run, err := m.home.State.Run(t.Context(), key)
	require.NoError(t, err)
	require.Equal(t, state.Complete, run.Status)
	require.Equal(t, 4, m.batches["stepped"])
}
