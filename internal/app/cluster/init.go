package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"thalweg/internal/app/instance"
	"thalweg/internal/base/fault"
	"thalweg/internal/ops/clusterconfig"
	"thalweg/internal/ops/doctor"
	"thalweg/internal/store/cassandra"
	"thalweg/internal/store/parts/s3"
	statecassandra "thalweg/internal/store/state/cassandra"
)

// Config is the configuration of a cluster.
type Config = clusterconfig.Config

// Prepare makes what the cluster of a configuration needs and has not got yet.
// warn is told what is wrong and keeps nobody from going on.
func Prepare(ctx context.Context, cfg *clusterconfig.Config, warn func(error)) error {
	if err := Init(ctx, cfg); err != nil {
		return err
	}
	if err := CheckCopies(ctx, cfg); ctx.Err() != nil {
		return ctx.Err()
	} else if err != nil {
		warn(err)
	}
	switch err := CheckBroker(ctx, cfg, true); {
	case err == nil:
	case ctx.Err() != nil || fault.Of(err).Kind == fault.UserData || fault.Of(err).Kind == fault.Script:
		return err
	default:
		warn(err)
	}
	return nil
}

// Init makes what a cluster needs and has not got yet, and tries whether it can be
// written and read.
func Init(ctx context.Context, cfg *clusterconfig.Config) error {
	if cfg.State.Directory != "" {
		home, err := instance.Open(ctx, cfg.State.Directory, true)
		if err != nil {
			return instance.WrongFile(cfg, err, "name a directory, or one that can be made", "state.directory")
		}
		if err := home.Close(); err != nil {
			return err
		}
	} else if err := initCassandra(ctx, cfg); err != nil {
		return err
	}
	if cfg.Parts.S3 != nil {
		if err := checkBucket(ctx, cfg); err != nil {
			return err
		}
	}
	home, err := instance.OpenCluster(ctx, cfg, instance.ClusterOptions{})
	if err != nil {
		return err
	}
	return errors.Join(tryOut(ctx, home), home.Close())
}

// tryOut writes, reads and removes something of the state and of the parts.
func tryOut(ctx context.Context, h *instance.Instance) (err error) {
	if h.Cassandra != nil {
		_, err = statecassandra.Try(ctx, h.Cassandra)
	} else {
		_, err = doctor.TryNote(ctx, h.State)
	}
	if err != nil {
		return fmt.Errorf("write and read the state: %w", err)
	}
	tmp, err := os.MkdirTemp("", "thalweg-init-")
	if err != nil {
		return TemporaryFault(err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	return instance.WrongBucket(h.ClusterConfig, doctor.Must(ctx, PartsService(h.ClusterConfig, tmp)))
}

// initCassandra makes the keyspace and the tables that are missing.
func initCassandra(ctx context.Context, c *clusterconfig.Config) error {
	cfg, err := instance.CassandraOf(c)
	if err != nil {
		return err
	}
	if err := fits(ctx, c, cfg); err != nil {
		return err
	}
	if err := statecassandra.Init(ctx, cfg, c.State.Cassandra.Replication); err != nil {
		return err
	}
	session, err := cassandra.Open(cfg)
	if err != nil {
		return err
	}
	defer session.Close()
	if err := session.Make(ctx, tablesOf(c)); err != nil {
		return fmt.Errorf("make the tables of parts, users and tokens: %w", err)
	}
	return nil
}

// Nodes that have just been started learn of each other within a second or two.
const (
	nodesPatience = 5 * time.Second
	nodesPause    = 500 * time.Millisecond
)

// fits refuses, before anything is made, a configuration that asks for what the nodes cannot
// keep, or that the keyspace is not like. A node that is alone is not asked again.
func fits(ctx context.Context, c *clusterconfig.Config, cfg cassandra.Config) error {
	cfg.Keyspace = ""
	for end := time.Now().Add(nodesPatience); ; {
		nodes, err := fitsNow(ctx, c, cfg)
		if err == nil || nodes < 2 || time.Now().After(end) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(nodesPause):
		}
	}
}

// fitsNow is fits by the nodes that are known now.
func fitsNow(ctx context.Context, c *clusterconfig.Config, cfg cassandra.Config) (nodes int, err error) {
	s, err := cassandra.OpenWithin(ctx, cfg)
	if err != nil {
		return 0, instance.WrongCassandra(c, err)
	}
	defer s.Close()
	there := s.Datacenters()
	for _, n := range there {
		nodes += n
	}
	if err := inDatacenter(c, there); err != nil {
		return nodes, err
	}
	keeps, err := cassandra.Replication(ctx, s, c.State.Cassandra.Keyspace)
	switch {
	case err != nil:
		return 0, err
	case len(keeps) > 0:
		return nodes, keepsEnough(c, keeps, there)
	}
	return nodes, enoughNodes(c, c.State.Cassandra.Replication, there)
}

// checkBucket refuses a bucket that cannot be used.
func checkBucket(ctx context.Context, c *clusterconfig.Config) error {
	b := c.Parts.S3
	store, err := s3.New(ctx, s3.Config{URL: b.URL, Remote: instance.RemoteOf(b)})
	if err != nil {
		return instance.WrongFile(c, err, instance.CaHint, "parts.s3.ca")
	}
	return instance.WrongBucket(c, errors.Join(store.Check(ctx), store.Close()))
}

// TemporaryFault says that there is no directory for temporary files.
func TemporaryFault(err error) error {
	return &fault.Error{Kind: fault.Environment, Message: "make a directory for temporary files", Err: err,
		Hint: "check permissions and free space, or name another one: TMPDIR"}
}
