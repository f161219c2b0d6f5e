package infersets

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/duckdb/duckdb-go/v2"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"thalweg/internal/app/inspect"
	"thalweg/internal/app/instance"
	"thalweg/internal/app/runner"
	"thalweg/internal/app/runtime"
	"thalweg/internal/base/fault"
	"thalweg/internal/ops/infer"
	"thalweg/internal/store/state"
	"thalweg/internal/test/effort"
)

// Environment variables of the test.
const (
	seedVariable = "THALWEG_SETS_SEED" // run only the set of this seed, or of those from 100-199
	keepVariable = "THALWEG_SETS_KEEP" // directory that what fails is described in: then all seeds are run
)

const (
	quickSets  = 10
	sampleSets = 40
	chaosSets  = 20_000
	enough     = 5   // failures
	progress   = 500 // is told every so many sets
	homeSets   = 200 // so many runs one state directory has
	memory     = 512 << 20
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// regressions are seeds of sets that were read wrongly once.
var regressions = []uint64{
	50085, 200156, 200333, 400478, 401301, 404114, 201478, 201140, 202212, 202441,
	202726, 210665, 210772, 220971, 223887, 224230, 223367, 224146, 230914, 231853,
}

// TestSetsOnceWrong tries the sets that were read wrongly once.
func TestSetsOnceWrong(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	for _, seed := range regressions {
		if bad := m.try(t.Context(), generate(seed)); bad != nil {
			m.report(generate(seed), bad)
		}
	}
}

// TestChaosSets proposes scripts for sets of files, and runs them.
func TestChaosSets(t *testing.T) {
	t.Parallel()
	first, end := seeds(t)
	m := newMachine(t)
	keep := os.Getenv(keepVariable)
	if keep != "" {
		f, err := os.OpenFile(filepath.Join(keep, "refusals"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		require.NoError(t, err)
		defer f.Close()
		m.refused = f
	}
	for seed, failures := first, 0; seed < end && (failures < enough || keep != ""); seed++ {
		if done := seed - first; done > 0 && done%progress == 0 {
			t.Logf("%d sets: %s", done, m.counts())
		}
		bad := m.try(t.Context(), generate(seed))
		if m.tally[m.became]++; bad != nil {
			failures++
			m.report(generate(seed), bad)
		}
	}
	t.Logf("%d sets: %s", end-first, m.counts())
}

// seeds are those of the sets to try.
func seeds(t *testing.T) (first, end uint64) {
	t.Helper()
	if spec := os.Getenv(seedVariable); spec != "" {
		from, to, several := strings.Cut(spec, "-")
		first, err := strconv.ParseUint(from, 10, 64)
		require.NoError(t, err, seedVariable)
		if !several {
			return first, first + 1
		}
		end, err := strconv.ParseUint(to, 10, 64)
		require.NoError(t, err, seedVariable)
		return first, end + 1
	}
	return 0, effort.Of[uint64](quickSets, sampleSets, chaosSets)
}

// machine has what all sets share.
type machine struct {
	t     *testing.T
	db    *sql.DB
	home  *instance.Instance
	dir   string
	runs  int
	tally map[string]int

	became  string    // what of the last set
	refused io.Writer // is told of refusals; nil: nobody is
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	connector, err := duckdb.NewConnector("", nil)
	require.NoError(t, err)
	m := &machine{t: t, db: sql.OpenDB(connector), dir: t.TempDir(), tally: map[string]int{}}
	m.db.SetMaxOpenConns(1)
	_, err = m.db.ExecContext(t.Context(), "SET threads = 1")
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, m.db.Close())
		if m.home != nil {
			require.NoError(t, m.home.Close())
		}
	})
	return m
}

func (m *machine) counts() string {
	raw, err := json.Marshal(m.tally)
	require.NoError(m.t, err)
	return string(raw)
}

// try proposes a script for a set, runs it, and compares.
func (m *machine) try(ctx context.Context, s *set) (bad *failure) {
	dir := filepath.Join(m.dir, fmt.Sprintf("set%d", s.seed)) // is there still if the process ends
	require.NoError(m.t, errors.Join(os.RemoveAll(dir), os.MkdirAll(filepath.Join(dir, "work"), 0o700)))
	defer os.RemoveAll(dir)
	paths, err := s.write(ctx, m.db, dir)
	require.NoError(m.t, err, "set %d", s.seed)
	o := &outcome{}
	err = panics(func() (err error) {
		o.proposal, err = infer.Files(ctx, paths, infer.Options{MemoryBytes: memory, Threads: 1,
			WorkDir: filepath.Join(dir, "work")})
		return err
	})
	if err != nil {
		m.became = "refused"
		return m.refusal(s, err)
	}
	m.became = "read"
	var b strings.Builder
	require.NoError(m.t, o.proposal.WriteScript(&b, false))
	o.script = b.String()
	if bad := m.run(ctx, s, o, dir); bad != nil {
		return bad
	}
	if bad = s.check(o); bad == unclear {
		m.became, bad = bad.class, nil
	}
	return bad
}

// panics makes an error of a panic.
func panics(do func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			_, frames, _ := strings.Cut(string(debug.Stack()), "panic(")
			err = &fault.Error{Kind: fault.Bug, Message: fmt.Sprintf("panic: %v in %.600s", r, frames)}
		}
	}()
	return do()
}

