package cassandra

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
	"golang.org/x/sync/errgroup"

	"thalweg/internal/base/fault"
	"thalweg/internal/store/parts"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Put implements parts.Backend.
func (s *Store) Put(ctx context.Context, key, path string) (info parts.Info, err error) {
	if err := check(ctx, key); err != nil {
		return parts.Info{}, err
	}
	done, err := s.alone(ctx, key)
	if err != nil {
		return parts.Info{}, fmt.Errorf("put %s: %w", key, err)
	}
	defer done()
	f, bytes, err := openFile(path)
	if err != nil {
		return parts.Info{}, err
	}
	defer f.Close() // only read from
	at, r := s.place(key), row{put: gocql.MustRandomUUID(), owner: s.owner, bytes: bytes}
	if r.checksum, err = s.send(ctx, at, r, f); err != nil {
		s.cleanup(ctx, at, r)
		return parts.Info{}, fmt.Errorf("put %s: %w", key, err)
	}
	s.cfg.Checkpoint(Done)
	if err := os.Remove(path); err != nil { // it is there; only the file stays
		return parts.Info{}, diskFault("remove a part's file", err)
	}
	return parts.Info{Key: key, Bytes: bytes, Checksum: r.checksum}, nil
}

func openFile(path string) (*os.File, int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, diskFault("read a part's file", err)
	}
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = errors.New("it is no regular file")
	}
	if err != nil {
		return nil, 0, errors.Join(diskFault("read a part's file", err), f.Close())
	}
	return f, st.Size(), nil
}

// send writes the row, the chunks and the checksum.
func (s *Store) send(ctx context.Context, at place, r row, f io.Reader) (sum string, err error) {
	if err := s.exec(ctx, "put part row", insertIntent, at.root, at.shard, at.key, r.put, r.owner, time.Now(),
		r.bytes); err != nil {
		return "", err
	}
	s.cfg.Checkpoint(Intended)
	if err := s.first(ctx, at, r); err != nil {
		return "", err
	}
	if sum, err = s.sendChunks(ctx, r, f); err != nil {
		return "", err
	}
	s.cfg.Checkpoint(Sent)
	return sum, s.exec(ctx, "put part row", insertDone, at.root, at.shard, at.key, r.put, sum)
}

// first fails if another has put the key, or is doing so.
func (s *Store) first(ctx context.Context, at place, mine row) error {
	rows, err := s.rows(ctx, at)
	if err != nil {
		return err
	}
	for _, r := range rows {
		switch {
		case r.put == mine.put:
		case r.checksum != "":
			return parts.ErrExists
		case r.owner != s.owner:
			return fmt.Errorf("%w: another process puts it, or has died over it", parts.ErrExists)
		default: // left by a Put of ours that failed and could not clean up
			if err := s.remove(ctx, at, r); err != nil {
				return err
			}
		}
	}
	return nil
}

// sendChunks writes a file's chunks, several at once, and gives the checksum.
func (s *Store) sendChunks(ctx context.Context, r row, f io.Reader) (string, error) {
	group, ctx := errgroup.WithContext(ctx)
	sum, err := s.readChunks(ctx, r, f, func(n int, sum uint32, data []byte, release func()) {
		group.Go(func() error {
			defer release()
			return s.exec(ctx, "put chunk", insertChunk, r.put, n/sectionChunks, n, int64(sum), data)
		})
	})
	if failed := group.Wait(); failed != nil {
		return "", failed // then reading was only given up
	}
	return fmt.Sprintf("crc32c:%08x", sum), err
}

// readChunks reads a file chunk by chunk, each when there is room for it in flight.
func (s *Store) readChunks(ctx context.Context, r row, f io.Reader, send func(n int, sum uint32, data []byte,
	release func())) (sum uint32, err error) {
	for n := range chunksOf(r.bytes) {
		if err := s.writes.Acquire(ctx); err != nil {
			return 0, err
		}
		buffer := s.buffers.Get().(*[]byte)
		release := func() {
			s.buffers.Put(buffer)
			s.writes.Release()
		}
		data := (*buffer)[:min(chunkBytes, r.bytes-int64(n)*chunkBytes)]
		if _, err := io.ReadFull(f, data); err != nil {
			release()
			return 0, diskFault("read a part's file", err)
		}
		sum = crc32.Update(sum, castagnoli, data)
		send(n, crc32.Checksum(data, castagnoli), data, release)
	}
	return sum, nil
}

// cleanup removes what a failed Put has written; what it cannot remove is found
// by Unfinished.
func (s *Store) cleanup(ctx context.Context, at place, r row) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer stop()
	_ = s.remove(ctx, at, r)
}

func diskFault(what string, err error) error {
	return &fault.Error{Kind: fault.Environment, Retryable: fault.Passes(err), Message: what, Err: err,
		Hint: "check the permissions and the free space of the directory"}
}
