package sandbox

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
)

// handler does what a call wants. The answer is sent as JSON, or as it is if it
// is bytes; it goes along with an error, too.
type handler func(ctx context.Context, body []byte) (any, error)

// peer is one end of a connection at which both sides call each other.
type peer struct {
	conn  net.Conn
	bare  bool                         // the other side may be hostile: see Kind
	calls map[string]handler           // each call in a goroutine of its own
	tells map[string]func(body []byte) // in the order in which they come; must not wait

	writing sync.Mutex

	mu      sync.Mutex
	last    uint64                        // number of the last call that was made
	waiting map[uint64]chan frame         // calls that were made, by number
	serving map[uint64]context.CancelFunc // calls that are answered, by number
	gone    bool                          // nothing comes any more
	work    sync.WaitGroup                // calls that are answered
}

func newPeer(conn net.Conn) *peer {
	return &peer{conn: conn, calls: map[string]handler{}, tells: map[string]func([]byte){},
		waiting: map[uint64]chan frame{}, serving: map[uint64]context.CancelFunc{}}
}

// readBytes is the size of reads of small frames.
const readBytes = 64 << 10

// run serves the connection until it ends, which is no error. It returns when
// all that was being answered has ended.
func (p *peer) run() error {
	r := bufio.NewReaderSize(p.conn, readBytes)
	headMax, bodyMax := p.limits()
	var err error
	for err == nil {
		var f frame
		if f, err = readFrame(r, headMax, bodyMax); err == nil {
			err = p.take(f)
		}
	}
	closeErr := p.conn.Close()
	p.mu.Lock()
	p.gone = true
	for id, w := range p.waiting {
		close(w)
		delete(p.waiting, id)
	}
	for _, cancel := range p.serving {
		cancel()
	}
	p.mu.Unlock()
	p.work.Wait()
	if errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.ECONNRESET) {
		return nil
	}
	return errors.Join(err, ignoreClosed(closeErr))
}

func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// limits returns the most bytes of a frame's head and body that the other side may send.
func (p *peer) limits() (head, body uint32) {
	if p.bare {
		return bareHeadMax, bareBodyMax
	}
	return frameHeadMax, frameBodyMax
}

// take sees to one frame.
func (p *peer) take(f frame) error {
	switch f.Kind {
	case kindAnswer:
		p.mu.Lock()
		w := p.waiting[f.ID]
		delete(p.waiting, f.ID)
		p.mu.Unlock()
		if w != nil {
			w <- f // it has room
		}
	case kindCancel:
		p.mu.Lock()
		cancel := p.serving[f.ID]
		p.mu.Unlock()
		if cancel != nil {
			cancel()
		}
	case kindTell:
		if hear := p.tells[f.Method]; hear != nil {
			hear(f.body)
		}
	case kindCall:
		ctx, cancel := context.WithCancel(context.Background())
		p.mu.Lock()
		p.serving[f.ID] = cancel
		count := len(p.serving)
		p.mu.Unlock()
		if p.bare && count > bareCallsMax {
			return errors.New("the other side calls too often at once")
		}
		p.work.Go(func() { p.answer(ctx, f) })
	default:
		return fmt.Errorf("a frame of kind %q is not known", f.Kind)
	}
	return nil
}

// answer does what a call wants and answers it.
func (p *peer) answer(ctx context.Context, f frame) {
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.serving[f.ID]()
		delete(p.serving, f.ID)
	}()
	var out any
	err := fmt.Errorf("there is no call %q", f.Method)
	if do := p.calls[f.Method]; do != nil {
		out, err = do(ctx, f.body)
	}
	reply := frame{head: head{Kind: kindAnswer, ID: f.ID, Error: toWire(err)}}
	if raw, ok := out.([]byte); ok {
		reply.body = raw
	} else if reply.body, err = json.Marshal(out); err != nil {
		reply.Error, reply.body = toWire(fmt.Errorf("encode the answer to %s: %w", f.Method, err)), nil
	}
	if err := p.send(reply); errors.Is(err, errFrameTooLarge) {
		// fails only if nobody is there
		_ = p.send(frame{head: head{Kind: kindAnswer, ID: f.ID,
			Error: toWire(fmt.Errorf("answer %s: %w", f.Method, err))}})
	}
}

func (p *peer) send(f frame) error {
	p.writing.Lock()
	defer p.writing.Unlock()
	return writeFrame(p.conn, f)
}

// tell sends what wants no answer. That nobody hears it is known otherwise.
func (p *peer) tell(method string, args any) {
	if body, err := json.Marshal(args); err == nil {
		_ = p.send(frame{head: head{Kind: kindTell, Method: method}, body: body})
	}
}

// call asks the other side and waits for its answer, also when ctx ends: then
// it is told that nobody wants it any more, so that nothing is given that
// nobody has. errGone if no answer comes.
func (p *peer) call(ctx context.Context, method string, args any) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", method, err)
	}
	body, raw := []byte(nil), false
	if body, raw = args.(rawBody); !raw {
		var err error
		if body, err = json.Marshal(args); err != nil {
			return nil, fmt.Errorf("encode what %s is asked: %w", method, err)
		}
	}
	answer := make(chan frame, 1)
	p.mu.Lock()
	p.last++
	id := p.last
	gone := p.gone
	if !gone {
		p.waiting[id] = answer
	}
	p.mu.Unlock()
	if gone {
		return nil, errGone
	}
	if err := p.send(frame{head: head{Kind: kindCall, ID: id, Method: method}, body: body}); errors.Is(err,
		errFrameTooLarge) {
		p.mu.Lock()
		delete(p.waiting, id)
		p.mu.Unlock()
		return nil, fmt.Errorf("ask %s: %w", method, err)
	} // any other failure to write ends the connection, and the wait below
	defer context.AfterFunc(ctx, func() { _ = p.send(frame{head: head{Kind: kindCancel, ID: id}}) })()
	f, ok := <-answer
	if !ok {
		return nil, errGone
	}
	return f.body, fromWire(f.Error)
}

// ask is call with an answer of type A.
func ask[A any](ctx context.Context, p *peer, method string, args any) (out A, err error) {
	body, err := p.call(ctx, method, args)
	if len(body) > 0 {
		if decodeErr := json.Unmarshal(body, &out); decodeErr != nil {
			err = errors.Join(err, fmt.Errorf("decode the answer to %s: %w", method, decodeErr))
		}
	}
	return out, err
}

// answers makes a handler of a function with arguments of type A.
func answers[A any](do func(ctx context.Context, args A) (any, error)) handler {
	return func(ctx context.Context, body []byte) (any, error) {
		var args A
		if err := json.Unmarshal(body, &args); err != nil {
			return nil, fmt.Errorf("decode a call: %w", err)
		}
		return do(ctx, args)
	}
}

// hears makes what hears tells of one that has arguments of type A.
func hears[A any](do func(args A)) func([]byte) {
	return func(body []byte) {
		var args A
		if json.Unmarshal(body, &args) == nil {
			do(args)
		}
	}
}
