package capacity

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"thalweg/internal/base/fault"
	"thalweg/internal/ops/price"
)

// Limits of a table of runs.
const (
	TableBytesMax = 1 << 20
	RunsMax       = 500
	ClassesMax    = 20
	secondsLeast  = 1e-3
	secondsMax    = 1e9
	classChars    = 40
)

// columnsKnown are the columns of a table of runs. Others end in _s: seconds of a class of nodes.
var columnsKnown = []string{"nodes", "cores", "seconds", "machine", "usd_per_hour"}

// classEnding is how the columns of classes end.
const classEnding = "_s"

// ReadRuns reads a table of runs, as CSV with a header: nodes, the cores of one, and the seconds that a run took. A
// price an hour of all machines, or the type of machine of the nodes, which the book has the price of, makes costs of
// them. name is how people call the file; errors have the place in it.
func ReadRuns(name, text string, book *price.Book) ([]Run, error) {
	t := table{name: name, book: book, csv: csv.NewReader(strings.NewReader(strings.TrimPrefix(text, "\ufeff")))}
	if len(text) > TableBytesMax {
		return nil, t.wrong(-1, "a table of runs has at most 1 MiB")
	}
	if !utf8.ValidString(text) {
		return nil, t.wrong(-1, "the table is not UTF-8")
	}
	t.csv.TrimLeadingSpace = true
	if err := t.readHeader(); err != nil {
		return nil, err
	}
	var runs []Run
	for {
		record, err := t.csv.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, t.unreadable(err, len(record))
		}
		if len(runs) == RunsMax {
			return nil, t.wrong(0, "there are more than %d runs", RunsMax)
		}
		run, err := t.run(record)
		if err != nil {
			return nil, err
		}
		runs = append(runs, run)
	}
	if len(runs) == 0 {
		return nil, t.needs(-1, "the table has no runs")
	}
	return runs, nil
}

// table is a table of runs while it is read.
type table struct {
	name   string
	book   *price.Book
	csv    *csv.Reader
	header []string
}

// wrong says what is wrong with a field of the record that was read last; -1: with the file.
func (t *table) wrong(field int, text string, args ...any) *fault.Error {
	err := fault.New(fault.UserData, text, args...)
	err.Place.File = t.name
	if field >= 0 {
		line, column := t.csv.FieldPos(field)
		err.Place.Line, err.Place.Column = int64(line), column
	}
	return err
}

// needs is wrong, with what a table has.
func (t *table) needs(field int, text string, args ...any) *fault.Error {
	err := t.wrong(field, text, args...)
	err.Hint = "a table of runs has a header with nodes, cores (of one node) and seconds; usd_per_hour (of all) or " +
		"machine, and seconds of classes of nodes such as load_s, if they are known"
	return err
}

// unreadable says what is wrong with the record that was read last, which has so many fields.
func (t *table) unreadable(err error, fields int) error {
	var parse *csv.ParseError
	if !errors.As(err, &parse) {
		return fmt.Errorf("read %s: %w", t.name, err)
	}
	wrong := fault.New(fault.UserData, "the table cannot be read: %v", parse.Err)
	if errors.Is(err, csv.ErrFieldCount) {
		wrong = fault.New(fault.UserData, "there are %d fields, and the header has %d", fields, len(t.header))
		wrong.Hint = "a number has a decimal point, and no comma"
	}
	wrong.Place.File, wrong.Place.Line, wrong.Place.Column = t.name, int64(parse.Line), parse.Column
	return wrong
}

func (t *table) readHeader() error {
	header, err := t.csv.Read()
	switch {
	case errors.Is(err, io.EOF):
		return t.needs(-1, "the table is empty")
	case err != nil:
		return t.unreadable(err, len(header))
	}
	if len(header) == 1 && strings.ContainsAny(header[0], ";\t") {
		wrong := t.wrong(0, "the header has no commas")
		wrong.Hint = "separate columns by commas, and not by semicolons or tabs"
		return wrong
	}
	classes := 0
	for i, column := range header {
		class, isClass := strings.CutSuffix(column, classEnding)
		switch {
		case slices.Contains(header[:i], column):
			return t.wrong(i, "column %q is there twice", column)
		case slices.Contains(columnsKnown, column):
		case !isClass || class == "" || utf8.RuneCountInString(class) > classChars:
			return t.needs(i, "column %q is none of a table of runs", column).Suggest(column, columnsKnown)
		default:
			classes++
		}
	}
	if classes > ClassesMax {
		return t.wrong(0, "there are %d classes of nodes; the most are %d", classes, ClassesMax)
	}
	for _, column := range columnsKnown[:3] {
		if !slices.Contains(header, column) {
			return t.needs(0, "there is no column %s", column)
		}
	}
	if slices.Contains(header, "machine") && slices.Contains(header, "usd_per_hour") {
		return t.wrong(0, "the table has a price an hour and machines: it needs one of them")
	}
	t.header = header
	return nil
}

func (t *table) run(record []string) (run Run, err error) {
	machine, perHour := -1, -1
	for i, column := range t.header {
		text := record[i]
		switch column {
		case "nodes":
			run.Nodes, err = t.whole(i, text)
		case "cores":
			run.Cores, err = t.whole(i, text)
		case "seconds":
			run.Seconds, err = t.seconds(i, text, secondsLeast)
		case "machine":
			machine = i
		case "usd_per_hour":
			perHour = i
		default:
			if text == "" {
				continue
			}
			class := Class{Name: strings.TrimSuffix(column, classEnding)}
			if class.Seconds, err = t.seconds(i, text, 0); err == nil {
				run.Classes = append(run.Classes, class)
			}
		}
		if err != nil {
			return run, err
		}
	}
	switch {
	case machine >= 0 && record[machine] != "":
		return t.ofMachines(run, machine, record[machine])
	case perHour >= 0 && record[perHour] != "":
		return t.ofPrice(run, perHour, record[perHour])
	}
	return run, nil
}

func (t *table) ofMachines(run Run, field int, machine string) (Run, error) {
	line, ok := t.book.Find(machine)
	if !ok {
		return run, t.wrong(field, "machine %q has no price", machine).Suggest(machine, t.book.Machines())
	}
	if line.Cores > 0 && line.Cores != run.Cores {
		return run, t.wrong(field, "a %s has %d cores, and the table says %d", machine, line.Cores, run.Cores)
	}
	run.Machines, run.TotalCores = machine, run.Total()
	return run.Priced(line.PerHour.Times(run.Nodes)), nil
}

func (t *table) ofPrice(run Run, field int, text string) (Run, error) {
	perHour, err := price.Parse(text)
	if err != nil || perHour > price.PerHourMax {
		return run, t.wrong(field, "%q is not a price in US dollars an hour of at most %s", text, price.PerHourMax.Text(0))
	}
	return run.Priced(perHour), nil
}

func (t *table) whole(field int, text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > price.CoresMax {
		return 0, t.wrong(field, "%s is %q, which is not a whole number from 1 to %d", t.header[field], text, price.CoresMax)
	}
	return n, nil
}

func (t *table) seconds(field int, text string, least float64) (float64, error) {
	s, err := strconv.ParseFloat(text, 64)
	if err != nil || !(s >= least && s <= secondsMax) { // no NaN either
		return 0, t.wrong(field, "%s is %q, which is not a number of seconds from %g to %d", t.header[field], text, least,
			int64(secondsMax))
	}
	return s, nil
}
