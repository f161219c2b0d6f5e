package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"

	"thalweg/internal/base/fault"
)

// Text renders checks and runs for a terminal.
func (r Report) Text() string {
	text := ""
	for _, t := range []table.Writer{r.table(), r.forecastTable(), r.runTable()} {
		if t == nil {
			continue
		}
		t.SetStyle(table.StyleLight)
		text += t.Render() + "\n"
	}
	return text
}

func (r Report) table() table.Writer {
	t := table.NewWriter()
	t.AppendHeader(table.Row{"what", "of", "against", "value", "bar", "verdict", "note"})
	for _, c := range r.Checks {
		t.AppendRow(table.Row{c.Name, c.Of.text(c.Unit), c.Over.text(c.Unit), c.value(), c.Bar, c.Status, c.Note})
	}
	return t
}

// text is a figure with the range of its runs.
func (f *Figure) text(unit string) string {
	if f == nil {
		return ""
	}
	spread := ""
	if f.Min < f.Max {
		spread = fmt.Sprintf(" (%s–%s)", number(f.Min), number(f.Max))
	}
	return fmt.Sprintf("%s: %s %s%s", f.Side, number(f.Value), unit, spread)
}

// value returns the figure that is compared with the bar, if it is not the figure itself.
func (c Check) value() string {
	switch {
	case c.Value == nil || c.Over == nil:
		return ""
	case c.Ratio:
		return number(*c.Value) + times
	default:
		return number(*c.Value) + " " + c.Unit
	}
}

// number gives three digits at least: bars go from milliseconds to minutes.
func number(v float64) string {
	if math.Abs(v) < 1 {
		return fmt.Sprintf("%.4f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

// runTable lists all runs.
func (r Report) runTable() table.Writer {
	t := table.NewWriter()
	t.AppendHeader(table.Row{"side", "", "wall s", "CPU s", "services' CPU s", "peak RSS GB", "peak PSS GB",
		"others' CPU %"})
	for _, run := range r.Runs {
		note := ""
		if run.Disturbed {
			note = "disturbed"
		}
		s := func(v float64) string { return fmt.Sprintf("%.2f", v/1000) }
		gb := func(v int64) string { return fmt.Sprintf("%.2f", float64(v)/1e9) }
		t.AppendRow(table.Row{
			run.Side, note, s(run.WallMS), s(run.CPUMS), s(run.Services),
			gb(run.PeakRSS), gb(run.PeakPSS), fmt.Sprintf("%.1f", 100*(run.Foreign+run.Stolen)),
		})
	}
	return t
}

// Markdown renders the whole report.
func (r Report) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n%s, measured %s.\n\n", r.Case, r.What, r.Date.Format("2006-01-02 15:04 MST"))
	for _, text := range r.LeftOut {
		fmt.Fprintf(&b, "Left out: %s.\n\n", text)
	}
	if r.Disturbed() {
		b.WriteString("**Other processes used the machine during some of the runs: these figures are not to be " +
			"quoted.**\n\n")
	}
	fmt.Fprintf(&b, "%s\n\n", r.table().RenderMarkdown())
	if t := r.forecastTable(); t != nil {
		fmt.Fprintf(&b, "## Forecasts\n\n%s\n\n", t.RenderMarkdown())
	}
	fmt.Fprintf(&b, "## Runs\n\n%s\n\n", r.runTable().RenderMarkdown())
	fmt.Fprintf(&b, "## Circumstances\n\n- machine: %s\n", r.Machine)
	for _, key := range slices.Sorted(maps.Keys(r.Versions)) {
		fmt.Fprintf(&b, "- %s: %s\n", key, r.Versions[key])
	}
	for _, key := range slices.Sorted(maps.Keys(r.Input)) {
		fmt.Fprintf(&b, "- input %s: %v\n", key, r.Input[key])
	}
	return b.String()
}

// Write puts the report into dir as <date>-<case>.json and .md, and returns
// the paths. Earlier reports stay: a second one of a day gets a number.
func (r Report) Write(dir string) (jsonPath, markdownPath string, err error) {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return "", "", fmt.Errorf("encoding the report: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", "", &fault.Error{Kind: fault.Environment, Message: "making the directory of results", Err: err}
	}
	base := filepath.Join(dir, r.Date.Format("2006-01-02")+"-"+r.Case)
	path := base
	for n := 2; ; n++ {
		err := create(path+".json", append(text, '\n'))
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrExist) {
			return "", "", err
		}
		path = fmt.Sprintf("%s-%d", base, n)
	}
	return path + ".json", path + ".md", create(path+".md", []byte(r.Markdown()))
}

// create writes a file that must not be there yet.
func create(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return &fault.Error{Kind: fault.Environment, Message: "writing a report", Err: err}
	}
	_, err = f.Write(text)
	if err := errors.Join(err, f.Close()); err != nil {
		return &fault.Error{Kind: fault.Environment, Message: "writing " + path, Err: err}
	}
	return nil
}
