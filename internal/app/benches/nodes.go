package benches

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"

	gocql "github.com/apache/cassandra-gocql-driver/v2"

	"thalweg/internal/ops/load"
	"thalweg/internal/store/cassandra"
)

// nodes are those of a Cassandra, as their virtual tables tell of them. They are asked over a session of its own, so
// that no answer waits behind the load's.
type nodes struct {
	session *cassandra.Session
	looks   []look
}

// look is a virtual table that is read.
type look struct {
	statement string
	bound     []any
	take      func(r load.Reading, row map[string]any)
	lacking   *sync.Map // nodes, by id, of versions without the table
}

// openNodes connects to the nodes of a keyspace; the times of a table of it are looked at.
func openNodes(cfg cassandra.Config, keyspace, table string) (n nodes, err error) {
	cfg.Keyspace, cfg.Connections, cfg.Timeout = "", 1, exporterPatience
	if n.session, err = cassandra.Open(cfg); err != nil {
		return nodes{}, err
	}
	see := func(table, where string, take func(load.Reading, map[string]any), bound ...any) {
		n.looks = append(n.looks, look{"SELECT * FROM system_views." + table + where, bound, take, &sync.Map{}})
	}
	see("thread_pools", "", takePool)
	see("sstable_tasks", "", takeTask)
	see("caches", "", takeCache)
	for _, name := range []string{"coordinator_read", "coordinator_write", "local_read", "local_write"} {
		see(name+"_latency", " WHERE keyspace_name=? AND table_name=?", func(r load.Reading, row map[string]any) {
			r.Counters[name] += number(row["count"])
			r.Gauges[name+"_p99_ms"] = number(row["p99th_ms"])
		}, keyspace, table)
	}
	see("pending_hints", "", func(r load.Reading, row map[string]any) {
		r.Gauges["pending_hints"] += number(row["files"])
	})
	return n, nil
}

// takePool notes the pools that carry out requests and compactions, and what waits for any.
func takePool(r load.Reading, row map[string]any) {
	name, _ := row["name"].(string)
	done, waiting := number(row["completed_tasks"]), number(row["pending_tasks"])
	switch name {
	case "Native-Transport-Requests":
		r.Counters[load.Operations] = done
	case "CompactionExecutor":
		r.Counters[load.Compacted] = done
	}
	if done == 0 && waiting == 0 {
		return
	}
	name = strings.ReplaceAll(name, "-", "_")
	r.Counters["pool_"+name] = done
	r.Counters["pool_"+name+"_blocked"] = number(row["blocked_tasks_all_time"])
	r.Gauges["pool_"+name+"_pending"] = waiting
}

// takeTask notes a compaction, or another task on files of tables.
func takeTask(r load.Reading, row map[string]any) {
	r.Gauges[load.Compactions]++
	if unit, _ := row["unit"].(string); unit == "bytes" {
		r.Gauges["compactions_left_bytes"] += number(row["total"]) - number(row["progress"])
	}
}

// takeCache notes what a cache was asked and had.
func takeCache(r load.Reading, row map[string]any) {
	name, _ := row["name"].(string)
	r.Counters["cache_"+name+"_requests"] = number(row["request_count"])
	r.Counters["cache_"+name+"_hits"] = number(row["hit_count"])
	r.Gauges["cache_"+name+"_bytes"] = number(row["size_bytes"])
}

// number is a value of a column as a number.
func number(v any) float64 {
	switch v := v.(type) {
	case int64:
		return float64(v)
	case int:
		return float64(v)
	case float64:
		return v
	}
	return 0
}

// Observe implements load.Observer.
func (n nodes) Observe(ctx context.Context) ([]load.Reading, error) {
	if n.session == nil {
		return nil, nil
	}
	hosts := n.session.GetHosts()
	out, errs := make([]load.Reading, len(hosts)), make([]error, len(hosts))
	var all sync.WaitGroup
	for i, h := range hosts {
		all.Go(func() { out[i], errs[i] = n.ask(ctx, h) })
	}
	all.Wait()
	there := out[:0]
	for i, r := range out {
		if errs[i] == nil {
			there = append(there, r)
		}
	}
	return there, errors.Join(errs...)
}

// ask reads the tables of one node.
func (n nodes) ask(ctx context.Context, h *gocql.HostInfo) (load.Reading, error) {
	r := load.Reading{Node: net.JoinHostPort(h.ConnectAddress().String(), strconv.Itoa(h.Port())),
		Counters: map[string]float64{}, Gauges: map[string]float64{load.Compactions: 0}}
	for _, l := range n.looks {
		if _, lacks := l.lacking.Load(h.HostID()); lacks {
			continue
		}
		// Virtual tables are the node's own: whoever is asked answers alone.
		rows, err := n.session.Query(l.statement, l.bound...).Consistency(gocql.One).SetHostID(h.HostID()).
			IterContext(ctx).SliceMap()
		var said gocql.RequestError
		switch {
		case errors.As(err, &said) && said.Code() == gocql.ErrCodeInvalid:
			l.lacking.Store(h.HostID(), true)
			continue
		case err != nil:
			return r, fmt.Errorf("ask %s what it does: %w", r.Node, n.session.Fault("read a virtual table", err))
		}
		for _, row := range rows {
			l.take(r, row)
		}
	}
	return r, nil
}

// ofCassandra reports whether there are such nodes.
func (n nodes) ofCassandra() bool { return n.session != nil }

// close ends the session.
func (n nodes) close() {
	if n.session != nil {
		n.session.Close()
	}
}
