package cluster

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	accesscassandra "thalweg/internal/app/access/cassandra"
	"thalweg/internal/app/instance"
	"thalweg/internal/base/durable"
	"thalweg/internal/base/fault"
	"thalweg/internal/ops/clusterconfig"
	"thalweg/internal/ops/doctor"
	"thalweg/internal/store/cassandra"
	"thalweg/internal/store/parts"
	partscassandra "thalweg/internal/store/parts/cassandra"
	partslocal "thalweg/internal/store/parts/local"
	"thalweg/internal/store/parts/s3"
	"thalweg/internal/store/queue/rabbitmq"
	statecassandra "thalweg/internal/store/state/cassandra"
	"thalweg/internal/store/state/sqlite"
)

// Impatience of what is looked at: what fails is said, not waited for.
const (
	lookPause    = 20 * time.Millisecond // between tries
	lookConnect  = 5 * time.Second
	LookPatience = 3 * time.Second // of a call of the state or of parts
)

// StateService is how the state of a cluster is looked at.
func StateService(c *clusterconfig.Config) doctor.Service {
	if c.State.Directory != "" {
		return FileService(c.State.Directory, c)
	}
	k := c.State.Cassandra
	cfg, err := instance.CassandraOf(c)
	if err != nil {
		return brokenService("state", err)
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
	out := append(statecassandra.Statements(), accesscassandra.Statements()...)
	if c.Parts.Cassandra {
		out = append(out, partscassandra.Tables()...)
	}
	return out
}

// brokenService is a service of which even the configuration cannot be used.
func brokenService(name string, err error) doctor.Service {
	return doctor.Service{Name: name, Checks: []doctor.Check{{Name: "configuration",
		Look: func(context.Context) doctor.Result { return doctor.Failed(err) }}}}
}

// FileService is how the state in a directory is looked at. c is the configuration of the cluster that has it; nil: none.
func FileService(dir string, c *clusterconfig.Config) doctor.Service {
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

// PartsService is how the parts of a cluster are looked at, with files in tmp.
func PartsService(c *clusterconfig.Config, tmp string) doctor.Service {
	if dir := c.PartsDirectory(); dir != "" {
		return PartsIn(dir)
	}
	with := ""
	if c.Parts.Cassandra {
		with = "state"
	}
	return doctor.Parts(with, func(ctx context.Context) (parts.Backend, string, func(), error) {
		if c.Parts.S3 != nil {
			to := instance.RemoteOf(c.Parts.S3)
			to.Pause, to.PauseMax, to.ConnectTimeout = lookPause, lookPause, lookConnect
			b, err := s3.New(ctx, s3.Config{URL: c.Parts.S3.URL, Remote: to})
			if err != nil {
				return nil, "", nil, err
			}
			return b, tmp, func() { _ = b.Close() }, nil
		}
		cfg, err := instance.CassandraOf(c)
		if err != nil {
			return nil, "", nil, err
		}
		s, end, err := instance.SessionOf(ctx, c, cfg)
		if err != nil {
			return nil, "", nil, err
		}
		return partscassandra.New(s, partscassandra.Config{Patience: LookPatience}), tmp, end, nil
	})
}

// PartsIn is how parts in a directory are looked at.
func PartsIn(dir string) doctor.Service {
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

// BrokerService is how the broker of a cluster, which has one, is looked at.
func BrokerService(c *clusterconfig.Config) doctor.Service {
	q := c.Queue
	cfg, err := instance.BrokerOf(c, q, "")
	if err != nil {
		return brokenService("queue", err)
	}
	look := &doctor.Broker{Hosts: q.Hosts, Look: func(ctx context.Context, host string) (*rabbitmq.Probe, error) {
		return rabbitmq.Look(ctx, cfg, host)
	}, Prefix: func(ctx context.Context) (string, error) { return instance.QueuePrefix(ctx, c) }}
	return look.Service()
}
