package instance

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"thalweg/internal/base/fault"
	"thalweg/internal/io/remote"
	"thalweg/internal/ops/clusterconfig"
	"thalweg/internal/store/cassandra"
	"thalweg/internal/store/parts"
	partscassandra "thalweg/internal/store/parts/cassandra"
	"thalweg/internal/store/parts/s3"
	"thalweg/internal/store/queue"
	"thalweg/internal/store/queue/rabbitmq"
	"thalweg/internal/store/state"
	statecassandra "thalweg/internal/store/state/cassandra"
	"thalweg/internal/store/state/sqlite"
)

// The services of a cluster, as its configuration names them.

// CassandraOf returns the settings for connecting to Cassandra.
func CassandraOf(c *clusterconfig.Config) (cassandra.Config, error) {
	k := c.State.Cassandra
	out := cassandra.Config{Hosts: k.Hosts, Keyspace: k.Keyspace, Datacenter: k.Datacenter, Username: k.Username,
		Password: k.Password}
	var err error
	out.TLS, err = tlsOf(c, k.TLS, "state.cassandra.tls")
	return out, err
}

// TLSOf returns the settings for connections that no configuration of a cluster names; nil without TLS.
func TLSOf(t *clusterconfig.TLS) (*tls.Config, error) {
	return tlsOf(&clusterconfig.Config{}, t, "tls")
}

// tlsOf reads certificates, which a section of the configuration names; nil without TLS.
func tlsOf(c *clusterconfig.Config, t *clusterconfig.TLS, section string) (*tls.Config, error) {
	if t == nil {
		return nil, nil
	}
	out := &tls.Config{ServerName: t.ServerName, MinVersion: tls.VersionTLS12}
	if t.CA != "" {
		text, err := os.ReadFile(t.CA)
		if err != nil {
			return nil, Wrong(c, "read the certificates of authorities", tlsHint, err, section+".ca")
		}
		out.RootCAs = x509.NewCertPool()
		if !out.RootCAs.AppendCertsFromPEM(text) {
			return nil, Wrong(c, t.CA+" has no certificate", tlsHint, nil, section+".ca")
		}
	}
	if t.Cert != "" {
		pair, err := tls.LoadX509KeyPair(t.Cert, t.Key)
		if err != nil {
			return nil, Wrong(c, "read the certificate and its key", tlsHint, err, section+".cert")
		}
		out.Certificates = []tls.Certificate{pair}
	}
	return out, nil
}

const CaHint = "name a PEM file, or a directory of such"

const tlsHint = "the configuration of the cluster names the files below tls: ca, cert, key, in PEM form"

// openCassandra opens a state in Cassandra.
func (h *Instance) openCassandra(ctx context.Context) error {
	cfg, err := CassandraOf(h.ClusterConfig)
	if err != nil {
		return err
	}
	cfg.Observer = h.observers.named()
	if h.Cassandra, err = cassandra.Open(cfg); err != nil {
		return cmp.Or(absent(ctx, h.ClusterConfig, cfg), WrongCassandra(h.ClusterConfig, err))
	}
	if err := h.Clock.Follow(ctx, h.Cassandra); err != nil {
		return err
	}
	store, err := statecassandra.New(ctx, h.Cassandra, h.observers.ofState())
	if err != nil {
		return err
	}
	h.State, h.Liveness = store, StateNotes{store, h.Clock}
	return nil
}

// openBackend opens parts that have no paths.
func (h *Instance) openBackend(ctx context.Context) (parts.Backend, error) {
	if s := h.ClusterConfig.Parts.S3; s != nil {
		to := RemoteOf(s)
		to.S3Observe = h.observers.ofS3()
		store, err := s3.New(ctx, s3.Config{URL: s.URL, Remote: to})
		if err != nil {
			return nil, WrongFile(h.ClusterConfig, err, CaHint, "parts.s3.ca")
		}
		return store, nil
	}
	return partscassandra.New(h.Cassandra, partscassandra.Config{}), nil
}

// RemoteOf returns the settings for connecting to a bucket.
func RemoteOf(s *clusterconfig.S3) remote.Config {
	return remote.Config{S3Endpoint: s.Endpoint, S3Region: s.Region, CAPath: s.CA, S3AccessKey: s.AccessKey,
		S3SecretKey: s.SecretKey}
}

// OpenQueue connects to the broker; nil without one: then processes look at the state.
func (h *Instance) OpenQueue(ctx context.Context, logger *slog.Logger) (queue.Queue, error) {
	if h.ClusterConfig == nil || h.ClusterConfig.Queue == nil {
		return nil, nil
	}
	cfg, err := BrokerOf(h.ClusterConfig, h.ClusterConfig.Queue, h.fleet)
	if err != nil {
		return nil, err
	}
	cfg.Logger, cfg.Observe = logger, h.observers.ofBroker()
	cfg.Explain = func(err error) error { return WrongBroker(h.ClusterConfig, err) }
	return rabbitmq.Open(ctx, cfg)
}

