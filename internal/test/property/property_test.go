package property

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"thalweg/internal/test/effort"
)

// Environment variables of the test.
const (
	seedVariable = "THALWEG_PROPERTY_SEED" // run only the script of this seed, or of those from 100-199
	keepVariable = "THALWEG_PROPERTY_KEEP" // directory that a failing script is left in
)

const (
	quickScripts      = 2
	sampleScripts     = 10
	chaosScripts      = 2000
	variantsPerScript = 5
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(victimDir); dir != "" {
		os.Exit(victim(dir))
	}
	if spec := os.Getenv(actorSpec); spec != "" {
		os.Exit(act(spec))
	}
	goleak.VerifyTestMain(m)
}

// TestChaosScripts runs random scripts in several ways each.
func TestChaosScripts(t *testing.T) {
	t.Parallel()
	first, end := seeds(t)
	for worker := range min(testers, end-first) {
		t.Run(fmt.Sprintf("part %d", worker), func(t *testing.T) {
			t.Parallel()
			for seed, failed := first+worker, 0; seed < end && failed < enough; seed += testers {
				if done := seed - first - worker; done%progress == 0 && done > 0 {
					t.Logf("%d scripts", done)
				}
				if !try(t, seed, failed == 0) {
					failed++
				}
			}
		})
	}
}

// TestScriptsThatFailedOnce runs scripts that were given wrong rows, or none:
// rows that are the same and come from several batches of a sorted query, each of
// which a lookup gives its matches (5974); texts joined while records of CSV are
// counted (6074).
func TestScriptsThatFailedOnce(t *testing.T) {
	t.Parallel()
	for _, seed := range []uint64{5974, 6074} {
		try(t, seed, true)
	}
}

// seeds are those of the scripts to run.
func seeds(t *testing.T) (first, end uint64) {
	t.Helper()
	number := func(name, text string) uint64 {
		n, err := strconv.ParseUint(text, 10, 64)
		require.NoError(t, err, name)
		return n
	}
	if text := os.Getenv(seedVariable); text != "" {
		from, to, several := strings.Cut(text, "-")
		first = number(seedVariable, from)
		if !several {
			return first, first + 1
		}
		return first, number(seedVariable, to) + 1
	}
	return 0, effort.Of[uint64](quickScripts, sampleScripts, chaosScripts)
}

const (
	testers = uint64(2) // work side by side
	enough  = 5         // failures of one of them
	// progress is told every so many scripts.
	progress = 50 * testers
)

// try runs the script of a seed; if it fails, it is made smaller and shown, or
// its seed alone.
func try(t *testing.T, seed uint64, small bool) bool {
	t.Helper()
	s := generate(seed)
	bad := s.fails(t.Context(), newGen(seed, 1).variants(variantsPerScript))
	if bad == nil {
		return true
	}
	t.Errorf("script %d: %s\nrun it again: %s=%d go test ./internal/test/property -run '^TestChaosScripts$'", seed,
		bad.err, seedVariable, seed)
	if small {
		t.Log(s.shrink(t.Context(), bad))
	}
	return false
}

// failure is an error, and the variants that show it.
type failure struct {
	err      error
	variants []variant
}

// fails runs a script; nil: all variants wrote the same bytes, and those are
// what the reference says.
func (s *script) fails(ctx context.Context, variants []variant) *failure {
	dir, err := os.MkdirTemp("", "property")
	if err != nil {
		return &failure{err: err}
	}
	defer os.RemoveAll(dir)
	var in []*inputs
	for i := range uint64(2) {
		sub := filepath.Join(dir, fmt.Sprintf("in%d", i))
		if err := os.Mkdir(sub, 0o755); err != nil {
			return &failure{err: err}
		}
		one, err := newGen(s.seed, 2+i).write(s, sub)
		if err != nil {
			return &failure{err: err}
		}
		in = append(in, one)
	}
	tables, first := s.tables(), map[string]string(nil)
	for i, v := range variants {
		sub := filepath.Join(dir, fmt.Sprintf("run%d", i))
		if err := os.Mkdir(sub, 0o755); err != nil {
			return &failure{err: err}
		}
		v.Memory = max(v.Memory, memoryFor(tables))
		files, err := v.run(ctx, s, in[v.Inputs], sub)
		if err == nil {
			err = s.check(files, tables)
		}
		if err != nil {
			return &failure{err: fmt.Errorf("%s: %w", v.Name, err), variants: []variant{v}}
		}
		if first == nil {
			first = files
		}
		for name := range first {
			if files[name] != first[name] {
				return &failure{err: fmt.Errorf("%s: %s has other bytes than %s wrote:\n%.300q\n%.300q", v.Name, name,
					variants[0].Name, files[name], first[name]),
					variants: []variant{variants[0], v}}
			}
		}
	}
	return nil
}

// show is a script with its inputs, for people.
func (s *script) show(bad *failure) string {
	var b strings.Builder
	dir, err := os.MkdirTemp("", "property")
	if keep := os.Getenv(keepVariable); keep != "" {
		dir, err = filepath.Join(keep, fmt.Sprint(s.seed)), os.MkdirAll(filepath.Join(keep, fmt.Sprint(s.seed)), 0o755)
	} else {
		defer os.RemoveAll(dir)
	}
	if err != nil {
		return err.Error()
	}
	n := uint64(0)
	if len(bad.variants) > 0 {
		n = uint64(bad.variants[len(bad.variants)-1].Inputs)
	}
	in, err := newGen(s.seed, 2+n).write(s, dir)
	if err != nil {
		return err.Error()
	}
	text, err := s.text(place{inputs: in, out: filepath.Join(dir, "out"), python: filepath.Join(dir, "formulas.py")})
	if err != nil {
		return err.Error()
	}
	_ = os.WriteFile(filepath.Join(dir, "script.json"), []byte(text), 0o644)
	fmt.Fprintf(&b, "made smaller: %s\n%s\n", bad.err, text)
	names, _ := filepath.Glob(filepath.Join(dir, "*.csv"))
	for _, name := range names {
		data, _ := os.ReadFile(name)
		fmt.Fprintf(&b, "-- %s --\n%.2000q\n", filepath.Base(name), data)
	}
	for _, src := range s.sources {
		fmt.Fprintf(&b, "-- rows of %s --\n", src.name)
		for _, row := range src.rows[:min(len(src.rows), 20)] {
			fmt.Fprintf(&b, "%#v\n", row)
		}
	}
	return b.String()
}
