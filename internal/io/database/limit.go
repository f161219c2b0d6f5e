package database

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"thalweg/internal/base/fault"
)

// limit describes the texts that a column accepts, for values that the server would change instead of
// refusing them. Servers cut surplus blanks off, and take the text of a number for a place in an enum.
type limit struct {
	kind  string
	chars int      // 0: any number
	bytes int      // likewise
	words []string // nil: any
}

// refuses says what is wrong with a text; "": nothing.
func (l *limit) refuses(text string) string {
	switch {
	case l == nil:
	case l.chars > 0 && len(text) > l.chars && utf8.RuneCountInString(text) > l.chars:
		return fmt.Sprintf("a text of %d characters is too long for %s: %s", utf8.RuneCountInString(text), l.kind,
			shown(text))
	case l.bytes > 0 && len(text) > l.bytes && strings.HasSuffix(text, " "):
		return fmt.Sprintf("a text of %d bytes is too long for %s: %s", len(text), l.kind, shown(text))
	case l.words != nil && !slices.Contains(l.words, text):
		return fmt.Sprintf("%s is none of the values of %s", shown(text), l.kind)
	}
	return ""
}

// shown is a text as messages have it.
func shown(text string) string {
	const charsMax = 40
	if runes := []rune(text); len(runes) > charsMax {
		return strconv.Quote(string(runes[:charsMax])) + " …"
	}
	return strconv.Quote(text)
}

// charLimit is the limit of a type such as varchar(5).
func charLimit(kind string, bases ...string) *limit {
	base, rest, _ := strings.Cut(kind, "(")
	digits, _, _ := strings.Cut(rest, ")")
	n, err := strconv.Atoi(digits)
	if err != nil || !slices.Contains(bases, base) {
		return nil
	}
	return &limit{kind: kind, chars: n}
}

// rowFault is about a value of a row, counted from 1.
func rowFault(row int64, column, what string) error {
	return &fault.Error{Kind: fault.UserData, Message: fmt.Sprintf("row %d of what is written: column %s: %s", row,
		column, what),
		Hint: "change the value before, leave the row out with having, or change the column with ALTER TABLE"}
}

// checkLimits looks at rows that are loaded without being looked at.
func checkLimits(path string, columns []TargetColumn) error {
	if !slices.ContainsFunc(columns, func(c TargetColumn) bool { return c.limit != nil }) {
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return &fault.Error{Kind: fault.Environment, Message: "read the rows to write", Err: err}
	}
	defer f.Close()
	const bufferBytes = 1 << 20
	r := &cells{r: bufio.NewReaderSize(f, bufferBytes)}
	for i, row := 0, int64(1); ; i++ {
		text, null, last, err := r.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return &fault.Error{Kind: fault.Environment, Message: "read the rows to write", Err: err}
		}
		if c := columns[i]; !null && c.limit != nil {
			if what := c.limit.refuses(text); what != "" {
				return rowFault(row, c.Name, what)
			}
		}
		if last {
			i, row = -1, row+1
		}
	}
}
