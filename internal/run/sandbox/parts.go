package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"sync"

	"thalweg/internal/store/parts"
)

// holds numbers the things that one side holds of the other's; each is given back by its number. What is left
// is given back when the connection ends.
type holds struct {
	mu   sync.Mutex
	last uint64
	by   map[uint64]func()
	over bool
}

func newHolds() *holds { return &holds{by: map[uint64]func(){}} }

// add keeps how something is given back, and numbers it. Once all is over it is
// given back at once.
func (h *holds) add(release func()) uint64 {
	h.mu.Lock()
	over := h.over
	h.last++
	id := h.last
	if !over {
		h.by[id] = release
	}
	h.mu.Unlock()
	if over {
		release()
	}
	return id
}

func (h *holds) release(id uint64) {
	h.mu.Lock()
	release := h.by[id]
	delete(h.by, id)
	h.mu.Unlock()
	if release != nil {
		release()
	}
}

func (h *holds) releaseAll() {
	h.mu.Lock()
	all := h.by
	h.by, h.over = map[uint64]func(){}, true
	h.mu.Unlock()
	for _, release := range all {
		release()
	}
}

// lendHolds lets the other side give back what it holds.
func lendHolds(to *peer, held *holds) {
	to.tells["release"] = hears(held.release)
}

// What is said about parts.
type (
	partArgs struct {
		Key    string `json:"key,omitempty"`
		Path   string `json:"path,omitempty"`
		Sum    string `json:"sum,omitempty"`
		After  string `json:"after,omitempty"`
		Offset int64  `json:"offset,omitempty"`
		Length int64  `json:"length,omitempty"`
		Range  uint64 `json:"range,omitempty"`
	}
	piecesArgs struct {
		Part   parts.Info    `json:"part"`
		Pieces []parts.Piece `json:"pieces"`
	}
	partProperties struct {
		Is     parts.Properties `json:"is"`
		Pieced bool             `json:"pieced"` // it is a parts.Pieced
	}
	partAnswer struct {
		Info  parts.Info   `json:"info,omitzero"`
		Infos []parts.Info `json:"infos,omitempty"`
		More  bool         `json:"more,omitempty"`
		Path  string       `json:"path,omitempty"`
		Total int64        `json:"total,omitempty"`
		Range uint64       `json:"range,omitempty"`
		Hold  uint64       `json:"hold,omitempty"`
	}
)

// lentParts is a part store that the other side uses.
type lentParts struct {
	parts.Store
	held *holds

	mu   sync.Mutex
	last uint64                   // number of the last range
	open map[uint64]io.ReadCloser // ranges, by number
}

// lendParts lets the other side use a part store of this machine.
func lendParts(to *peer, from parts.Store, held *holds) {
	l := &lentParts{Store: from, held: held, open: map[uint64]io.ReadCloser{}}
	pieced, isPieced := from.(parts.Pieced)
	to.calls["parts.properties"] = answers(func(context.Context, partArgs) (any, error) {
		return partProperties{Is: from.Properties(), Pieced: isPieced}, nil
	})
	to.calls["parts.pieces"] = answers(func(ctx context.Context, a piecesArgs) (any, error) {
		path, release, err := pieced.FetchPieces(ctx, a.Part, a.Pieces)
		return l.hold(partAnswer{Path: path}, release, err)
	})
	to.calls["parts.stage"] = answers(l.stage)
	to.calls["parts.reserve"] = answers(func(ctx context.Context, a partArgs) (any, error) {
		release, err := from.Reserve(ctx, a.Length)
		return l.hold(partAnswer{}, release, err)
	})
	to.calls["parts.fetch"] = answers(func(ctx context.Context, a partArgs) (any, error) {
		path, release, err := from.Fetch(ctx, a.Key, a.Sum)
		return l.hold(partAnswer{Path: path}, release, err)
	})
	to.calls["parts.put"] = answers(func(ctx context.Context, a partArgs) (any, error) {
		info, err := from.Put(ctx, a.Key, a.Path)
		return partAnswer{Info: info}, err
	})
	to.calls["parts.delete"] = answers(func(ctx context.Context, a partArgs) (any, error) {
		return nil,
			from.Delete(ctx, a.Key)
	})
	to.calls["parts.list"] = answers(l.list)
	to.calls["parts.open"] = answers(l.openRange)
	to.calls["parts.read"] = answers(l.read)
}

func (l *lentParts) hold(out partAnswer, release func(), err error) (any, error) {
	if err == nil {
		out.Hold = l.held.add(release)
	}
	return out, err
}

func (l *lentParts) stage(ctx context.Context, _ partArgs) (any, error) {
	stage, err := l.Stage(ctx)
	if err != nil {
		return partAnswer{}, err
	}
	// Who has it closes it; this is for one who dies.
	return l.hold(partAnswer{Path: stage.Dir}, func() { _ = stage.Close() }, nil)
}

func (l *lentParts) list(ctx context.Context, a partArgs) (any, error) {
	var out partAnswer
	for info, err := range l.List(ctx, a.Key, a.After) {
		if err != nil {
			return out, err
		}
		if len(out.Infos) == listMax {
			out.More = true
			break
		}
		out.Infos = append(out.Infos, info)
	}
	return out, nil
}

// openRange opens a range beyond the call that asks for it.
func (l *lentParts) openRange(ctx context.Context, a partArgs) (any, error) {
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, cancel)
	body, total, err := l.Open(inner, a.Key, a.Offset, a.Length)
	if !stop() && err == nil {
		err = errors.Join(ctx.Err(), body.Close())
	}
	if err != nil {
		cancel()
		return partAnswer{}, err
	}
	l.mu.Lock()
	l.last++
	id := l.last
	l.open[id] = body
	l.mu.Unlock()
	hold := l.held.add(func() {
		cancel()
		_ = body.Close() // it was only read
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.open, id)
	})
	return partAnswer{Total: total, Range: id, Hold: hold}, nil
}

