package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"thalweg/internal/app/inspect"
	"thalweg/internal/app/scripts"
	"thalweg/internal/base/fault"
	"thalweg/internal/lang/script"
	"thalweg/internal/ops/lineage"
)

// lineageCmd says what columns are made of.
type lineageCmd struct {
	Column string `arg:"" optional:"" help:"TABLE.COLUMN, or FILE.COLUMN of an input or output file."`
	columnScript
	OpenLineage bool   `name:"openlineage" help:"Print the OpenLineage events of the run instead: one line each."`
	JSON        bool   `name:"json" help:"Print JSON."`
	Graph       string `help:"Draw it instead: dot." enum:"dot,none" default:"none"`
	runFlag
	stateFlags
}

// columnScript is the script whose columns are meant.
type columnScript struct {
	Script  string            `arg:"" optional:"" help:"Script: .yaml or .json; default: that of the run."`
	Params  string            `help:"File with the script's parameters." placeholder:"FILE"`
	Param   map[string]string `help:"One parameter, instead of the file's; may be repeated. Lists are separated by commas." placeholder:"NAME=VALUE" mapsep:"none"`
	Lenient bool              `help:"Ignore keys that look like typing errors, and let the last of equal keys count, with warnings."`
	remoteFlags
}

func (c *lineageCmd) Run(ctx context.Context, a *app) error {
	switch {
	case c.OpenLineage && c.Column != "":
		return &fault.Error{Kind: fault.Script, Message: "--openlineage is about a run, and not about a column",
			Hint: "leave the column out"}
	case c.OpenLineage:
		return c.printEvents(ctx, a)
	case c.Column == "":
		return &fault.Error{Kind: fault.Script, Message: "a column is needed",
			Hint: "name it as TABLE.COLUMN, or FILE.COLUMN"}
	}
	s, err := c.loaded(ctx, a)
	if err != nil {
		return err
	}
	columns := lineage.ColumnsOf(s)
	column, err := columns.Find(c.Column)
	if err != nil {
		return err
	}
	switch {
	case c.Graph == "dot":
		return writeColumnsDOT(a.stdout, column, columns.Around(column))
	case c.JSON:
		return printJSON(a.stdout, struct {
			Column lineage.Column `json:"column"`
			Links  []lineage.Link `json:"links"`
		}{column, columns.Around(column)})
	}
	fmt.Fprintf(a.stdout, "%s\n", plain(column.String()))
	p := columnPrinter{out: a.stdout, columns: columns}
	p.side("made of", column, columns.Upstream, func(l lineage.Link) lineage.Column { return l.From })
	p.side("has a part in", column, columns.Downstream, func(l lineage.Link) lineage.Column { return l.To })
	return nil
}

// loaded is the script that was named, or that of a run.
func (c *lineageCmd) loaded(ctx context.Context, a *app) (*script.Script, error) {
	if c.Script != "" {
		flags := scriptFlags{Script: c.Script, Params: c.Params, Param: c.Param, Lenient: c.Lenient,
			remoteFlags: c.remoteFlags}
		s, diags, err := flags.load(ctx, a)
		if err == nil && diags.HasErrors() {
			err = &scripts.InvalidScriptError{Diagnostics: diags}
		}
		return s, err
	}
	if a.typed["params"] || a.typed["param"] { // an environment's are for its scripts
		return nil, &fault.Error{Kind: fault.Script, Message: "parameters are those of a script",
			Hint: "name the script, too; a run has its own parameters"}
	}
	home, run, err := c.runFlag.open(ctx, a, c.stateFlags)
	if err != nil {
		return nil, err
	}
	defer home.Close()
	client, err := c.client(newLogger(a, false))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	s, _, err := inspect.ScriptOf(ctx, home, run.RunKey, client, a.known)
	return s, err
}

// columnPrinter draws the columns around one, each column's own once.
type columnPrinter struct {
	out     io.Writer
	columns *lineage.Columns
	shown   map[lineage.Column]bool
}

func (p *columnPrinter) side(title string, of lineage.Column, next func(lineage.Column) []lineage.Link,
	other func(lineage.Link) lineage.Column) {
	p.shown = map[lineage.Column]bool{of: true}
	fmt.Fprintf(p.out, "%s\n", title)
	if len(next(of)) == 0 {
		fmt.Fprintf(p.out, "%snothing\n", branchEnd)
	}
	p.below(of, "", next, other)
}

func (p *columnPrinter) below(of lineage.Column, indent string, next func(lineage.Column) []lineage.Link,
	other func(lineage.Link) lineage.Column) {
	links := next(of)
	if len(links) > 0 && other(links[0]) == links[0].To { // what decides about rows has a part in all columns of them
		all := map[lineage.Link]bool{}
		links = slices.DeleteFunc(links, func(l lineage.Link) bool {
			if !l.Indirect {
				return false
			}
			l.To.Name = "*"
			before := all[l]
			all[l] = true
			return before
		})
	}
	for i, l := range links {
		mark, below := branch, trunk
		if i == len(links)-1 {
			mark, below = branchEnd, trunkEnd
		}
		to := other(l)
		if l.Indirect && to == l.To {
			to.Name = "*"
			fmt.Fprintf(p.out, "%s%s%s  %s\n", indent, mark, plain(to.String()), linkText(l))
			continue
		}
		again := ""
		if p.shown[to] && len(next(to)) > 0 {
			again = " (see above)"
		}
		fmt.Fprintf(p.out, "%s%s%s  %s%s\n", indent, mark, plain(to.String()), linkText(l), again)
		if again == "" {
			p.shown[to] = true
			p.below(to, indent+below, next, other)
		}
	}
}

// linkText says how a column has a part in another one.
func linkText(l lineage.Link) string {
	text := l.How
	if l.Indirect {
		text = "indirectly: " + text
	}
	text += " in " + l.Node
	if l.Text != "" {
		text += ": " + shorten(l.Text)
	}
	return "[" + text + "]"
}

// writeColumnsDOT draws links for Graphviz; indirect ones are dashed.
func writeColumnsDOT(w io.Writer, column lineage.Column, links []lineage.Link) error {
	var b strings.Builder
	b.WriteString("digraph columns {\n\trankdir=LR\n\tnode [shape=box]\n")
	fmt.Fprintf(&b, "\t%s [style=bold]\n", dotQuote(column.String()))
	for _, l := range links {
		style := ""
		if l.Indirect {
			style = ", style=dashed"
		}
		fmt.Fprintf(&b, "\t%s -> %s [label=%s%s]\n", dotQuote(l.From.String()), dotQuote(l.To.String()),
			dotQuote(l.How), style)
	}
	b.WriteString("}\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// dotQuote is a DOT string: it knows no escapes but of quotes.
func dotQuote(s string) string {
	return `"` + strings.ReplaceAll(strings.ReplaceAll(s, `\`, `\\`), `"`, `\"`) + `"`
}
