package main

import (
	"regexp"
	"strconv"

	"thalweg/internal/app/sizing"
	"thalweg/internal/base/fault"
)

type benchCompareCmd struct {
	Of   []string `arg:"" name:"file" help:"Two files of 'bench store --json' or 'bench host --json': ratios of the second to the first. Or NODES=FILE, twice or more: how rates grow with nodes."`
	JSON bool     `name:"json" help:"Print a JSON object."`
}

// Help implements kong.HelpProvider.
func (c *benchCompareCmd) Help() string {
	return "An interval follows from parts of the time that was measured, or from repeats; for how rates grow, from three " +
		"files or more. 'capacity compare' also compares runs."
}

// nodesOf is a number of nodes before a file.
var nodesOf = regexp.MustCompile(`^([1-9][0-9]{0,5})=(.+)$`)

// measuredBytesMax bounds a file of what was measured, which may have a day of seconds.
const measuredBytesMax = 256 << 20

// Run implements kong's command.
func (c *benchCompareCmd) Run(a *console) error {
	var sets []sizing.Measured
	var nodes []int
	for _, of := range c.Of {
		file := of
		if m := nodesOf.FindStringSubmatch(of); m != nil {
			n, _ := strconv.Atoi(m[1]) // its digits are
			nodes, file = append(nodes, n), m[2]
		}
		text, err := readUpTo(file, measuredBytesMax)
		if err != nil {
			return err
		}
		set, err := sizing.FiguresIn(file, text)
		if err != nil {
			return err
		}
		sets = append(sets, set)
	}
	switch {
	case len(nodes) > 0 && (len(nodes) < len(sets) || len(sets) < 2):
		return fault.New(fault.Script, "the number of nodes goes before each file, of two or more: 1=a.json 3=b.json")
	case len(nodes) > 0:
		return c.linear(a, sets, nodes)
	case len(sets) != 2:
		return fault.New(fault.Script, "%d files are named: two are compared", len(sets))
	}
	compared, err := sizing.Compare(sets[0], sets[1])
	if err != nil {
		return err
	}
	return a.giveCompared(compared, c.JSON)
}

// linear says how rates grow with nodes.
func (c *benchCompareCmd) linear(a *console, sets []sizing.Measured, nodes []int) error {
	all, err := sizing.LinearitiesOf(sets, nodes)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(a.stdout, all)
	}
	for _, l := range all {
		a.printTables(l.Tables())
		a.printTexts("notes", l.Notes)
	}
	return nil
}
