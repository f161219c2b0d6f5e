package runner_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"thalweg/internal/app/instance"
	"thalweg/internal/app/runner"
	"thalweg/internal/app/runtime"
	"thalweg/internal/app/worker"
	"thalweg/internal/io/remote"
	"thalweg/internal/run/job"
	"thalweg/internal/store/state"
)

// What a slot that is a process costs a batch: a worker with one slot executes
// runs of many small batches. With THALWEG_BENCH_SCRIPT (and …_PARAMS) it
// executes that script instead, with the slots of the machine.
// docs/decisions/0048-child-slots.md has the results.
func BenchmarkSlots(b *testing.B) {
	const batches = 200
	dir, cores := b.TempDir(), 1
	opts := runner.Options{ScriptPath: filepath.Join(dir, "script.yaml"), Dir: dir, Workspace: "main",
		Process: runtime.Process{MemoryBytes: 1 << 30, Interpreter: "python3"}}
	if path := os.Getenv("THALWEG_BENCH_SCRIPT"); path != "" {
		opts.ScriptPath, opts.ParamsPath, opts.Dir, opts.MemoryBytes, cores = path, os.Getenv("THALWEG_BENCH_PARAMS"),
			filepath.Dir(path), 4<<30, 0
	} else {
		require.NoError(b, os.WriteFile(filepath.Join(dir, "in.csv"), []byte("id\n"+strings.Repeat("1\n", batches)),
			0o600))
		require.NoError(b, os.WriteFile(opts.ScriptPath, fmt.Appendf(nil, `nodes:
  read: {type: file_table, r: {urls: [%s/in.csv], types: {id: int}}, w: t}
  write:
    type: table_file
    r: {table: t, expected_batches_total: %d}
    w: {url_template: "%s/out/{batch_idx|string}.csv", columns: [id]}
`, dir, batches, dir), 0o600))
	}
	for _, form := range []string{"goroutine", "process"} {
		b.Run(form, func(b *testing.B) {
			home, err := instance.Open(context.Background(), filepath.Join(b.TempDir(), instance.DefaultDir), true)
			require.NoError(b, err)
			defer func() { require.NoError(b, home.Close()) }()
			var took time.Duration
			var executed int
			before := processorTime(b)
			for b.Loop() {
				_, err := runner.Begin(context.Background(), home, opts)
				require.NoError(b, err)
				d, n := serveOne(b, home, form == "process", opts.MemoryBytes, cores)
				took, executed = took+d, executed+n
			}
			b.ReportMetric(took.Seconds()*1000/float64(b.N), "ms/run") // from its first batch to its end
			b.ReportMetric(took.Seconds()*1000/float64(executed), "ms/batch")
			b.ReportMetric((processorTime(b)-before).Seconds()*1000/float64(b.N), "cpu-ms/run")
		})
	}
}

// serveOne works on the runs of a home until one is over.
func serveOne(b *testing.B, home *instance.Instance, isolate bool, memory int64, cores int) (took time.Duration,
	batches int) {
	b.Helper()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	client := remote.New(remote.Config{})
	defer client.Close()
	events := make(chan job.Event, 10_000)
	opts := worker.WorkerOptions{Process: runtime.Process{MemoryBytes: memory, Cores: cores, Interpreter: "python3",
		Remote: client, Observe: func(e job.Event) {
			events <- e
			if e.Kind == job.RunFinished {
				stop()
			}
		}}}
	if isolate {
		opts.Isolate = &worker.Isolation{Client: remote.Config{}, Command: slotCommand("")}
	}
	require.NoError(b, worker.Serve(ctx, home, opts))
	close(events)
	var first, last time.Time
	for e := range events {
		switch e.Kind {
		case job.BatchStarted:
			if first.IsZero() {
				first = e.Time
			}
		case job.BatchFinished:
			batches++
			last = e.Time
		case job.RunFinished:
			require.Equal(b, state.Complete, e.Status)
		}
	}
	return last.Sub(first), batches
}

// processorTime returns the processor time of this process and of its children that have ended.
func processorTime(b *testing.B) (sum time.Duration) {
	b.Helper()
	for _, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
		var u unix.Rusage
		require.NoError(b, unix.Getrusage(who, &u))
		sum += time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	return sum
}
