package document

import (
	"fmt"
	"slices"
	"sort"

	"thalweg/internal/base/secret"
)

// Report collects what is wrong with the texts that are read.
type Report struct {
	diags []*Diagnostic
	full  bool // MaxDiagnosticsCount was reached: no need to look on

	causes map[string]bool // see Explains
}

// IsFull reports whether no more problems are kept: there is no need to look on.
func (r *Report) IsFull() bool { return r.full }

// HasErrors reports whether one of the problems is an error.
func (r *Report) HasErrors() bool { return r.Errors() > 0 }

// Errors counts the problems that are errors.
func (r *Report) Errors() (count int) {
	for _, d := range r.diags {
		if d.Severity == Error {
			count++
		}
	}
	return count
}

// Explains says that an error that is reported is the cause of others, which name it
// with Diagnostic.Because: one mistake is told once.
func (r *Report) Explains(cause string) {
	if r.causes == nil {
		r.causes = map[string]bool{}
	}
	r.causes[cause] = true
}

// ErrorSpan reports an error at src.Text[start:end]. What it returns may be
// given a hint and related places.
func (r *Report) ErrorSpan(src *Source, start, end int, path, format string, args ...any) *Diagnostic {
	return r.AddSpan(Error, src, start, end, path, fmt.Sprintf(format, args...))
}

// ErrorAt reports an error at a value: at all of a scalar, at the opening of a map or list.
func (r *Report) ErrorAt(v *Value, path, format string, args ...any) *Diagnostic {
	return r.at(Error, v, path, fmt.Sprintf(format, args...))
}

// WarnAt reports a warning at a value.
func (r *Report) WarnAt(v *Value, path, format string, args ...any) *Diagnostic {
	return r.at(Warning, v, path, fmt.Sprintf(format, args...))
}

func (r *Report) at(sev Severity, v *Value, path, message string) *Diagnostic {
	if v == nil {
		return r.AddFile(sev, "", path, message)
	}
	start, end := v.Span()
	if v.Src.IsPending(start, end) {
		return &Diagnostic{} // the missing parameter is the problem
	}
	return r.AddSpan(sev, v.Src, start, end, path, message)
}

// AddSpan reports a problem at src.Text[start:end].
func (r *Report) AddSpan(sev Severity, src *Source, start, end int, path, message string) *Diagnostic {
	d := &Diagnostic{Severity: sev, Path: path, Message: message, Params: src.Params(start, end)}
	from := src.Origin(start, false)
	to := max(from, src.Origin(end, true))
	d.Pos = src.Pos(from)
	d.Source = src.line(d.Pos.Line)
	d.End = src.Pos(to)
	return r.add(d)
}

// AddSyntax reports a text that cannot be parsed.
func (r *Report) AddSyntax(src *Source, fail *SyntaxError) {
	if fail.whole {
		r.AddFile(Error, src.Name, "", fail.Message).Hint = fail.hint
		return
	}
	r.ErrorSpan(src, fail.off, fail.end, "", "%s", fail.Message).Hint = fail.hint
}

// AddFile reports a problem of a file as a whole.
func (r *Report) AddFile(sev Severity, name, path, message string) *Diagnostic {
	return r.add(&Diagnostic{Severity: sev, Pos: Pos{File: name}, End: Pos{File: name}, Path: path, Message: message})
}

func (r *Report) add(d *Diagnostic) *Diagnostic {
	if len(r.diags) >= MaxDiagnosticsCount {
		r.full = true
		return &Diagnostic{}
	}
	r.diags = append(r.diags, d)
	return d
}

// Result sorts the diagnostics by the ranks of their files and by their places, and drops
// repeated ones (an aliased value is checked once for each place where it is used) and
// what comes of others (see Diagnostic.Because). name is
// of the file that is to blame when there are too many of them.
func (r *Report) Result(name string, rank func(file string) int, known *secret.Known) Diagnostics {
	r.diags = slices.DeleteFunc(r.diags, func(d *Diagnostic) bool {
		return slices.ContainsFunc(d.because, func(cause string) bool { return r.causes[cause] })
	})
	sort.SliceStable(r.diags, func(i, j int) bool {
		a, b := r.diags[i], r.diags[j]
		if x, y := rank(a.Pos.File), rank(b.Pos.File); x != y {
			return x < y
		}
		if a.Pos.Line != b.Pos.Line {
			return a.Pos.Line < b.Pos.Line
		}
		return a.Pos.Col < b.Pos.Col
	})
	var out Diagnostics
	for i, d := range r.diags {
		if i > 0 && d.Pos == r.diags[i-1].Pos && d.Message == r.diags[i-1].Message && d.Pos.Line > 0 {
			continue
		}
		out = append(out, d.without(known))
	}
	if r.full {
		out = append(out, Diagnostic{Severity: Error, Pos: Pos{File: name}, End: Pos{File: name},
			Message: fmt.Sprintf("there are more problems: only the first %d are shown", MaxDiagnosticsCount)})
	}
	return out
}
