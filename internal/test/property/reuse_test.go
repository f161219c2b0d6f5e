package property

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app/instance"
	"thalweg/internal/app/runner"
	"thalweg/internal/app/runtime"
	"thalweg/internal/store/state"
	"thalweg/internal/test/effort"
)

// Scripts that are run again and again, and how often each.
const (
	quickReused, sampleReused, chaosReused = uint64(1), uint64(3), uint64(600)
	rounds                                 = 5
)

// TestChaosReuseIsAsFresh changes random scripts, their inputs and their outputs, and runs them again. Rows that are
// taken over and rows that are computed must together equal the reference, and the bytes of a run that takes over
// nothing.
func TestChaosReuseIsAsFresh(t *testing.T) {
	t.Parallel()
	first, end := uint64(0), effort.Of(quickReused, sampleReused, chaosReused)
	if os.Getenv(seedVariable) != "" {
		first, end = seeds(t)
	}
	counts := map[string]int{}
	for seed := first; seed < end; seed++ {
		require.NoError(t, rerun(t.Context(), seed, counts),
			"%s=%d go test ./internal/test/property -run '^TestChaosReuseIsAsFresh$'", seedVariable, seed)
	}
	t.Log(counts)
	require.Positive(t, counts["taken over"])
	require.Positive(t, counts["computed"])
}

// rerun runs one script in several rounds.
func rerun(ctx context.Context, seed uint64, counts map[string]int) (err error) {
	dir, err := os.MkdirTemp("", "reuse")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	home, err := instance.Open(ctx, filepath.Join(dir, "state"), true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, home.Close()) }()
	g, s := newGen(seed, 7), generate(seed)
	data := filepath.Join(dir, "in")
	in, err := writeInputs(newGen(seed, 2), s, data)
	if err != nil {
		return err
	}
	for round := range rounds {
		var tables map[string][][]any
		if refusedBy(func() { tables = s.tables() }) {
			return nil // what is left of the rows cannot be computed
		}
		// Formulas that read nothing, in the same place each time.
		at := place{inputs: in, out: filepath.Join(dir, "out"), python: filepath.Join(dir, "formulas.py")}
		memory := max(int64(1)<<30, memoryFor(tables))
		sum, files, err := again(ctx, s, at, home, memory, true)
		if err != nil {
			return fmt.Errorf("round %d: %w", round, err)
		}
		for _, n := range sum.Nodes {
			if n.ReusedFrom != nil {
				counts["taken over"]++
			} else {
				counts["computed"]++
			}
		}
		if err := s.check(files, tables); err != nil {
			return fmt.Errorf("round %d: %w", round, err)
		}
		fresh, err := afresh(ctx, s, at, filepath.Join(dir, fmt.Sprint("fresh", round)), memory)
		if err != nil {
			return fmt.Errorf("round %d, afresh: %w", round, err)
		}
		for _, name := range slices.Sorted(maps.Keys(fresh)) {
			if files[name] != fresh[name] {
				return fmt.Errorf("round %d: %s has other bytes than a run that takes over nothing has "+
					"written:\n%.300q\n%.300q", round, name, files[name], fresh[name])
			}
		}
		if in, err = s.disturb(g, in, data, at.out); err != nil {
			return err
		}
	}
	return nil
}

func writeInputs(g gen, s *script, dir string) (*inputs, error) {
	if err := os.RemoveAll(dir); err != nil {
		return nil, err
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	return g.write(s, dir)
}

// afresh runs the script in a directory of its own.
func afresh(ctx context.Context, s *script, at place, dir string, memory int64) (_ map[string]string, err error) {
	home, err := instance.Open(ctx, filepath.Join(dir, "state"), true)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, home.Close(), os.RemoveAll(dir)) }()
	at.out, at.python = filepath.Join(dir, "out"), filepath.Join(dir, "formulas.py")
	_, files, err := again(ctx, s, at, home, memory, false)
	return files, err
}

// again runs the script, and reads what it has written.
func again(ctx context.Context, s *script, at place, home *instance.Instance, memory int64, reuse bool) (runner.Summary,
	map[string]string, error) {
	text, err := s.text(at)
	if err != nil {
		return runner.Summary{}, nil, err
	}
	path := filepath.Join(filepath.Dir(at.python), "script.json")
	for name, content := range map[string]string{path: text, at.python: formulas} {
		if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
			return runner.Summary{}, nil, err
		}
	}
	sum, err := runner.Run(ctx, home, runner.Options{ScriptPath: path, Workspace: "main",
		Process: runtime.Process{MemoryBytes: memory, Cores: 2, Interpreter: "python3"}, Reuse: reuse})
	if err == nil && sum.Status != state.Complete {
		err = fmt.Errorf("the run is %s%s", sum.Status, hint(sum))
	}
	if err != nil {
		return sum, nil, err
	}
	files, err := read(at.out)
	return sum, files, err
}

// disturb changes something, or nothing, before the next round.
func (s *script) disturb(g gen, in *inputs, data, out string) (*inputs, error) {
	switch g.IntN(7) {
	case 0: // the same rows, in other files
		return writeInputs(g, s, data)
	case 1, 6: // a row less, in files of the same names and form
		src := pick(g, s.sources...)
		if len(src.rows) > 0 {
			i := g.IntN(len(src.rows))
			src.rows = slices.Concat(src.rows[:i], src.rows[i+1:])
		}
		return writeInputs(newGen(s.seed, 2), s, data)
	case 2: // a condition less, or the next one instead
		var with []*creator
		for _, n := range s.nodes {
			if c := n.table(); c != nil && c.having != nil {
				with = append(with, c)
			}
		}
		if len(with) > 0 {
			pick(g, with...).having = nil
		}
	case 3: // an output is gone, or is another file
		entries, err := os.ReadDir(out)
		if err != nil || len(entries) == 0 {
			return in, err
		}
		path := filepath.Join(out, entries[g.IntN(len(entries))].Name())
		if g.oneIn(2) {
			return in, os.Remove(path)
		}
		return in, os.WriteFile(path, []byte("of somebody else"), 0o644)
	case 4: // an output node less
		for i, n := range s.nodes {
			if _, ok := n.(*output); ok && len(s.outputs()) > 1 {
				s.nodes = slices.Concat(s.nodes[:i], s.nodes[i+1:])
				return in, os.RemoveAll(out)
			}
		}
	}
	return in, nil
}
