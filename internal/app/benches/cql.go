package benches

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"

	"thalweg/internal/app/instance"
	"thalweg/internal/base/fault"
	"thalweg/internal/ops/clusterconfig"
	"thalweg/internal/ops/load"
	"thalweg/internal/store/cassandra"
)

// CQLOptions are those of rows in CQL. What is not said is as cassandra-stress has it.
type CQLOptions struct {
	Columns     int            // beside the key; 0: cqlColumns
	Consistency string         // ANY, ONE, LOCAL_ONE, QUORUM, LOCAL_QUORUM, EACH_QUORUM, ALL; "": LOCAL_ONE
	Copies      map[string]int // by datacenter; none: one, or those of the cluster
	Datacenter  string         // whose nodes are asked; "": all, or the cluster's
	Connections int            // with each node; 0: cqlConnections
	Timeout     time.Duration  // of a request; 0: cqlPatience
}

// The defaults of cassandra-stress: five columns of 34 bytes, keys of 10. Its driver speaks version 4 of the protocol,
// whose frames have no checksums.
const (
	cqlColumns     = 5
	cqlColumnsMax  = 1000
	cqlColumnBytes = 34
	cqlKeyBytes    = 10
	cqlConnections = 8
	cqlPatience    = 10 * time.Second
	cqlProtocol    = 4
	cqlTable       = "standard1"
)

// connectPatience bounds the making of a connection.
const connectPatience = 10 * time.Second

// cql is a table like the one of cassandra-stress.
type cql struct {
	nodes
	session       *cassandra.Session
	admin         cassandra.Config // without a keyspace
	keyspace      string
	keep          bool
	made          bool // the keyspace, which was not there: else it stays
	copies        int  // of each row
	columns, size int
	update, read  string // statements
	consistency   gocql.Consistency
	wire          wire
	payload       atomic.Int64
}

// openCQL makes the keyspace and the table.
func openCQL(ctx context.Context, o TargetOptions, hosts string) (_ *cql, err error) {
	t := &cql{keyspace: o.Name, keep: o.Keep, columns: cmp.Or(o.CQL.Columns, cqlColumns),
		size: cmp.Or(o.Value, cqlColumnBytes)}
	if t.columns < 0 || t.columns > cqlColumnsMax {
		return nil, fault.New(fault.Script, "a row has 1 to %d columns, not %d", cqlColumnsMax, t.columns)
	}
	if t.consistency, err = gocql.ParseConsistencyWrapper(cmp.Or(o.CQL.Consistency, "LOCAL_ONE")); err != nil {
		return nil, &fault.Error{Kind: fault.Script, Message: fmt.Sprintf("there is no consistency %q", o.CQL.Consistency),
			Hint: "name ONE, LOCAL_ONE, QUORUM, LOCAL_QUORUM, EACH_QUORUM or ALL"}
	}
	c, err := cassandraOf(o, hosts)
	if err != nil {
		return nil, err
	}
	cfg, err := instance.CassandraOf(c)
	if err != nil {
		return nil, err
	}
	cfg.Keyspace, cfg.Timeout, cfg.Protocol = "", cmp.Or(o.CQL.Timeout, cqlPatience), cqlProtocol
	t.admin = cfg
	t.admin.Connections = 1
	if err := t.make(ctx, c.State.Cassandra.Replication); err != nil {
		return nil, errors.Join(err, t.remove())
	}
	cfg.Keyspace, cfg.Dial, cfg.Connections = o.Name, t.wire.dial, cmp.Or(o.CQL.Connections, cqlConnections)
	if t.session, err = cassandra.Open(cfg); err != nil {
		return nil, errors.Join(err, t.remove())
	}
	if t.nodes, err = openNodes(t.admin, o.Name, cqlTable); err != nil {
		t.session.Close()
		return nil, errors.Join(err, t.remove())
	}
	return t, nil
}

