package matrix

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"thalweg/internal/base/fault"
)

// CellsMax bounds the cells of a matrix.
const CellsMax = 1_000

// Axis is a parameter and the values that it has in turn.
type Axis struct {
	Name   string   `json:"name"`
	Values []string `json:"values"`
}

// Param is a parameter's value in a cell.
type Param struct{ Name, Value string }

// Cell is one combination of values, in the order of the axes.
type Cell []Param

// String names the cell: month=2026-01 region=eu.
func (c Cell) String() string {
	parts := make([]string, len(c))
	for i, p := range c {
		parts[i] = p.Name + "=" + p.Value
	}
	return strings.Join(parts, " ")
}

// Parse reads an axis: NAME=VALUE,…, where a value may be FIRST..LAST of whole
// numbers, months (2026-01) or days (2026-01-31).
func Parse(text string) (Axis, error) {
	name, list, ok := strings.Cut(text, "=")
	a := Axis{Name: strings.TrimSpace(name)}
	if !ok || a.Name == "" || strings.TrimSpace(list) == "" {
		return a, refuse(text, "does not say a parameter and its values", "write NAME=VALUE,VALUE or NAME=FIRST..LAST")
	}
	for item := range strings.SplitSeq(list, ",") {
		item = strings.TrimSpace(item)
		first, last, isRange := strings.Cut(item, "..")
		switch {
		case item == "":
			return a, refuse(text, "has an empty value", "leave the comma out")
		case !isRange, strings.Contains(item, "/"): // a path may have .. in it
			a.Values = append(a.Values, item)
		default:
			values, err := span(first, last)
			if err != nil {
				return a, refuse(text, err.Error(),
					"ranges are of whole numbers (1..12), months (2026-01..2026-12) or days "+
						"(2026-01-01..2026-01-31), the first not behind the last")
			}
			a.Values = append(a.Values, values...)
		}
		if len(a.Values) > CellsMax {
			return a, refuse(text, fmt.Sprintf("has more than %d values", CellsMax), "run it in pieces")
		}
	}
	for i, v := range a.Values {
		if slices.Contains(a.Values[:i], v) {
			return a, refuse(text, "has the value "+v+" more than once", "name each value once")
		}
	}
	return a, nil
}

func refuse(text, what, hint string) error {
	return &fault.Error{Kind: fault.Script, Message: fmt.Sprintf("{{set matrix}} %s %s", text, what), Hint: hint}
}

// span lists the values from first to last.
func span(first, last string) ([]string, error) {
	if a, err := strconv.ParseInt(first, 10, 64); err == nil {
		b, err := strconv.ParseInt(last, 10, 64)
		if err != nil || b < a {
			return nil, fmt.Errorf("has the range %s..%s, which leads nowhere", first, last)
		}
		width := 0
		if len(first) == len(last) && a >= 0 { // 01..12
			width = len(first)
		}
		var out []string
		for n := a; len(out) <= CellsMax; n++ {
			if out = append(out, fmt.Sprintf("%0*d", width, n)); n == b {
				break
			}
		}
		return out, nil
	}
	for _, unit := range []struct {
		layout string
		next   func(time.Time) time.Time
	}{
		{"2006-01", func(t time.Time) time.Time { return t.AddDate(0, 1, 0) }},
		{time.DateOnly, func(t time.Time) time.Time { return t.AddDate(0, 0, 1) }},
	} {
		a, errA := time.Parse(unit.layout, first)
		b, errB := time.Parse(unit.layout, last)
		switch wrong := first; {
		case errA == nil && errB == nil:
		case errA != nil && errB != nil:
			continue
		default:
			if errA == nil {
				wrong = last
			}
			if len(wrong) != len(unit.layout) {
				continue
			}
			return nil, fmt.Errorf("has the range %s..%s, and there is no %s", first, last, wrong)
		}
		var out []string
		for t := a; !t.After(b) && len(out) <= CellsMax; t = unit.next(t) {
			out = append(out, t.Format(unit.layout))
		}
		if len(out) > 0 {
			return out, nil
		}
	}
	return nil, fmt.Errorf("has the range %s..%s, which leads nowhere", first, last)
}

// Cells is the product of axes, the last one's values changing fastest.
func Cells(axes []Axis) ([]Cell, error) {
	cells := []Cell{nil}
	for i, a := range axes {
		if slices.ContainsFunc(axes[:i], func(b Axis) bool { return a.Name == b.Name }) {
			return nil, refuse(a.Name, "is given twice", "give all values of a parameter at once")
		}
		var next []Cell
		for _, c := range cells {
			for _, v := range a.Values {
				next = append(next, append(slices.Clone(c), Param{a.Name, v}))
			}
		}
		if cells = next; len(cells) > CellsMax {
			return nil, refuse(a.Name, fmt.Sprintf("makes more than %d cells", CellsMax), "run it in pieces")
		}
	}
	return cells, nil
}
