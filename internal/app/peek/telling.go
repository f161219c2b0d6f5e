package peek

import (
	"context"
	"encoding/json"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"thalweg/internal/app/view"
)

// What a piece is that a child sends, by its first byte.
const (
	pieceOfAnswer byte = iota
	pieceOfProgress
)

const (
	// tellEvery is the shortest interval at which a child tells its progress.
	tellEvery = 200 * time.Millisecond
	// tellBytesMax is the most that a child says of it.
	tellBytesMax = 4 << 10
)

// telling is a context whose work tells the parent how far it is, until stop.
func telling(ctx context.Context, send func([]byte) error) (_ context.Context, stop func()) {
	var last atomic.Pointer[view.Progress]
	var work sync.WaitGroup
	told, done := make(chan struct{}, 1), make(chan struct{})
	work.Go(func() {
		for ended := false; !ended; {
			select {
			case <-done:
				ended = true
			case <-told:
			}
			if now := last.Swap(nil); now != nil {
				if text, err := json.Marshal(now); err == nil {
					_ = send(append([]byte{pieceOfProgress}, text...)) // the answer says what is wrong
				}
			}
			select {
			case <-done:
			case <-time.After(tellEvery):
			}
		}
	})
	hear := func(p view.Progress) {
		last.Store(&p)
		select {
		case told <- struct{}{}:
		default: // it is known that there is something
		}
	}
	return view.HearProgress(ctx, hear), func() {
		close(done)
		work.Wait()
	}
}

// hear passes on what a child says of its progress, if a piece is that.
func hear(ctx context.Context, piece []byte) (is bool, err error) {
	if len(piece) == 0 || piece[0] != pieceOfAnswer && len(piece) > tellBytesMax {
		return false, errGarbled
	}
	if piece[0] == pieceOfAnswer {
		return false, nil
	}
	var p view.Progress
	if err := json.Unmarshal(piece[1:], &p); err != nil {
		return false, errGarbled
	}
	view.TellProgress(ctx, p)
	return true, nil
}

// counted counts the bytes of a download, and adds them to the progress of the child that makes it.
type counted struct {
	ctx context.Context //nolint:containedctx // of the download
	to  io.Writer

	mu   sync.Mutex
	last view.Progress // of the child
	n    int64
}

// Write implements io.Writer.
func (c *counted) Write(p []byte) (int, error) {
	n, err := c.to.Write(p)
	c.tell(func() { c.n += int64(n) })
	return n, err
}

func (c *counted) hear(p view.Progress) { c.tell(func() { c.last = p }) }

func (c *counted) tell(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
	now := c.last
	if now.Bytes = c.n; now.Unit == "bytes" {
		now.Done = c.n
	}
	view.TellProgress(c.ctx, now)
}