// cassandraOf is the configuration of the nodes that are addressed, or of the cluster's.
func cassandraOf(o TargetOptions, hosts string) (*clusterconfig.Config, error) {
	var of clusterconfig.Cassandra
	switch {
	case hosts != "":
		// Several hosts with ports are nothing that package url reads, but one host with the same user is.
		at := strings.LastIndexByte(hosts, '@') + 1
		u, err := url.Parse("cql://" + hosts[:at] + "host")
		if err != nil { // its text may have the password
			return nil, fault.New(fault.Script, "cannot read the user and the password before %s", shown(hosts))
		}
		password, _ := u.User.Password()
		of = clusterconfig.Cassandra{Hosts: strings.Split(strings.TrimSuffix(hosts[at:], "/"), ","), TLS: o.Login.TLS,
			Username: cmp.Or(o.Login.Username, u.User.Username()), Password: cmp.Or(o.Login.Password, password),
			Replication: map[string]int{"": 1}}
	case o.Cluster == nil || o.Cluster.State.Cassandra == nil:
		return nil, &fault.Error{Kind: fault.Script, Message: "which Cassandra?",
			Hint: "name its nodes, cql://HOST:PORT,…, or the configuration of a cluster that has one"}
	default:
		of = *o.Cluster.State.Cassandra
	}
	if len(o.CQL.Copies) > 0 {
		of.Replication = o.CQL.Copies
	}
	of.Datacenter = cmp.Or(o.CQL.Datacenter, of.Datacenter)
	c := &clusterconfig.Config{}
	if o.Cluster != nil {
		*c = *o.Cluster
	}
	c.State = clusterconfig.State{Cassandra: &of}
	return c, nil
}

// make makes the keyspace and the table, unless they are there, and the statements.
func (t *cql) make(ctx context.Context, copies map[string]int) error {
	s, err := cassandra.OpenWithin(ctx, t.admin)
	if err != nil {
		return err
	}
	defer s.Close()
	there, err := cassandra.Replication(ctx, s, t.keyspace)
	if err != nil {
		return err
	}
	t.made = len(there) == 0 // in part, maybe
	if err := cassandra.MakeKeyspace(ctx, s, t.keyspace, copies); err != nil {
		return err
	}
	kept, err := cassandra.Replication(ctx, s, t.keyspace) // it may have been there, with others
	if err != nil {
		return err
	}
	for _, n := range kept {
		t.copies += n
	}
	names := make([]string, t.columns)
	for i := range names {
		names[i] = fmt.Sprintf(`"C%d"`, i)
	}
	table := t.keyspace + "." + cqlTable
	t.update = fmt.Sprintf("UPDATE %s SET %s=? WHERE key=?", table, strings.Join(names, "=?,"))
	t.read = fmt.Sprintf("SELECT %s FROM %s WHERE key=?", strings.Join(names, ","), table)
	return s.Make(ctx, []string{fmt.Sprintf(
		"CREATE TABLE IF NOT EXISTS %s (key blob PRIMARY KEY, %s blob) WITH compression = {}", table,
		strings.Join(names, " blob, "))})
}

// stays reports whether the keyspace is not removed.
func (t *cql) stays() bool { return t.keep || !t.made }

// remove removes the keyspace, unless it is kept, or was there before.
func (t *cql) remove() error {
	if t.stays() {
		return nil
	}
	return dropKeyspace(t.admin, t.keyspace)
}

// dropKeyspace removes a keyspace that was made to measure.
func dropKeyspace(cfg cassandra.Config, keyspace string) error {
	ctx, cancel := context.WithTimeout(context.Background(), cleanPatience)
	defer cancel()
	cfg.Keyspace, cfg.Timeout = "", time.Minute // removing files takes long
	s, err := cassandra.OpenWithin(ctx, cfg)
	if err != nil {
		return fmt.Errorf("remove keyspace %s: %w", keyspace, err)
	}
	defer s.Close()
	tables, err := s.Query("SELECT table_name FROM system_schema.tables WHERE keyspace_name=?", keyspace).IterContext(ctx).
		SliceMap()
	if err != nil {
		return s.Fault("list the tables of keyspace "+keyspace, err)
	}
	// A node keeps the files of tables that are dropped, unless told not to; before version 5.0 it is not to be told.
	for _, t := range tables {
		_ = s.Query(fmt.Sprintf("ALTER TABLE %s.%s WITH allow_auto_snapshot = false", keyspace, t["table_name"])).
			ExecContext(ctx)
	}
	return s.Make(ctx, []string{"DROP KEYSPACE IF EXISTS " + keyspace})
}

