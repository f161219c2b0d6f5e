package cassandra

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
)

// Node describes a node by its own answers.
type Node struct {
	ID         string // that it has in the cluster
	Address    string // host:port by which it was asked
	Version    string
	Cluster    string
	Datacenter string
	Schema     string        // the version of the tables' definitions that it has
	Ahead      time.Duration // its clock, of this machine's
	Doubt      time.Duration // by which Ahead may be wrong
	Took       time.Duration // one request
	Peers      []Peer        // the other nodes that it knows
}

// Peer describes a node by the answers of another one.
type Peer struct {
	ID         string
	Address    string // host:port at which it says that clients find it
	Datacenter string
	Version    string
	Schema     string
}

// clockTries is the number of requests for a node's time: the fastest answer is the most exact.
const clockTries = 5

// Ask asks one node over a connection of its own. It ends when ctx does.
func Ask(ctx context.Context, cfg Config, host string) (n Node, err error) {
	cfg.Hosts, cfg.Keyspace, cfg.Datacenter, cfg.alone = []string{host}, "", "", true
	s, err := OpenWithin(ctx, cfg)
	if err != nil {
		return n, err
	}
	defer s.Close()
	n = Node{Address: host}
	if err := n.itself(ctx, s); err != nil {
		return n, Fault("ask a node of Cassandra for its version", err)
	}
	if err := n.clock(ctx, s); err != nil {
		return n, Fault("ask a node of Cassandra for the time", err)
	}
	if err := n.peers(ctx, s, host); err != nil {
		return n, Fault("ask a node of Cassandra for the other nodes", err)
	}
	return n, nil
}

// OpenWithin is Open for a session that goes with ctx: its connections end then.
func OpenWithin(ctx context.Context, cfg Config) (*Session, error) {
	dial := cfg.Dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: connectTimeout}).DialContext
	}
	cfg.Dial = func(_ context.Context, network, addr string) (net.Conn, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
		return released{conn, stop}, nil
	}
	s, err := open(ctx, cfg)
	if err != nil && ctx.Err() != nil {
		return nil, fmt.Errorf("connect to Cassandra: %w", ctx.Err())
	}
	return s, err
}

// released is a connection that nobody has to end any more once it is closed.
type released struct {
	net.Conn
	stop func() bool
}

// Close implements net.Conn.
func (r released) Close() error {
	r.stop()
	return r.Conn.Close()
}

func (n *Node) itself(ctx context.Context, s *Session) error {
	var id, schema gocql.UUID
	err := s.Query(`SELECT host_id, release_version, cluster_name, data_center, schema_version FROM system.local `+
		`WHERE key = 'local'`).
		ScanContext(ctx, &id, &n.Version, &n.Cluster, &n.Datacenter, &schema)
	n.ID, n.Schema = id.String(), schema.String()
	return err
}

func (n *Node) clock(ctx context.Context, s *Session) error {
	c, err := s.clockOf(ctx, "") // the session knows one node
	n.Took, n.Ahead, n.Doubt = c.Took, c.Ahead, c.Doubt
	return err
}

// Clock is a node's, as seen from this machine.
type Clock struct {
	Ahead time.Duration // of this machine's
	Doubt time.Duration // by which Ahead may be wrong
	Took  time.Duration // the quickest answer
}

const (
	clockNodesMost = 5               // that are asked for their time
	clockPatience  = 2 * time.Second // for all of them
)

// Clock compares the clocks of the cluster's nodes with this machine's, and gives the middle
// one, so that no node of three whose clock is wrong decides when leases end. Nodes that
// do not answer are left out.
func (s *Session) Clock(ctx context.Context) (Clock, error) {
	hosts := slices.DeleteFunc(s.GetHosts(), func(h *gocql.HostInfo) bool { return !h.IsUp() })
	hosts = hosts[:min(len(hosts), clockNodesMost)]
	limited, cancel := context.WithTimeout(ctx, clockPatience) // a silent one holds up nobody
	defer cancel()
	clocks, errs := make([]Clock, len(hosts)), make([]error, len(hosts))
	var asking sync.WaitGroup
	for i, host := range hosts {
		asking.Go(func() { clocks[i], errs[i] = s.clockOf(limited, host.HostID()) })
	}
	asking.Wait()
	for i := len(hosts) - 1; i >= 0; i-- {
		if errs[i] != nil {
			clocks = slices.Delete(clocks, i, i+1)
		}
	}
	if len(clocks) == 0 {
		return s.clockOf(ctx, "")
	}
	return middle(clocks), nil
}

// middle is the clock that as many are ahead of as are behind, or one more.
func middle(clocks []Clock) Clock {
	slices.SortFunc(clocks, func(a, b Clock) int { return cmp.Compare(a.Ahead, b.Ahead) })
	return clocks[(len(clocks)-1)/2]
}

