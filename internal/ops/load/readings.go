package load

import (
	"slices"
	"strings"
)

// Names of what servers say of themselves, whatever they call it. They have others beside these.
const (
	Operations  = "operations"        // counter: requests of clients
	CPUSeconds  = "cpu_s"             // counter
	MainThread  = "main_thread_cpu_s" // counter: of the one thread that carries out all commands
	Cores       = "cores"             // gauge: that there are for CPUSeconds
	NetworkIn   = "network_in_bytes"  // counter
	NetworkOut  = "network_out_bytes" // counter
	DiskRead    = "disk_read_bytes"   // counter
	DiskWritten = "disk_write_bytes"  // counter
	PauseSecs   = "pause_s"           // counter: of a collector that stops the server
	Compacted   = "compactions_ended" // counter
	Compactions = "compactions"       // gauge: at work
)

// Moved is what a target has moved since it was opened.
type Moved struct {
	Payload  int64 `json:"payload_bytes" doc:"Of keys and values."`
	Sent     int64 `json:"sent_bytes,omitempty" doc:"On the wire, with all that is around the payload and below TLS."`
	Received int64 `json:"received_bytes,omitempty"`
}

// Meter is a target that counts what it moves. It may be asked at any time.
type Meter interface {
	Moved() Moved
}

// NodeUse is what a server did in a span of seconds.
type NodeUse struct {
	Node   string             `json:"node"`
	Rates  map[string]float64 `json:"rates" doc:"Growth of its counters a second."`
	Gauges map[string]float64 `json:"gauges" doc:"The most that was seen."`
}

// Nodes sums up what servers said in some seconds, by node. A counter that has fallen began again at nothing.
func Nodes(seconds []Second) []NodeUse {
	type seen struct {
		first, last float64
		before      Reading
		use         NodeUse
	}
	of := map[string]*seen{}
	for _, second := range seconds {
		for _, r := range second.Servers {
			s := of[r.Node]
			if s == nil {
				s = &seen{first: second.At, use: NodeUse{Node: r.Node, Rates: map[string]float64{}, Gauges: map[string]float64{}}}
				of[r.Node] = s
			}
			for name, v := range r.Counters {
				before, known := s.before.Counters[name]
				switch {
				case !known:
					s.use.Rates[name] += 0
				case v >= before:
					s.use.Rates[name] += v - before
				default:
					s.use.Rates[name] += v
				}
			}
			for name, v := range r.Gauges {
				if most, known := s.use.Gauges[name]; !known || v > most {
					s.use.Gauges[name] = v
				}
			}
			s.before, s.last = r, second.At
		}
	}
	var out []NodeUse
	for _, s := range of {
		for name := range s.use.Rates {
			if s.last == s.first { // one reading says nothing of growth
				delete(s.use.Rates, name)
				continue
			}
			s.use.Rates[name] /= s.last - s.first
		}
		out = append(out, s.use)
	}
	slices.SortFunc(out, func(a, b NodeUse) int { return strings.Compare(a.Node, b.Node) })
	return out
}
