package benches

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"thalweg/internal/app/instance"
	"thalweg/internal/base/fault"
	"thalweg/internal/ops/clusterconfig"
	"thalweg/internal/ops/load"
)

// RedisOptions are those of keys in Redis, or whatever speaks its protocol.
type RedisOptions struct {
	Fields int // 0: a key has a value, by SET and GET; else a hash of so many, by HSET and HGETALL
	// There says that keys are there already: this and a number each. Only that they have something is looked at, and
	// nothing is written.
	There   string
	Timeout time.Duration // of what is sent together; 0: redisPatience
}

// The defaults, as redis-benchmark is mostly used.
const (
	redisValueBytes = 100
	redisFieldsMax  = 1000
	redisPatience   = 10 * time.Second
	redisPort       = "6379"
	redisTogether   = 1024 // operations that are sent before answers are read: else both sides could wait for each other
	redisDigits     = 12   // of the number in a key
)

// redis is keys with values, or with hashes.
type redis struct {
	redisAddress
	o       RedisOptions
	prefix  string // of keys
	size    int    // of a value, or of that of a field
	keep    bool
	there   bool // keys of the prefix were there before: they stay
	shared  bool // others write, too
	wire    wire
	payload atomic.Int64
	wrote   atomic.Bool
	info    *redisClient
	asking  chan struct{} // one token: info is used by one at a time
}

// redisAddress says how connections are made.
type redisAddress struct {
	network, address   string
	username, password string // "": none
	database           int
	tls                *tls.Config // nil: none
}

// openRedis connects.
func openRedis(ctx context.Context, o TargetOptions) (_ *redis, err error) {
	t := &redis{o: o.Redis, prefix: o.Name + ":", size: cmp.Or(o.Value, redisValueBytes), keep: o.Keep, shared: o.Shared,
		asking: make(chan struct{}, 1)}
	if t.redisAddress, err = addressOf(o.At, o.Login); err != nil {
		return nil, err
	}
	if o.Redis.Fields < 0 || o.Redis.Fields > redisFieldsMax {
		return nil, fault.New(fault.Script, "a hash has 1 to %d fields, not %d", redisFieldsMax, o.Redis.Fields)
	}
	if o.Redis.There != "" {
		t.prefix = o.Redis.There
	}
	t.info = t.client(&wire{})
	// A server that wants a password says so when it is asked something.
	err = t.info.ask(ctx, []string{"PING"}, func(r *replies) error { _, err := r.line('+'); return err })
	if err != nil {
		return nil, &fault.Error{Kind: fault.Environment, Message: "connect to Redis", Err: errors.Join(err, t.info.Close())}
	}
	if o.Redis.There == "" && !o.fresh && !o.Keep {
		err = t.scan(ctx, func([]string) (bool, error) { t.there = true; return false, nil })
		if err != nil {
			return nil, errors.Join(fmt.Errorf("look for keys %s*: %w", t.prefix, err), t.info.Close())
		}
	}
	return t, nil
}

// addressOf reads an address.
func addressOf(at string, login Login) (a redisAddress, err error) {
	wrong := &fault.Error{Kind: fault.Script, Message: "cannot read the address " + shown(at),
		Hint: "name it as redis://HOST:PORT, rediss://HOST:PORT/DATABASE or unix:///PATH"}
	u, err := url.Parse(at)
	if err != nil { // its text may have the password
		return a, wrong
	}
	a.username, a.password = login.Username, login.Password
	if u.User != nil {
		password, _ := u.User.Password()
		a.username, a.password = cmp.Or(a.username, u.User.Username()), cmp.Or(a.password, password)
	}
	if u.Scheme == "unix" {
		a.network, a.address = "unix", u.Path
		if u.Host != "" || u.Path == "" {
			return a, wrong
		}
		return a, nil
	}
	if u.Hostname() == "" || u.RawQuery != "" {
		return a, wrong
	}
	a.network, a.address = "tcp", net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), redisPort))
	if database := strings.Trim(u.Path, "/"); database != "" {
		if a.database, err = strconv.Atoi(database); err != nil || a.database < 0 {
			return a, wrong
		}
	}
	if u.Scheme == "rediss" {
		if a.tls, err = instance.TLSOf(cmp.Or(login.TLS, &clusterconfig.TLS{})); err != nil {
			return a, err
		}
		a.tls.ServerName = cmp.Or(a.tls.ServerName, u.Hostname())
	}
	return a, nil
}

// Moved implements load.Meter.
func (t *redis) Moved() load.Moved {
	return load.Moved{Payload: t.payload.Load(), Sent: t.wire.sent.Load(), Received: t.wire.received.Load()}
}