// clockOf compares the clock of a node with this machine's; "" is any.
func (s *Session) clockOf(ctx context.Context, host string) (c Clock, err error) {
	for range clockTries {
		var there time.Time
		before := time.Now()
		if err := s.Query(`SELECT toTimestamp(now()) FROM system.local WHERE key = 'local'`).SetHostID(host).
			ScanContext(ctx,
				&there); err != nil {
			return c, s.Fault("read Cassandra's clock", err)
		}
		took := time.Since(before)
		if c.Took > 0 && took >= c.Took {
			continue
		}
		c.Took = took
		c.Ahead = there.Sub(before.Add(took / 2)).Round(time.Millisecond)
		c.Doubt = took/2 + time.Millisecond // it says whole milliseconds
	}
	return c, nil
}

// peers lists the others. Nodes before version 4 do not know their ports.
func (n *Node) peers(ctx context.Context, s *Session, host string) error {
	_, own, _ := net.SplitHostPort(host)
	port, err := strconv.Atoi(own)
	if err != nil {
		port = portDefault
	}
	err = n.listed(ctx, s, port, `SELECT host_id, native_address, native_port,
		data_center, release_version, schema_version FROM system.peers_v2`)
	var request gocql.RequestError
	if errors.As(err, &request) && request.Code() == gocql.ErrCodeInvalid {
		err = n.listed(ctx, s, port,
			`SELECT host_id, rpc_address, data_center, release_version, schema_version FROM system.peers`)
	}
	slices.SortFunc(n.Peers, func(a, b Peer) int { return strings.Compare(a.Address, b.Address) })
	return err
}

func (n *Node) listed(ctx context.Context, s *Session, port int, text string) error {
	iter := s.Query(text).IterContext(ctx)
	n.Peers = nil
	for {
		var id, schema gocql.UUID
		var address net.IP
		var p Peer
		at := port
		to := []any{&id, &address, &at, &p.Datacenter, &p.Version, &schema}
		if len(iter.Columns()) < len(to) {
			to = slices.Delete(to, 2, 3)
		}
		if !iter.Scan(to...) {
			return iter.Close()
		}
		p.ID, p.Schema, p.Address = id.String(), schema.String(),
			net.JoinHostPort(address.String(), strconv.Itoa(cmp.Or(at, port)))
		n.Peers = append(n.Peers, p)
	}
}

// Replication of a keyspace: copies by datacenter; without datacenters, under "".
// None if there is no such keyspace, or its copies are not of these kinds.
func Replication(ctx context.Context, s *Session, keyspace string) (map[string]int, error) {
	var options map[string]string
	err := s.Query(`SELECT replication FROM system_schema.keyspaces WHERE keyspace_name = ?`,
		keyspace).ScanContext(ctx, &options)
	if errors.Is(err, gocql.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, Fault("ask Cassandra for the replication", err)
	}
	out := map[string]int{}
	for name, text := range options {
		copies, _, _ := strings.Cut(text, "/") // transient ones
		count, err := strconv.Atoi(copies)
		switch {
		case name == "class" || err != nil:
		case name == "replication_factor":
			out[""] = count
		default:
			out[name] = count
		}
	}
	return out, nil
}

// KeyspacesWith lists the keyspaces that have a table of that name.
func KeyspacesWith(ctx context.Context, s *Session, table string) (out []string, err error) {
	iter := s.Query(`SELECT keyspace_name, table_name FROM system_schema.tables`).IterContext(ctx)
	for keyspace, name := "", ""; iter.Scan(&keyspace, &name); {
		if name == table {
			out = append(out, keyspace)
		}
	}
	if err := iter.Close(); err != nil {
		return nil, Fault("ask Cassandra for its tables", err)
	}
	slices.Sort(out)
	return out, nil
}

// Missing lists what the tables that statements make have and the session's keyspace has not:
// "table" or "table.column".
func Missing(ctx context.Context, s *Session, statements []string) ([]string, error) {
	there := map[string]bool{}
	iter := s.Query(`SELECT table_name, column_name FROM system_schema.columns WHERE keyspace_name = ?`,
		s.Keyspace).IterContext(ctx)
	for table, column := "", ""; iter.Scan(&table, &column); {
		there[table], there[table+"."+column] = true, true
	}
	if err := iter.Close(); err != nil {
		return nil, Fault("ask Cassandra for its tables", err)
	}
	var missing []string
	for _, text := range statements {
		table, columns := Declared(text)
		if !there[table] {
			missing = append(missing, table)
			continue
		}
		for _, c := range columns {
			if !there[table+"."+c] {
				missing = append(missing, table+"."+c)
			}
		}
	}
	return missing, nil
}

// Declared gives the name and the columns of the table that a statement of ours makes.
func Declared(statement string) (table string, columns []string) {
	head, body, _ := strings.Cut(statement, "(")
	if names := strings.Fields(head); len(names) > 0 {
		table = names[len(names)-1]
	}
	for {
		item, rest, more := strings.Cut(body, ",")
		words := strings.Fields(item)
		if len(words) < 2 || words[0] == "PRIMARY" {
			return table, columns
		}
		columns = append(columns, words[0])
		if !more {
			return table, columns
		}
		body = rest
	}
}
