package infer

import (
	"context"
	"fmt"
	"path/filepath"
	"unicode/utf8"

	"golang.org/x/sync/errgroup"

	"thalweg/internal/base/address"
	"thalweg/internal/base/fault"
	"thalweg/internal/base/progress"
	"thalweg/internal/io/files"
	"thalweg/internal/io/records"
)

// blockBytes of values are handed on at once.
const blockBytes = 1 << 20

// block is some records: their values one behind the other.
type block struct {
	text  []byte
	ends  []int   // of each value
	lines []int64 // of each record
}

// scanned is the result of a pass over a CSV text.
type scanned struct {
	columns []*profile
	bad     int64 // records whose structure is broken
	first   error // of them: a *fault.Error
}

// scan looks at all of a file's text, or of the CSV that was made of it, which is at a path. If half of its records are
// broken, the first of them is the error.
func (p *Proposal) scan(ctx context.Context, path string, f *inputFile, o Options) error {
	text, err := openText(path, f.name)
	if err != nil {
		return err
	}
	defer text.Close()
	f.found = scanned{columns: make([]*profile, f.shape.fields)}
	for i := range f.found.columns {
		f.found.columns[i] = newProfile(p.seed)
	}
	if err := f.found.scan(ctx, text, f.shape, o); err != nil {
		return err
	}
	p.badStructure += f.found.bad
	return f.found.tooBroken()
}

func (out *scanned) scan(ctx context.Context, f *text, s shape, o Options) error {
	group, ctx := errgroup.WithContext(ctx)
	// One goroutine cuts records, the others look at columns of their own.
	hands := make([]chan *block, min(max(o.Threads-1, 1), s.fields))
	for i := range hands {
		hands[i] = make(chan *block, 2)
		group.Go(func() error { profileColumns(out.columns, i, len(hands), hands[i]); return nil })
	}
	group.Go(func() error {
		defer func() {
			for _, to := range hands {
				close(to)
			}
		}()
		return out.cut(ctx, f, s, hands)
	})
	return group.Wait()
}

// badRecord says what is wrong with a record.
func (s shape) badRecord(u string, c *files.Cells) error {
	f := &fault.Error{Kind: fault.UserData, Place: fault.Place{File: u, Line: c.Line}, Hint: recordHint}
	switch {
	case s.made && c.Len() > 1: // package records says it
		f.Place.Line = records.ParsePlace(c.Value(0)).Line
		f.Message = "the record cannot be read: " + string(c.Value(1))
		return f
	case c.Bad != nil:
		return c.Bad
	}
	for i := range c.Len() {
		if !utf8.Valid(c.Value(i)) {
			f.Message = fmt.Sprintf("field %d of the record is not valid UTF-8", i+1)
			break
		}
	}
	return f
}

// recordHint is the hint for bad records.
const recordHint = "correct that line; bad_rows: quarantine on the node in a script puts such lines aside"

// tooBroken is the first bad record of a file, if there are too many of them.
func (out *scanned) tooBroken() error {
	if out.bad == 0 || !halfBroken(int(out.bad), int(out.bad+out.columns[0].rows)) {
		return nil
	}
	f := *fault.Of(out.first)
	f.Hint = recordHint
	return &f
}

// cut hands the records of a text on.
func (out *scanned) cut(ctx context.Context, f *text, s shape, hands []chan *block) error {
	now := &block{}
	flush := func(at int64) error {
		progress.Tell(ctx, progress.Progress{Phase: "looking at " + filepath.Base(address.Redact(f.name)), Done: at,
			Of: f.size, Unit: "bytes"})
		for _, to := range hands {
			select {
			case to <- now:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		now = &block{text: make([]byte, 0, blockBytes+blockBytes/8), ends: make([]int, 0, len(now.ends)),
			lines: make([]int64, 0, len(now.lines))}
		return nil
	}
	count := 0
	for c, err := range files.EachCells(ctx, f, f.size, s.separator, s.fields, f.name) {
		count++
		switch {
		case err != nil:
			return err
		case count <= s.skip || count == s.skip+1 && s.header:
			continue
		case c.Bad != nil || !c.UTF8():
			if out.bad++; out.first == nil {
				out.first = s.badRecord(f.name, c)
			}
			continue
		}
		for i := range c.Len() {
			now.text = append(now.text, c.Value(i)...)
			now.ends = append(now.ends, len(now.text))
		}
		line := c.Line
		if s.made {
			line = records.ParsePlace(c.Value(0)).Line
		}
		now.lines = append(now.lines, line)
		if len(now.text) >= blockBytes {
			if err := flush(c.Offset); err != nil {
				return err
			}
		}
	}
	return flush(f.size)
}

// profileColumns looks at every step-th column from the given one on.
func profileColumns(columns []*profile, from, step int, blocks <-chan *block) {
	nulls := map[string]struct{}{}
	for _, text := range nullLike() {
		nulls[text] = struct{}{}
	}
	for b := range blocks {
		for c := from; c < len(columns); c += step {
			column := columns[c]
			for r, line := range b.lines {
				at := r*len(columns) + c
				start := 0
				if at > 0 {
					start = b.ends[at-1]
				}
				column.add(b.text[start:b.ends[at]], line, nulls)
			}
		}
	}
}
