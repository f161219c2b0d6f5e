package cluster

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"thalweg/internal/app/instance"
	"thalweg/internal/ops/clusterconfig"
	"thalweg/internal/store/queue/rabbitmq"
)

// brokerPatience bounds a look at the broker: one that does not believe a password says so after some seconds.
const brokerPatience = 10 * time.Second

// CheckBroker says why the broker of a cluster cannot be used; nil if it can, or there is
// none. With try a message is sent and received.
func CheckBroker(ctx context.Context, c *clusterconfig.Config, try bool) error {
	if c.Queue == nil {
		return nil
	}
	cfg, err := instance.BrokerOf(c, c.Queue, "")
	if err != nil {
		return err
	}
	limited, stop := context.WithTimeout(ctx, brokerPatience)
	defer stop()
	visit, err := lookAny(limited, cfg)
	if err != nil {
		return cmp.Or(ctx.Err(), instance.WrongBroker(c, err))
	}
	defer visit.Close()
	if try {
		if _, err := visit.Try(limited); err != nil {
			return fmt.Errorf("try the broker: %w", err)
		}
	}
	return nil
}

// lookAny connects to all nodes of a broker at once, since silent ones would take all the time
// there is, and gives the first connection that was made. Without one, the first node says why.
func lookAny(ctx context.Context, cfg rabbitmq.Config) (*rabbitmq.Probe, error) {
	ctx, enough := context.WithCancel(ctx)
	defer enough()
	failures := make([]error, len(cfg.Hosts))
	var won atomic.Pointer[rabbitmq.Probe]
	var all sync.WaitGroup
	for i, host := range cfg.Hosts {
		all.Go(func() {
			visit, err := rabbitmq.Look(ctx, cfg, host)
			switch {
			case err != nil:
				failures[i] = err
			case won.CompareAndSwap(nil, visit):
				enough()
			default:
				visit.Close()
			}
		})
	}
	all.Wait()
	if visit := won.Load(); visit != nil {
		return visit, nil
	}
	return nil, cmp.Or(failures...)
}
