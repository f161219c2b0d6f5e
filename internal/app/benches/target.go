package benches

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"

	"thalweg/internal/base/fault"
	"thalweg/internal/ops/clusterconfig"
	"thalweg/internal/ops/load"
	"thalweg/internal/store/cassandra"
)

// TargetOptions say what is put under load.
type TargetOptions struct {
	// At is cql://HOST:PORT,…, cql (the Cassandra of Cluster), redis://HOST:PORT/DB, rediss://…, unix://PATH of a Redis,
	// parts or state.
	At      string
	Dir     string                // the state directory; unless there is a cluster
	Cluster *clusterconfig.Config // nil: none
	Login   Login                 // of what At addresses

	// Name is the keyspace, directory or prefix of keys that is made; "": a new one. Generators on several hosts give
	// one name, and all but one keep it.
	Name      string
	fresh     bool     // nobody else has the name
	Keep      bool     // what was made stays
	Shared    bool     // others write to it, too: it is removed all the same
	Exporters []string // addresses of Prometheus' text of the servers
	Value     int      // bytes of a column, a value, a part; 0: as the target's other measurers have it

	CQL     CQLOptions
	Redis   RedisOptions
	Batches int // of each run whose batches are claimed; 0: batchesDefault
}

// Login is how a client says who it is, and knows the servers.
type Login struct {
	Username, Password string             // "": none, unless the address names them
	TLS                *clusterconfig.TLS // nil: none; of rediss:// the system's authorities
}

// cleanPatience is for the removal of what was made.
const cleanPatience = 10 * time.Minute

// nameOf matches names that all targets can have: a keyspace's are the strictest. What is made is removed, so nothing
// that others have made may be named.
var nameOf = regexp.MustCompile(`^bench_[a-z0-9_]{1,42}$`)

// OpenTarget opens a store to put it under load. Its servers are observed if they say something of themselves.
func OpenTarget(ctx context.Context, o TargetOptions) (load.Target, error) {
	o.named()
	switch {
	case !nameOf.MatchString(o.Name):
		return nil, fault.New(fault.Script, "%q cannot be the name of what is made and removed: use bench_ and 1 to 42 of "+
			"a-z, 0-9 and _", o.Name)
	case o.Value < 0 || o.Value > valueMax:
		return nil, fault.New(fault.Script, "values have 1 to %d bytes, not %d", valueMax, o.Value)
	}
	exporters, err := openExporters(o.Exporters)
	if err != nil {
		return nil, err
	}
	scheme, rest, _ := strings.Cut(o.At, "://")
	var t load.Target
	switch scheme {
	case "cql":
		t, err = openCQL(ctx, o, rest)
	case "redis", "rediss", "unix":
		t, err = openRedis(ctx, o)
	case "parts":
		t, err = openParts(ctx, o)
	case "state":
		t, err = openState(ctx, o)
	default:
		return nil, &fault.Error{Kind: fault.Script, Message: "cannot measure " + shown(o.At),
			Hint: "name cql://HOST:PORT, cql, redis://HOST:PORT, parts or state"}
	}
	switch {
	case err != nil && refused(err):
		return nil, &fault.Error{Kind: fault.Script, Message: shown(o.At) + " does not let us in", Err: err,
			Hint: "check the user name and the password, and what the user is allowed"}
	case err != nil:
		return nil, fmt.Errorf("open %s to measure it: %w", shown(o.At), err)
	}
	return &target{t, exporters}, nil
}

// named names what is made, unless it has a name.
func (o *TargetOptions) named() {
	if o.Name == "" {
		o.Name, o.fresh = "bench_"+strings.ToLower(rand.Text())[:10], true
	}
}

// stays reports whether what was written to a target will be there when it is closed.
func stays(t load.Target) bool {
	if in, ok := t.(*target); ok {
		t = in.Target
	}
	s, ok := t.(interface{ stays() bool })
	return ok && s.stays()
}

// ofCassandra reports whether the servers of a target are of Cassandra.
func ofCassandra(t load.Target) bool {
	if in, ok := t.(*target); ok {
		t = in.Target
	}
	c, ok := t.(interface{ ofCassandra() bool })
	return ok && c.ofCassandra()
}

// copiesOf is how many copies servers keep of each row; 0: it is not known.
func copiesOf(t load.Target) int {
	if t, ok := t.(*target); ok {
		if c, ok := t.Target.(*cql); ok {
			return c.copies
		}
	}
	return 0
}

// valueMax bounds a value: the largest part that is written at once in one piece.
const valueMax = 1 << 30

// shown is an address without the user and the password, and without what should not be there.
func shown(at string) string {
	scheme, rest, ok := strings.Cut(at, "://")
	if !ok {
		scheme, rest = "", at
	}
	rest, _, _ = strings.Cut(rest[strings.LastIndexByte(rest, '@')+1:], "?")
	if !ok {
		return rest
	}
	return scheme + "://" + rest
}

// refused reports whether servers do not believe who we are, or do not let us do what a load does.
func refused(err error) bool {
	var cql gocql.RequestError
	var redis redisError
	switch {
	case errors.Is(err, cassandra.ErrLogin), errors.Is(err, cassandra.ErrNoLogin):
		return true
	case errors.As(err, &cql):
		return cql.Code() == gocql.ErrCodeUnauthorized
	case errors.As(err, &redis):
		word, _, _ := strings.Cut(string(redis), " ")
		return word == "NOAUTH" || word == "WRONGPASS" || word == "NOPERM"
	}
	return false
}

// target is a target with the exporters of its servers.
type target struct {
	load.Target
	exporters []*exporter
}

// Observe implements load.Observer: what servers and their exporters say of a node is one reading.
func (t *target) Observe(ctx context.Context) ([]load.Reading, error) {
	var out []load.Reading
	var errs []error
	if o, ok := t.Target.(load.Observer); ok {
		readings, err := o.Observe(ctx)
		out, errs = append(out, readings...), append(errs, err)
	}
	readings, err := readExporters(ctx, t.exporters)
	out = join(out, readings)
	localCores(out)
	return out, errors.Join(append(errs, err)...)
}

// Moved implements load.Meter.
func (t *target) Moved() load.Moved {
	if m, ok := t.Target.(load.Meter); ok {
		return m.Moved()
	}
	return load.Moved{}
}
