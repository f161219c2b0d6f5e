package rabbitmq

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"thalweg/internal/base/fault"
	"thalweg/internal/store/queue"
)

// visitQueueLife is the time after which the queue of a visit is removed if its process died.
const visitQueueLife = time.Minute

// Probe is a connection to one node of the broker for who looks at it. It
// leaves nothing behind.
type Probe struct {
	cfg     Config
	link    *link
	session *session
	blocked chan amqp.Blocking

	Host    string
	Product string
	Version string
	Cluster string
	Secured string        // version of TLS; "": none
	Took    time.Duration // to connect
}

// Look connects to one node, until ctx ends.
func Look(ctx context.Context, cfg Config, host string) (*Probe, error) {
	cfg.Hosts = []string{host}
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	v := &Probe{cfg: cfg, link: newLink(cfg, "doctor"), Host: cfg.Hosts[0]}
	v.link.setup = func(_ context.Context, s *session) error {
		v.blocked = s.conn.NotifyBlocked(make(chan amqp.Blocking, 1))
		return nil
	}
	begun := time.Now()
	v.session, err = v.link.connect(ctx, v.Host)
	if err != nil {
		v.link.all.Wait()
		if ctx.Err() != nil {
			return nil, fmt.Errorf("connect to the broker: %w", ctx.Err())
		}
		return nil, unreachable(err)
	}
	v.Took = time.Since(begun)
	text := func(key string) string { s, _ := v.session.conn.Properties[key].(string); return s }
	v.Product, v.Version, v.Cluster = text("product"), text("version"), text("cluster_name")
	if cfg.TLS != nil {
		v.Secured = tls.VersionName(v.session.conn.ConnectionState().Version)
	}
	return v, nil
}

// Close ends the connection.
func (v *Probe) Close() {
	v.link.close(v.session)
	v.link.all.Wait()
}

// channel does something over a channel of its own: what the broker refuses ends it.
func (v *Probe) channel(ctx context.Context, do func(*amqp.Channel) error) error {
	defer context.AfterFunc(ctx, v.session.kill)()
	ch, err := v.session.conn.Channel()
	if err != nil {
		return err
	}
	if err := do(ch); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return err
	}
	return ch.Close()
}

// Hints describes a queue of hints for a visit.
type Hints struct {
	Queue   string
	There   bool
	Waiting int
	Wrong   string // why workers cannot use it; "": they can
}

// Queues looks at the queues of hints whose names begin with prefix. Those that are
// not there are made by the first worker.
func (v *Probe) Queues(ctx context.Context, prefix string) (out []Hints, err error) {
	cfg := v.cfg
	cfg.Prefix = prefix
	for _, p := range queue.Levels() {
		h := Hints{Queue: cfg.hintsOf(p), There: true}
		err := v.channel(ctx, func(ch *amqp.Channel) error {
			is, err := ch.QueueDeclarePassive(h.Queue, true, false, false, false, nil)
			h.Waiting = is.Messages
			return err
		})
		var refused *amqp.Error
		if errors.As(err, &refused) && refused.Code == amqp.NotFound {
			h.There, err = false, nil
		}
		if err == nil && h.There {
			err = v.channel(ctx, func(ch *amqp.Channel) error {
				_, err := cfg.declareHints(ch, p)
				return err
			})
			if errors.As(err, &refused) && refused.Code == amqp.PreconditionFailed {
				h.Wrong, err = refused.Reason, nil
			}
		}
		if err != nil {
			return nil, forbidden("look at queue "+h.Queue, err)
		}
		out = append(out, h)
	}
	return out, nil
}

// Try makes a quorum queue, publishes to it until that is confirmed, receives,
// acknowledges, and removes the queue. It answers with how long the
// confirmation took.
func (v *Probe) Try(ctx context.Context) (took time.Duration, err error) {
	name := v.cfg.Prefix + ".doctor." + rand.Text()
	err = v.channel(ctx, func(ch *amqp.Channel) (err error) {
		_, err = ch.QueueDeclare(name, true, false, false, false, amqp.Table{amqp.QueueTypeArg: amqp.QueueTypeQuorum,
			amqp.QueueTTLArg: visitQueueLife.Milliseconds()})
		if err != nil {
			return forbidden("declare a quorum queue", err)
		}
		defer func() {
			if err == nil {
				_, err = ch.QueueDelete(name, false, false, false)
			}
		}()
		took, err = v.send(ctx, ch, name)
		if err != nil {
			return err
		}
		d, ok, err := ch.Get(name, false)
		switch {
		case err != nil:
			return forbidden("receive what was published", err)
		case !ok:
			return &fault.Error{Kind: fault.Environment,
				Message: "the broker has confirmed a message that is in no queue", Hint: "see the broker's log"}
		}
		return d.Ack(false)
	})
	if err != nil { // its channel is over; where even this fails, the queue goes after visitQueueLife
		_ = v.channel(ctx, func(ch *amqp.Channel) error {
			_, err := ch.QueueDelete(name, false, false, false)
			return err
		})
	}
	return took, err
}

// send publishes and waits for the confirmation.
func (v *Probe) send(ctx context.Context, ch *amqp.Channel, name string) (time.Duration, error) {
	if err := ch.Confirm(false); err != nil {
		return 0, forbidden("ask for confirmations", err)
	}
	begun := time.Now()
	sent, err := ch.PublishWithDeferredConfirmWithContext(ctx, "", name, false, false,
		amqp.Publishing{Body: []byte("a message of the doctor")})
	if err != nil {
		return 0, forbidden("publish", err)
	}
	select {
	case <-sent.Done():
		if !sent.Acked() {
			return 0, &fault.Error{Kind: fault.Environment, Message: "the broker does not confirm what is published",
				Hint: "see the broker's log: a majority of its nodes may be missing"}
		}
		return time.Since(begun), nil
	case b := <-v.blocked:
		v.session.kill() // the broker does not even read what else is asked
		return 0, &fault.Error{Kind: fault.Environment, Message: "the broker accepts nothing: " + b.Reason,
			Hint: "give its host more memory or disk, or raise its limits (vm_memory_high_watermark, disk_free_limit)"}
	case <-v.session.ended:
		return 0, &fault.Error{Kind: fault.Environment, Message: "the broker has ended the connection",
			Hint: "see the broker's log"}
	case <-ctx.Done():
		return 0, fmt.Errorf("wait for the confirmation: %w", ctx.Err())
	}
}

// forbidden is the failure of what the broker refuses to this user.
func forbidden(what string, err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	f := &fault.Error{Kind: fault.Environment, Message: what, Err: err, Hint: "see the broker's log"}
	var refused *amqp.Error
	if errors.As(err, &refused) && refused.Code == amqp.AccessRefused {
		f.Hint = "the user needs to configure, write and read all of the prefix, and write to the default exchange: " +
			"rabbitmqctl set_permissions -p VHOST USER '.*' '.*' '.*'"
	}
	return f
}
