package sizing

import (
	"fmt"
	"slices"

	"thalweg/internal/base/document"
	"thalweg/internal/base/fault"
	"thalweg/internal/base/format"
	"thalweg/internal/ops/capacity"
	"thalweg/internal/ops/forecast"
	"thalweg/internal/ops/price"
)

// Report is what is said of measured runs of several deployments.
type Report = capacity.Report

// Record is what a complete run took.
type Record = forecast.Record

// Prices are prices of machines.
type Prices = price.Book

// Study returns the report of a published study, by name.
func Study(name string) (Report, error) { return capacity.Study(name) }

// TableIn returns the report of the runs of a table in CSV; errors name the file.
func TableIn(name string, text []byte, prices *Prices, byClass bool) (Report, error) {
	runs, err := capacity.ReadRuns(name, string(text), prices)
	if err != nil {
		return Report{}, err
	}
	return capacity.TableOf(name, runs, byClass)
}

// TableOfRuns returns the report of complete runs, by their records. A machine without a price has no cost.
func TableOfRuns(records []Record, prices *Prices, byClass bool) (Report, error) {
	runs, err := runsOf(records, prices)
	if err != nil {
		return Report{}, err
	}
	r, err := capacity.TableOf("this workspace", runs, byClass)
	r.Doubts = append(r.Doubts, unlike(records)...)
	return r, err
}

func runsOf(records []Record, prices *Prices) (runs []capacity.Run, err error) {
	for _, r := range records {
		if r.Workers == 0 {
			return nil, fault.New(fault.Script, "run %d has no time sheets: nobody knows how many worked on it", r.Run.Run)
		}
		one := capacity.Run{Shape: capacity.Shape{Nodes: r.Workers, Cores: r.Cores}, Machines: r.Machine,
			TotalCores: r.Workers * r.Cores, Seconds: r.Elapsed.Seconds()}
		for _, c := range r.Classes() {
			one.Classes = append(one.Classes, capacity.Class{Name: c.Class, Seconds: c.Seconds})
		}
		if line, known := prices.Find(r.Machine); known {
			one = one.Priced(line.PerHour.Times(r.Workers))
		}
		runs = append(runs, one)
	}
	return runs, nil
}

// alikeMost is how many times as large files are, at most, for runs to have done the same work.
const alikeMost = 1.05

// unlike says which runs have not done the work of the first one: their times say nothing of their machines.
func unlike(records []Record) (out []string) {
	first := records[0]
	names, files := workOf(first)
	for _, r := range records[1:] {
		n, size := workOf(r)
		switch {
		case !slices.Equal(names, n):
			out = append(out, fmt.Sprintf("Run %d has other nodes than run %d: their times are not of the same work.",
				r.Run.Run, first.Run.Run))
		case float64(max(size, files)) > alikeMost*float64(min(size, files)):
			out = append(out, fmt.Sprintf("Run %d read files of %s, and run %d of %s: their times are not of the same work.",
				r.Run.Run, format.Size(size), first.Run.Run, format.Size(files)))
		}
	}
	return out
}

// workOf returns the nodes of a run by name, and the bytes of the files that they read.
func workOf(r Record) (nodes []string, files int64) {
	for _, n := range r.Nodes {
		nodes, files = append(nodes, n.Name), files+n.Files
	}
	slices.Sort(nodes)
	return nodes, files
}

// Types of comparisons, and of the tables that they and reports have.
type (
	Table    = capacity.Table
	Measured = capacity.Measured
	Compared = capacity.Compared

	Linearity = capacity.Linearity
)

// FiguresIn returns the figures of a host or a store, which are JSON; errors name the file.
func FiguresIn(name string, text []byte) (Measured, error) { return capacity.ReadFigures(name, text) }

// MeasuredIn returns what a file says was measured: figures of a host or a store, if it is JSON, else runs in CSV. Errors name the
// file.
func MeasuredIn(name string, text []byte, prices *Prices) (Measured, error) {
	if document.IsJSON(name) {
		return capacity.ReadFigures(name, text)
	}
	runs, err := capacity.ReadRuns(name, string(text), prices)
	return capacity.MeasuredRuns(name, runs), err
}

// MeasuredBy returns what complete runs have taken, by their records. name is of the set.
func MeasuredBy(name string, records []Record, prices *Prices) (Measured, error) {
	runs, err := runsOf(records, prices)
	return capacity.MeasuredRuns(name, runs), err
}

// Compare sets two sets of measurements beside each other.
func Compare(a, b Measured) (Compared, error) { return capacity.Compare(a, b) }

// LinearitiesOf says how rates grow with nodes, of which each set of measurements has so many.
func LinearitiesOf(sets []Measured, nodes []int) ([]Linearity, error) {
	return capacity.LinearitiesOf(sets, nodes)
}

// PublishedPrices returns the prices that come with the program.
func PublishedPrices() (*Prices, error) { return price.Published() }

// ReadPrices reads prices of the user's; errors name the file.
func ReadPrices(name string, text []byte) (*Prices, error) {
	book, diags := price.Read(name, string(text))
	return book, diags.Err()
}
