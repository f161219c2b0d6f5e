package benches

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"thalweg/internal/app/cluster"
	"thalweg/internal/app/instance"
	"thalweg/internal/base/fault"
	"thalweg/internal/ops/clusterconfig"
	"thalweg/internal/store/cassandra"
)

// place is a state and parts of its own beside those of a state directory or a cluster, on the same disks and services.
type place struct {
	*instance.Instance
	nodes
	config *clusterconfig.Config // nil: a directory
	keep   bool
	made   struct { // by this run, which removes it: what was there before stays
		dirs            []string
		keyspace, parts bool // parts of a bucket
	}
}

// openPlace makes a place, or opens it again. Of a Cassandra, the times of one table are looked at.
func openPlace(ctx context.Context, o TargetOptions, table string) (_ *place, err error) {
	p := &place{keep: o.Keep}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.Close())
		}
	}()
	if o.Cluster == nil {
		if o.Dir == "" {
			return nil, fault.New(fault.Script, "name a state directory, or the configuration of a cluster")
		}
		dir := filepath.Join(o.Dir, o.Name)
		p.made.dirs = missing(dir)
		p.Instance, err = instance.Open(ctx, dir, true)
		return p, err
	}
	var dirs []string
	p.config, dirs = beside(*o.Cluster, o.Name)
	p.made.dirs = missing(dirs...)
	var cfg cassandra.Config
	if p.config.State.Cassandra != nil {
		if cfg, err = instance.CassandraOf(p.config); err != nil {
			return nil, err
		}
		if p.made.keyspace, err = lacksKeyspace(ctx, cfg, o.Name); err != nil {
			return nil, err
		}
	}
	if err := cluster.Init(ctx, p.config); err != nil {
		return nil, err
	}
	if p.Instance, err = instance.OpenCluster(ctx, p.config, instance.ClusterOptions{}); err != nil {
		return nil, err
	}
	if p.config.Parts.S3 != nil {
		if p.made.parts, err = p.lacksParts(ctx); err != nil {
			return nil, err
		}
	}
	if p.Cassandra != nil {
		p.nodes, err = openNodes(cfg, o.Name, table)
	}
	return p, err
}

// missing are the directories that are not there.
func missing(dirs ...string) []string {
	return slices.DeleteFunc(dirs, func(dir string) bool {
		_, err := os.Lstat(dir)
		return !errors.Is(err, fs.ErrNotExist)
	})
}

// lacksKeyspace reports whether a keyspace is not there.
func lacksKeyspace(ctx context.Context, cfg cassandra.Config, keyspace string) (bool, error) {
	cfg.Keyspace, cfg.Connections = "", 1
	s, err := cassandra.OpenWithin(ctx, cfg)
	if err != nil {
		return false, err
	}
	defer s.Close()
	there, err := cassandra.Replication(ctx, s, keyspace)
	return len(there) == 0, err
}

// lacksParts reports whether there are no parts.
func (p *place) lacksParts(ctx context.Context) (bool, error) {
	for _, err := range p.Parts.List(ctx, "", "") {
		if err != nil {
			return false, fmt.Errorf("look for parts that are there: %w", err)
		}
		return false, nil
	}
	return true, nil
}

// stays reports whether anything is not removed.
func (p *place) stays() bool {
	made := p.made.keyspace || p.made.parts || len(p.made.dirs) > 0
	return p.keep || !made
}

// beside is a configuration of a cluster with another keyspace, directory and prefix.
func beside(c clusterconfig.Config, name string) (_ *clusterconfig.Config, dirs []string) {
	c.Queue = nil
	if k := c.State.Cassandra; k != nil {
		other := *k
		other.Keyspace = name
		c.State.Cassandra = &other
	}
	if b := c.Parts.S3; b != nil {
		other := *b
		other.URL += "/" + name
		c.Parts.S3 = &other
	}
	for _, dir := range []*string{&c.State.Directory, &c.Parts.Directory} {
		if *dir != "" {
			*dir = filepath.Join(*dir, name)
			dirs = append(dirs, *dir)
		}
	}
	return &c, dirs
}

// Close closes the place and removes it, unless it is kept.
func (p *place) Close() (err error) {
	if p.Instance != nil {
		if !p.keep && p.made.parts {
			err = p.removeParts()
		}
		err = errors.Join(err, p.Instance.Close())
	}
	p.nodes.close()
	if p.keep {
		return err
	}
	for _, dir := range p.made.dirs {
		if gone := os.RemoveAll(dir); gone != nil {
			err = errors.Join(err, fmt.Errorf("remove what was measured: %w", gone))
		}
	}
	if p.made.keyspace {
		cfg, wrong := instance.CassandraOf(p.config)
		err = errors.Join(err, wrong)
		if wrong == nil {
			err = errors.Join(err, dropKeyspace(cfg, p.config.State.Cassandra.Keyspace))
		}
	}
	return err
}

// removeParts removes what is in a bucket.
func (p *place) removeParts() error {
	ctx, cancel := context.WithTimeout(context.Background(), cleanPatience)
	defer cancel()
	var keys []string
	for info, err := range p.Parts.List(ctx, "", "") {
		if err != nil {
			return fmt.Errorf("list the parts that were measured: %w", err)
		}
		keys = append(keys, info.Key)
	}
	for _, key := range keys {
		if err := p.Parts.Delete(ctx, key); err != nil {
			return fmt.Errorf("remove the parts that were measured: %w", err)
		}
	}
	return nil
}
