package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"

	"thalweg/internal/app"
	"thalweg/internal/app/sizing"
	"thalweg/internal/base/fault"
)

// capacityCmd is about what runs take and cost on other deployments.
type capacityCmd struct {
	Compare capacityCompareCmd `cmd:"" help:"Compare two sets of runs, or two hosts: ratios, with intervals."`
	Explain capacityExplainCmd `cmd:"" help:"Say what limited a run: a table of causes for each node, and what each costs."`
	Study   capacityStudyCmd   `cmd:"" help:"Show a published study: tables, costs, fits, findings, charts."`
	Plan    capacityPlanCmd    `cmd:"" help:"Choose machines for a run, for a deadline or a budget."`
	Table   capacityTableCmd   `cmd:"" help:"Show the same of runs, by number or in a CSV file: nodes, cores, seconds."`
}

// reportFlags say where a report goes.
type reportFlags struct {
	Out string `help:"Draw charts to FILE: .svg." short:"o" placeholder:"FILE" type:"path"`
	overwriteFlag
	JSON bool `name:"json" help:"Print a JSON object."`
}

type capacityStudyCmd struct {
	Study string `arg:"" enum:"2024,2025,2026,netflix,arm,aerospike" help:"${enum}."`
	reportFlags
}

// Run implements kong's command.
func (c *capacityStudyCmd) Run(a *console) error {
	return c.give(a, func() (sizing.Report, error) { return sizing.Study(c.Study) })
}

type capacityTableCmd struct {
	Of     []string `arg:"" name:"run|file" help:"Numbers of runs, or a CSV file of one a line: nodes, cores, seconds; usd_per_hour or machine; load_s, …"`
	By     string   `help:"class: with the time by class of node." enum:"deployment,class" default:"deployment"`
	Prices string   `help:"Prices of machines, beside the published ones and before them." placeholder:"FILE" type:"path"`
	reportFlags
	stateFlags
}

// Run implements kong's command.
func (c *capacityTableCmd) Run(ctx context.Context, a *console) error {
	return c.give(a, func() (sizing.Report, error) { return c.report(ctx, a) })
}

// pricesOf returns the published prices, with those of a file before them; "": there is none.
func pricesOf(file string) (*sizing.Prices, error) {
	prices, err := sizing.PublishedPrices()
	if err != nil || file == "" {
		return prices, err
	}
	ours, err := pricesIn(file)
	if err != nil {
		return nil, err
	}
	return prices.With(ours), nil
}

// pricesIn returns the prices of a file.
func pricesIn(file string) (*sizing.Prices, error) {
	text, err := readSmall(file)
	if err != nil {
		return nil, err
	}
	return sizing.ReadPrices(file, text)
}

func (c *capacityTableCmd) report(ctx context.Context, a *console) (r sizing.Report, err error) {
	prices, err := pricesOf(c.Prices)
	if err != nil {
		return r, err
	}
	if file := c.Of[0]; len(c.Of) == 1 && app.CheckRunRef(file) != nil {
		text, err := readSmall(file)
		if err != nil {
			return r, err
		}
		return sizing.TableIn(file, text, prices, c.By == "class")
	}
	home, err := c.openHome(ctx, a, false)
	if err != nil {
		return r, err
	}
	defer home.Close()
	records, err := recordsOf(ctx, home, c.Workspace, c.Of)
	if err != nil {
		return r, err
	}
	return sizing.TableOfRuns(records, prices, c.By == "class")
}

// recordsOf returns what complete runs of a workspace took.
func recordsOf(ctx context.Context, home *app.App, workspace string, refs []string) (records []sizing.Record,
	err error) {
	for _, ref := range refs {
		run, err := home.Operations.Find(ctx, workspace, ref)
		if err != nil {
			return nil, err
		}
		measured, err := home.Replay(ctx, run.RunKey, 1, 1)
		if err != nil {
			return nil, err
		}
		records = append(records, measured.Record)
	}
	return records, nil
}

// chart returns the file that charts are drawn to, if it can be written.
func (f reportFlags) chart() (to outFile, err error) {
	if f.Out != "" && filepath.Ext(f.Out) != ".svg" {
		return to, fault.New(fault.Script, "%s: charts are drawn as .svg", f.Out)
	}
	to = outFile{path: f.Out, overwrite: f.Overwrite, mine: madeSVG}
	return to, to.check()
}

// give makes a report, draws it where that is asked for, and prints it.
func (f reportFlags) give(a *console, report func() (sizing.Report, error)) error {
	to, err := f.chart()
	if err != nil {
		return err
	}
	r, err := report()
	if err != nil {
		return err
	}
	if f.Out != "" {
		if err := to.write(a, func(w io.Writer) error { return r.WriteSVG(w) }); err != nil {
			return err
		}
	}
	if f.JSON {
		return printJSON(a.stdout, r)
	}
	a.printReport(r)
	return nil
}

func (a *console) printReport(r sizing.Report) {
	fmt.Fprintln(a.stdout, a.paint(plain(r.Title), bold))
	a.printTables(r.Tables())
	a.printTexts("findings", r.Findings)
	a.printTexts("what does not add up", r.Doubts)
	a.printTexts("more of the note, and the same of your runs", r.Asked)
	a.printTexts("sources", r.Sources)
}

// printTables prints tables, each below its title.
func (a *console) printTables(tables []sizing.Table) {
	for _, table := range tables {
		fmt.Fprintf(a.stdout, "\n%s\n", a.paint(plain(table.Title), bold))
		header := make([]any, len(table.Header))
		var right []int
		for i, name := range table.Header {
			if header[i] = name; ofFigures(table.Rows, i) {
				right = append(right, i+1)
			}
		}
		t := a.newTable(header...)
		rightAligned(t, right...)
		for _, row := range table.Rows {
			cells := make([]any, len(row))
			for i, cell := range row {
				cells[i] = cell
			}
			t.AppendRow(cells)
		}
		t.Render()
	}
}

// ofFigures reports whether at least half of the cells of a column that have something begin as figures do.
func ofFigures(rows [][]string, column int) bool {
	figures, all := 0, 0
	for _, row := range rows {
		if row[column] != "" {
			all++
			figures += map[bool]int{true: 1}[strings.ContainsAny(row[column][:1], "0123456789$+-")]
		}
	}
	return all > 0 && 2*figures >= all
}

// reportWidth is the widest that sentences of a report are.
const reportWidth = 100

// printTexts prints sentences below a heading, in lines that fit.
func (a *console) printTexts(heading string, texts []string) {
	if len(texts) == 0 {
		return
	}
	fmt.Fprintf(a.stdout, "\n%s\n", a.paint(heading, bold))
	width := a.width
	if width == 0 || width > reportWidth {
		width = reportWidth
	}
	const blank = "\ue000" // of a shape, such as 4 × 8, which is not broken
	for _, said := range texts {
		said = strings.ReplaceAll(plain(a.at.text(said)), " × ", blank+"×"+blank)
		lines := text.WrapSoft(said, max(width, screenLeast)-len("- "))
		for i, line := range strings.Split(lines, "\n") {
			line = strings.ReplaceAll(strings.TrimRight(line, " "), blank, " ")
			fmt.Fprintf(a.stdout, "%s %s\n", map[bool]string{true: "-", false: " "}[i == 0], line)
		}
	}
}
