package agents

import (
	"context"
	"errors"
	"fmt"

	"thalweg/internal/ops/load"
)

// prepared is a target whose clients are open before the load begins: connecting takes each agent another time.
type prepared struct {
	target  load.Target
	clients []load.Client
}

// observed is one that says what its servers do, too.
type observed struct {
	*prepared
	load.Observer
}

// prepare opens the clients of a share.
func prepare(ctx context.Context, target load.Target, s share) (load.Target, error) {
	p := &prepared{target: target}
	for i := range s.Plan.Clients {
		c, err := target.Client(ctx, s.FirstClient+i)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("open client %d: %w", s.FirstClient+i, err), p.Close())
		}
		if s.FirstKey > 0 {
			c = &shifted{Client: c, by: s.FirstKey}
		}
		p.clients = append(p.clients, c)
	}
	if o, ok := target.(load.Observer); ok {
		return observed{p, o}, nil
	}
	return p, nil
}

// Client hands out a client that is open. It is closed with all others, by Close: a load may be done in parts, each of
// which closes what it was given.
func (p *prepared) Client(_ context.Context, number int) (load.Client, error) {
	if number < 0 || number >= len(p.clients) {
		return nil, fmt.Errorf("client %d was not prepared: there are %d", number, len(p.clients))
	}
	return lent{p.clients[number]}, nil
}

// Close closes the clients and the target.
func (p *prepared) Close() (err error) {
	for _, c := range p.clients {
		err = errors.Join(err, c.Close())
	}
	p.clients = nil
	return errors.Join(err, p.target.Close())
}

type lent struct{ load.Client }

// Close leaves the client open.
func (lent) Close() error { return nil }

// shifted is a client whose keys begin elsewhere.
type shifted struct {
	load.Client
	by  uint64
	ops []load.Op
}

// Do carries out operations.
func (s *shifted) Do(ctx context.Context, ops []load.Op, errs []error) {
	s.ops = append(s.ops[:0], ops...)
	for i := range s.ops {
		s.ops[i].Key += s.by
	}
	s.Client.Do(ctx, s.ops, errs)
}
