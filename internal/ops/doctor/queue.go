package doctor

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"thalweg/internal/base/format"
	"thalweg/internal/store/queue/rabbitmq"
)

// Broker holds the inputs of the checks of a RabbitMQ.
type Broker struct {
	Hosts []string
	// Look connects to one node of the broker.
	Look func(ctx context.Context, host string) (*rabbitmq.Probe, error)
	// Prefix begins the names of the fleet's queues: its id is in the state.
	Prefix func(ctx context.Context) (string, error)

	visit *rabbitmq.Probe
}

// oldestBroker is the first version with quorum queues.
var oldestBroker = [2]int{3, 8}

// Service gives the checks.
func (b *Broker) Service() Service {
	s := Service{Name: "queue", Close: b.close}
	for _, host := range b.Hosts {
		s.Checks = append(s.Checks, Check{Name: host,
			Look: func(ctx context.Context) Result { return b.host(ctx, host) }})
	}
	s.Checks = append(s.Checks,
		Check{Name: "nodes", Gate: true, Look: b.nodes},
		Check{Name: "queues", Look: b.queues},
		Check{Name: "publish and receive", Look: b.try},
	)
	return s
}

func (b *Broker) close() {
	if b.visit != nil {
		b.visit.Close()
	}
}

func (b *Broker) host(ctx context.Context, host string) Result {
	v, err := b.Look(ctx, host)
	if err != nil {
		return Failed(err)
	}
	r := JudgeBroker(v.Product, v.Version, v.Secured, host)
	r.Seen += ", " + format.Span(v.Took) + " to connect"
	if b.visit == nil {
		b.visit = v
	} else {
		v.Close()
	}
	return r
}

// JudgeBroker says whether a broker is one that has what is needed.
func JudgeBroker(product, version, secured, host string) Result {
	r := good("%s %s", product, version)
	if secured != "" {
		r.Seen += ", " + secured
	}
	var number [2]int
	for i, text := range strings.SplitN(version, ".", 3) {
		if i < len(number) {
			number[i], _ = strconv.Atoi(text)
		}
	}
	switch {
	case product != "RabbitMQ":
		r.Verdict, r.Mend = Bad, "only RabbitMQ has queues of the kind that is needed"
	case number[0] < oldestBroker[0] || number[0] == oldestBroker[0] && number[1] < oldestBroker[1]:
		r.Verdict, r.Mend = Bad, fmt.Sprintf("quorum queues need RabbitMQ %d.%d or later", oldestBroker[0],
			oldestBroker[1])
	case secured == "" && !isLoopback(host):
		r.Verdict, r.Seen, r.Mend = Warning, r.Seen+", without TLS",
			"passwords and names of runs can be read on the way: queue: {rabbitmq: {tls: …}}"
	}
	return r
}

func isLoopback(host string) bool {
	return strings.HasPrefix(host, "127.") || strings.HasPrefix(host, "localhost:") || strings.HasPrefix(host, "[::1]")
}

func (b *Broker) nodes(context.Context) Result {
	if b.visit == nil {
		return Result{Verdict: Bad, Seen: "no node of the broker can be used",
			Mend: "see what is said of each; runs go on without it, each worker looks at the state"}
	}
	if b.visit.Cluster == "" {
		return good("one of them is used at a time")
	}
	return good("they are of %s", b.visit.Cluster)
}

func (b *Broker) queues(ctx context.Context) Result {
	prefix, err := b.Prefix(ctx)
	if err != nil {
		return FailedAs("state", fmt.Errorf("which queues are this fleet's is in the state: %w", err))
	}
	found, err := b.visit.Queues(ctx, prefix)
	if err != nil {
		return Failed(err)
	}
	waiting, there := 0, 0
	for _, h := range found {
		if h.Wrong != "" {
			return Result{Verdict: Bad, Seen: h.Queue + " is not as workers need it: " + h.Wrong,
				Mend: "delete the queue (`rabbitmqctl delete_queue`): workers make it anew, and what waited in it is " +
					"known to the state"}
		}
		waiting += h.Waiting
		if h.There {
			there++
		}
	}
	switch there {
	case 0:
		return good("not there yet: the first worker makes them")
	case len(found):
		return good("quorum queues; %s", format.Counted(int64(waiting), "hint waits", "hints wait"))
	}
	return good("%d of %d are there, the next worker makes the others", there, len(found))
}

func (b *Broker) try(ctx context.Context) Result {
	took, err := b.visit.Try(ctx)
	if err != nil {
		return Failed(err)
	}
	r := good("confirmed within %s", format.Span(max(took, time.Millisecond)))
	if took > slowWarn {
		r.Verdict, r.Mend = Warning, "look for what makes the broker slow: its disk, most often"
	}
	return r
}
