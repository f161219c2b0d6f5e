package document

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"thalweg/internal/base/fault"
	"thalweg/internal/base/secret"
)

// Severity says whether a diagnostic keeps the script from loading.
type Severity string

// The severities. Their texts are part of the JSON form.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
)

// Diagnostic is one problem of a script, its parameters or a file it pulls in.
type Diagnostic struct {
	Severity Severity
	Pos      Pos      // start of the offending text; Line 0: the file as a whole
	End      Pos      // just behind it; same as Pos when its length is not known
	Path     string   // place in the script, e.g. nodes.1_read.w.fields.total.expression
	Message  string   // what is wrong
	Hint     string   // what to do about it; may be empty
	Related  []Pos    // other places that take part
	Params   []string // parameters whose values are part of the offending text
	Source   string   // the line of text at Pos
	Cause    error    // why a file could not be read; nil otherwise

	markFrom, markTo int // columns of the mark in Source, where they are not those of Pos and End
	because          []string
}

// Because names what the problem would come of: where one of them is reported as well
// (see Report.Explains), this one says nothing new and is left out.
func (d *Diagnostic) Because(causes ...string) *Diagnostic {
	d.because = append(d.because, causes...)
	return d
}

// String is the one-line form: file:line:col: error: message.
func (d Diagnostic) String() string {
	s := string(d.Severity) + ": " + d.Message
	if where := d.Pos.String(); where != "" {
		s = where + ": " + s
	}
	return s
}

// Diagnostics lists the findings of Load, in the order of the text.
type Diagnostics []Diagnostic

// Renamed returns them with other names of files.
func (ds Diagnostics) Renamed(name func(file string) string) Diagnostics {
	out := slices.Clone(ds)
	for i := range out {
		d := &out[i]
		d.Related = slices.Clone(d.Related)
		d.Pos.File, d.End.File = name(d.Pos.File), name(d.End.File)
		for j := range d.Related {
			d.Related[j].File = name(d.Related[j].File)
		}
	}
	return out
}

// HasErrors reports whether any of them keeps the script from loading.
func (ds Diagnostics) HasErrors() bool { return len(ds.Errors()) > 0 }

// Errors lists those that keep the script from loading.
func (ds Diagnostics) Errors() Diagnostics { return ds.only(Error) }

// Warnings lists those that do not.
func (ds Diagnostics) Warnings() Diagnostics { return ds.only(Warning) }

func (ds Diagnostics) only(s Severity) Diagnostics {
	var out Diagnostics
	for _, d := range ds {
		if d.Severity == s {
			out = append(out, d)
		}
	}
	return out
}

// Err is nil without errors; else a *fault.Error placed at the first of them,
// with all of them rendered as its detail. Its kind is fault.Script, unless a
// file could not be read: then kind and retry hint are the cause's.
func (ds Diagnostics) Err() error {
	errs := ds.Errors()
	if len(errs) == 0 {
		return nil
	}
	first := errs[0]
	out := &fault.Error{Kind: fault.Script, Message: first.Message, Hint: first.Hint, Detail: errs.Render(),
		Place: fault.Place{File: first.Pos.File, Line: int64(first.Pos.Line), Column: first.Pos.Col, Field: first.Path}}
	if len(errs) > 1 {
		out.Message += fmt.Sprintf(" (and %d more)", len(errs)-1)
	}
	for _, d := range errs {
		var f *fault.Error
		if d.Cause != nil && errors.As(d.Cause, &f) {
			out.Kind, out.Retryable, out.Err = f.Kind, f.Retryable, d.Cause
			break
		}
	}
	return out
}

// Render is the form for people, without colours: see Write.
func (ds Diagnostics) Render() string {
	var b strings.Builder
	for i, d := range ds {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(d.Render())
	}
	return b.String()
}

// Write writes the form for people to w.
func (ds Diagnostics) Write(w io.Writer) error {
	_, err := io.WriteString(w, ds.Render())
	return err
}

// without is the diagnostic without secrets. Where the excerpt has one before its
// mark, the mark moves with the text.
func (d *Diagnostic) without(known *secret.Known) Diagnostic {
	out := *d
	out.Message, out.Hint, out.Path = known.Text(d.Message), known.Text(d.Hint), known.Text(d.Path)
	if d.Cause != nil {
		out.Cause = known.Fault(d.Cause)
	}
	out.Source = known.Text(d.Source)
	if out.Source == d.Source {
		return out
	}
	runes := []rune(d.Source)
	shown := func(column int) int {
		return len([]rune(known.Text(string(runes[:max(0, min(column-1, len(runes)))])))) + 1
	}
	out.markFrom = shown(d.Pos.Col)
	out.markTo = max(shown(d.End.Col), out.markFrom+1)
	return out
}

