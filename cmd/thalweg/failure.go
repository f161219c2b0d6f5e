package main

import (
	"fmt"
	"regexp"
	"strings"

	"thalweg/internal/app/view"
	"thalweg/internal/base/fault"
)

func (a *console) printTwin(e view.Failed) {
	_ = printJSON(a.stderr, map[string]view.Failed{"error": e}) // nobody reads it when this fails
}

// sayInterrupted says that the command was interrupted.
func (a *console) sayInterrupted() {
	if a.json {
		a.printTwin(view.Failed{Failure: view.Failure{Kind: fault.Canceled, Message: "interrupted",
			Batch: view.OfNoBatch},
			ExitCode: exitInterrupted})
		return
	}
	fmt.Fprintln(a.stderr, "thalweg: interrupted")
}

// printFailure prints one failure: text, which says where and what, the value, what to do.
func (a *console) printFailure(text string, p fault.Place, hint, detail string) {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = plain(lines[i])
	}
	if where := plain(p.String()); where != "" && strings.HasPrefix(lines[0], where) {
		lines[0] = a.mark(where, bold) + lines[0][len(where):]
	}
	fmt.Fprintf(a.stderr, "%s %s\n", a.mark("error:", red), strings.Join(lines, "\n  "))
	if p.Field != "" {
		fmt.Fprintf(a.stderr, "  field: %s\n", plain(p.Field))
	}
	if p.Value != "" {
		fmt.Fprintf(a.stderr, "  value: %s\n", plain(p.Value))
	}
	if p.Expr != "" {
		fmt.Fprintf(a.stderr, "  expression: %s\n", plain(p.Expr))
	}
	if detail != "" {
		for line := range strings.SplitSeq(strings.TrimRight(detail, "\n"), "\n") {
			fmt.Fprintf(a.stderr, "  | %s\n", plain(line))
		}
	}
	if hint != "" {
		fmt.Fprintf(a.stderr, "  %s\n", a.mark("hint: "+plain(hint), dim))
	}
}

// diagnosed finds the place and the severity in the first line of a diagnostic.
var diagnosed = regexp.MustCompile(`^(\S.*?: )?(error|warning): `)

// printDiagnostics prints the problems of a script as validate does.
func (a *console) printDiagnostics(ds view.Diagnostics) {
	text := ds.Render()
	if a.talkColor {
		lines := strings.Split(text, "\n")
		for i, line := range lines {
			lines[i] = a.markDiagnostic(line)
		}
		text = strings.Join(lines, "\n")
	}
	fmt.Fprint(a.stderr, text)
}

func (a *console) markDiagnostic(line string) string {
	m := diagnosed.FindStringSubmatch(line)
	switch {
	case m != nil:
		severity := map[string]color{"error": red, "warning": yellow}[m[2]]
		return a.mark(m[1], bold) + a.mark(m[2]+":", severity) + " " + line[len(m[0]):]
	case strings.HasPrefix(line, "  hint: "), strings.HasPrefix(line, "  note: "), strings.HasPrefix(line, "  at: "):
		return "  " + a.mark(line[2:], dim)
	case strings.HasPrefix(line, "    ") && strings.Trim(line, " ^") == "" && line != "":
		return a.mark(line, red)
	}
	return line
}
