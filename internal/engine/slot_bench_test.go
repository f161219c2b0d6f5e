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

	"github.com/stretchr/testify/require"
)

// The two forms that a slot could have, measured for
// docs/decisions/0001-slots-are-goroutines.md: a batch executed by this
// process, and by a child process of the same binary that lives as long as
// the slot or as long as the batch.

// slotChild makes the test binary a slot: it executes the batches that come in
// on its standard input, one JSON object a line, and answers each with a line.
const slotChild = "THALWEG_TEST_SLOT_CHILD"

type slotBatch struct {
	Query, Path, Spill string
}

func (b slotBatch) execute(ctx context.Context) (Result, error) {
	return Execute(ctx, InstanceConfig{MemoryBytes: 256 << 20, Threads: 1, SpillDir: b.Spill}, nil, Task{
		Name: "bench", Paths: []string{filepath.Dir(b.Path)}, Query: b.Query,
		Output: Output{Part: &PartOutput{Stage: func(context.Context) (string, error) { return b.Path, nil }}},
	})
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
			for b.Loop() {
				_, err := work.execute(context.Background())
				require.NoError(b, err)
			}
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
