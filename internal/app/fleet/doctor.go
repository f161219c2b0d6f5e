package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"thalweg/internal/app/instance"
	"thalweg/internal/app/registry"
	"thalweg/internal/app/runtime"
	"thalweg/internal/base/durable"
	"thalweg/internal/base/fault"
	"thalweg/internal/lang/expr"
	"thalweg/internal/ops/clusterconfig"
	"thalweg/internal/ops/doctor"
	"thalweg/internal/run/engine"
	"thalweg/internal/run/plan"
	"thalweg/internal/run/python"
	"thalweg/internal/store/cassandra"
	"thalweg/internal/store/parts"
	partscassandra "thalweg/internal/store/parts/cassandra"
	partslocal "thalweg/internal/store/parts/local"
	"thalweg/internal/store/parts/s3"
	"thalweg/internal/store/queue/rabbitmq"
	statecassandra "thalweg/internal/store/state/cassandra"
	"thalweg/internal/store/state/sqlite"
)

// DoctorOptions say what is looked at.
type DoctorOptions struct {
	runtime.Process
	Dir     string                // state directory; "": none
	Cluster *clusterconfig.Config // nil: none
	Named   bool                  // somebody has said which interpreter
	Limit   time.Duration         // of each check; 0: its own
}

// Impatience of what is looked at: what fails is said, not waited for.
const (
	doctorPause    = 20 * time.Millisecond // between tries
	doctorConnect  = 5 * time.Second
	doctorPatience = 3 * time.Second
)

