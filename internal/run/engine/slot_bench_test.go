package engine

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// The two forms that a slot could have, measured for
// docs/decisions/0048-child-slots.md: a batch executed by this
// process, and by a child process of the same binary that lives as long as
// the slot or as long as the batch.

// slotChild makes the test binary a slot: it executes the batches that come in
// on its standard input, one JSON object a line, and answers each with a line.
const slotChild = "THALWEG_TEST_SLOT_CHILD"

type slotBatch struct {
	Query, Path, Spill string
}

func (b slotBatch) execute(ctx context.Context) (Result, error) {
	return Execute(ctx, b.config(), nil, b.task())
}

func (b slotBatch) config() InstanceConfig {
	return InstanceConfig{MemoryBytes: 256 << 20, Threads: 1, SpillDir: b.Spill}
}

func (b slotBatch) task() Task {
	return Task{
		Name: "bench", Paths: []string{filepath.Dir(b.Path)}, Query: b.Query,
		Output: Output{Part: &PartOutput{Stage: func(context.Context) (string, error) { return b.Path, nil }}},
	}
}

func serveSlot(in io.Reader, out io.Writer) error {
	dec := json.NewDecoder(in)
	for {
		var b slotBatch
		if err := dec.Decode(&b); err != nil {
			return nil // the parent has closed the pipe
		}
		res, err := b.execute(context.Background())
		if _, err := fmt.Fprintln(out, res.RowsOut, err); err != nil {
			return err
		}
	}
}

// child is a slot in a process of its own.
type child struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func startChild(tb testing.TB) *child {
	tb.Helper()
	c := &child{cmd: exec.Command(os.Args[0])}
	c.cmd.Env = append(os.Environ(), slotChild+"=1")
	var err error
	c.in, err = c.cmd.StdinPipe()
	require.NoError(tb, err)
	out, err := c.cmd.StdoutPipe()
	require.NoError(tb, err)
	c.out = bufio.NewReader(out)
	require.NoError(tb, c.cmd.Start())
	return c
}

func (c *child) execute(b slotBatch) (string, error) {
	if err := json.NewEncoder(c.in).Encode(b); err != nil {
		return "", err
	}
	return c.out.ReadString('\n')
}

func (c *child) stop() error {
	if err := c.in.Close(); err != nil {
		return err
	}
	return c.cmd.Wait()
}

// processorTime returns the processor time of this process: on a shared machine it tells more than the wall
// time.
func processorTime(tb testing.TB) time.Duration {
	tb.Helper()
	var u unix.Rusage
	require.NoError(tb, unix.Getrusage(unix.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

var slotQueries = map[string]string{
	"tiny":    "SELECT i FROM range(10) t(i)",
	"million": "SELECT i, 'text ' || (i % 1000) AS s, hash(i) AS h FROM range(1000000) t(i)",
}

func BenchmarkSlot(b *testing.B) {
	for name, query := range slotQueries {
		batch := func(b *testing.B) slotBatch {
			dir := b.TempDir()
			return slotBatch{Query: query, Path: filepath.Join(dir, "part.parquet"), Spill: filepath.Join(dir, "spill")}
		}
		b.Run("goroutine/"+name, func(b *testing.B) {
			work := batch(b)
			before := processorTime(b)
			for b.Loop() {
				_, err := work.execute(context.Background())
				require.NoError(b, err)
			}
			b.ReportMetric(float64(processorTime(b)-before)/float64(b.N)/1e6, "cpu-ms/op")
		})
		// The same with an instance that serves one batch after the other.
		b.Run("goroutine-shared/"+name, func(b *testing.B) {
			work := batch(b)
			all := NewInstances(filepath.Dir(work.Spill))
			before := processorTime(b)
			for b.Loop() {
				_, err := all.Execute(context.Background(), work.config(), nil, work.task())
				require.NoError(b, err)
			}
			b.ReportMetric(float64(processorTime(b)-before)/float64(b.N)/1e6, "cpu-ms/op")
			require.NoError(b, all.Close())
		})
		b.Run("child-per-slot/"+name, func(b *testing.B) {
			work, c := batch(b), startChild(b)
			for b.Loop() {
				_, err := c.execute(work)
				require.NoError(b, err)
			}
			require.NoError(b, c.stop())
		})
		b.Run("child-per-batch/"+name, func(b *testing.B) {
			work := batch(b)
			for b.Loop() {
				c := startChild(b)
				_, err := c.execute(work)
				require.NoError(b, err)
				require.NoError(b, c.stop())
			}
		})
	}
}