// Render is the form for people: the one-line form, the source line with a
// mark under the offending text, and the hint, each on lines of their own.
func (d Diagnostic) Render() string {
	var b strings.Builder
	b.WriteString(d.String())
	b.WriteByte('\n')
	if d.Pos.Line > 0 && strings.TrimSpace(d.Source) != "" {
		line, mark := d.excerpt()
		fmt.Fprintf(&b, "    %s\n    %s\n", line, mark)
	}
	if d.Path != "" {
		fmt.Fprintf(&b, "  at: %s\n", d.Path)
	}
	if len(d.Params) > 0 {
		fmt.Fprintf(&b, "  note: the text comes from parameter %s\n", strings.Join(d.Params, ", "))
	}
	for _, p := range d.elsewhere() {
		fmt.Fprintf(&b, "  see also: %s\n", p)
	}
	if d.Hint != "" {
		fmt.Fprintf(&b, "  hint: %s\n", d.Hint)
	}
	return b.String()
}

// elsewhere are the places that take part and are not the diagnostic's own.
func (d Diagnostic) elsewhere() []Pos {
	return slices.DeleteFunc(slices.Clone(d.Related), func(p Pos) bool { return p == d.Pos })
}

// excerpt cuts the source line to a width that fits a screen and makes the
// line of marks that goes under it.
func (d Diagnostic) excerpt() (line, mark string) {
	runes := []rune(d.Source)
	first, last := d.Pos.Col, d.End.Col
	if d.markFrom > 0 {
		first, last = d.markFrom, d.markTo
	}
	start := max(0, min(first-1, len(runes)))
	end := start + 1
	switch {
	case d.End.Line == d.Pos.Line:
		end = max(end, last-1)
	case d.End.Line > d.Pos.Line:
		end = len([]rune(strings.TrimRight(d.Source, " \t")))
	}
	from, to := 0, len(runes)
	if to > maxRenderedLineChars {
		from = max(0, start-maxRenderedLineChars/3)
		to = min(len(runes), from+maxRenderedLineChars)
	}
	end = max(start+1, min(end, to))
	var l, m strings.Builder
	if from > 0 {
		l.WriteString("…")
		m.WriteString(" ")
	}
	for i := from; i < to; i++ {
		r := runes[i]
		if r < ' ' && r != '\t' {
			r = '\uFFFD' // a control character must not reach a terminal
		}
		l.WriteRune(r)
	}
	for i := from; i < start; i++ {
		if i < len(runes) && runes[i] == '\t' {
			m.WriteByte('\t')
		} else {
			m.WriteByte(' ')
		}
	}
	if to < len(runes) {
		l.WriteString("…")
	}
	m.WriteString(strings.Repeat("^", end-start))
	return l.String(), m.String()
}

// PosJSON is the JSON form of a Pos.
type PosJSON struct {
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
}

// DiagnosticJSON is the JSON form of a Diagnostic, which programs rely on.
type DiagnosticJSON struct {
	Severity Severity  `json:"severity"`
	PosJSON            // flattened
	EndLine  int       `json:"end_line,omitempty"`
	EndCol   int       `json:"end_column,omitempty"`
	Path     string    `json:"path,omitempty"`
	Message  string    `json:"message"`
	Hint     string    `json:"hint,omitempty"`
	Related  []PosJSON `json:"related,omitempty"`
	Params   []string  `json:"params,omitempty"`
	Source   string    `json:"source,omitempty"`
	Cause    string    `json:"cause,omitempty"`
}

// MarshalJSON writes the JSON form: severity, file, line, column, end_line,
// end_column, path, message, hint, related, params, source, cause.
func (d Diagnostic) MarshalJSON() ([]byte, error) {
	out := DiagnosticJSON{Severity: d.Severity, PosJSON: PosJSON{d.Pos.File, d.Pos.Line, d.Pos.Col},
		EndLine: d.End.Line, EndCol: d.End.Col, Path: d.Path, Message: d.Message, Hint: d.Hint,
		Params: d.Params, Source: Shorten(d.Source, 4*maxRenderedLineChars)}
	for _, p := range d.elsewhere() {
		out.Related = append(out.Related, PosJSON{p.File, p.Line, p.Col})
	}
	if d.Cause != nil {
		out.Cause = d.Cause.Error()
	}
	return json.Marshal(out)
}

// UnmarshalJSON reads the form that MarshalJSON writes. Of the cause there is only its text.
func (d *Diagnostic) UnmarshalJSON(text []byte) error {
	var in DiagnosticJSON
	if err := json.Unmarshal(text, &in); err != nil {
		return err
	}
	at := func(p PosJSON) Pos { return Pos{File: p.File, Line: p.Line, Col: p.Column} }
	*d = Diagnostic{Severity: in.Severity, Pos: at(in.PosJSON), Path: in.Path, Message: in.Message, Hint: in.Hint,
		End: Pos{File: in.File, Line: in.EndLine, Col: in.EndCol}, Params: in.Params, Source: in.Source}
	for _, p := range in.Related {
		d.Related = append(d.Related, at(p))
	}
	if in.Cause != "" {
		d.Cause = errors.New(in.Cause)
	}
	return nil
}

// Shorten cuts text to at most limit characters.
func Shorten(text string, limit int) string {
	if utf8.RuneCountInString(text) <= limit {
		return text
	}
	return string([]rune(text)[:limit-1]) + "…"
}

// Quote writes text from the script into a message: shortened, on one line.
func Quote(text string) string { return fmt.Sprintf("%q", Shorten(text, MaxShownTextChars)) }
