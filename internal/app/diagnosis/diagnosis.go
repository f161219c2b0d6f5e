package diagnosis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"thalweg/internal/app/cluster"
	"thalweg/internal/app/instance"
	"thalweg/internal/app/registry"
	"thalweg/internal/app/runtime"
	"thalweg/internal/lang/expr"
	"thalweg/internal/ops/clusterconfig"
	"thalweg/internal/ops/doctor"
	"thalweg/internal/run/engine"
	"thalweg/internal/run/plan"
	"thalweg/internal/run/python"
)

// Options say what is looked at.
type Options struct {
	runtime.Process
	Dir     string                // state directory; "": none
	Cluster *clusterconfig.Config // nil: none
	Named   bool                  // somebody has said which interpreter
	Limit   time.Duration         // of each check; 0: its own
}

// Examine looks at this machine, and at the state directory or the services of the cluster.
func Examine(ctx context.Context, opts Options) (found []doctor.Finding, err error) {
	tmp, err := os.MkdirTemp("", "thalweg-doctor-")
	if err != nil {
		return nil, cluster.TemporaryFault(err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	d := &examination{Options: opts, tmp: tmp}
	services := []doctor.Service{d.machine(), d.python()}
	switch {
	case opts.Cluster != nil:
		services = append(services, cluster.StateService(opts.Cluster), cluster.PartsService(opts.Cluster, tmp))
		if opts.Cluster.Queue != nil {
			services = append(services, cluster.BrokerService(opts.Cluster))
		}
		services = append(services, d.workers(opts.Cluster))
	case opts.Dir != "":
		services = append(services, cluster.FileService(opts.Dir, nil), cluster.PartsIn(filepath.Join(opts.Dir, "parts")))
	}
	return doctor.Examine(ctx, services, opts.Limit)
}

// examination is one look.
type examination struct {
	Options
	tmp string
}

func (d *examination) machine() doctor.Service {
	m := doctor.Machine{Program: d.Program, Engine: engine.Version, Query: d.engineVersion}
	if c := d.Cluster; c != nil {
		m.Memory, m.Cores = c.Worker.Memory, c.Worker.Cores
		m.Scratch, _ = instance.ScratchOf(c) // opening the cluster says what is wrong with it
		if c.PartsDirectory() == "" {
			m.Cache = c.Worker.Cache
		}
	}
	return m.Service()
}

// engineBytes is the memory of the DuckDB that is asked for its version.
const engineBytes = 64 << 20

func (d *examination) engineVersion(ctx context.Context) (version string, err error) {
	in, err := engine.OpenInstance(ctx, engine.InstanceConfig{MemoryBytes: engineBytes, Threads: 1,
		SpillDir: filepath.Join(d.tmp, "spill")})
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	rows, err := in.Query(ctx, "SELECT version()")
	if err != nil {
		return "", engine.Classify(ctx, err, "ask DuckDB for its version")
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := rows.Scan(&version); err != nil {
			return "", engine.Classify(ctx, err, "ask DuckDB for its version")
		}
	}
	return version, rows.Err()
}

func (d *examination) python() doctor.Service {
	return doctor.Python{Named: d.Named, Start: func(ctx context.Context) (string, error) {
		found, err := d.interpreter(ctx, "")
		if err != nil {
			return "", err
		}
		f := strings.Fields(found["python"])
		return strings.Join(f[:min(len(f), 2)], " "), nil
	}}.Service()
}

// interpreter starts one as runs do, with text as code of a script that is only
// looked at, and gives its surroundings.
func (d *examination) interpreter(ctx context.Context, text string) (_ map[string]string, err error) {
	pool, err := python.NewPool(python.Config{Interpreter: d.Interpreter, Size: 1, Keeper: d.Keeper, Dir: d.tmp})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	return pool.Check(ctx, &python.Program{Files: []python.Source{{Name: "doctor.py", Text: text}},
		Fields: []python.Field{{Name: "one", Type: expr.Int, Expr: "1"}}})
}

func (d *examination) workers(c *clusterconfig.Config) doctor.Service {
	home := &instance.Instance{ClusterConfig: c, Clock: &instance.Clock{}}
	end := func() {}
	look := &doctor.Workers{Engine: engine.Version, Hash: plan.KeyHash, Now: home.Clock.Now,
		Open: func(ctx context.Context) (err error) {
			home.State, end, err = instance.StateOf(ctx, c, home.Clock)
			return err
		},
		List: func(ctx context.Context) (out []doctor.Worker, err error) {
			there, err := registry.Workers(ctx, home)
			for _, w := range there {
				out = append(out, doctor.Worker{Name: fmt.Sprintf("%s (process %d)", w.Host, w.PID),
					Engine: w.Engine, Hash: w.Hash,
					Python: w.Python, Cannot: w.Cannot, Odd: w.Notices, Gone: w.Gone, Seen: cmp.Or(w.Clock, w.Seen)})
			}
			return out, err
		},
		Runs:  func(ctx context.Context) (doctor.OpenRuns, error) { return d.openRuns(ctx, home) },
		Close: func() { end() },
	}
	return look.Service()
}
