package property

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"thalweg/internal/app/instance"
	"thalweg/internal/app/runner"
	"thalweg/internal/app/runtime"
	"thalweg/internal/base/budget"
	"thalweg/internal/run/job"
	"thalweg/internal/run/orders"
	"thalweg/internal/store/state"
	"thalweg/internal/test/jobtest"
)

// variant is a way to run a script.
type variant struct {
	Name    string
	Inputs  int   // which of the script's inputs
	Slots   int   // 0: as --memory and --cores say
	Threads int   // of all slots
	Cuts    int64 // batches that the largest source is cut into; 0: nothing is cut
	Buckets bool  // right sides are put into buckets, and not read whole
	Batch   int64 // bytes of a batch, which follow from Cuts
	Memory  int64 // --memory
	Cores   int   // --cores
	Kill    string
	Fused   bool   // --ephemeral
	Fail    int    // this task of the run fails, and is done again by a retry; 0: none
	Redo    int    // so many times something of the complete run is done again
	Seed    uint64 // of what is
}

const (
	plenty    = 1 << 30
	leastKill = 3 // a run passes each crash point at least so often
	tiny      = 64
)

// variants draws n of them, the first of which is the plainest, and one more
// that stores no table that need not be.
func (g gen) variants(n int) []variant {
	out := []variant{{Name: "one batch each", Slots: 1, Threads: 1}}
	others := []variant{
		{Name: "threads", Slots: 1, Threads: 4},
		{Name: "threads, other inputs", Inputs: 1, Slots: 1, Threads: 8},
		{Name: "small batches, right side whole", Slots: 3, Threads: 3, Cuts: 3},
		{Name: "small batches, two buckets", Slots: 2, Threads: 4, Cuts: 2, Buckets: true},
		{Name: "tiny batches, many buckets", Inputs: 1, Slots: 2, Threads: 2, Cuts: 4, Buckets: true},
		{Name: "one batch, two buckets", Slots: 2, Threads: 4, Buckets: true},
		{Name: "many files and batches", Inputs: 1, Slots: 4, Threads: 4, Cuts: 2},
		{Name: "little memory", Inputs: 1, Memory: budget.MemoryBytesMin, Cores: 1},
		{Name: "many cores", Memory: 2 << 30, Cores: 8},
		{Name: "other inputs", Inputs: 1, Slots: 1, Threads: 1},
	}
	g.Shuffle(len(others), func(i, j int) { others[i], others[j] = others[j], others[i] })
	out = append(out, others[:n-1]...)
	fused := others[n-1]
	fused.Name, fused.Fused = fused.Name+", ephemeral", true
	out = append(out, fused)
	if g.oneIn(killedShare) {
		v := &out[n-g.IntN(2)]
		v.Kill = fmt.Sprintf("%s:%d", pick(g, job.CrashPoints()...), 1+g.IntN(2*leastKill))
		v.Name += ", killed at " + v.Kill
	}
	if g.oneIn(retriedShare) {
		v := &out[g.IntN(n)]
		v.Fail, v.Redo, v.Seed = g.IntN(tasksEarly), 1+g.IntN(3), g.Uint64()
		v.Name += fmt.Sprintf(", task %d fails, %d retries", v.Fail, v.Redo)
	}
	for i := range out {
		if out[i].Memory == 0 {
			out[i].Memory, out[i].Cores = plenty, 2
		}
	}
	return out
}

// One script in so many has a variant that is killed, and one that is done
// again in parts.
const (
	killedShare  = 4
	retriedShare = 2
)

// tasksEarly: most runs have so many tasks.
const tasksEarly = 8

func (v variant) tune(b *budget.Budget) {
	if v.Slots == 0 {
		return
	}
	b.Slots, b.Cores, b.BatchBytes, b.SmallBytes, b.BroadcastBytes = v.Slots, v.Threads, plenty, plenty, plenty
	if v.Cuts > 0 {
		b.BatchBytes, b.SmallBytes = v.Batch, 0
	}
	if v.Buckets {
		b.BroadcastBytes = 0
	}
}

// inputs are the files of a script's sources, written in one way.
type inputs struct {
	reader map[string]object // r of each source
	bytes  int64             // of the largest
}

// write makes the files of all sources: CSV of some dialect or Parquet, one
// file or several.
func (g gen) write(s *script, dir string) (*inputs, error) {
	in := &inputs{reader: map[string]object{}}
	for _, src := range s.sources {
		files := pick(g, 1, 1, 1, 2, 3, 7)
		var err error
		if g.oneIn(3) {
			err = g.writeParquet(in, src, dir, files)
		} else {
			err = g.writeCSV(in, src, dir, files)
		}
		if err != nil {
			return nil, fmt.Errorf("source %s: %w", src.name, err)
		}
	}
	return in, nil
}

func (g gen) writeCSV(in *inputs, src *source, dir string, files int) error {
	d := g.dialect(src)
	urls, err := g.split(in, src, dir, files, ".csv", func(rows [][]any) (string, error) { return d.file(rows), nil })
	csv, columns := d.reader()
	in.reader[src.name] = object{{"urls", urls}, {"csv", csv}, {"columns", columns}}
	return err
}

