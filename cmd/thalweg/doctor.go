package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"thalweg/internal/app"
	"thalweg/internal/app/view"
)

// doctorCmd says what is wrong here, and how it is mended.
type doctorCmd struct {
	remoteFlags
	State   string        `help:"State directory to look at." type:"path" env:"THALWEG_STATE" placeholder:"DIR"`
	Cluster string        `help:"Cluster to look at." type:"path" env:"THALWEG_CLUSTER" placeholder:"FILE"`
	Python  string        `help:"Python interpreter that is tried." default:"python3" env:"THALWEG_PYTHON"`
	Timeout time.Duration `help:"Longest that a check may take; default: 10s to 1m by check." placeholder:"TIME"`
	JSON    bool          `name:"json" help:"Print a JSON object."`
}

// Run implements kong's command.
func (c *doctorCmd) Run(ctx context.Context, a *console) error {
	found, err := c.examine(ctx, a)
	if err != nil {
		return err
	}
	if c.JSON {
		if err := printJSON(a.stdout, found); err != nil {
			return err
		}
	} else {
		a.printFindings(found.Checks)
	}
	switch found.Verdict {
	case view.Bad:
		return errReported{exitUsers}
	case view.Ours:
		return errReported{exitOurs}
	}
	return nil
}

// examine looks here, or has the server look.
func (c *doctorCmd) examine(ctx context.Context, a *console) (out view.Diagnosis, err error) {
	if a.server != "" {
		client, err := a.serverClient()
		if err != nil {
			return out, err
		}
		ctx, end := a.showProgress(ctx)
		defer end()
		return client.Doctor(ctx)
	}
	var cfg *app.Config
	if c.Cluster != "" {
		if cfg, err = app.LoadCluster(c.Cluster, a.process()); err != nil {
			return out, err
		}
		if cfg.Worker.Python != "" && c.Python == pythonDefault {
			c.Python = cfg.Worker.Python
		}
	}
	client, err := c.client(slog.New(slog.DiscardHandler))
	if err != nil {
		return out, err
	}
	defer client.Close()
	return app.Doctor(ctx, app.Process{Caller: a.caller(), Program: version, Interpreter: c.Python,
		Keeper: ownExecutable, Remote: client, Known: a.known},
		app.DoctorOptions{Dir: c.State, Cluster: cfg, Named: c.Python != pythonDefault, Limit: c.Timeout})
}

// Layout of findings: three columns, and texts that go on below themselves.
const (
	doctorWidth  = 80
	doctorLeast  = 20 // columns of a text, however narrow the terminal is
	verdictWidth = 9
)

func (a *console) printFindings(found []view.Finding) {
	service, check, found := 0, 0, together(found)
	for _, f := range found {
		service, check = max(service, utf8.RuneCountInString(f.Service)), max(check, utf8.RuneCountInString(f.Check))
	}
	margin := service + check + verdictWidth + 4
	width := max(cmp.Or(a.width, doctorWidth)-margin, doctorLeast)
	counts := map[view.Verdict]int{}
	for _, f := range found {
		counts[f.Verdict]++
		lines := wrap(plain(f.Seen), width)
		if f.Mend != "" {
			lines = append(lines, wrap("mend: "+plain(a.at.text(f.Mend)), width)...)
		}
		for i, line := range lines {
			if i == 0 {
				fmt.Fprintf(a.stdout, "%s  %s  %s%s\n", padded(f.Service, service), padded(f.Check, check),
					a.verdict(f.Verdict), line)
				continue
			}
			fmt.Fprintf(a.stdout, "%s%s\n", strings.Repeat(" ", margin), line)
		}
	}
	fmt.Fprintln(a.stdout, verdictText(counts))
}

// together says in one finding what was not looked at for one reason.
func together(found []view.Finding) (out []view.Finding) {
	for _, f := range found {
		alike := func(g view.Finding) bool {
			return g.Service == f.Service && g.Verdict == view.Skipped && g.Verdict == f.Verdict && g.Mend == "" &&
				f.Mend == ""
		}
		if n := len(out); n > 0 && alike(out[n-1]) {
			out[n-1].Check = "others"
			continue
		}
		out = append(out, f)
	}
	return out
}

func padded(s string, width int) string {
	return s + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(s)))
}

// verdict is the third column.
func (a *console) verdict(v view.Verdict) string {
	text := padded(string(v), verdictWidth)
	switch v {
	case view.Good:
		return a.paint(text, green)
	case view.Warning:
		return a.paint(text, yellow)
	case view.Bad, view.Ours:
		return a.paint(text, red)
	}
	return text
}

func verdictText(counts map[view.Verdict]int) string {
	var texts []string
	for _, v := range []struct {
		verdict   view.Verdict
		one, many string
	}{{view.Bad, "thing to mend", "things to mend"}, {view.Ours, "bug of ours", "bugs of ours"},
		{view.Warning, "warning", "warnings"}} {
		if n := counts[v.verdict]; n == 1 {
			texts = append(texts, "1 "+v.one)
		} else if n > 1 {
			texts = append(texts, fmt.Sprint(n, " ", v.many))
		}
	}
	if len(texts) == 0 {
		return "all is good"
	}
	return strings.Join(texts, ", ")
}

// wrap breaks a text into lines of so many characters; longer words are cut.
func wrap(text string, width int) (lines []string) {
	line := ""
	for word := range strings.FieldsSeq(text) {
		for piece := range slices.Chunk([]rune(word), width) {
			switch {
			case line == "":
				line = string(piece)
			case utf8.RuneCountInString(line)+1+len(piece) <= width:
				line += " " + string(piece)
			default:
				lines, line = append(lines, line), string(piece)
			}
		}
	}
	return append(lines, line)
}
