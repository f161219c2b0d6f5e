package database

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"thalweg/internal/base/fault"
)

// checkRedis refuses what cannot be published.
func checkRedis(t Target) error {
	if t.Mode != Replace || len(t.Key) == 0 {
		return fault.New(fault.Script, "a table in Redis is published whole, with a key: mode: replace, key: [id]")
	}
	if len(t.Columns) > ColumnsMax {
		return tooWide(len(t.Columns))
	}
	return nil
}

// redisLoader puts rows under the keys of a version.
type redisLoader struct {
	p *redisStaged
	// value is the column whose text is all of a row beside its key, if there is only one and it has no NULL: then
	// rows are texts. Otherwise they are hashes of all columns, those of the key too: each has a field.
	value int
	key   []int // columns

	row   int64
	bytes int
	words [][]string // commands that are not sent yet
	keys  []string   // those of their rows, for people
}

// load brings the rows in, and tells how many there are.
func (p *redisStaged) load(ctx context.Context, path string) (int64, error) {
	l := &redisLoader{p: p, value: -1}
	for _, k := range p.t.Key {
		l.key = append(l.key, slices.IndexFunc(p.t.Columns, func(c TargetColumn) bool { return c.Name == k }))
	}
	if slices.Contains(l.key, -1) {
		return 0, fault.New(fault.Script, "the key has a column that is not written")
	}
	for i, c := range p.t.Columns {
		if len(p.t.Columns) == len(l.key)+1 && !slices.Contains(l.key, i) && !c.Nullable {
			l.value = i
		}
	}
	f, err := os.Open(path)
	if err != nil {
		return 0, &fault.Error{Kind: fault.Environment, Message: "read the rows to write", Err: err}
	}
	defer f.Close()
	const bufferBytes = 1 << 20
	r := &cells{r: bufio.NewReaderSize(f, bufferBytes)}
	for {
		texts, nulls, err := l.next(r)
		if errors.Is(err, io.EOF) {
			return l.row, l.flush(ctx)
		}
		if err == nil {
			err = l.add(texts, nulls)
		}
		if err == nil && (len(l.words) >= redisRowsMax || l.bytes >= redisBytesMax) {
			err = l.flush(ctx)
		}
		if err != nil {
			return 0, err
		}
	}
}

// next reads a row.
func (l *redisLoader) next(r *cells) (texts []string, nulls []bool, err error) {
	columns, bytes := l.p.t.Columns, 0
	for i := range columns {
		text, null, last, err := r.next()
		switch {
		case i == 0 && errors.Is(err, io.EOF):
			return nil, nil, io.EOF
		case err != nil:
			return nil, nil, &fault.Error{Kind: fault.Environment, Message: "read the rows to write", Err: unexpected(err)}
		case last != (i == len(columns)-1):
			return nil, nil, fmt.Errorf("row %d of the rows to write has not %d values", l.row+1, len(columns))
		}
		if bytes += len(text); bytes > redisRowMax {
			return nil, nil, redisRow(l.row+1, fmt.Sprintf("it has more than %d MiB", redisRowMax>>20))
		}
		texts, nulls = append(texts, text), append(nulls, null)
	}
	l.row++
	l.bytes += bytes
	return texts, nulls, nil
}

func redisRow(row int64, what string) error {
	return &fault.Error{Kind: fault.UserData, Message: fmt.Sprintf("row %d of what is written: %s", row, what),
		Hint: "change the value before, or leave the row out with having"}
}

// add makes the command for a row.
func (l *redisLoader) add(texts []string, nulls []bool) error {
	parts := make([]string, len(l.key))
	for i, k := range l.key {
		if nulls[k] {
			return redisRow(l.row, fmt.Sprintf("column %s of the key is NULL", l.p.t.Columns[k].Name))
		}
		parts[i] = texts[k]
	}
	key := redisKey(parts)
	if len(key) > redisKeyMax {
		return redisRow(l.row, fmt.Sprintf("its key has more than %d KiB", redisKeyMax>>10))
	}
	name := l.p.prefix(l.p.version) + key
	words := []string{"HSET", name}
	if l.value >= 0 {
		words = []string{"SET", name, texts[l.value], "NX"}
	} else {
		for i, c := range l.p.t.Columns {
			if !nulls[i] {
				words = append(words, c.Name, texts[i])
			}
		}
	}
	l.words, l.keys = append(l.words, words), append(l.keys, strings.Join(parts, ", "))
	return nil
}

// redisKey joins the values of a key: those of several with a colon, and with a backslash before each colon and
// backslash in them, so that no two keys are joined alike.
func redisKey(parts []string) string {
	if len(parts) == 1 {
		return parts[0]
	}
	out := make([]string, len(parts))
	for i, p := range parts {
		out[i] = redisEscape.Replace(p)
	}
	return strings.Join(out, ":")
}

var redisEscape = strings.NewReplacer(`\`, `\\`, ":", `\:`)

// flush sends the commands, if the version still has the lease. A key that was there is one of an earlier row: no
// other version has its keys.
func (l *redisLoader) flush(ctx context.Context) error {
	if len(l.words) == 0 {
		return nil
	}
	got, err := l.p.guarded(ctx, l.words)
	if err != nil {
		return err
	}
	for i, words := range l.words {
		const before, pair = 2, 2 // the command and the key; a name and a value
		fresh := got[i].text == fmt.Sprint((len(words)-before)/pair)
		if l.value >= 0 {
			fresh = !got[i].null
		}
		if !fresh {
			return twiceFault(l.p.t.Key, shown(l.keys[i]))
		}
	}
	l.words, l.keys, l.bytes = l.words[:0], l.keys[:0], 0
	return nil
}

// guarded carries commands out, all or none, while the version has the lease, which it extends.
func (p *redisStaged) guarded(ctx context.Context, commands [][]string) ([]reply, error) {
	writer := p.t.Table + redisWriter
	for {
		p.s.add("WATCH", writer)
		p.s.add("GET", writer)
		got, err := p.s.all(ctx)
		if err != nil {
			return nil, err
		}
		if got[1].text != p.version {
			return nil, leaseLost(p.t.Table)
		}
		p.s.add("PEXPIRE", writer, inMillis(redisLease))
		for _, words := range commands {
			p.s.add(words...)
		}
		if got, done, err := p.s.transaction(ctx); err != nil || done {
			return got[min(1, len(got)):], err
		}
	}
}

// checkRedisTarget finds out whether a table could be published.
func (c Client) checkRedisTarget(ctx context.Context, t Target) error {
	if err := checkRedis(t); err != nil {
		return err
	}
	_, err := c.redisThere(ctx, t.URL, t.Table)
	return err
}

// redisThere reports whether a table is published.
func (c Client) redisThere(ctx context.Context, at, table string) (bool, error) {
	loc, err := c.may(at)
	if err != nil {
		return false, err
	}
	s, err := c.redis(ctx, loc)
	if err != nil {
		return false, err
	}
	defer s.Close()
	got, err := s.do(ctx, "GET", table+redisPointer)
	if err != nil {
		return false, err
	}
	version, err := pointed(table, got)
	return version != "", err
}
