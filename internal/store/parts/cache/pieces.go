package cache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"thalweg/internal/store/parts"
)

var _ parts.Pieced = (*Store)(nil)

// pieces lists the pieces in an incomplete copy of a part. The file has holes in place of the others.
type pieces struct {
	mu   sync.Mutex
	made map[parts.Piece]chan struct{} // closed once the piece is there; those that could not be had are not in it
}

// piecesOf names the copy of a part's pieces: no key has such a character.
func piecesOf(key string) string { return key + "#" }

// FetchPieces implements parts.Pieced. A whole copy serves as well.
func (s *Store) FetchPieces(ctx context.Context, part parts.Info, wanted []parts.Piece) (path string, release func(),
	err error) {
	if err := parts.CheckKey(part.Key); err != nil {
		return "", nil, err
	}
	s.mu.Lock()
	whole := s.whole(part.Key) != nil
	s.mu.Unlock()
	if whole {
		return s.Fetch(ctx, part.Key, part.Checksum)
	}
	c, err := s.takePieces(part)
	if err != nil {
		return "", nil, err
	}
	for len(wanted) > 0 && err == nil {
		n := 1
		for n < len(wanted) && wanted[n].From == wanted[n-1].From+wanted[n-1].Bytes {
			n++
		}
		err = s.fillPieces(ctx, c, part, wanted[:n])
		wanted = wanted[n:]
	}
	if err != nil {
		s.leave(c)
		return "", nil, err
	}
	return c.path, sync.OnceFunc(func() { s.leave(c) }), nil
}

// takePieces gives the copy of a part's pieces, and makes it with none.
func (s *Store) takePieces(part parts.Info) (*partCopy, error) {
	c, mine := s.take(piecesOf(part.Key))
	if !mine {
		<-c.made // no more than a file is made
		if c.pieces != nil {
			return c, nil
		}
		s.leave(c)
		return nil, diskFault("copy pieces of a part", errors.New("its file could not be made"))
	}
	defer close(c.made)
	f, err := os.OpenFile(c.path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err == nil {
		err = errors.Join(f.Truncate(part.Bytes), f.Close())
	}
	if err != nil {
		s.mu.Lock()
		s.forget(c)
		s.mu.Unlock()
		s.leave(c)
		return nil, diskFault("copy pieces of a part", err)
	}
	c.pieces = &pieces{made: map[parts.Piece]chan struct{}{}}
	return c, nil
}

// fillPieces has neighbouring pieces in the copy: those that nobody fetches are
// fetched in one go each stretch, the others waited for.
func (s *Store) fillPieces(ctx context.Context, c *partCopy, part parts.Info, stretch []parts.Piece) error {
	for len(stretch) > 0 {
		first, others := c.pieces.begin(stretch)
		if others != nil {
			select {
			case <-others:
			case <-ctx.Done():
				return fmt.Errorf("fetch %s: %w", part.Key, ctx.Err())
			}
			if c.pieces.has(stretch[0]) {
				stretch = stretch[1:]
			}
			continue
		}
		done, err := s.fetchStretch(ctx, c, part, stretch[:first])
		c.pieces.end(stretch[:first], done)
		if err != nil {
			return err
		}
		stretch = stretch[first:]
	}
	return nil
}

// begin takes the first of neighbouring pieces, and those behind it that nobody has or
// fetches either; others is closed when the first one is there, or was not to be had.
func (p *pieces) begin(stretch []parts.Piece) (mine int, others <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, piece := range stretch {
		if made := p.made[piece]; made != nil {
			if mine == 0 {
				return 0, made
			}
			return mine, nil
		}
		p.made[piece] = make(chan struct{})
		mine++
	}
	return mine, nil
}

// has reports whether a piece that was waited for is there.
func (p *pieces) has(piece parts.Piece) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.made[piece] != nil
}

// end says that so many of the pieces that were begun are there, and the others are not to be had.
func (p *pieces) end(begun []parts.Piece, done int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, piece := range begun {
		made := p.made[piece]
		if i >= done {
			delete(p.made, piece)
		}
		close(made)
	}
}

// fetchStretch copies neighbouring pieces and says how many of them are there.
func (s *Store) fetchStretch(ctx context.Context, c *partCopy, part parts.Info, stretch []parts.Piece) (done int,
	err error) {
	var bytes int64
	for _, p := range stretch {
		bytes += p.Bytes
	}
	s.mu.Lock()
	s.makeRoom(bytes)
	c.bytes += bytes
	s.bytes += bytes
	s.mu.Unlock()
	defer func() { // what did not come takes up no room
		var missing int64
		for _, p := range stretch[done:] {
			missing += p.Bytes
		}
		s.mu.Lock()
		c.bytes -= missing
		s.bytes -= missing
		s.mu.Unlock()
	}()
	began := time.Now()
	defer func() { s.observer.Copied(bytes, time.Since(began), err) }()
	from := &steady{ctx: ctx, backend: s.Backend, key: part.Key, at: stretch[0].From, length: bytes}
	if err := from.open(); err != nil {
		return 0, err
	}
	defer from.close()
	if from.total != part.Bytes {
		return 0, fmt.Errorf("fetch pieces of %s: %w: it has %d bytes instead of %d", part.Key,
			parts.ErrCorrupt, from.total, part.Bytes)
	}
	f, err := os.OpenFile(c.path, os.O_WRONLY, 0)
	if err != nil {
		return 0, diskFault("copy pieces of a part", err)
	}
	defer func() {
		if closing := f.Close(); err == nil && closing != nil {
			done, err = 0, diskFault("copy pieces of a part", closing)
		}
	}()
	for ; done < len(stretch); done++ {
		p := stretch[done]
		sum, _, err := parts.Checksum(io.TeeReader(io.LimitReader(from, p.Bytes), io.NewOffsetWriter(f, p.From)))
		if err != nil {
			return done, fmt.Errorf("copy pieces of part %s: %w", part.Key, err)
		}
		if sum != p.Checksum {
			return done, fmt.Errorf("fetch bytes %d to %d of %s: %w: %s instead of %s", p.From,
				p.From+p.Bytes, part.Key, parts.ErrCorrupt, sum, p.Checksum)
		}
	}
	return done, nil
}
