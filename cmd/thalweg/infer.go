package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"thalweg/internal/budget"
	"thalweg/internal/fault"
	"thalweg/internal/infer"
)

type inferCmd struct {
	File      string `arg:"" help:"CSV file, or Parquet file by its name's ending."`
	Separator string `help:"Separator of a CSV file; found out by default." placeholder:"CHAR"`
	Header    *bool  `help:"Whether the first record of a CSV file is a header; found out by default." negatable:""`
	Out       string `help:"Write to FILE instead of standard output." short:"o" placeholder:"FILE" type:"path"`
	JSON      bool   `name:"json" help:"Print what was found out as JSON instead of a script."`
	Memory    string `help:"Memory for reading the file." default:"2GB" placeholder:"SIZE"`
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
	Evidence string   `json:"evidence"`
}

func (c *inferCmd) Run(ctx context.Context, a *app) (err error) {
	work, err := os.MkdirTemp("", "thalweg-infer-")
	if err != nil {
		return &fault.Error{Kind: fault.Environment, Message: "make a directory for scratch files", Err: err}
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	bytes, err := parseSize(c.Memory)
	if err != nil {
		return err
	}
	o := infer.Options{Separator: c.Separator, MemoryBytes: bytes, Threads: budget.Cores(), WorkDir: work}
	if c.Header != nil {
		o.Header = map[bool]infer.Header{true: infer.HeaderYes, false: infer.HeaderNo}[*c.Header]
	}
	p, err := infer.File(ctx, c.File, o)
	if err != nil {
		return err
	}
	return writeTo(a, c.Out, func(w io.Writer) error {
		if !c.JSON {
			return p.WriteScript(w)
		}
		out := struct {
			File    string     `json:"file"`
			Rows    int64      `json:"rows"`
			Columns []inferred `json:"columns"`
			Notes   []string   `json:"notes,omitempty"`
		}{c.File, p.Rows, []inferred{}, p.Notes}
		for _, col := range p.Columns {
			i := inferred{Name: col.Name, Source: col.Source, Index: col.Index, Format: col.Format, Nullable: col.Nullable, NullText: col.NullTexts, Evidence: col.Evidence}
			if col.Type != "" {
				i.Type = col.Type.String()
			}
			out.Columns = append(out.Columns, i)
		}
		return printJSON(w, out)
	})
}

// writeTo writes to a file, whose directory it makes as a run does for its outputs,
// or to standard output if there is no name.
func writeTo(a *app, path string, write func(io.Writer) error) (err error) {
	if path == "" {
		return write(a.stdout)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return &fault.Error{Kind: fault.Environment, Message: "make the directory of " + path, Err: err}
	}
	f, err := os.Create(path)
	if err != nil {
		return &fault.Error{Kind: fault.Environment, Message: "create " + path, Err: err}
	}
	defer func() {
		if cerr := f.Close(); err == nil && cerr != nil {
			err = fmt.Errorf("write %s: %w", path, cerr)
		}
	}()
	return write(a.known.Writer(f))
}
