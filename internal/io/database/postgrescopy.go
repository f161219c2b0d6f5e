package database

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"thalweg/internal/base/fault"
	"thalweg/internal/base/sqltext"
)

// A large table is copied in ranges of its pages by two sessions that see the same moment.
// One session of the server makes text on one core only.
const (
	rangePages    = 1024                 // of a table that is copied in ranges
	rangesMin     = 4                    // a smaller table is copied at once
	rangesAhead   = 4                    // that are copied, or being copied, and not written yet
	rangeVersion  = 140_000              // of the server, from which on it finds pages by their numbers
	chunkBytes    = 256 << 10            // that are written at a time
	chunksOfRange = 8 << 20 / chunkBytes // that wait to be written

	companionLockMillis = 100 // that the second session waits for a lock, before one session copies alone
)

// Copy implements Snapshot.
func (p *postgres) Copy(ctx context.Context, src Source, to io.Writer) (int64, error) {
	if err := p.export(ctx); err != nil {
		return 0, err
	}
	columns, err := p.columns(ctx, src)
	if err != nil {
		return 0, err
	}
	ranges, err := p.ranges(ctx, src)
	if err != nil {
		return 0, err
	}
	sessions := []*postgres{p}
	if len(ranges) > 1 {
		other, err := p.companion(ctx, src)
		switch {
		case err != nil:
			return 0, err
		case other != nil:
			sessions = append(sessions, other)
		default:
			ranges = []string{""}
		}
	}
	c := &copying{free: make(chan []byte, rangesAhead*chunksOfRange), ahead: make(chan struct{}, rangesAhead)}
	for i, where := range ranges {
		query := p.selectOf(src) + where
		if items, changed := copied(columns, src.Millis); changed {
			query = "SELECT " + strings.Join(items, ", ") + " FROM (\n" + query + "\n) AS q"
		}
		options := "FORMAT csv"
		if i == 0 {
			options += ", HEADER"
		}
		c.pieces = append(c.pieces, &piece{sql: "COPY (\n" + query + "\n) TO STDOUT (" + options + ")",
			chunks: make(chan []byte, chunksOfRange)})
	}
	rows, err := c.run(ctx, sessions, to)
	if err == nil {
		err = p.unemptied(ctx)
	}
	return rows, err
}

// unemptied refuses what was read of a table that somebody has emptied with TRUNCATE, or made
// anew with ALTER TABLE, since the session's moment: the server gives none of its rows then.
// The catalog shows the file of the table as it was at that moment, the function as it is now.
func (p *postgres) unemptied(ctx context.Context) error {
	if p.snapshot == "" { // another server that speaks the language of PostgreSQL, which may have no such catalog
		return nil
	}
	got, err := p.rows(ctx, `SELECT c.oid::regclass::text FROM pg_locks l JOIN pg_class c ON c.oid = l.relation
		WHERE l.pid = pg_backend_pid() AND l.locktype = 'relation' AND c.relfilenode <> 0
		AND c.relfilenode <> pg_relation_filenode(c.oid) LIMIT 1`)
	if err != nil || len(got) == 0 {
		return err
	}
	return &fault.Error{Kind: fault.Environment, Retryable: true, Message: "PostgreSQL: table " + got[0][0] +
		" was emptied or made anew since the moment of which it is read",
		Hint: "let the node run when nobody replaces the table"}
}

// export makes the moment of the session known to others. It is the first that is read: a
// server that cannot do it gets a new transaction.
func (p *postgres) export(ctx context.Context) error {
	if p.begun {
		return nil
	}
	p.begun = true
	got, err := p.rows(ctx, "SELECT pg_export_snapshot(), pg_postmaster_start_time()::text || ' ' || "+
		"current_setting('port'), current_setting('server_version_num')")
	if err != nil {
		return p.exec(ctx, "ROLLBACK; "+beginReading)
	}
	p.snapshot, p.server = got[0][0], got[0][1]
	p.version, err = strconv.Atoi(got[0][2])
	return err
}

// ranges cuts a table by its pages: conditions behind its query, one behind the other in
// the order in which the whole is read. There is one, of all, where that is not worth it
// or pages say nothing about where rows are.
func (p *postgres) ranges(ctx context.Context, src Source) ([]string, error) {
	all := []string{""}
	if src.Table == "" || p.snapshot == "" || p.version < rangeVersion {
		return all, nil
	}
	got, err := p.rows(ctx, `SELECT pg_relation_size(c.oid) / current_setting('block_size')::bigint
		FROM pg_class c JOIN pg_am a ON a.oid = c.relam
		WHERE c.oid = to_regclass($1) AND c.relkind IN ('r', 'm') AND a.amname = 'heap'
		AND NOT EXISTS (SELECT FROM pg_inherits WHERE inhparent = c.oid)`,
		sqltext.Path(src.Table))
	if err != nil || len(got) == 0 {
		return all, err
	}
	pages, err := strconv.ParseInt(got[0][0], 10, 64)
	if err != nil || pages < rangesMin*rangePages {
		return all, err
	}
	var out []string
	for from := int64(0); from < pages; from += rangePages {
		var where []string
		if from > 0 {
			where = append(where, fmt.Sprintf("ctid >= '(%d,0)'", from))
		}
		if from+rangePages < pages {
			where = append(where, fmt.Sprintf("ctid < '(%d,0)'", from+rangePages))
		}
		out = append(out, " WHERE "+strings.Join(where, " AND "))
	}
	return out, nil
}