// BrokerOf returns the settings for connecting to the broker.
func BrokerOf(c *clusterconfig.Config, q *clusterconfig.RabbitMQ, fleet string) (rabbitmq.Config, error) {
	secure, err := tlsOf(c, q.TLS, "queue.rabbitmq.tls")
	if err != nil {
		return rabbitmq.Config{}, err
	}
	return rabbitmq.Config{Hosts: q.Hosts, Username: q.Username, Password: q.Password, Vhost: q.VHost, TLS: secure,
		Prefix: prefixOf(c, fleet)}, nil
}

// prefixOf begins the names of what a fleet has in the broker: what people call it, and
// its id. Fleets whose keyspaces have one name, in two databases, may share a broker:
// one would take the other's hints for those of runs that are not there any more.
func prefixOf(c *clusterconfig.Config, fleet string) string {
	name := rabbitmq.PrefixDefault
	if k := c.State.Cassandra; k != nil {
		name = k.Keyspace
	}
	if fleet == "" {
		return name
	}
	return name + "-" + fleet
}

// fleetOf is the id that a state has; it gets one where it has none.
func fleetOf(ctx context.Context, store state.Store) (string, error) {
	s, ok := store.(interface {
		Fleet(ctx context.Context) (string, error)
	})
	if !ok {
		return "", fault.New(fault.Bug, "a state of type %T has no id of its fleet", store)
	}
	return s.Fleet(ctx)
}

// QueuePrefix begins the names of the queues and the exchange of a cluster that is there.
func QueuePrefix(ctx context.Context, c *clusterconfig.Config) (string, error) {
	store, end, err := StateOf(ctx, c, &Clock{})
	if err != nil {
		return "", err
	}
	defer end()
	fleet, err := fleetOf(ctx, store)
	return prefixOf(c, fleet), err
}

// Ordered asks the processes of a cluster to look at a run now, of which somebody
// has ordered something. Without a broker, or an answer of it, they look by themselves.
func (h *Instance) Ordered(ctx context.Context, key state.RunKey) {
	if h.ClusterConfig == nil || h.ClusterConfig.Queue == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), SignalPatience)
	defer cancel()
	if cfg, err := BrokerOf(h.ClusterConfig, h.ClusterConfig.Queue, h.fleet); err == nil {
		_ = rabbitmq.Send(ctx, cfg, queue.Signal{RunKey: key, Kind: queue.Ordered}) // lost ones cost a look's time
	}
}

// Signals calls heard with each run of which a process of the cluster signals something, until ctx ends. Without a
// broker it returns at once; one that cannot be reached is tried again.
func (h *Instance) Signals(ctx context.Context, heard func(state.RunKey)) {
	if h.ClusterConfig == nil || h.ClusterConfig.Queue == nil {
		return
	}
	if cfg, err := BrokerOf(h.ClusterConfig, h.ClusterConfig.Queue, h.fleet); err == nil {
		_ = rabbitmq.Listen(ctx, cfg, func(s queue.Signal) { heard(s.RunKey) }) // looks find what is not heard
	}
}

// SessionOf opens a session that outlasts the check that opens it, unless the
// check's time is over before.
func SessionOf(ctx context.Context, c *clusterconfig.Config, cfg cassandra.Config) (_ *cassandra.Session, end func(),
	err error) {
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, cancel)
	s, err := cassandra.OpenWithin(life, cfg)
	if !stop() && err == nil {
		s.Close()
		err = ctx.Err()
	}
	if err != nil {
		cancel()
		return nil, func() {}, cmp.Or(absent(ctx, c, cfg), err)
	}
	return s, func() { s.Close(); cancel() }, nil
}

// OpenFile opens a state that is there.
func OpenFile(ctx context.Context, dir string, c *clusterconfig.Config) (*sqlite.Store, error) {
	path := filepath.Join(dir, "state.db")
	_, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && c != nil:
		return nil, noCluster(c, "there is no state in "+dir, "state.directory")
	case errors.Is(err, fs.ErrNotExist):
		return nil, &fault.Error{Kind: fault.Script, Message: "there is no state in " + dir,
			Hint: "run a script first, or name another directory with {{set state}}"}
	}
	return sqlite.Open(ctx, path)
}

// StateOf opens a cluster's state, by whose clock workers go.
func StateOf(ctx context.Context, c *clusterconfig.Config, by *Clock) (state.Store, func(), error) {
	if c.State.Directory != "" {
		store, err := OpenFile(ctx, c.State.Directory, c)
		if err != nil {
			return nil, func() {}, err
		}
		return store, func() { _ = store.Close() }, nil
	}
	cfg, err := CassandraOf(c)
	if err != nil {
		return nil, func() {}, err
	}
	session, end, err := SessionOf(ctx, c, cfg)
	if err != nil {
		return nil, func() {}, err
	}
	store, err := statecassandra.New(ctx, session, nil)
	if err == nil {
		err = by.Follow(ctx, session)
	}
	if err != nil {
		end()
		return nil, func() {}, err
	}
	return store, end, nil
}

// SignalPatience bounds a signal, which nobody waits for.
const SignalPatience = 2 * time.Second
