package metrics

import (
	"context"
	"io"
	"iter"
	"time"

	"thalweg/internal/store/parts"
)

// Parts measures a store whose parts are files on this machine. One of copies is
// measured by Backend, behind it.
func (m *Metrics) Parts(s parts.Store) parts.Store {
	return &partStore{Store: s, backend: backend{s, m}}
}

// Backend measures a backend.
func (m *Metrics) Backend(b parts.Backend) parts.Backend { return &backend{b, m} }

// Copies counts what a cache of parts spares; see cache.Observer.
func (m *Metrics) Copies() Copies { return Copies{m} }

// Copies counts the parts that are wanted on a machine and put from there.
type Copies struct{ m *Metrics }

// Found counts a part whose copy was there.
func (c Copies) Found(bytes int64) { c.count("found", "", bytes, nil) }

// Copied counts one that was not.
func (c Copies) Copied(bytes int64, _ time.Duration, err error) {
	c.count("copied", "failed", bytes, err)
}

// Written counts a part that was put.
func (c Copies) Written(bytes int64, _ time.Duration, err error) {
	c.count("written", "unwritten", bytes, err)
}

func (c Copies) count(outcome, otherwise string, bytes int64, err error) {
	if err != nil {
		c.m.copies.WithLabelValues(otherwise).Inc()
		return
	}
	c.m.copies.WithLabelValues(outcome).Inc()
	c.m.copiesBytes.WithLabelValues(outcome).Add(float64(bytes))
}

type partStore struct {
	parts.Store
	backend backend
}

// Unwrap returns the measured store.
func (s *partStore) Unwrap() parts.Backend { return s.Store }

// Put implements parts.Backend.
func (s *partStore) Put(ctx context.Context, key, path string) (parts.Info, error) {
	return s.backend.Put(ctx, key, path)
}

// Open implements parts.Backend.
func (s *partStore) Open(ctx context.Context, key string, offset, length int64) (io.ReadCloser, int64, error) {
	return s.backend.Open(ctx, key, offset, length)
}

// Delete implements parts.Backend.
func (s *partStore) Delete(ctx context.Context, key string) error { return s.backend.Delete(ctx, key) }

// List implements parts.Backend.
func (s *partStore) List(ctx context.Context, prefix, after string) iter.Seq2[parts.Info, error] {
	return s.backend.List(ctx, prefix, after)
}

// Fetch implements parts.Store.
func (s *partStore) Fetch(ctx context.Context, key, sum string) (path string, release func(), err error) {
	defer s.backend.call("fetch", time.Now(), &err)
	return s.Store.Fetch(ctx, key, sum)
}

type backend struct {
	parts.Backend
	m *Metrics
}

// Unwrap returns the measured backend.
func (b *backend) Unwrap() parts.Backend { return b.Backend }

func (b *backend) call(operation string, began time.Time, err *error) {
	b.m.partsCalls.WithLabelValues(operation, outcomeOf(*err)).Inc()
	b.m.partsSeconds.WithLabelValues(operation).Observe(time.Since(began).Seconds())
}

// Put implements parts.Backend.
func (b *backend) Put(ctx context.Context, key, path string) (info parts.Info, err error) {
	defer b.call("put", time.Now(), &err)
	info, err = b.Backend.Put(ctx, key, path)
	if err == nil {
		b.m.partsBytes.WithLabelValues("put").Add(float64(info.Bytes))
	}
	return info, err
}

// Open implements parts.Backend.
func (b *backend) Open(ctx context.Context, key string, offset, length int64) (body io.ReadCloser, total int64,
	err error) {
	defer b.call("open", time.Now(), &err)
	body, total, err = b.Backend.Open(ctx, key, offset, length)
	if err != nil {
		return nil, total, err
	}
	return counted{body, b.m}, total, nil
}

// counted counts the bytes that are read.
type counted struct {
	io.ReadCloser
	m *Metrics
}

// Read implements io.Reader.
func (c counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.m.partsBytes.WithLabelValues("open").Add(float64(n))
	return n, err
}

// Delete implements parts.Backend.
func (b *backend) Delete(ctx context.Context, key string) (err error) {
	defer b.call("delete", time.Now(), &err)
	return b.Backend.Delete(ctx, key)
}

// List implements parts.Backend. Who stops has had no error.
func (b *backend) List(ctx context.Context, prefix, after string) iter.Seq2[parts.Info, error] {
	return func(yield func(parts.Info, error) bool) {
		var err error
		defer b.call("list", time.Now(), &err)
		for info, failure := range b.Backend.List(ctx, prefix, after) {
			err = failure
			if !yield(info, failure) {
				return
			}
		}
	}
}