// companion is another session that sees the same moment, and has all that a copy locks:
// somebody who wants the table alone, or an index of it, would otherwise stand between the
// two, and the server sees no deadlock where one session waits for us. Planning takes the
// locks, in the first session with waiting, as its copy would. nil: there is none to be had.
func (p *postgres) companion(ctx context.Context, src Source) (*postgres, error) {
	if p.other == nil {
		if p.alone {
			return nil, nil
		}
		p.alone = true // unless it works
		other, err := p.login(ctx)
		if err != nil {
			return nil, nil
		}
		if !other.joins(ctx, p) {
			other.Close()
			return nil, nil
		}
		p.other, p.alone = other, false
	}
	plan := "EXPLAIN " + p.selectOf(src)
	if err := p.exec(ctx, plan); err != nil {
		return nil, err
	}
	if err := p.other.exec(ctx,
		fmt.Sprintf("SET LOCAL lock_timeout = '%dms'; LOCK TABLE %s IN ACCESS SHARE MODE NOWAIT; %s; SET LOCAL "+
			"lock_timeout = 0",
			companionLockMillis, sqltext.Path(src.Table), plan)); err != nil {
		p.other.Close()
		p.other, p.alone = nil, true // its transaction has ended
		return nil, nil
	}
	return p.other, nil
}

// joins begins a transaction of the moment of another session, if it is one of the same server.
func (p *postgres) joins(ctx context.Context, first *postgres) bool {
	if p.exec(ctx, beginReading+"; SET TRANSACTION SNAPSHOT "+sqltext.String(first.snapshot)) != nil {
		return false
	}
	got, err := p.rows(ctx, "SELECT pg_postmaster_start_time()::text || ' ' || current_setting('port')")
	return err == nil && got[0][0] == first.server
}

// copying brings what several sessions copy into one order.
type copying struct {
	pieces []*piece
	next   atomic.Int64  // piece that is to be copied
	ahead  chan struct{} // one each for a piece that is not written yet
	free   chan []byte   // chunks to be used again
	rows   atomic.Int64
}

// piece is a range of a table, or all of a source.
type piece struct {
	sql    string
	chunks chan []byte
}

func (c *copying) run(ctx context.Context, sessions []*postgres, to io.Writer) (int64, error) {
	group, inner := errgroup.WithContext(ctx)
	for _, s := range sessions {
		group.Go(func() error { return c.produce(inner, s) })
	}
	group.Go(func() error { return c.write(inner, to) })
	err := group.Wait()
	return c.rows.Load(), err
}

// produce copies pieces until there are no more.
func (c *copying) produce(ctx context.Context, p *postgres) error {
	for {
		select {
		case c.ahead <- struct{}{}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		i := c.next.Add(1) - 1
		if i >= int64(len(c.pieces)) {
			<-c.ahead
			return nil
		}
		w := &chunkWriter{c: c, to: c.pieces[i].chunks, stop: ctx.Done()}
		tag, err := p.conn.CopyTo(ctx, w, c.pieces[i].sql)
		if err == nil {
			err = w.flush()
		}
		if err != nil {
			return postgresFault(err)
		}
		c.rows.Add(tag.RowsAffected())
		close(w.to)
	}
}

// write writes the pieces in their order.
func (c *copying) write(ctx context.Context, to io.Writer) error {
	for _, p := range c.pieces {
		for more := true; more; {
			var chunk []byte
			select {
			case chunk, more = <-p.chunks:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			if !more {
				break
			}
			if _, err := to.Write(chunk); err != nil {
				return err
			}
			select {
			case c.free <- chunk:
			default:
			}
		}
		<-c.ahead
	}
	return nil
}

// chunkWriter gathers rows, which come one by one.
type chunkWriter struct {
	c    *copying
	to   chan []byte
	stop <-chan struct{}
	buf  []byte
}

func (w *chunkWriter) Write(row []byte) (int, error) {
	if len(w.buf)+len(row) > chunkBytes && len(w.buf) > 0 {
		if err := w.flush(); err != nil {
			return 0, err
		}
	}
	if w.buf == nil {
		select {
		case w.buf = <-w.c.free:
			w.buf = w.buf[:0]
		default:
			w.buf = make([]byte, 0, chunkBytes)
		}
	}
	w.buf = append(w.buf, row...)
	return len(row), nil
}

func (w *chunkWriter) flush() error {
	if len(w.buf) == 0 {
		return nil
	}
	select {
	case w.to <- w.buf:
		w.buf = nil
		return nil
	case <-w.stop:
		return context.Canceled
	}
}
