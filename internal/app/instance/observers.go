package instance

import (
	"time"

	"thalweg/internal/store/cassandra"
	"thalweg/internal/store/parts"
	"thalweg/internal/store/parts/cache"
	"thalweg/internal/store/queue/rabbitmq"
	statecassandra "thalweg/internal/store/state/cassandra"
)

// ClusterOptions say how a process takes part in a cluster.
type ClusterOptions struct {
	Observers Observers
	// Keep leaves copies of parts on this machine, for the next process that keeps some.
	Keep bool
}

// Observers are told what a process asks of a cluster's services, and what it
// spares them. All may be nil: nobody is told. They are called from several goroutines.
type Observers struct {
	Cassandra Requests
	S3        Requests
	RabbitMQ  Requests
	Cache     cache.Observer                    // of copies of parts
	Parts     func(parts.Backend) parts.Backend // what is asked for parts, below the copies
}

// Requests is told of requests to a service.
type Requests interface {
	Request(name string, took time.Duration, err error)
	// Conditional is told of a conditional write; late: somebody else came first.
	Conditional(name string, took time.Duration, late bool, err error)
}

// named are the requests that nobody tells of but the session: those of parts.
func (o Observers) named() cassandra.Observer {
	if o.Cassandra == nil {
		return nil
	}
	return namedRequests{o.Cassandra}
}

type namedRequests struct{ to Requests }

// Request implements cassandra.Observer. Those of the state have no name here: the
// state tells of them, and knows more.
func (n namedRequests) Request(name string, took time.Duration, err error) {
	if name != "" {
		n.to.Request(name, took, err)
	}
}

// ofState are the requests of the state.
func (o Observers) ofState() statecassandra.Observer {
	if o.Cassandra == nil {
		return nil
	}
	return stateRequests{o.Cassandra}
}

type stateRequests struct{ to Requests }

// Request implements statecassandra.Observer.
func (s stateRequests) Request(r statecassandra.Request) {
	if r.Conditional {
		s.to.Conditional(r.Operation, r.Took, r.Lost, r.Err)
		return
	}
	s.to.Request(r.Operation, r.Took, r.Err)
}

// ofS3 are the requests of parts to a bucket's service.
func (o Observers) ofS3() func(name string, took time.Duration, err error) {
	if o.S3 == nil {
		return nil
	}
	return o.S3.Request
}

// ofBroker are the requests to RabbitMQ.
func (o Observers) ofBroker() func(op rabbitmq.Op, took time.Duration, err error) {
	if o.RabbitMQ == nil {
		return nil
	}
	return func(op rabbitmq.Op, took time.Duration, err error) { o.RabbitMQ.Request(string(op), took, err) }
}
