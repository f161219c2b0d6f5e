package cassandra

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"sync"

	gocql "github.com/apache/cassandra-gocql-driver/v2"

	"thalweg/internal/store/parts"
)

// aheadMax limits the chunks that each reader fetches in advance.
const aheadMax = 4

// Open implements parts.Backend.
func (s *Store) Open(ctx context.Context, key string, offset, length int64) (io.ReadCloser, int64, error) {
	if err := check(ctx, key); err != nil {
		return nil, 0, err
	}
	rows, err := s.rows(ctx, s.place(key))
	if err != nil {
		return nil, 0, fmt.Errorf("open part %s: %w", key, err)
	}
	for _, r := range rows {
		if r.checksum == "" {
			continue
		}
		from, to := min(offset, r.bytes), r.bytes
		if length >= 0 {
			to = min(from+length, r.bytes)
		}
		return s.body(ctx, r, from, to), r.bytes, nil
	}
	return nil, 0, fmt.Errorf("open part %s: %w", key, parts.ErrNotFound)
}

// body reads the bytes of a range, chunk by chunk in their order.
type body struct {
	cancel context.CancelFunc
	work   sync.WaitGroup
	chunks chan chan chunk // of chunks that are on their way
	rest   []byte          // of the chunk that is being read
	err    error
}

type chunk struct {
	data []byte
	err  error
}

func (s *Store) body(ctx context.Context, r row, from, to int64) *body {
	ctx, cancel := context.WithCancel(ctx)
	b := &body{cancel: cancel, chunks: make(chan chan chunk, aheadMax-1)}
	b.work.Go(func() {
		defer close(b.chunks)
		for n := from / chunkBytes; n*chunkBytes < to; n++ {
			coming := make(chan chunk, 1)
			select {
			case b.chunks <- coming:
			case <-ctx.Done():
				return
			}
			b.work.Go(func() {
				data, err := s.chunk(ctx, r, int(n))
				if err == nil {
					data = data[max(0, from-n*chunkBytes):min(int64(len(data)), to-n*chunkBytes)]
				}
				coming <- chunk{data, err}
			})
		}
	})
	return b
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	for len(b.rest) == 0 && b.err == nil {
		coming, ok := <-b.chunks
		if !ok {
			b.err = io.EOF
			break
		}
		c := <-coming
		b.rest, b.err = c.data, c.err
	}
	if len(b.rest) == 0 && b.err != nil {
		return 0, b.err
	}
	n := copy(p, b.rest)
	b.rest = b.rest[n:]
	return n, nil
}

// Close implements io.Closer. It returns when nothing is read any more.
func (b *body) Close() error {
	b.cancel()
	b.work.Wait()
	return nil
}

// chunk reads one chunk: any node's copy of it, as it never changes, and only
// where that has none, what most of them say.
func (s *Store) chunk(ctx context.Context, r row, n int) (data []byte, err error) {
	if err := s.reads.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	defer s.reads.Release(1)
	var sum int64
	read := func(ctx context.Context, q *gocql.Query) error {
		return q.Idempotent(true).ScanContext(ctx, &sum, &data)
	}
	err = s.persist(ctx, "get chunk", func(ctx context.Context) error {
		q := func() *gocql.Query { return s.session.Query(selectChunk, r.put, n/sectionChunks, n) }
		err := read(ctx, q().Consistency(gocql.LocalOne))
		if errors.Is(err, gocql.ErrNotFound) {
			err = read(ctx, q())
		}
		if errors.Is(err, gocql.ErrNotFound) {
			return nil // said below: it is nothing that could pass
		}
		return err
	})
	switch want := min(chunkBytes, r.bytes-int64(n)*chunkBytes); {
	case err != nil:
		return nil, err
	case data == nil:
		return nil, fmt.Errorf("%w: chunk %d is not there: %w", parts.ErrCorrupt, n, errGone)
	case int64(len(data)) != want || crc32.Checksum(data, castagnoli) != uint32(sum):
		return nil, fmt.Errorf("%w: chunk %d", parts.ErrCorrupt, n)
	}
	return data, nil
}
