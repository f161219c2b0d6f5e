package remote

import (
	"context"
	"os"
	"time"

	"thalweg/internal/base/address"
	"thalweg/internal/base/fault"
)

// Upload is a local file on its way to a remote name.
type Upload struct {
	Path     string // of the local file, complete
	Bytes    int64
	Checksum string // of its content
	Temp     string // the name beside the final one that it may have until Publish
	// Named is told what the server calls the upload, before any of it is sent;
	// nil: nobody wants to know.
	Named   func(ctx context.Context, upload string) error
	Alone   Alone
	Secrets Secrets // of the address; nil: none
}

// Alone says that nobody but the caller may be sending to an address, or gives
// an error. It is asked between looking for uploads there and ending them: what
// was there before the answer is nobody's then. nil: always.
type Alone func(ctx context.Context) error

func (a Alone) ask(ctx context.Context) error {
	if a == nil {
		return nil
	}
	return a(ctx)
}

// Leftover describes an upload that may lie unpublished at a server.
type Leftover struct {
	Temp   string    // see Upload
	Upload string    // what the server calls the upload; "": nobody has heard
	Begun  time.Time // before it was asked for
	Alone  Alone
}

// Staged is a file that lies at its server without being visible under its
// final name.
type Staged interface {
	// Publish makes it visible, whole, replacing what was there. It may be
	// repeated.
	Publish(ctx context.Context) error
	// Discard removes it. After Publish it does nothing.
	Discard(ctx context.Context) error
}

// Stage sends a local file to the server.
func (c *Client) Stage(ctx context.Context, url string, u Upload) (Staged, error) {
	loc, err := locate(url, u.Secrets)
	if err != nil {
		return nil, err
	}
	if err := c.policy.WriteAddress(loc); err != nil {
		return nil, placed(err, loc)
	}
	done, err := c.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	b, err := c.backend(ctx, loc)
	if err != nil {
		return nil, placed(err, loc)
	}
	s, err := b.stage(ctx, loc, u)
	if ctx.Err() != nil {
		if s != nil {
			return s, canceled(ctx)
		}
		return nil, canceled(ctx)
	}
	return s, placed(err, loc)
}

// Abandon removes what somebody left at a server who did not publish it. What
// is not there is fine, what is published stays.
func (c *Client) Abandon(ctx context.Context, url string, left Leftover) error {
	loc, err := locate(url, nil)
	if err != nil {
		return err
	}
	b, err := c.backend(ctx, loc)
	if err != nil {
		return placed(err, loc)
	}
	return placed(b.abandon(ctx, loc, left), loc)
}

// openUpload opens the file to send.
func openUpload(u Upload) (*os.File, error) {
	f, err := os.Open(u.Path)
	if err != nil {
		return nil, &fault.Error{Kind: fault.Environment, Message: "read the file to send", Err: err,
			Hint: "check the state directory's disk"}
	}
	return f, nil
}

// giveUpTimeout bounds clearing up after a failed upload.
const giveUpTimeout = 10 * time.Second

// giveUp removes what a failed upload left; the next attempt does it otherwise.
func (c *Client) giveUp(ctx context.Context, s Staged, loc address.Location) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveUpTimeout)
	defer cancel()
	if err := s.Discard(ctx); err != nil {
		c.cfg.Logger.Warn("a failed upload stays at the server until it is tried again", "url", loc.String(), "error",
			loc.Hidden(err.Error()))
	}
}
