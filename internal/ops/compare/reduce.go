package compare

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"thalweg/internal/base/fault"
	"thalweg/internal/base/progress"
	"thalweg/internal/base/sqltext"
	"thalweg/internal/run/pipeline"
	"thalweg/internal/run/plan"
	"thalweg/internal/store/state"
)

// Rows that are in both tables change no answer, so they may be left out
// wherever they are found: in parts that are the same, and where two parts
// have the same row at the same place. Looking there costs a scan and no
// memory, and is all that there is to do for most rows of two runs of a script.

// part is one of a table's.
type part = state.Part

// keptShare is which share of the rows may be kept as different at the same
// places, keptRowsMin so many at least. When there are more, rows have moved, and
// looking place by place finds nothing.
const (
	keptShare   = 8
	keptRowsMin = 100_000
)

// separate makes the parts local that have to be read, until release is
// called, and sorts out which are compared how.
func (c *comparison) separate(ctx context.Context) (release func(), err error) {
	a, b := c.A.Parts, c.B.Parts
	if c.storedAlike() {
		a, b = without(a, b, nil)
	}
	if len(a)+len(b) == 0 { // the rows of one are the other's: nothing needs to be there
		return func() {}, nil
	}
	if c.paths, release, err = pipeline.FetchTables(ctx, c.Parts, []*plan.Table{c.A, c.B}); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			release()
		}
	}()
	if c.storedAlike() {
		var broken error
		a, b = without(a, b, func(x, y part) bool {
			same, err := sameBytes(ctx, c.paths[x.Key], c.paths[y.Key])
			broken = errors.Join(broken, err)
			return same
		})
		if broken != nil {
			return nil, broken
		}
	}
	for i := range max(len(a), len(b)) {
		switch {
		case len(a) == len(b) && a[i].Rows == b[i].Rows:
			c.pairs = append(c.pairs, [2]part{a[i], b[i]})
			continue
		case i < len(a):
			c.rest[0] = append(c.rest[0], a[i])
		}
		if i < len(b) {
			c.rest[1] = append(c.rest[1], b[i])
		}
	}
	return release, nil
}

// storedAlike reports whether equal parts of A and B have equal rows: their
// columns are called the same.
func (c *comparison) storedAlike() bool {
	for _, col := range c.columns {
		if col.stored[0] != col.stored[1] {
			return false
		}
	}
	return true
}

// without gives the parts of a and b that are not the same object, or not the
// same bytes by same, each with one of the other's.
func without(a, b []part, same func(x, y part) bool) (restA, restB []part) {
	type likeness struct {
		key, checksum string
		rows, bytes   int64
	}
	of := func(p part) likeness {
		if same == nil {
			return likeness{key: p.Key}
		}
		return likeness{checksum: p.Checksum, rows: p.Rows, bytes: p.Bytes}
	}
	at := map[likeness][]int{}
	for i, p := range b {
		at[of(p)] = append(at[of(p)], i)
	}
	taken := make([]bool, len(b))
	for _, p := range a {
		found := false
		for k, i := range at[of(p)] {
			if found = same == nil || same(p, b[i]); found {
				taken[i] = true
				at[of(p)] = append(at[of(p)][:k], at[of(p)][k+1:]...)
				break
			}
		}
		if !found {
			restA = append(restA, p)
		}
	}
	for i, p := range b {
		if !taken[i] {
			restB = append(restB, p)
		}
	}
	return restA, restB
}

// compareBytes is the size of the blocks in which two files are compared.
const compareBytes = 1 << 20

// sameBytes reports whether two files hold the same. A checksum of 32 bits
// says that they may.
func sameBytes(ctx context.Context, a, b string) (same bool, err error) {
	defer func() {
		if err != nil {
			err = &fault.Error{Kind: fault.Environment, Message: "compare two parts", Err: err}
		}
	}()
	var files [2]*os.File
	var pieces [2][]byte
	for i, path := range []string{a, b} {
		if files[i], err = os.Open(path); err != nil {
			return false, err
		}
		defer func() { err = errors.Join(err, files[i].Close()) }()
		pieces[i] = make([]byte, compareBytes)
	}
	for {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		var n [2]int
		var ends [2]error
		for i, f := range files {
			n[i], ends[i] = io.ReadFull(f, pieces[i])
			if ends[i] != nil && ends[i] != io.EOF && ends[i] != io.ErrUnexpectedEOF {
				return false, ends[i]
			}
		}
		if !bytes.Equal(pieces[0][:n[0]], pieces[1][:n[1]]) {
			return false, nil
		}
		if ends[0] != nil || ends[1] != nil {
			return true, nil // both: they are as long
		}
	}
}

// comparePairs keeps the rows that differ at the same places of two parts. When
// these are many, the parts that are left are compared as a whole.
func (c *comparison) comparePairs(ctx context.Context) error {
	left := max(keptRowsMin, max(c.result.RowsA, c.result.RowsB)/keptShare)
	for i, pair := range c.pairs {
		progress.Tell(ctx, progress.Progress{Phase: "comparing rows at the same places", Done: int64(i),
			Of: int64(len(c.pairs)), Unit: "parts"})
		query := fmt.Sprintf("SELECT * FROM (%s) POSITIONAL JOIN (%s) WHERE %s LIMIT %d", c.read(0, pair[:1]),
			c.read(1, pair[1:]), c.differ(), left+1)
		path, rows, err := c.put(ctx, fmt.Sprintf("kept-%d", i), query, at)
		if err != nil {
			return err
		}
		if left -= rows; left < 0 {
			for _, whole := range c.pairs[i:] {
				c.rest[0], c.rest[1] = append(c.rest[0], whole[0]), append(c.rest[1], whole[1])
			}
			break
		}
		if rows > 0 {
			c.kept = append(c.kept, path)
		}
	}
	return nil
}

// put writes the rows of a query to a file beside what the engine puts aside.
// Tables of its own it would rather keep in memory.
func (c *comparison) put(ctx context.Context, name, query string, columns func(side, i int) string) (path string,
	rows int64, err error) {
	out := sqltext.Copy{Query: query, Path: filepath.Join(c.SpillDir, name+".parquet"),
		Options: []string{"FORMAT parquet", "COMPRESSION lz4_raw"}}
	for i, col := range c.columns {
		if !col.float || columns == nil {
			continue
		}
		for side := range 2 {
			if name := columns(side, i); !slices.Contains(out.Floats, name) {
				out.Floats = append(out.Floats, name)
			}
		}
	}
	rows, _, err = c.db.Copy(ctx, out, false)
	return out.Path, rows, err
}