func (g gen) writeParquet(in *inputs, src *source, dir string, files int) error {
	f := g.parquetForm(src)
	urls, err := g.split(in, src, dir, files, ".parquet", f.file)
	in.reader[src.name] = object{{"urls", urls}, {"columns", f.reader()}}
	return err
}

// split writes the rows of a source to files, cut anywhere.
func (g gen) split(in *inputs, src *source, dir string, files int, ending string,
	write func([][]any) (string, error)) ([]string, error) {
	var urls []string
	from, bytes := 0, int64(0)
	for i := range files {
		to := len(src.rows)
		if i < files-1 {
			to = from + g.IntN(len(src.rows)-from+1)
		}
		path := filepath.Join(dir, fmt.Sprintf("%s_%d%s", src.name, i, ending))
		text, err := write(src.rows[from:to])
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return nil, err
		}
		urls, from = append(urls, path), to
		bytes += int64(len(text))
	}
	in.bytes = max(in.bytes, bytes)
	return urls, nil
}

// DuckDB computes 2,048 rows at a time, and a sorted output of wide texts has
// so many of those in memory; less cannot work, and says so (script 574).
const (
	vectorRows   = 2_048
	vectorCopies = 32
)

// memoryFor is the memory that the widest row of some tables takes.
func memoryFor(tables map[string][][]any) int64 {
	widest := 0
	for _, rows := range tables {
		for _, row := range rows {
			width := 0
			for _, cell := range row {
				if text, ok := cell.(string); ok {
					width += len(text)
				}
			}
			widest = max(widest, width)
		}
	}
	return int64(widest) * vectorRows * vectorCopies
}

// run executes a script in dir, in this process or in one that dies, and
// returns the files that it wrote by their names.
func (v variant) run(ctx context.Context, s *script, in *inputs, dir string) (map[string]string, error) {
	at := place{inputs: in, out: filepath.Join(dir, "out"), python: filepath.Join(dir, "formulas.py")}
	if v.Cuts > 0 {
		v.Batch = max(in.bytes/v.Cuts, tiny)
	}
	text, err := s.text(at)
	if err != nil {
		return nil, err
	}
	for name, content := range map[string]string{"script.json": text, "formulas.py": formulas} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			return nil, err
		}
	}
	resume := false
	if v.Kill != "" {
		if resume, err = v.die(ctx, dir); err != nil {
			return nil, err
		}
	}
	if v.Kill == "" || resume {
		if err := v.execute(ctx, dir, resume, nil); err != nil {
			return nil, err
		}
	}
	if v.Redo > 0 {
		if err := v.redo(ctx, dir); err != nil {
			return nil, err
		}
	}
	return read(at.out)
}

func read(dir string) (map[string]string, error) {
	out := map[string]string{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		out[e.Name()] = string(data)
	}
	return out, nil
}

// execute runs, or resumes, the script in dir.
func (v variant) execute(ctx context.Context, dir string, resume bool, checkpoint func(job.CrashPoint)) (err error) {
	home, err := instance.Open(ctx, filepath.Join(dir, "state"), true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, home.Close()) }()
	opts := runner.Options{ScriptPath: filepath.Join(dir, "script.json"), Workspace: "main",
		Process: runtime.Process{MemoryBytes: v.Memory, Cores: v.Cores, Interpreter: "python3", Tune: v.tune,
			Checkpoint: checkpoint}, Ephemeral: v.Fused, Resume: resume}
	if v.Fail > 0 {
		opts.Executor = failsOnce(v.Fail, false)
	}
	sum, err := runner.Run(ctx, home, opts)
	if err == nil && v.Fail > 0 && sum.Status == state.Failed {
		sum, err = v.retry(ctx, home, sum.Key, orders.RedoSelection{})
	}
	if err != nil {
		return fmt.Errorf("%w%s", err, hint(sum))
	}
	if sum.Status != state.Complete {
		return fmt.Errorf("the run is %s%s", sum.Status, hint(sum))
	}
	return nil
}

func hint(sum runner.Summary) string {
	if sum.Failure == nil {
		return ""
	}
	return fmt.Sprintf(": %+v", *sum.Failure)
}

// victimDir makes the test binary run the variant in that directory and die
// where it says.
const victimDir = "THALWEG_PROPERTY_VICTIM"

// die runs the script in a process that kills itself at a crash point. It says
// whether there is something to resume: a run that passes the point too seldom ends well.
func (v variant) die(ctx context.Context, dir string) (bool, error) {
	spec, err := json.Marshal(v)
	if err != nil {
		return false, err
	}
	if err := os.WriteFile(filepath.Join(dir, "variant.json"), spec, 0o644); err != nil {
		return false, err
	}
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), victimDir+"="+dir)
	text, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() &&
			status.Signal() == syscall.SIGKILL {
			return true, nil
		}
	}
	if err != nil {
		return false, fmt.Errorf("the process that was to be killed: %w: %s", err, text)
	}
	return false, nil
}

// victim is the process that dies.
func victim(dir string) int {
	var v variant
	spec, err := os.ReadFile(filepath.Join(dir, "variant.json"))
	if err == nil {
		err = json.Unmarshal(spec, &v)
	}
	if err == nil {
		err = v.execute(context.Background(), dir, false, jobtest.DieAt(v.Kill))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
