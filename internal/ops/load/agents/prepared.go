package agents

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"thalweg/internal/ops/load"
)

// prepared is a target whose clients are open before the load begins: connecting takes each agent another time.
type prepared struct {
	target  load.Target
	clients []*lent
}

// observed is one that says what its servers do, too.
type observed struct {
	*prepared
	load.Observer
}

// prepare opens the clients of a share.
func prepare(ctx context.Context, target load.Target, s share) (*prepared, error) {
	p := &prepared{target: target}
	for i := range s.Plan.Clients {
		c, err := load.Open(ctx, target, s.FirstClient+i)
		if err != nil {
			return nil, errors.Join(err, p.Close())
		}
		p.clients = append(p.clients, &lent{client: c, by: s.FirstKey})
	}
	return p, nil
}

// load is the target for a load.
func (p *prepared) load() load.Target {
	if o, ok := p.target.(load.Observer); ok {
		return observed{p, o}
	}
	return p
}

// Client hands out a client that is open.
func (p *prepared) Client(_ context.Context, number int) (load.Client, error) {
	if number < 0 || number >= len(p.clients) {
		return nil, fmt.Errorf("client %d was not prepared: there are %d", number, len(p.clients))
	}
	return p.clients[number], nil
}

// Close closes the clients and the target.
func (p *prepared) Close() (err error) {
	for _, c := range p.clients {
		err = errors.Join(err, c.client.Close())
	}
	return errors.Join(err, p.target.Close())
}

// answered is how many operations were answered so far.
func (p *prepared) answered() (n int64) {
	for _, c := range p.clients {
		n += c.answered.Load()
	}
	return n
}

// first is when the first operation of a load that has ended was sent; zero: none was.
func (p *prepared) first() (at time.Time) {
	for _, c := range p.clients {
		if !c.first.IsZero() && (at.IsZero() || c.first.Before(at)) {
			at = c.first
		}
	}
	return at
}

// lent is a client that a load gets, open. It is closed with all others.
type lent struct {
	client   load.Client
	by       uint64    // its keys begin there
	first    time.Time // when it was used first
	ops      []load.Op
	answered atomic.Int64
}

// Do carries out operations.
func (l *lent) Do(ctx context.Context, ops []load.Op, errs []error) {
	if l.first.IsZero() {
		l.first = time.Now()
	}
	if l.by > 0 {
		l.ops = append(l.ops[:0], ops...)
		for i := range l.ops {
			l.ops[i].Key += l.by
		}
		ops = l.ops
	}
	l.client.Do(ctx, ops, errs)
	l.answered.Add(int64(len(ops)))
}

// Close leaves the client open.
func (l *lent) Close() error { return nil }
