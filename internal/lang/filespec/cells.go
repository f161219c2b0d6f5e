package filespec

import (
	"fmt"
	"strconv"
	"strings"
)

// ColumnNumber is that of letters, from 1; 0 if there are none.
func ColumnNumber(letters string) int {
	n := 0
	for i := range len(letters) {
		c := letters[i] &^ 0x20
		if c < 'A' || c > 'Z' || n > ColumnsMax {
			return 0
		}
		n = n*26 + int(c-'A') + 1
	}
	return n
}

// A sheet has so many columns and rows at most.
const (
	ColumnsMax = 16_384
	RowsMax    = 1_048_576
)

// ColumnLetters are those of a column's number.
func ColumnLetters(n int) string {
	s := ""
	for ; n > 0; n = (n - 1) / 26 {
		s = string(rune('A'+(n-1)%26)) + s
	}
	return s
}

// ParseCell takes the name of a cell apart: C7 is column 3, row 7. Each may be missing (0).
func ParseCell(name string) (column, row int, ok bool) {
	name = strings.ReplaceAll(name, "$", "")
	i := 0
	for i < len(name) && (name[i] < '0' || name[i] > '9') {
		i++
	}
	if column = ColumnNumber(name[:i]); i > 0 && (column == 0 || column > ColumnsMax) {
		return 0, 0, false
	}
	if i == len(name) {
		return column, 0, i > 0
	}
	row, err := strconv.Atoi(name[i:])
	return column, row, err == nil && row > 0 && row <= RowsMax
}

// Area is a part of a sheet; 0: no bound.
type Area struct{ Left, Top, Right, Bottom int }

// ParseRange reads a range such as B3:F100, B3, B3:F or B:F; "" has no bounds.
func ParseRange(text string) (a Area, err error) {
	if text == "" {
		return a, nil
	}
	from, to, both := strings.Cut(text, ":")
	var ok, ok2 bool
	a.Left, a.Top, ok = ParseCell(from)
	if ok2 = true; both {
		a.Right, a.Bottom, ok2 = ParseCell(to)
	}
	if !ok || !ok2 || a.Right > 0 && a.Right < a.Left || a.Bottom > 0 && a.Bottom < a.Top {
		return a, fmt.Errorf("%q is no range of cells", text)
	}
	return a, nil
}
