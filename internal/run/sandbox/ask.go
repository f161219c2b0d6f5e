package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"thalweg/internal/base/fault"
	"thalweg/internal/base/keeper"
)

// Kind says which children there are: how one is started, and what it is told then.
type Kind struct {
	Command  func() keeper.Program // the same program, with Command; Slots says the rest
	Settings json.RawMessage       // for the children's Host
	// Bare: nothing is lent to them, and nothing that they say is believed to be within limits: of what they
	// send, so much is taken at once and no more.
	Bare bool
}

// is reports whether a child is of another's kind.
func (k Kind) is(other Kind) bool {
	return k.Bare == other.Bare && bytes.Equal(k.Settings, other.Settings)
}

// Question is what a child is asked, besides batches.
type Question struct {
	Kind   Kind
	Doing  string // of the child, for the failure if it dies
	Hint   string // for that failure
	Method string
	Args   any
	// Hear gets what the child sends before its answer, piece by piece. The child waits meanwhile. An error is the
	// answer to its Send.
	Hear func(ctx context.Context, piece []byte) error
}

// Answerer is a Host that answers questions. send gives the parent a piece of the answer, pieceMax bytes at most.
type Answerer interface {
	Answer(ctx context.Context, method string, args json.RawMessage, send func([]byte) error) (any, error)
}

// Wearing is a Host that says whether its process has to be replaced before it is asked again.
type Wearing interface{ Worn() bool }

// Noting is a Host that has something to say to the parent's log once it has begun.
type Noting interface{ Notes() []string }

// PieceMax is the most bytes that a child sends at once.
const PieceMax = 1 << 20

// What is said for questions.
type (
	askArgs struct {
		Method string          `json:"method"`
		Args   json.RawMessage `json:"args"`
	}
	askAnswer struct {
		Answer    json.RawMessage `json:"answer,omitempty"`
		HeldBytes int64           `json:"held_bytes"` // resident
		Worn      bool            `json:"worn,omitempty"`
	}
)

// hearer passes what a child sends to who has asked it.
type hearer struct {
	mu   sync.Mutex
	hear func(ctx context.Context, piece []byte) error // nil: nobody has
}

func (h *hearer) set(hear func(context.Context, []byte) error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.hear = hear
}

// piece is the child's call.
func (h *hearer) piece(ctx context.Context, body []byte) (any, error) {
	h.mu.Lock() // also so that one piece is heard after the other
	defer h.mu.Unlock()
	if h.hear == nil {
		return nil, errors.New("nobody has asked for that")
	}
	return nil, h.hear(ctx, body)
}

// Ask waits for a child of a kind, and for its answer. A child of another kind ends for it, if there is no place
// else. What is left of a child whose answer was not wanted any more is ended after Config.Grace.
func (s *Slots) Ask(ctx context.Context, q Question) (json.RawMessage, error) {
	args, err := json.Marshal(q.Args)
	if err != nil {
		return nil, fmt.Errorf("encode a question: %w", err)
	}
	at, err := s.take(ctx, q.Kind)
	if err != nil {
		return nil, err
	}
	defer s.giveBack(at)
	p := at.process
	p.batches++
	p.output.begin()
	p.hear.set(q.Hear)
	defer p.hear.set(nil)
	x := &execution{slots: s, at: at, process: p, hint: q.Hint}
	out, err := talk[askAnswer](ctx, x, q.Doing, "ask", askArgs{Method: q.Method, Args: args})
	if out.Worn || out.HeldBytes > p.first+heldMax {
		p.batches = batchesMax
	}
	return out.Answer, err
}

// giveBack gives a place to the next.
func (s *Slots) giveBack(at *place) {
	at.used = time.Now()
	s.free <- at
}

// EndIdle ends the children that were idle for so long.
func (s *Slots) EndIdle(since time.Duration) {
	for range len(s.free) {
		select {
		case at := <-s.free:
			if at.process != nil && time.Since(at.used) >= since {
				at.process.end()
				at.process = nil
			}
			s.free <- at
		default: // somebody was faster
			return
		}
	}
}

// answerer answers a question in the child.
func (c *child) ask(ctx context.Context, a askArgs) (any, error) {
	c.mu.Lock()
	host, ok := c.host.(Answerer)
	c.mu.Unlock()
	if !ok {
		return nil, fault.New(fault.Bug, "the child does not answer questions")
	}
	out, err := host.Answer(ctx, a.Method, a.Args, func(piece []byte) error {
		_, err := c.peer.call(ctx, "piece", rawBody(piece))
		return err
	})
	text, encodeErr := json.Marshal(out)
	reply := askAnswer{Answer: text, HeldBytes: residentBytes()}
	if w, ok := host.(Wearing); ok {
		reply.Worn = w.Worn()
	}
	return reply, errors.Join(err, encodeErr)
}

// rawBody is the body of a call that is not JSON.
type rawBody []byte
