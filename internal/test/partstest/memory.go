package partstest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"

	"thalweg/internal/store/parts"
)

// Memory is a backend without paths and without a disk: what a database or a
// bucket is to a process.
type Memory struct {
	// Break, if not nil, says how many bytes of a range of a part are read before
	// reading breaks; -1: it does not. It may be called concurrently.
	Break func(key string, offset, length int64) int64
	// Alter, if not nil, sees what is sent of a range and may change it.
	Alter func(key string, sent []byte)

	mu    sync.Mutex
	parts map[string][]byte
	opens int // calls of Open
}

var _ parts.Backend = (*Memory)(nil)

// Opens says how often a part or a range was asked for.
func (m *Memory) Opens() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.opens
}

// Put implements parts.Backend.
func (m *Memory) Put(ctx context.Context, key, path string) (parts.Info, error) {
	if err := check(ctx, key); err != nil {
		return parts.Info{}, err
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return parts.Info{}, fmt.Errorf("put %s: %w", key, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.parts[key]; ok {
		return parts.Info{}, parts.ErrExists
	}
	if m.parts == nil {
		m.parts = map[string][]byte{}
	}
	m.parts[key] = content
	return parts.Info{Key: key, Bytes: int64(len(content)), Checksum: sumOf(content)}, os.Remove(path)
}

// Open implements parts.Backend.
func (m *Memory) Open(ctx context.Context, key string, offset, length int64) (io.ReadCloser, int64, error) {
	if err := check(ctx, key); err != nil {
		return nil, 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.opens++
	content, ok := m.parts[key]
	if !ok {
		return nil, 0, parts.ErrNotFound
	}
	total := int64(len(content))
	sent := bytes.Clone(content[min(offset, total):])
	if length >= 0 {
		sent = sent[:min(length, int64(len(sent)))]
	}
	if m.Alter != nil {
		m.Alter(key, sent)
	}
	var body io.Reader = bytes.NewReader(sent)
	if m.Break != nil {
		if n := m.Break(key, offset, int64(len(sent))); n >= 0 && n < int64(len(sent)) {
			body = io.MultiReader(bytes.NewReader(sent[:n]), broken{})
		}
	}
	return io.NopCloser(body), total, nil
}

// broken is a connection that was lost.
type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// Delete implements parts.Backend.
func (m *Memory) Delete(ctx context.Context, key string) error {
	if err := check(ctx, key); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.parts, key)
	return nil
}

// List implements parts.Backend.
func (m *Memory) List(ctx context.Context, prefix, after string) iter.Seq2[parts.Info, error] {
	return func(yield func(parts.Info, error) bool) {
		err := parts.CheckPrefix(prefix)
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			yield(parts.Info{}, err)
			return
		}
		m.mu.Lock()
		all := maps.Clone(m.parts)
		m.mu.Unlock()
		for _, key := range slices.Sorted(maps.Keys(all)) {
			if strings.HasPrefix(key, prefix) && key > after &&
				!yield(parts.Info{Key: key, Bytes: int64(len(all[key]))}, nil) {
				return
			}
		}
	}
}

// Properties implements parts.Backend.
func (m *Memory) Properties() parts.Properties { return parts.Properties{Concurrency: 8} }

// Close implements parts.Backend.
func (m *Memory) Close() error { return nil }

func check(ctx context.Context, key string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return parts.CheckKey(key)
}
