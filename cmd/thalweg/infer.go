package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"thalweg/internal/base/budget"
	"thalweg/internal/base/fault"
	"thalweg/internal/base/format"
	"thalweg/internal/lang/script"
	"thalweg/internal/ops/infer"
)

type inferCmd struct {
	Files     []string `arg:"" name:"file" help:"CSV and JSON files, Excel workbooks, and Parquet files by their names' endings: names, patterns, addresses."`
	Separator string   `help:"Separator of a CSV file; found out by default." placeholder:"CHAR"`
	Header    *bool    `help:"Whether the first record of a CSV file is a header; found out by default." negatable:""`
	Out       string   `help:"Write to FILE instead of standard output, with a schema for editors beside it." short:"o" placeholder:"FILE" type:"path"`
	Overwrite bool     `help:"Replace FILE if it is there."`
	JSON      bool     `name:"json" help:"Print what was found out as JSON instead of a script."`
	Strict    bool     `help:"Fail, and write nothing, if anything is left out, put aside or guessed."`
	Memory    string   `help:"Memory for reading the file." default:"2GB" placeholder:"SIZE"`
	remoteFlags
}

// inferred is the JSON form of a column.
type inferred struct {
	Name     string   `json:"name"`
	Source   string   `json:"source,omitempty"`
	Index    int      `json:"index"`
	Type     string   `json:"type,omitempty"` // absent: cannot be read
	Format   string   `json:"format,omitempty"`
	Nullable bool     `json:"nullable,omitempty"`
	NullText []string `json:"null_text,omitempty"`
	Optional bool     `json:"optional,omitempty"`
	Evidence string   `json:"evidence"`
}

func (c *inferCmd) Run(ctx context.Context, a *app) (err error) {
	to := outFile{path: c.Out, overwrite: c.Overwrite}
	if err := to.check(); err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "thalweg-infer-")
	if err != nil {
		return &fault.Error{Kind: fault.Environment, Message: "make a directory for scratch files", Err: err}
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	bytes, err := parseSize(c.Memory)
	if err != nil {
		return err
	}
	client, err := c.client(newLogger(a, false))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	spool := client.Spool(filepath.Join(work, "remote"), nil)
	progress := newLookProgress(a)
	defer progress.end()
	o := infer.Options{Separator: c.Separator, MemoryBytes: bytes, Threads: budget.Cores(), WorkDir: work,
		Progress: progress.show, Told: a.at.text,
		Fetch: func(ctx context.Context, url string) (string, error) {
			copied, err := spool.Ensure(ctx, url, "")
			return copied.Path, err
		},
		List: func(ctx context.Context, pattern string, most int) (names []string, err error) {
			found, err := client.List(ctx, pattern, most)
			for _, f := range found {
				names = append(names, f.URL)
			}
			return names, err
		}}
	if c.Header != nil {
		o.Header = map[bool]infer.Header{true: infer.HeaderYes, false: infer.HeaderNo}[*c.Header]
	}
	p, err := infer.Files(ctx, c.Files, o)
	if err != nil {
		return err
	}
	progress.end()
	if err := c.sayDoubts(a, p); err != nil {
		return err
	}
	if c.JSON {
		return to.write(a, func(w io.Writer) error { return printJSON(w, inferredJSON(p)) })
	}
	if err := to.write(a, func(w io.Writer) error { return p.WriteScript(w, c.Out != "") }); err != nil || c.Out == "" {
		return err
	}
	return writeSchemaBeside(c.Out)
}

// sayDoubts tells what the proposal leaves out or guesses, which is an error if that is asked for.
func (c *inferCmd) sayDoubts(a *app, p *infer.Proposal) error {
	if len(p.Doubts) == 0 {
		return nil
	}
	things := format.Counted(int64(len(p.Doubts)), "thing", "things")
	fmt.Fprintf(a.stderr, "infer: %s to look at:\n", things)
	for _, d := range p.Doubts {
		fmt.Fprintf(a.stderr, "  %s: %s\n", d.Kind, d.Text)
	}
	if !c.Strict {
		return nil
	}
	return &fault.Error{Kind: fault.UserData, Place: fault.Place{File: p.Files[0]},
		Message: "nothing is written: --strict asks for a proposal that leaves nothing out and guesses nothing (" + things +
			" to look at)",
		Hint: "correct the files or name fewer of them; or leave out --strict and look at what the script does"}
}

// writeSchemaBeside gives editors the schema that a script's first line names, unless it is there.
func writeSchemaBeside(path string) error {
	schema, err := script.JSONSchema()
	if err != nil {
		return fmt.Errorf("write the schema: %w", err)
	}
	path = filepath.Join(filepath.Dir(path), infer.SchemaFile)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return &fault.Error{Kind: fault.Environment, Message: "create " + path, Err: err}
	}
	_, err = f.Write(schema)
	if err = errors.Join(err, f.Close()); err != nil {
		return &fault.Error{Kind: fault.Environment, Message: "write " + path, Err: err}
	}
	return nil
}

func inferredJSON(p *infer.Proposal) any {
	out := struct {
		File      string     `json:"file"`
		Files     []string   `json:"files,omitempty"` // if there are several
		Rows      int64      `json:"rows"`
		BadRows   int64      `json:"bad_rows,omitempty"`
		Format    string     `json:"format,omitempty"` // json, excel
		Range     string     `json:"range,omitempty"`  // of a sheet
		Encoding  string     `json:"encoding,omitempty"`
		Separator string     `json:"separator,omitempty"`
		Decimal   string     `json:"decimal,omitempty"`
		Thousands string     `json:"thousands,omitempty"`
		Columns   []inferred `json:"columns"`
		Notes     []string   `json:"notes,omitempty"`

		Doubts []infer.Doubt `json:"doubts,omitempty"` // what is left out, put aside or guessed
	}{File: p.URLs[0], Rows: p.Rows, BadRows: p.BadRows, Format: string(p.Format), Range: p.Range(), Encoding: p.Encoding,
		Decimal: p.Decimal, Thousands: p.Thousands, Columns: []inferred{}, Notes: p.Notes, Doubts: p.Doubts}
	if len(p.Files) > 1 {
		out.Files = p.Files
	}
	if !p.Parquet && p.Format == "" {
		out.Separator = string(p.Separator)
	}
	for _, col := range p.Columns {
		i := inferred{Name: col.Name, Source: col.Source, Index: col.Index, Format: col.Format, Nullable: col.Nullable,
			NullText: col.NullTexts, Optional: col.Optional, Evidence: col.Evidence}
		if col.Type != "" {
			i.Type = col.Type.String()
		}
		out.Columns = append(out.Columns, i)
	}
	return out
}

// lookProgress says on a terminal how far a look at files is, once it takes long.
type lookProgress struct {
	a     *app
	mu    sync.Mutex
	begun time.Time
	last  time.Time
	shown bool
}

func newLookProgress(a *app) *lookProgress { return &lookProgress{a: a, begun: time.Now()} }

// show is called by whoever looks.
func (l *lookProgress) show(file string, done, total int64) {
	const patience, pause = time.Second, 200 * time.Millisecond
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if !l.a.terminal || now.Sub(l.begun) < patience || now.Sub(l.last) < pause || total == 0 {
		return
	}
	l.last, l.shown = now, true
	fmt.Fprintf(l.a.stderr, "\r\x1b[Klooking at %s: %s of %s", filepath.Base(file), format.Size(done),
		format.Size(total))
}

// end clears what was shown.
func (l *lookProgress) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.shown {
		fmt.Fprint(l.a.stderr, "\r\x1b[K")
	}
	l.shown = false
}
