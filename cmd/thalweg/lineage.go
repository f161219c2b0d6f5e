package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"thalweg/internal/app"
	"thalweg/internal/app/view"
	"thalweg/internal/base/fault"
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
	Param   map[string]string `help:"One parameter; may be repeated." placeholder:"NAME=VALUE" mapsep:"none"`
	Lenient bool              `help:"Warn of unknown and repeated keys instead of failing."`
	remoteFlags
}

func (c *lineageCmd) Run(ctx context.Context, a *console) error {
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
	found, err := c.find(ctx, a)
	if err != nil {
		return err
	}
	column, columns := found.Column, &view.Columns{Links: found.Links}
	switch {
	case c.Graph == "dot":
		return writeColumnsDOT(a.stdout, column, found.Links)
	case c.JSON:
		return printJSON(a.stdout, found)
	}
	fmt.Fprintf(a.stdout, "%s\n", plain(column.String()))
	p := columnPrinter{out: a.stdout, columns: columns}
	p.side("made of", column, columns.Upstream, func(l view.Link) view.Column { return l.From })
	p.side("has a part in", column, columns.Downstream, func(l view.Link) view.Column { return l.To })
	return nil
}

// find finds the column in the script that was named, or in that of a run.
func (c *lineageCmd) find(ctx context.Context, a *console) (out view.ColumnLineage, err error) {
	if c.Script != "" {
		if a.server != "" {
			return out, &fault.Error{Kind: fault.Script, Message: "through a server, lineage is about the columns of runs",
				Hint: "name a run with --run instead of the script, or leave --server out"}
		}
		flags := scriptFlags{Script: c.Script, Params: c.Params, Param: c.Param, Lenient: c.Lenient,
			remoteFlags: c.remoteFlags}
		s, _, err := flags.valid(ctx, a)
		if err != nil {
			return out, err
		}
		return app.LineageOf(s, c.Column)
	}
	if a.typed["params"] || a.typed["param"] { // an environment's are for its scripts
		return out, &fault.Error{Kind: fault.Script, Message: "parameters are those of a script",
			Hint: "name the script, too; a run has its own parameters"}
	}
	client, err := c.client(newLogger(a, false))
	if err != nil {
		return out, err
	}
	home, run, err := c.runFlag.open(ctx, a, c.stateFlags, func(p *app.Process) { p.Remote = client })
	if err != nil {
		return out, err
	}
	defer home.Close()
	return home.Operations.Lineage(ctx, run.RunKey, c.Column)
}

// columnPrinter draws the columns around one, each column's own once.
type columnPrinter struct {
	out     io.Writer
	columns *view.Columns
	shown   map[view.Column]bool
}

func (p *columnPrinter) side(title string, of view.Column, next func(view.Column) []view.Link,
	other func(view.Link) view.Column) {
	p.shown = map[view.Column]bool{of: true}
	fmt.Fprintf(p.out, "%s\n", title)
	if len(next(of)) == 0 {
		fmt.Fprintf(p.out, "%snothing\n", branchEnd)
	}
	p.below(of, "", next, other)
}

func (p *columnPrinter) below(of view.Column, indent string, next func(view.Column) []view.Link,
	other func(view.Link) view.Column) {
	links := next(of)
	if len(links) > 0 && other(links[0]) == links[0].To { // what decides about rows has a part in all columns of them
		all := map[view.Link]bool{}
		links = slices.DeleteFunc(links, func(l view.Link) bool {
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
func linkText(l view.Link) string {
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
func writeColumnsDOT(w io.Writer, column view.Column, links []view.Link) error {
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
