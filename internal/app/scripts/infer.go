package scripts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"thalweg/internal/app/view"
	"thalweg/internal/base/address"
	"thalweg/internal/base/budget"
	"thalweg/internal/base/fault"
	"thalweg/internal/lang/script"
	"thalweg/internal/ops/infer"
)

// InferOptions say how files are looked at.
type InferOptions struct {
	Separator   string // of a CSV file; "": it is found out
	Header      *bool  // whether the first record of a CSV file is a header; nil: it is found out
	MemoryBytes int64
	// Seen has the Dir that names are seen from, "" being the service's, and the Policy that is held to.
	Seen Named
	Told func(text string) string // renders the actions of texts that go into a script
}

// Proposal is a script for files.
type Proposal struct {
	view.Inferred
	of *infer.Proposal
}

// WriteScript writes the proposed script; schema names the schema for editors in its first line.
func (p Proposal) WriteScript(w io.Writer, schema bool) error { return p.of.WriteScript(w, schema) }

// First names the first of the files.
func (p Proposal) First() string { return p.of.Files[0] }

// Infer proposes a script for CSV, Parquet, JSON or Excel files, from all of their rows.
func (s *Service) Infer(ctx context.Context, files []string, o InferOptions) (_ Proposal, err error) {
	work, err := os.MkdirTemp("", "thalweg-infer-")
	if err != nil {
		return Proposal{}, &fault.Error{Kind: fault.Environment, Message: "make a directory for scratch files",
			Err: err}
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	view.TellProgress(ctx, view.Progress{Phase: "looking at the files"})
	client := s.Remote.Within(o.Seen.Policy)
	spool := client.Spool(filepath.Join(work, "remote"), nil)
	opts := infer.Options{Separator: o.Separator,
		MemoryBytes: o.MemoryBytes, Threads: budget.Cores(), Dir: cmp.Or(o.Seen.Dir, s.Dir),
		Policy: o.Seen.Policy, WorkDir: work,
		Told: o.Told,
		Fetch: func(ctx context.Context, url string) (string, error) {
			view.TellProgress(ctx, view.Progress{Phase: "copying " + address.Redact(url)})
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
	if o.Header != nil {
		opts.Header = map[bool]infer.Header{true: infer.HeaderYes, false: infer.HeaderNo}[*o.Header]
	}
	p, err := infer.Files(ctx, files, opts)
	if err != nil {
		return Proposal{}, err
	}
	return Proposal{inferred(p), p}, nil
}

// inferred returns a proposal as programs see it.
func inferred(p *infer.Proposal) view.Inferred {
	out := view.Inferred{File: p.URLs[0], Rows: p.Rows, BadRows: p.BadRows, Format: string(p.Format), Range: p.Range(),
		Encoding: p.Encoding,
		Decimal:  p.Decimal, Thousands: p.Thousands, Columns: []view.InferredColumn{}, Notes: p.Notes, Doubts: p.Doubts}
	if len(p.Files) > 1 {
		out.Files = p.Files
	}
	if !p.Parquet && p.Format == "" {
		out.Separator = string(p.Separator)
	}
	for _, col := range p.Columns {
		i := view.InferredColumn{Name: col.Name, Source: col.Source, Index: col.Index, Format: col.Format,
			Nullable: col.Nullable, NullText: col.NullTexts, Optional: col.Optional, Evidence: col.Evidence}
		if col.Type != "" {
			i.Type = col.Type.String()
		}
		out.Columns = append(out.Columns, i)
	}
	return out
}

// SchemaFile is the name of the schema for editors beside a script.
const SchemaFile = infer.SchemaFile

// WriteSchemaBeside gives editors the schema that a script's first line names, unless it is there.
func WriteSchemaBeside(path string) error {
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