// Moved implements load.Meter.
func (t *cql) Moved() load.Moved {
	return load.Moved{Payload: t.payload.Load(), Sent: t.wire.sent.Load(), Received: t.wire.received.Load()}
}

// Close implements load.Target.
func (t *cql) Close() error {
	t.session.Close()
	t.nodes.close()
	return t.remove()
}

// Client implements load.Target.
func (t *cql) Client(context.Context, int) (load.Client, error) { return &cqlClient{t: t}, nil }

// cqlClient sends each of the operations that come together as a request of its own: the protocol has no others, and
// lets many be in flight.
type cqlClient struct {
	t     *cql
	lanes []*lane
}

// Do implements load.Client.
func (c *cqlClient) Do(ctx context.Context, ops []load.Op, errs []error) {
	for len(c.lanes) < len(ops) {
		c.lanes = append(c.lanes, c.t.lane())
	}
	if len(ops) == 1 {
		errs[0] = c.lanes[0].do(ctx, ops[0])
	} else {
		var all sync.WaitGroup
		for i, op := range ops {
			all.Go(func() { errs[i] = c.lanes[i].do(ctx, op) })
		}
		all.Wait()
	}
	done := int64(0)
	for i := range ops {
		if errs[i] == nil {
			done++
		}
	}
	c.t.payload.Add(done * int64(cqlKeyBytes+c.t.columns*c.t.size))
}

// Close implements load.Client.
func (c *cqlClient) Close() error { return nil }

// lane is what one request at a time needs: all of it is used again. The driver has copied what it sends when it
// answers.
type lane struct {
	t            *cql
	update, read *gocql.Query
	key          []byte
	value        []byte // of all columns
	bound        []any  // the columns and the key
	found        [][]byte
	into         []any
}

func (t *cql) lane() *lane {
	l := &lane{t: t, key: make([]byte, cqlKeyBytes), value: make([]byte, t.columns*t.size),
		found: make([][]byte, t.columns), into: make([]any, t.columns)}
	for i := range t.columns {
		l.bound = append(l.bound, l.value[i*t.size:(i+1)*t.size:(i+1)*t.size])
		l.into[i] = &l.found[i]
	}
	l.bound = append(l.bound, l.key)
	// The key is the partition's: with it the driver finds the node without looking at the values.
	l.update = t.session.Query(t.update).Consistency(t.consistency).Idempotent(true).RoutingKey(l.key).Bind(l.bound...)
	l.read = t.session.Query(t.read).Consistency(t.consistency).Idempotent(true).RoutingKey(l.key).
		Bind(l.bound[t.columns:]...)
	return l
}

// do carries out an operation.
func (l *lane) do(ctx context.Context, op load.Op) error {
	binary.BigEndian.PutUint64(l.key[cqlKeyBytes-8:], op.Key)
	load.Fill(l.value, op.Key)
	if op.Kind == load.Write {
		if err := l.update.ExecContext(ctx); err != nil {
			return l.t.session.Fault("write a row", cassandra.Asked(ctx, err))
		}
		return nil
	}
	switch err := l.read.ScanContext(ctx, l.into...); {
	case errors.Is(err, gocql.ErrNotFound):
		return load.ErrMissing
	case err != nil:
		return l.t.session.Fault("read a row", cassandra.Asked(ctx, err))
	}
	for i, found := range l.found {
		if !bytes.Equal(found, l.value[i*l.t.size:(i+1)*l.t.size]) {
			return load.ErrWrong
		}
	}
	return nil
}
