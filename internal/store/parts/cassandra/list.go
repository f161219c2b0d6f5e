package cassandra

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
	"golang.org/x/sync/errgroup"

	"thalweg/internal/store/cassandra"
	"thalweg/internal/store/parts"
)

// Limits of a List.
const (
	pageRows  = 500    // of each shard
	pagesMax  = 8      // being read at once
	behindAll = "\x7f" // no key has such a byte
)

// List implements parts.Backend.
func (s *Store) List(ctx context.Context, prefix, after string) iter.Seq2[parts.Info, error] {
	return s.list(ctx, prefix, after, func(e entry) bool { return e.checksum != "" })
}

// Unfinished yields what List does not show: Puts that have not ended, be it
// that they are still being carried out, or that their process has died.
func (s *Store) Unfinished(ctx context.Context, prefix, after string) iter.Seq2[parts.Info, error] {
	return s.list(ctx, prefix, after, func(e entry) bool { return e.checksum == "" && e.begun != 0 })
}

// entry is a row of the index as List sees it.
type entry struct {
	key, checksum string
	put           gocql.UUID
	bytes, begun  int64
}

func (s *Store) list(ctx context.Context, prefix, after string, which func(entry) bool) iter.Seq2[parts.Info, error] {
	return func(yield func(parts.Info, error) bool) {
		err := parts.CheckPrefix(prefix)
		if err == nil {
			err = ctx.Err()
		}
		var streams []*stream
		if err == nil {
			streams, err = s.streams(ctx, prefix, after, which)
		}
		if err != nil {
			yield(parts.Info{}, err)
			return
		}
		for last := ""; len(streams) > 0; {
			next := slices.MinFunc(streams,
				func(a, b *stream) int { return strings.Compare(a.page[0].key, b.page[0].key) })
			e := next.page[0]
			if e.key != last && !yield(parts.Info{Key: e.key, Bytes: e.bytes, Checksum: e.checksum}, nil) {
				return
			}
			last = e.key
			if next.page = next.page[1:]; len(next.page) > 0 {
				continue
			}
			if err := next.fill(ctx); err != nil {
				yield(parts.Info{}, err)
				return
			}
			streams = slices.DeleteFunc(streams, func(x *stream) bool { return len(x.page) == 0 })
		}
	}
}

// stream reads one partition of the index, page by page.
type stream struct {
	s     *Store
	which func(entry) bool
	root  string
	shard int16
	from  string // the next page begins here, or
	after string // behind this, if it is not empty
	to    string
	page  []entry // what has been read and is wanted
	end   bool
}

// streams are those that have something, each with its first page.
func (s *Store) streams(ctx context.Context, prefix, after string, which func(entry) bool) ([]*stream, error) {
	roots, err := s.roots(ctx, prefix)
	if err != nil {
		return nil, err
	}
	var out []*stream
	for _, root := range roots {
		for shard := range shards {
			x := &stream{s: s, which: which, root: root, shard: int16(shard), from: prefix, to: prefix + behindAll}
			if after >= prefix {
				x.after = after
			}
			out = append(out, x)
		}
	}
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(pagesMax)
	for _, x := range out {
		group.Go(func() error { return x.fill(groupCtx) })
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(out, func(x *stream) bool { return len(x.page) == 0 }), nil
}

// fill reads pages until there is something wanted or nothing more.
func (x *stream) fill(ctx context.Context) error {
	for len(x.page) == 0 && !x.end {
		if err := x.next(ctx); err != nil {
			return fmt.Errorf("list parts: %w", err)
		}
	}
	return nil
}

// next reads one page. The next one begins behind its last key: a page state
// would go with the connection. All rows of a key are few.
func (x *stream) next(ctx context.Context) error {
	return x.s.persist(ctx, "list parts", func(ctx context.Context) error {
		text, from := selectIndex, x.from
		if x.after != "" {
			text, from = selectBehind, x.after
		}
		rows := x.s.session.Query(text+" LIMIT ?", x.root, x.shard, from, x.to,
			pageRows).PageSize(pageRows).Prefetch(0).IterContext(ctx)
		var page []entry
		var e entry
		seen := 0
		for rows.Scan(&e.key, &e.put, &e.bytes, &e.checksum, &e.begun) {
			seen++
			page, e = append(page, e), entry{}
		}
		if err := rows.Close(); err != nil {
			return err
		}
		x.end = seen < pageRows
		if !x.end { // the last key may go on
			last := page[len(page)-1].key
			if first := slices.IndexFunc(page, func(e entry) bool { return e.key == last }); first > 0 {
				page = page[:first]
			}
			x.after = page[len(page)-1].key
		}
		x.page = slices.DeleteFunc(page, func(e entry) bool { return !x.which(e) })
		return nil
	})
}

// roots are those under which keys with a prefix are.
func (s *Store) roots(ctx context.Context, prefix string) (out []string, err error) {
	first, _, whole := strings.Cut(prefix, "/")
	if whole {
		return []string{s.root(first)}, nil
	}
	err = s.persist(cassandra.Named(ctx, "list roots"), "list roots", func(ctx context.Context) error {
		out = nil
		rows := s.session.Query(selectRoots).PageSize(pageRows).IterContext(ctx)
		var root string
		var shard int16
		for rows.Scan(&root, &shard) {
			if strings.HasPrefix(root, s.root(prefix)) {
				out = append(out, root)
			}
		}
		return rows.Close()
	})
	slices.Sort(out)
	return slices.Compact(out), err
}
