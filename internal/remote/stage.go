package remote

import (
	"context"
	"os"
	"time"

	"thalweg/internal/address"
	"thalweg/internal/fault"
)

// Upload is a local file on its way to a remote name.
type Upload struct {
	Path     string // of the local file, complete
	Bytes    int64
	Checksum string // of its content
	// TempPrefix begins the names of what attempts at this file leave beside
	// it, and of nothing else.
	TempPrefix string
	Attempt    int
	// Journal is the path of a small local file, the same for all attempts at
	// this file, in which is noted what a dead attempt leaves at the server.
	Journal string
	Secrets Secrets // of the address; nil: none
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

// Stage sends a local file to the server, after removing what dead attempts at
// it left there.
func (c *Client) Stage(ctx context.Context, url string, u Upload) (Staged, error) {
	loc, err := locate(url, u.Secrets)
	if err != nil {
		return nil, err
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

// Abandon removes what a dead attempt at writing url left at its server,
// according to the journal at path, and then the journal.
func (c *Client) Abandon(ctx context.Context, path string) error {
	j, err := readJournal(path)
	if err != nil || j.Key == "" {
		return err
	}
	loc := j.location()
	b, err := c.backend(ctx, loc)
	if err != nil {
		return placed(err, loc)
	}
	s, ok := b.(*s3Backend)
	if !ok {
		return nil
	}
	if err := s.clear(ctx, j); err != nil {
		return placed(err, loc)
	}
	return os.Remove(path)
}

// openUpload opens the file to send.
func openUpload(u Upload) (*os.File, error) {
	f, err := os.Open(u.Path)
	if err != nil {
		return nil, &fault.Error{Kind: fault.Environment, Message: "read the file to send", Err: err, Hint: "check the state directory's disk"}
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
		c.cfg.Logger.Warn("a failed upload stays at the server until it is tried again", "url", loc.String(), "error", loc.Hidden(err.Error()))
	}
}
