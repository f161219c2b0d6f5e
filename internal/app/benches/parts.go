package benches

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"

	"thalweg/internal/ops/load"
	"thalweg/internal/store/parts"
)

// partBytes is the size of a part unless another is said.
const partBytes = 8 << 20

// partsTarget is the parts of a place: a write puts one, as a batch does with its table, and a read reads one whole.
type partsTarget struct {
	*place
	size    int
	noise   []byte   // all parts are pieces of it, behind their keys
	written sync.Map // by key a channel that is closed once its first part is there, or has failed
	tag     string   // of this generator
	again   atomic.Int64
	payload atomic.Int64
	waste   chan string   // keys of parts that nobody reads
	removed chan struct{} // closed when all waste is
}

// openParts makes a place for parts.
func openParts(ctx context.Context, o TargetOptions) (*partsTarget, error) {
	p, err := openPlace(ctx, o, "part_chunks")
	if err != nil {
		return nil, err
	}
	t := &partsTarget{place: p, size: max(cmp.Or(o.Value, partBytes), keyBytes), tag: rand.Text()}
	t.noise = make([]byte, t.size+noiseSpan)
	load.Fill(t.noise, 1)
	t.waste, t.removed = make(chan string, wasteMax), make(chan struct{})
	go t.remove(context.WithoutCancel(ctx))
	return t, nil
}

// remove removes waste as it comes: a disk would be full after a minute of writes without that. What does not go then
// goes with the place.
func (t *partsTarget) remove(ctx context.Context) {
	defer close(t.removed)
	for key := range t.waste {
		_ = t.Parts.Delete(ctx, key)
	}
}

// Close implements load.Target.
func (t *partsTarget) Close() error {
	close(t.waste)
	<-t.removed
	return t.place.Close()
}

const (
	keyBytes  = 8       // at the beginning of a part
	noiseSpan = 1 << 16 // of places at which parts begin in the noise
	wasteMax  = 64      // parts that wait for their removal: then writes wait, too
)

// Moved implements load.Meter.
func (t *partsTarget) Moved() load.Moved { return load.Moved{Payload: t.payload.Load()} }

// Client implements load.Target.
func (t *partsTarget) Client(ctx context.Context, number int) (load.Client, error) {
	stage, err := t.Parts.Stage(ctx)
	if err != nil {
		return nil, err
	}
	return &partsClient{t, stage, number}, nil
}

// partsClient puts and reads parts, those that come together at once.
type partsClient struct {
	t      *partsTarget
	stage  *parts.Stage
	number int
}

// Close implements load.Client.
func (c *partsClient) Close() error { return c.stage.Close() }

// Do implements load.Client.
func (c *partsClient) Do(ctx context.Context, ops []load.Op, errs []error) {
	together(ops, errs, func(op load.Op) error {
		var err error
		if op.Kind == load.Write {
			err = c.t.put(ctx, c.stage, op.Key)
		} else {
			err = c.t.get(ctx, op.Key)
		}
		if err == nil {
			c.t.payload.Add(int64(c.t.size))
		}
		return err
	})
}

// together carries out operations at once.
func together(ops []load.Op, errs []error, do func(load.Op) error) {
	if len(ops) == 1 {
		errs[0] = do(ops[0])
		return
	}
	var all sync.WaitGroup
	for i, op := range ops {
		all.Go(func() { errs[i] = do(op) })
	}
	all.Wait()
}

// piece is what a part has behind its key.
func (t *partsTarget) piece(key uint64) []byte {
	at := load.Mix(key) % noiseSpan
	return t.noise[at : int(at)+t.size-keyBytes]
}

// put writes a part. A part never changes: one that is written again is another one of the same content, and goes.
func (t *partsTarget) put(ctx context.Context, stage *parts.Stage, key uint64) error {
	path, err := stage.File(ctx)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("write a part: %w", err)
	}
	var head [keyBytes]byte
	binary.BigEndian.PutUint64(head[:], key)
	_, err = f.Write(head[:])
	if err == nil {
		_, err = f.Write(t.piece(key))
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write a part: %w", errors.Join(err, os.Remove(path)))
	}
	if _, there := t.written.Load(key); !there {
		_, err := t.Parts.Put(ctx, partKey(key), path)
		if err != nil && !errors.Is(err, parts.ErrExists) { // else another client was first
			return errors.Join(err, os.Remove(path))
		}
		t.written.Store(key, true)
		if err == nil {
			return nil
		}
	}
	again := fmt.Sprintf("again/%s-%d", t.tag, t.again.Add(1))
	if _, err := t.Parts.Put(ctx, again, path); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	select {
	case t.waste <- again:
	case <-ctx.Done():
	}
	return nil
}

func partKey(key uint64) string { return fmt.Sprintf("first/%d", key) }

// pieces are buffers for reading.
var pieces = sync.Pool{New: func() any { return new([256 << 10]byte) }}

// get reads a part and compares all of it.
func (t *partsTarget) get(ctx context.Context, key uint64) (err error) {
	body, total, err := t.Parts.Open(ctx, partKey(key), 0, -1)
	switch {
	case errors.Is(err, parts.ErrNotFound):
		return load.ErrMissing
	case err != nil:
		return err
	}
	defer func() { err = errors.Join(err, body.Close()) }()
	if total != int64(t.size) {
		return load.ErrWrong
	}
	var head [keyBytes]byte
	if _, err := io.ReadFull(body, head[:]); err != nil {
		return fmt.Errorf("read a part: %w", err)
	}
	if binary.BigEndian.Uint64(head[:]) != key {
		return load.ErrWrong
	}
	buffer := pieces.Get().(*[256 << 10]byte)
	defer pieces.Put(buffer)
	for rest := t.piece(key); len(rest) > 0; {
		n, err := io.ReadFull(body, buffer[:min(len(buffer), len(rest))])
		if err != nil {
			return fmt.Errorf("read a part: %w", err)
		}
		if !bytes.Equal(buffer[:n], rest[:n]) {
			return load.ErrWrong
		}
		rest = rest[n:]
	}
	return nil
}