// Client implements load.Target.
func (t *redis) Client(ctx context.Context, _ int) (load.Client, error) {
	c := t.client(&t.wire)
	if err := c.connect(ctx); err != nil {
		return nil, fmt.Errorf("connect to Redis: %w", err)
	}
	return c, nil
}

// client is one that is not connected yet.
func (t *redis) client(by *wire) *redisClient {
	c := &redisClient{t: t, by: by, value: make([]byte, max(t.o.Fields, 1)*t.size)}
	for i := range t.o.Fields {
		c.names = append(c.names, "f"+strconv.Itoa(i))
	}
	c.seen = make([]int, len(c.names))
	return c
}

// Close implements load.Target.
func (t *redis) Close() (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), cleanPatience)
	defer cancel()
	t.asking <- struct{}{}
	if (t.shared || t.wrote.Load()) && !t.stays() && t.o.There == "" {
		err = t.scan(ctx, func(keys []string) (bool, error) {
			return true, t.info.ask(ctx, append([]string{"UNLINK"}, keys...), func(r *replies) error {
				_, err := r.header(':')
				return err
			})
		})
		if err != nil {
			err = fmt.Errorf("remove the keys %s*: %w", t.prefix, err)
		}
	}
	return errors.Join(err, t.info.Close())
}

// stays reports whether the keys that were written are not removed.
func (t *redis) stays() bool { return t.keep || t.there }

// scan finds the keys of the prefix, step by step, until found says that it is enough.
func (t *redis) scan(ctx context.Context, found func(keys []string) (more bool, err error)) error {
	cursor := "0"
	for more := true; more; {
		var keys []string
		err := t.info.ask(ctx, []string{"SCAN", cursor, "MATCH", t.prefix + "*", "COUNT", "1000"}, func(r *replies) error {
			n, err := r.header('*')
			if err != nil || n != 2 {
				return errors.Join(err, errOdd)
			}
			if cursor, err = r.text(); err != nil {
				return err
			}
			if n, err = r.header('*'); err != nil {
				return err
			}
			for range n {
				key, err := r.text()
				if err != nil {
					return err
				}
				keys = append(keys, key)
			}
			return nil
		})
		if err == nil && len(keys) > 0 {
			more, err = found(keys)
		}
		if err != nil {
			return err
		}
		more = more && cursor != "0"
	}
	return nil
}

// Observe implements load.Observer by INFO.
func (t *redis) Observe(ctx context.Context) ([]load.Reading, error) {
	select {
	case t.asking <- struct{}{}:
		defer func() { <-t.asking }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	var text string
	err := t.info.ask(ctx, []string{"INFO"}, func(r *replies) (err error) { text, err = r.text(); return err })
	var said redisError
	switch {
	case errors.As(err, &said): // what speaks the protocol only says nothing of itself
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("ask %s what it does: %w", t.address, err)
	}
	return []load.Reading{readInfo(t.address, text)}, nil
}

// infoNames are fields of INFO in our names.
var infoNames = map[string]string{"total_commands_processed": load.Operations, "total_net_input_bytes": load.NetworkIn,
	"total_net_output_bytes": load.NetworkOut}

// readInfo reads what INFO says: numbers only grow by the names that Redis and Valkey give such.
func readInfo(node, text string) load.Reading {
	r := load.Reading{Node: node, Counters: map[string]float64{}, Gauges: map[string]float64{}}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		v, err := strconv.ParseFloat(value, 64)
		if err != nil {
			continue
		}
		switch {
		case strings.HasPrefix(name, "total_"), strings.HasPrefix(name, "used_cpu_"),
			strings.HasPrefix(name, "keyspace_"), strings.HasPrefix(name, "expired_"),
			strings.HasPrefix(name, "evicted_"), name == "rejected_connections", name == "total_forks":
			add(r.Counters, cmp.Or(infoNames[name], name), v)
		default:
			add(r.Gauges, name, v)
		}
	}
	add(r.Counters, load.CPUSeconds, r.Counters["used_cpu_sys"]+r.Counters["used_cpu_user"])
	const sys, user = "used_cpu_sys_main_thread", "used_cpu_user_main_thread"
	if _, told := r.Counters[sys]; told {
		add(r.Counters, load.MainThread, r.Counters[sys]+r.Counters[user])
	}
	add(r.Gauges, load.Compactions, r.Gauges["rdb_bgsave_in_progress"]+r.Gauges["aof_rewrite_in_progress"])
	return r
}

// connection is an open one.
type connection struct {
	net.Conn
	in replies
}

// replies reads what a server answers.
type replies struct{ *bufio.Reader }
