package cassandra

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
)

// Limits of a connection.
const (
	portDefault      = 9042
	timeoutDefault   = 10 * time.Second // of one request
	connectTimeout   = 10 * time.Second
	connectionsEach  = 4 // with each node
	reconnectPause   = time.Second
	reconnectTries   = 3
	pageRowsDefault  = 500 // rows may be large: who knows theirs says so
	schemaWaitMax    = 60 * time.Second
	coalesceWritings = 0 // requests are few and large
)

// Observer is told of every request that was answered or failed.
type Observer interface {
	// Request says what was asked (see Named), how long it took, and how it went.
	// It may be called concurrently.
	Request(name string, took time.Duration, err error)
}

// Config of a Session.
type Config struct {
	Hosts              []string // host or host:port
	Keyspace           string   // "": none yet, to make one
	Datacenter         string   // "": whichever
	Username, Password string   // "": none
	TLS                *tls.Config
	Timeout            time.Duration // of one request; 0: timeoutDefault
	Observer           Observer      // nil: nobody
	Logger             *slog.Logger
	Connections        int // with each node; 0: connectionsEach
	Protocol           int // version of CQL's; 0: the newest that the nodes speak
	// Dial, if not nil, connects to nodes in the driver's place.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)

	alone bool // the session is with one node, which is asked
}

// Session is a pool of connections, to be used by many at once.
type Session struct {
	*gocql.Session
	// Serial is the consistency of conditional writes, and of reads that have to see them.
	Serial   gocql.Consistency
	Keyspace string
}

// Open connects.
func Open(cfg Config) (*Session, error) { return open(context.Background(), cfg) }

func open(ctx context.Context, cfg Config) (*Session, error) {
	d := cfg.dialer()
	s, err := cfg.cluster(d).CreateSession()
	if err != nil {
		return nil, connecting(d.unknownHost(ctx, cfg.Hosts, d.why(err)))
	}
	serial := gocql.Serial
	if cfg.Datacenter != "" {
		serial = gocql.LocalSerial
	}
	return &Session{Session: s, Serial: serial, Keyspace: cfg.Keyspace}, nil
}

// Datacenters counts the nodes of each, as the nodes that were asked first say.
func (s *Session) Datacenters() map[string]int {
	out := map[string]int{}
	for _, host := range s.GetHosts() {
		out[host.DataCenter()]++
	}
	return out
}

func (c Config) cluster(d *dialer) *gocql.ClusterConfig {
	out := gocql.NewCluster(c.Hosts...)
	out.Port, out.Keyspace = portDefault, c.Keyspace
	out.Timeout, out.WriteTimeout, out.ConnectTimeout = timeoutDefault, timeoutDefault, connectTimeout
	if c.Timeout > 0 {
		out.Timeout, out.WriteTimeout = c.Timeout, c.Timeout
	}
	out.NumConns, out.PageSize, out.MaxWaitSchemaAgreement = cmp.Or(c.Connections, connectionsEach), pageRowsDefault,
		schemaWaitMax
	out.ProtoVersion, out.ReconnectInterval = c.Protocol, reconnectPause
	out.ReconnectionPolicy = &gocql.ConstantReconnectionPolicy{MaxRetries: reconnectTries, Interval: reconnectPause}
	out.WriteCoalesceWaitTime = coalesceWritings
	out.Metadata.CacheMode = gocql.KeyspaceOnly
	out.RetryPolicy = nil // it would sleep whatever the context says, and try what it does not know
	// Of two writes the later one counts, whatever the clocks of those say who write:
	// nodes of a cluster keep theirs together, workers may not.
	out.DefaultTimestamp = false
	out.Consistency, out.SerialConsistency = gocql.Quorum, gocql.Serial
	nodes := gocql.RoundRobinHostPolicy()
	if c.Datacenter != "" {
		out.Consistency, out.SerialConsistency = gocql.LocalQuorum, gocql.LocalSerial
		nodes = gocql.DCAwareRoundRobinPolicy(c.Datacenter)
	}
	out.PoolConfig.HostSelectionPolicy = gocql.ShuffledTokenAwareHostPolicy(nodes)
	out.Authenticator, out.HostDialer, out.ConnectObserver = d, d, d
	if c.alone {
		out.DisableInitialHostLookup, out.NumConns, out.Consistency = true, 1, gocql.LocalOne
		out.PoolConfig.HostSelectionPolicy = gocql.RoundRobinHostPolicy()
		out.ReconnectionPolicy = &gocql.ConstantReconnectionPolicy{MaxRetries: 1, Interval: time.Millisecond}
	}
	if c.Observer != nil {
		out.QueryObserver, out.BatchObserver = observer{c.Observer}, observer{c.Observer}
	}
	out.Logger = logger{c.Logger}
	return out
}

// nameKey is under which a context has what is asked.
type nameKey struct{}

// Named says for the Observer what is asked with a context.
func Named(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, nameKey{}, name)
}

type observer struct{ to Observer }

func (o observer) ObserveQuery(ctx context.Context, q gocql.ObservedQuery) {
	o.request(ctx, q.Start, q.End, q.Err)
}

func (o observer) ObserveBatch(ctx context.Context, b gocql.ObservedBatch) {
	o.request(ctx, b.Start, b.End, b.Err)
}

func (o observer) request(ctx context.Context, start, end time.Time, err error) {
	name, _ := ctx.Value(nameKey{}).(string)
	o.to.Request(name, end.Sub(start), err)
}

// logger passes on what the driver says: it says much that is nobody's concern.
type logger struct{ to *slog.Logger }

func (l logger) say(msg string, fields []gocql.LogField) {
	if l.to == nil {
		return
	}
	args := make([]any, 0, len(fields))
	for _, f := range fields {
		args = append(args, slog.String(f.Name, f.Value.String()))
	}
	l.to.Debug("Cassandra's driver: "+msg, args...)
}

func (l logger) Error(msg string, fields ...gocql.LogField)   { l.say(msg, fields) }
func (l logger) Warning(msg string, fields ...gocql.LogField) { l.say(msg, fields) }
func (l logger) Info(msg string, fields ...gocql.LogField)    { l.say(msg, fields) }
func (l logger) Debug(string, ...gocql.LogField)              {}

// Make carries out statements that make tables, and are no error where they
// have been made.
func (s *Session) Make(ctx context.Context, statements []string) error {
	for _, text := range statements {
		if err := s.Query(text).Consistency(gocql.One).ExecContext(ctx); err != nil {
			return s.Fault("make tables in Cassandra", err)
		}
	}
	if err := s.AwaitSchemaAgreement(ctx); err != nil {
		return Fault("wait for Cassandra's nodes to agree on tables", err)
	}
	return nil
}

// AlterKeyspace is the statement that gives a keyspace other copies.
func AlterKeyspace(keyspace string, replication map[string]int) (string, error) {
	text, err := replicationText(replication)
	return fmt.Sprintf("ALTER KEYSPACE %s WITH replication = %s", keyspace, text), err
}

// MakeKeyspace makes a keyspace unless it is there. replication is copies by
// datacenter; without one, so many copies as are given under "".
func MakeKeyspace(ctx context.Context, s *Session, keyspace string, replication map[string]int) error {
	if !isName(keyspace) {
		return nameFault(keyspace)
	}
	text, err := replicationText(replication)
	if err != nil {
		return err
	}
	return s.Make(ctx, []string{fmt.Sprintf("CREATE KEYSPACE IF NOT EXISTS %s WITH replication = %s", keyspace, text)})
}