// refusal says what is wrong with a refusal; nil: nothing.
func (m *machine) refusal(s *set, err error) *failure {
	f := fault.Of(err)
	if m.refused != nil && f.Kind != fault.Bug {
		fmt.Fprintf(m.refused, "%d %s: %v; hint: %s\n", s.seed, s.format, strings.ReplaceAll(err.Error(), m.dir, ""),
			f.Hint)
	}
	switch {
	case f.Kind == fault.Bug:
		return failed("internal", "%v", err)
	case f.Kind != fault.UserData && f.Kind != fault.Script:
		return failed("internal", "a refusal of kind %s: %v", f.Kind, err)
	case f.Place.File == "":
		return failed("place", "a refusal without a place: %v", err)
	case f.Hint == "":
		return failed("hint", "a refusal without a hint: %v", err)
	}
	return nil
}

// run runs a proposed script.
func (m *machine) run(ctx context.Context, s *set, o *outcome, dir string) *failure {
	if m.runs%homeSets == 0 {
		if m.home != nil {
			require.NoError(m.t, m.home.Close())
		}
		at := filepath.Join(m.dir, "state")
		require.NoError(m.t, os.RemoveAll(at))
		home, err := instance.Open(ctx, at, true)
		require.NoError(m.t, err)
		m.home = home
	}
	m.runs++
	path := filepath.Join(dir, "script.yaml")
	require.NoError(m.t, os.WriteFile(path, []byte(o.script), 0o600))
	var sum runner.Summary
	err := panics(func() (err error) {
		sum, err = runner.Run(ctx, m.home, runner.Options{ScriptPath: path,
			Workspace: instance.DefaultWorkspace, Dir: dir,
			Process: runtime.Process{MemoryBytes: memory, Cores: 1}, Ephemeral: s.seed%2 == 1})
		return err
	})
	switch {
	case err != nil:
		return failed("refused by run", "%v", err)
	case sum.Status != state.Complete:
		return failed("refused by run", "%s: %+v", sum.Status, sum.Failure)
	}
	for _, of := range sum.Stats {
		o.bad += inspect.BadRowsOf(of)
	}
	found, err := filepath.Glob(filepath.Join(dir, "out", "*.csv"))
	require.NoError(m.t, err)
	require.Len(m.t, found, 1)
	raw, err := os.ReadFile(found[0])
	require.NoError(m.t, err)
	records := recordsOf(string(raw))
	o.header, o.rows = records[0], records[1:]
	return nil
}

// recordsOf cuts a CSV file that Thalweg has written.
func recordsOf(s string) (out [][]string) {
	var rec []string
	for len(s) > 0 {
		var value string
		if s[0] == '"' {
			end := 1
			for ; s[end] != '"' || strings.HasPrefix(s[end:], `""`); end++ {
				if s[end] == '"' {
					end++
				}
			}
			value, s = strings.ReplaceAll(s[1:end], `""`, `"`), s[end+1:]
		} else {
			end := strings.IndexAny(s, ",\n")
			value, s = s[:end], s[end:]
		}
		rec = append(rec, value)
		if s[0] == '\n' {
			out, rec = append(out, rec), nil
		} else if s[1] == '\n' { // an empty value is last
			rec = append(rec, "")
			out, rec, s = append(out, rec), nil, s[1:]
		}
		s = s[1:]
	}
	return out
}

// report prints a set that fails, made as small as it can be.
func (m *machine) report(s *set, bad *failure) {
	m.t.Helper()
	ctx := m.t.Context()
	told := m.refused
	m.refused = nil
	small, again := m.shrink(ctx, s, bad)
	m.refused = told
	what := fmt.Sprintf("set %d, %s: %s\nrun it again: %s=%d go test ./internal/test/infersets -run "+
		"'^TestChaosSets$'\nmade "+
		"smaller: %s\n%s",
		s.seed, bad.class, bad.message, seedVariable, s.seed, again.message, m.show(ctx, small))
	if keep := os.Getenv(keepVariable); keep != "" {
		name := filepath.Join(keep, fmt.Sprintf("%s_%d.txt", strings.ReplaceAll(bad.class, " ", "_"), s.seed))
		require.NoError(m.t, os.WriteFile(name, []byte(what), 0o600))
		what = fmt.Sprintf("set %d, %s: %s", s.seed, bad.class, name)
	}
	m.t.Error(what)
}

// texts are those of some cells, with the type that they have in the file.
func texts(cells []cell) string {
	var out []string
	for _, c := range cells {
		out = append(out, fmt.Sprintf("%T %q", c.plain(), c.Text))
	}
	return strings.Join(out, ", ")
}

// show prints a set's files, and what is proposed for them.
func (m *machine) show(ctx context.Context, s *set) string {
	var b strings.Builder
	dir := m.t.TempDir()
	paths, err := s.write(ctx, m.db, dir)
	require.NoError(m.t, err)
	for _, f := range s.files {
		fmt.Fprintf(&b, "-- %s: %s %s %s\n", f.Name, s.format, f.encoding, f.pack)
		if s.format == "csv" || s.format == "json" {
			text := f.json
			if s.format == "csv" {
				text = f.csv
			}
			fmt.Fprintf(&b, "%.1500q\n", text())
			continue
		}
		for _, rec := range append(slices.Clone(f.Titles), f.Header) {
			fmt.Fprintf(&b, "%s\n", texts(rec))
		}
		for _, rec := range f.Records[:min(len(f.Records), 10)] {
			fmt.Fprintf(&b, "%s\n", texts(rec.Cells))
		}
	}
	work := m.t.TempDir()
	err = panics(func() error {
		p, err := infer.Files(ctx, paths, infer.Options{MemoryBytes: memory, Threads: 1, WorkDir: work})
		if err == nil {
			err = p.WriteScript(&b, false)
		}
		return err
	})
	if err != nil {
		fmt.Fprintf(&b, "%v; hint: %s\n", err, fault.Of(err).Hint)
	}
	return strings.ReplaceAll(b.String(), dir+"/", "")
}