// Doctor looks at this machine, and at the state directory or the services of the cluster.
func Doctor(ctx context.Context, opts DoctorOptions) (found []doctor.Finding, err error) {
	tmp, err := os.MkdirTemp("", "thalweg-doctor-")
	if err != nil {
		return nil, temporaryFault(err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	d := &examination{DoctorOptions: opts, tmp: tmp}
	services := []doctor.Service{d.machine(), d.python()}
	switch {
	case opts.Cluster != nil:
		services = append(services, d.state(opts.Cluster), d.parts(opts.Cluster))
		if q := opts.Cluster.Queue; q != nil {
			services = append(services, d.broker(q))
		}
		services = append(services, d.workers(opts.Cluster))
	case opts.Dir != "":
		services = append(services, d.file(opts.Dir, nil), d.partsIn(filepath.Join(opts.Dir, "parts")))
	}
	return doctor.Examine(ctx, services, opts.Limit)
}

// examination is one look.
type examination struct {
	DoctorOptions
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

const doctorEngineBytes = 64 << 20

func (d *examination) engineVersion(ctx context.Context) (version string, err error) {
	in, err := engine.OpenInstance(ctx, engine.InstanceConfig{MemoryBytes: doctorEngineBytes, Threads: 1,
		SpillDir: filepath.Join(d.tmp,
			"spill")})
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
		Fields: []python.Field{{Name: "one",
			Type: expr.Int, Expr: "1"}}})
}

func (d *examination) state(c *clusterconfig.Config) doctor.Service {
	if c.State.Directory != "" {
		return d.file(c.State.Directory, c)
	}
	k := c.State.Cassandra
	cfg, err := instance.CassandraOf(c)
	if err != nil {
		return broken("state", err)
	}
	var session *cassandra.Session
	closing := func() {}
	asked := k.Replication
	if k.Unsaid {
		asked = nil
	}
	look := &doctor.Cassandra{Hosts: k.Hosts, Keyspace: k.Keyspace, Datacenter: k.Datacenter, Replication: asked,
		Ask: func(ctx context.Context, host string) (cassandra.Node, error) { return cassandra.Ask(ctx, cfg, host) },
		Copies: func(ctx context.Context) (map[string]int, error) {
			bare := cfg
			bare.Keyspace = ""
			s, end, err := instance.SessionOf(ctx, c, bare)
			if err != nil {
				return nil, err
			}
			defer end()
			copies, err := cassandra.Replication(ctx, s, k.Keyspace)
			if err == nil && len(copies) == 0 {
				err = instance.NoKeyspace(ctx, c, s)
			}
			return copies, err
		},
		Open: func(ctx context.Context) (err error) {
			session, closing, err = instance.SessionOf(ctx, c, cfg)
			return err
		},
		Tables:  func(ctx context.Context) ([]string, error) { return cassandra.Missing(ctx, session, tablesOf(c)) },
		Version: func(ctx context.Context) error { return statecassandra.CheckTables(ctx, session) },
		Try: func(ctx context.Context) (write, read time.Duration, err error) {
			p, err := statecassandra.Try(ctx, session)
			return p.Write, p.Read, err
		},
		Close: func() { closing() },
	}
	return look.Service()
}

// tablesOf are the statements that make what a cluster keeps in Cassandra.
func tablesOf(c *clusterconfig.Config) []string {
	if !c.Parts.Cassandra {
		return statecassandra.Statements()
	}
	return append(statecassandra.Statements(), partscassandra.Tables()...)
}

// broken is a service of which even the configuration cannot be used.
func broken(name string, err error) doctor.Service {
	return doctor.Service{Name: name, Checks: []doctor.Check{{Name: "configuration",
		Look: func(context.Context) doctor.Result { return doctor.Failed(err) }}}}
}

func (d *examination) file(dir string, c *clusterconfig.Config) doctor.Service {
	var store *sqlite.Store
	return doctor.File{Dir: dir,
		Open: func(ctx context.Context) (err error) {
			store, err = instance.OpenFile(ctx, dir, c)
			return err
		},
		Check: func(ctx context.Context) ([]string, error) { return store.Check(ctx) },
		Try:   func(ctx context.Context) (time.Duration, error) { return doctor.TryNote(ctx, store) },
		Close: func() {
			if store != nil {
				_ = store.Close() // nothing is lost
			}
		},
	}.Service()
}

func (d *examination) parts(c *clusterconfig.Config) doctor.Service {
	if dir := c.PartsDirectory(); dir != "" {
		return d.partsIn(dir)
	}
	with := ""
	if c.Parts.Cassandra {
		with = "state"
	}
	return doctor.Parts(with, func(ctx context.Context) (parts.Backend, string, func(), error) {
		if c.Parts.S3 != nil {
			to := instance.RemoteOf(c.Parts.S3)
			to.Pause, to.PauseMax, to.ConnectTimeout = doctorPause, doctorPause, doctorConnect
			b, err := s3.New(ctx, s3.Config{URL: c.Parts.S3.URL, Remote: to})
			if err != nil {
				return nil, "", nil, err
			}
			return b, d.tmp, func() { _ = b.Close() }, nil
		}
		cfg, err := instance.CassandraOf(c)
		if err != nil {
			return nil, "", nil, err
		}
		s, end, err := instance.SessionOf(ctx, c, cfg)
		if err != nil {
			return nil, "", nil, err
		}
		return partscassandra.New(s, partscassandra.Config{Patience: doctorPatience}), d.tmp, end, nil
	})
}

func (d *examination) partsIn(dir string) doctor.Service {
	return doctor.Parts("", func(ctx context.Context) (parts.Backend, string, func(), error) {
		if st, err := os.Stat(dir); err == nil && !st.IsDir() {
			return nil, "", nil, &fault.Error{Kind: fault.Environment, Message: dir + " is no directory",
				Hint: "move it away, or name another directory: parts: {directory: PATH}"}
		}
		if _, err := os.Stat(filepath.Dir(dir)); err != nil {
			return nil, "", nil, &fault.Error{Kind: fault.Environment, Message: "look for the directory of the parts",
				Err: err, Hint: "it is made by {{do cluster-init}}, or the first run"}
		}
		store, err := partslocal.OpenOn(durable.FS{}, dir)
		if err != nil {
			return nil, "", nil, instance.Fault(dir, "open the parts", err)
		}
		stage, err := store.Stage(ctx)
		if err != nil {
			return nil, "", nil, errors.Join(instance.Fault(dir, "make a directory beside the parts",
				err), store.Close())
		}
		return store, stage.Dir, func() { _ = errors.Join(stage.Close(), store.Close()) }, nil
	})
}

func (d *examination) broker(q *clusterconfig.RabbitMQ) doctor.Service {
	cfg, err := instance.BrokerOf(d.Cluster, q, "")
	if err != nil {
		return broken("queue", err)
	}
	look := &doctor.Broker{Hosts: q.Hosts, Look: func(ctx context.Context, host string) (*rabbitmq.Probe,
		error) {
		return rabbitmq.Look(ctx, cfg, host)
	}, Prefix: func(ctx context.Context) (string, error) { return instance.QueuePrefix(ctx, d.Cluster) }}
	return look.Service()
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