// read gives the next bytes of a range, none at its end.
func (l *lentParts) read(_ context.Context, a partArgs) (any, error) {
	l.mu.Lock()
	body := l.open[a.Range]
	l.mu.Unlock()
	if body == nil {
		return []byte{}, errors.New("the range of a part is not open")
	}
	buffer := make([]byte, rangeMax)
	n, err := io.ReadFull(body, buffer)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return buffer[:n], err
}

// partStore is a part store that the other side has.
type partStore struct {
	peer *peer
	is   parts.Properties
}

var _ parts.Store = (*partStore)(nil)

// newPartStore is the other side's store: a parts.Pieced if that is one.
func newPartStore(ctx context.Context, p *peer) (parts.Store, error) {
	like, err := ask[partProperties](ctx, p, "parts.properties", partArgs{})
	if err != nil {
		return nil, err
	}
	s := &partStore{p, like.Is}
	if like.Pieced {
		return &piecedStore{s}, nil
	}
	return s, nil
}

// piecedStore is a parts.Pieced that the other side has.
type piecedStore struct{ *partStore }

var _ parts.Pieced = (*piecedStore)(nil)

// FetchPieces implements parts.Pieced.
func (s *piecedStore) FetchPieces(ctx context.Context, part parts.Info, pieces []parts.Piece) (string, func(), error) {
	out, err := ask[partAnswer](ctx, s.peer, "parts.pieces", piecesArgs{part, pieces})
	if err != nil {
		return "", nil, err
	}
	return out.Path, s.held(out.Hold), nil
}

func (s *partStore) ask(ctx context.Context, what string, a partArgs) (partAnswer, error) {
	return ask[partAnswer](ctx, s.peer, "parts."+what, a)
}

// held gives back what was given, once.
func (s *partStore) held(id uint64) func() {
	return sync.OnceFunc(func() { s.peer.tell("release", id) })
}

// Properties implements parts.Store.
func (s *partStore) Properties() parts.Properties { return s.is }

// Stage implements parts.Store.
func (s *partStore) Stage(ctx context.Context) (*parts.Stage, error) {
	out, err := s.ask(ctx, "stage", partArgs{})
	if err != nil {
		return nil, err
	}
	return &parts.Stage{Dir: out.Path}, nil
}

// Reserve implements parts.Store.
func (s *partStore) Reserve(ctx context.Context, bytes int64) (func(), error) {
	if s.is.Local && ctx.Err() == nil { // its parts take up no other room than they have
		return func() {}, nil
	}
	out, err := s.ask(ctx, "reserve", partArgs{Length: bytes})
	if err != nil {
		return nil, err
	}
	return s.held(out.Hold), nil
}

// Fetch implements parts.Store.
func (s *partStore) Fetch(ctx context.Context, key, sum string) (string, func(), error) {
	out, err := s.ask(ctx, "fetch", partArgs{Key: key, Sum: sum})
	if err != nil {
		return "", nil, err
	}
	return out.Path, s.held(out.Hold), nil
}

// Put implements parts.Store.
func (s *partStore) Put(ctx context.Context, key, path string) (parts.Info, error) {
	out, err := s.ask(ctx, "put", partArgs{Key: key, Path: path})
	return out.Info, err
}

// Delete implements parts.Store.
func (s *partStore) Delete(ctx context.Context, key string) error {
	_, err := s.ask(ctx, "delete", partArgs{Key: key})
	return err
}

// List implements parts.Store.
func (s *partStore) List(ctx context.Context, prefix, after string) iter.Seq2[parts.Info, error] {
	return func(yield func(parts.Info, error) bool) {
		for more := true; more; {
			out, err := s.ask(ctx, "list", partArgs{Key: prefix, After: after})
			for _, info := range out.Infos {
				if ctxErr := ctx.Err(); ctxErr != nil {
					err = fmt.Errorf("list parts: %w", ctxErr)
					break
				}
				if after = info.Key; !yield(info, nil) {
					return
				}
			}
			if err != nil {
				yield(parts.Info{}, err)
				return
			}
			more = out.More
		}
	}
}

// Open implements parts.Store.
func (s *partStore) Open(ctx context.Context, key string, offset, length int64) (io.ReadCloser, int64, error) {
	out, err := s.ask(ctx, "open", partArgs{Key: key, Offset: offset, Length: length})
	if err != nil {
		return nil, 0, err
	}
	return &farRange{ctx: ctx, peer: s.peer, number: out.Range, release: s.held(out.Hold)}, out.Total, nil
}

// Close implements parts.Store. The store stays open: it is the other side's.
func (s *partStore) Close() error { return nil }

// farRange is a range of a part that the other side reads.
type farRange struct {
	ctx     context.Context
	peer    *peer
	number  uint64
	release func()
	rest    []byte // of what came last
	end     bool
}

// Read implements io.Reader.
func (r *farRange) Read(p []byte) (int, error) {
	if len(r.rest) == 0 && !r.end {
		body, err := r.peer.call(r.ctx, "parts.read", partArgs{Range: r.number})
		if err != nil {
			return 0, err
		}
		r.rest, r.end = body, len(body) < rangeMax
	}
	if len(r.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// Close implements io.Closer.
func (r *farRange) Close() error {
	r.release()
	return nil
}
