package infer

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A first record is a header if it is unlike the values below it. What speaks for that, and what against it,
// is found out for each column.

// cellKind is the apparent kind of a text.
type cellKind int

const (
	nothing cellKind = iota // empty, or what stands for it
	word
	digit // a number
	clock // a day, a time, a span of numbers
	truth
)

func kindOfCell(cell string) cellKind {
	cell = strings.TrimSpace(cell)
	switch {
	case cell == "" || standsForNothing(cell):
		return nothing
	case !looksLikeValue(cell):
		return word
	case strings.EqualFold(cell, "true") || strings.EqualFold(cell, "false"):
		return truth
	case dotted.MatchString(cell) || strings.ContainsAny(cell, "/:") || strings.Contains(cell[1:], "-") &&
		!exponent.MatchString(cell):
		return clock
	}
	return digit
}

var (
	dotted   = regexp.MustCompile(`^[0-9]{1,2}\.[0-9]{1,2}\.([0-9]{2}|[0-9]{4})\b`)
	exponent = regexp.MustCompile(`[0-9.][eE]-[0-9]+$`)
)

// evidence is a column's verdict on its first cell.
type evidence int

const (
	silent   evidence = iota
	named             // a text above values
	unlike            // a value above values of another kind
	like              // a value above values of its kind
	repeated          // a text that is below as well
	gap               // no text above values in all records
	blank             // no text, and nothing below
	hole              // no text above some values
)

// below sums up a column's cells below the first record.
type below struct {
	kinds   map[cellKind]int
	rows    int
	again   bool // the first cell
	numbers []string
}

func lookBelow(records [][]string, i int) below {
	b := below{kinds: map[cellKind]int{}}
	for _, rec := range records[1:] {
		if slices.Equal(rec, records[0]) { // files were put together
			continue
		}
		kind := kindOfCell(rec[i])
		b.rows++
		b.kinds[kind]++
		b.again = b.again || rec[i] == records[0][i]
		if kind == digit {
			b.numbers = append(b.numbers, rec[i])
		}
	}
	return b
}

// kind is the one of almost all values, nothing if there is none.
func (b below) kind() cellKind {
	values := b.rows - b.kinds[nothing]
	for kind, n := range b.kinds {
		if kind != nothing && values > 0 && (values-n)*fiftyOne <= n {
			return kind
		}
	}
	return nothing
}

func (b below) evidence(cell string) evidence {
	own, kind := kindOfCell(cell), b.kind()
	switch {
	case own == nothing && b.kinds[nothing] == b.rows:
		return blank
	case own == nothing && b.kinds[nothing] == 0:
		return gap
	case own == nothing:
		return hole
	case own == word && b.kinds[word] < b.rows-b.kinds[nothing] &&
		b.kinds[word]*fiftyOne <= b.rows-b.kinds[nothing]-b.kinds[word]:
		return named
	case own == word && b.again:
		return repeated
	case own == word || kind == nothing || kind == word:
		return silent
	case own == kind:
		return like
	}
	return unlike
}

// looksLikeHeader: the first record has names. A text above values is one, whatever the other columns have;
// so is a value above those of another kind, and one of a series of years or months above other numbers, if no
// column speaks against it. Else all are different texts, some of which may be years.
func looksLikeHeader(records [][]string) bool {
	found := evidenceIn(records)
	switch {
	case found[named] > 0:
		return true
	case found[unlike] > 0 && found[like] == 0 && found[repeated] == 0:
		return true
	case found[repeated] > 0 || found[hole] > 0 || found[gap] > 1:
		return false
	}
	return plainNames(records, found[gap] > 0)
}

// headerIsDoubtful reports few records of which the first has more values like those below than names above values.
func headerIsDoubtful(records [][]string) bool {
	const few = 3
	found := evidenceIn(records)
	return len(records) > 1 && len(records) <= few && found[like]+found[repeated] > found[named]
}

// evidenceIn counts what the columns say of the first record.
func evidenceIn(records [][]string) map[evidence]int {
	found := map[evidence]int{}
	columns := make([]below, len(records[0]))
	for i := range columns {
		columns[i] = lookBelow(records, i)
	}
	series := seriesOf(records[0], columns)
	for i, cell := range records[0] {
		e := columns[i].evidence(cell)
		if series[i] && (e == like || e == silent) {
			e = unlike
		}
		found[e]++
	}
	return found
}

// plainNames reports a first record of different texts, of which some may be years. The last columns may be
// without a name if they are without values, and the first one if it has a value in each record.
func plainNames(records [][]string, index bool) bool {
	names := records[0]
	for len(names) > 0 && strings.TrimSpace(names[len(names)-1]) == "" && len(records) > 1 {
		names = names[:len(names)-1]
	}
	if index && len(names) > 0 && strings.TrimSpace(names[0]) == "" && len(records) > 2 {
		names = names[1:]
	}
	seen, years := map[string]bool{}, 0
	for _, name := range names {
		name = strings.TrimSpace(name)
		if isYear(name) && !seen[name] {
			years++
		} else if name == "" || seen[name] || looksLikeValue(name) {
			return false
		}
		seen[name] = true
	}
	switch {
	case len(records) == 1:
		return years == 0
	case years > 0:
		return years < len(names) && !yearsBelow(records)
	}
	return len(names) > 1
}

// isYear reports a name as tables have them that go on to the right.
func isYear(name string) bool {
	n, err := strconv.Atoi(name)
	return err == nil && len(name) == 4 && n >= 1900 && n <= 2100
}

// yearsBelow reports whether there are years, too, where the first record has them.
func yearsBelow(records [][]string) bool {
	for i, name := range records[0] {
		if isYear(strings.TrimSpace(name)) && len(records) > 1 && isYear(strings.TrimSpace(records[1][i])) {
			return true
		}
	}
	return false
}

// seriesOf reports the columns over which the first record goes on from cell to cell by years, by months such as
// 01.2024, or from 0 behind a column without a name, while most values below are no such.
func seriesOf(cells []string, columns []below) map[int]bool {
	for _, number := range []func(cell string) (int, bool){yearNumber, monthNumber} {
		if in := stepsOf(cells, columns, number); in != nil {
			return in
		}
	}
	if kindOfCell(cells[0]) != nothing || columns[0].kinds[nothing] > 0 {
		return nil
	}
	in := map[int]bool{}
	for i, cell := range cells[1:] {
		if strings.TrimSpace(cell) != strconv.Itoa(i) {
			return nil
		}
		in[i+1] = true
	}
	return in
}

func yearNumber(cell string) (int, bool) {
	n, err := strconv.Atoi(cell)
	return n, err == nil && isYear(cell)
}

func monthNumber(cell string) (int, bool) {
	month, year, found := strings.Cut(cell, ".")
	m, err := strconv.Atoi(month)
	if !found || err != nil || m < 1 || m > 12 || !isYear(year) {
		return 0, false
	}
	y, err := strconv.Atoi(year)
	return 12*y + m, err == nil
}

// stepsOf are the columns whose first cells are numbers at equal distances, all that are numbers in the first record.
func stepsOf(cells []string, columns []below, number func(cell string) (int, bool)) map[int]bool {
	const yearsApart = 10
	in := map[int]bool{}
	last, distance := 0, 0
	for i, cell := range cells {
		if kindOfCell(cell) != digit {
			continue
		}
		n, ok := number(strings.TrimSpace(cell))
		switch {
		case !ok:
			return nil
		case len(in) == 1:
			distance = n - last
		}
		if len(in) > 0 && (n-last != distance || distance == 0 || distance > yearsApart || distance < -yearsApart) {
			return nil
		}
		if below := columns[i].numbers; len(below) > 0 && 2*goOn(below, number) > len(below) {
			return nil
		}
		in[i], last = true, n
	}
	if len(in) < 2 {
		return nil
	}
	return in
}

// goOn counts the texts that a series could have.
func goOn(cells []string, number func(cell string) (int, bool)) (n int) {
	for _, cell := range cells {
		if _, ok := number(strings.TrimSpace(cell)); ok {
			n++
		}
	}
	return n
}
