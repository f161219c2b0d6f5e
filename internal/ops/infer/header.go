package infer

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"thalweg/internal/io/files"
	"thalweg/internal/io/records"
	"thalweg/internal/lang/filespec"
)

// bareRecords without a header are below titles at least.
const bareRecords = 10

// titlesMax limits the records above a header.
const titlesMax = 20

// untitled finds a header below titles and comments, as reports have them: a record of names
// above many of as many fields, where fewer are filled in all records before it. Below comments alone, and below titles
// if there are many, may be records without a header. No records: there is none.
func untitled(ctx context.Context, f *text, candidates []byte, o Options) (s shape, records [][]string, err error) {
	for _, separator := range candidates {
		all, err := loose(ctx, f, separator)
		if err != nil {
			return s, nil, err
		}
		fields := commonLength(all)
		at := titles(all, fields)
		comments := !slices.ContainsFunc(all[:at], func(rec []string) bool { return !isComment(rec) })
		if at < 1 || at > titlesMax || fields < 2 && !comments || records != nil && fields <= len(records[0]) {
			continue
		}
		below := slices.DeleteFunc(all[at:], func(rec []string) bool { return len(rec) != fields })
		uneven := len(all) - at - len(below)
		header := o.Header == HeaderYes || o.Header == HeaderGuess && len(below) > 0 && looksLikeHeader(below)
		bare := !comments && !header && fields > 2 && len(below) >= bareRecords && uneven == 0 &&
			!slices.ContainsFunc(all[:at], func(rec []string) bool {
				return !isTitle(rec, max(fields, 3)) || len(rec) == fields && strings.TrimSpace(rec[0]) == "" // a name
			})
		if !comments && !bare && (!header || len(below) < 2) || len(below) < 1 || 100*uneven > unevenMax*len(below) {
			continue
		}
		records = below
		what := "header: see hdr_line_idx"
		if !header {
			what = "first record: see first_data_line_idx"
		}
		s = shape{separator: separator, skip: at, fields: fields,
			notes: []string{fmt.Sprintf("%s above the %s", linesAre(at), what)}}
		if isPadded(all[at-1], fields) && header {
			s.notes, s.guesses = nil, []string{fmt.Sprintf("%s above the header of %s, which may be data: see hdr_line_idx",
				linesAre(at), f.name)}
		}
		if bare {
			s.notes, s.guesses = nil,
				[]string{fmt.Sprintf("%s above the first record of %s, which was not taken for a header: see first_data_line_idx",
					linesAre(at), f.name)}
		}
	}
	return s, records, nil
}

// titles counts the records above a table with so many fields.
func titles(all [][]string, fields int) (at int) {
	if lacksLast(all, fields) {
		return 0
	}
	for at < len(all) && at <= titlesMax && (isTitle(all[at], fields) || paddedTitle(all[at:], fields) ||
		isComment(all[at]) && (len(all[at]) != fields || namedBelow(all[at+1:], fields)) ||
		len(all[at]) != fields && namesFollow(all[at+1:], fields)) {
		at++
	}
	return at
}

// lacksLast reports a first record that has a field less than those below, which end with a separator: it is their
// header if the next one has values, else it may be a title.
func lacksLast(all [][]string, fields int) bool {
	if len(all) < 2 || len(all[0]) != fields-1 || len(all[1]) != fields || !slices.ContainsFunc(all[1],
		looksLikeValue) {
		return false
	}
	return !slices.ContainsFunc(all[1:], func(rec []string) bool {
		return len(rec) == fields && strings.TrimSpace(rec[fields-1]) != ""
	})
}

// namesFollow reports whether the first record of a table with so many fields has names above values.
func namesFollow(all [][]string, fields int) bool {
	var table [][]string
	for _, rec := range all {
		if len(rec) == fields {
			table = append(table, rec)
		}
	}
	return len(table) > 0 && slices.ContainsFunc(indexes(table[0]),
		func(i int) bool { return nameAboveValues(table, i) })
}

// isComment reports a record that begins with #, as the header of a table may as well.
func isComment(rec []string) bool { return len(rec) > 0 && strings.HasPrefix(rec[0], "#") }

// namedBelow reports whether names above values are behind the comments that records begin with.
func namedBelow(all [][]string, fields int) bool {
	begin := slices.IndexFunc(all, func(rec []string) bool { return !isComment(rec) })
	if begin < 0 || len(all[begin]) != fields {
		return false
	}
	var table [][]string
	for _, rec := range all[begin:] {
		if len(rec) == fields {
			table = append(table, rec)
		}
	}
	return slices.ContainsFunc(indexes(table[0]), func(i int) bool { return nameAboveValues(table, i) })
}

func linesAre(n int) string {
	if n == 1 {
		return "a line is"
	}
	return fmt.Sprintf("%d lines are", n)
}

// loose cuts the records of a file's head, whatever their number of fields.
func loose(ctx context.Context, f *text, separator byte) (all [][]string, err error) {
	for c, err := range files.EachCells(ctx, f, f.size, separator, 0, f.name) {
		if err != nil {
			return nil, err
		}
		if c.Offset >= headBytes || len(all) >= headRecords {
			break
		}
		var rec []string
		for i := 0; c.Bad == nil && i < c.Len(); i++ {
			rec = append(rec, string(c.Value(i)))
		}
		all = append(all, rec)
	}
	return all, nil
}

// commonLength is the number of fields that most records have.
func commonLength(all [][]string) (most int) {
	count := map[int]int{}
	for _, rec := range all {
		if count[len(rec)]++; count[len(rec)] > count[most] || count[len(rec)] == count[most] && len(rec) > most {
			most = len(rec)
		}
	}
	return most
}

// isTitle reports a record of which hardly a field is filled, above ones of so many.
func isTitle(rec []string, fields int) bool {
	if len(rec) == fields {
		return fields > 2 && filledOf(rec) <= 1 // an index without a name leaves more
	}
	return filledOf(rec) <= max(1, fields/2)
}

// paddedTitle reports a title with as many fields as two columns have: behind it and other titles are names above
// values.
func paddedTitle(all [][]string, fields int) bool {
	if len(all) == 0 || !isPadded(all[0], fields) {
		return false
	}
	short := false // a line that is none of the table's
	rest := all[1:]
	for ; len(rest) > 0 && (isTitle(rest[0], fields) || isPadded(rest[0], fields)); rest = rest[1:] {
		short = short || len(rest[0]) != fields
	}
	return len(rest) > 0 && (short || filledOf(rest[0]) == fields) && namesFollow(rest, fields)
}

// isPadded reports a record that may be a title with as many fields as two columns have.
func isPadded(rec []string, fields int) bool {
	return fields == 2 && len(rec) == fields && filledOf(rec) == 1 && strings.TrimSpace(rec[0]) != ""
}

// filledOf counts the values of a record that are more than blanks.
func filledOf(rec []string) (n int) {
	for _, value := range rec {
		if strings.TrimSpace(value) != "" {
			n++
		}
	}
	return n
}

func indexes(names []string) []int {
	out := make([]int, len(names))
	for i := range out {
		out[i] = i
	}
	return out
}

// nameAboveValues reports a column whose first value is a text and whose others are none,
// but for few.
func nameAboveValues(records [][]string, i int) bool {
	name := strings.TrimSpace(records[0][i])
	if name == "" || looksLikeValue(name) || standsForNothing(name) {
		return false
	}
	values, texts := 0, 0
	for _, rec := range records[1:] {
		switch value := strings.TrimSpace(rec[i]); {
		case value == "" || standsForNothing(value):
		case looksLikeValue(value):
			values++
		default:
			texts++
		}
	}
	return values > 0 && texts*fiftyOne <= values
}

// laterHeader is the first record of names alone, below the very first one, that are above values where that one
// has none, or above those of several columns: what is above it may be titles that fill the columns. 0: there is none.
func laterHeader(records [][]string) int {
	for at := 1; at <= titlesMax && at+1 < len(records); at++ {
		if !areNames(records[at]) || slices.Equal(records[at], records[0]) {
			continue
		}
		above, certain := 0, 0
		for i := range records[at] {
			if !beginsValues(records, at, i) {
				continue
			}
			above++
			if b := lookBelow(records[at:], i); b.kinds[word] == 0 && b.rows-b.kinds[nothing] > 1 {
				certain++
			}
		}
		named := func(i int) bool { return nameAboveValues(records, i) }
		if above > 1 || certain > 0 && !slices.ContainsFunc(indexes(records[0]), named) {
			return at
		}
	}
	return 0
}

// beginsValues reports a record with a text above a column's values; between it and the first record are none.
func beginsValues(records [][]string, at, i int) bool {
	if kind := kindOfCell(records[at+1][i]); kind == word || !nameAboveValues(records[at:], i) {
		return false
	}
	return !slices.ContainsFunc(records[1:at], func(rec []string) bool { return kindOfCell(rec[i]) > word })
}

// areNames reports a record of different texts, in more than half of its fields, and no values.
func areNames(rec []string) bool {
	seen := map[string]bool{}
	for _, cell := range rec {
		switch kind := kindOfCell(cell); {
		case kind > word || kind == word && seen[cell]:
			return false
		case kind == word:
			seen[cell] = true
		}
	}
	return 2*len(seen) > len(rec)
}

// someQuoted are the first few texts of a record that are not empty, in quotes.
func someQuoted(rec []string) string {
	const namedMax = 3
	var list []string
	for _, cell := range rec {
		if strings.TrimSpace(cell) != "" {
			list = append(list, quoted(cell))
		}
	}
	return listed(list, namedMax)
}

func standsForNothing(value string) bool { return slices.Contains(nullLike(), value) }

// sheetRows of a sheet's beginning decide on its header.
const sheetRows = 1_000

// sheetHeader finds the header of a sheet, as untitled does: the first row that is no title, if names are in
// it. Else it is the first one.
func sheetHeader(rows []records.SheetRow, o Options) (at int) {
	fields := 0
	count := map[int]int{}
	for _, row := range rows {
		n := len(row.Columns)
		if count[n]++; count[n] > count[fields] || count[n] == count[fields] && n > fields {
			fields = n
		}
	}
	at = slices.IndexFunc(rows, func(row records.SheetRow) bool { return len(row.Columns) > max(1, fields/2) })
	if at < 1 || at > titlesMax || len(rows)-at < 2 {
		return 0
	}
	head := rows[at]
	below := make([][]string, 0, len(rows)-at)
	for _, row := range rows[at:] {
		rec := make([]string, len(head.Columns))
		for i, n := range row.Columns {
			if k := slices.Index(head.Columns, n); k >= 0 {
				rec[k] = row.Texts[i]
			}
		}
		below = append(below, rec)
	}
	apart := head.Row > rows[at-1].Row+1
	named := slices.ContainsFunc(indexes(below[0]), func(i int) bool { return nameAboveValues(below, i) })
	switch {
	case o.Header == HeaderYes, named:
	case len(head.Columns) == 2 && !apart: // the row above may be a header with a gap
		return 0
	case !looksLikeHeader(below):
		return 0
	}
	return at
}

// asRecords are the rows of a sheet with a text for each column that some of them have.
func asRecords(rows []records.SheetRow) [][]string {
	var columns []int
	for _, row := range rows {
		columns = append(columns, row.Columns...)
	}
	slices.Sort(columns)
	columns = slices.Compact(columns)
	out := make([][]string, len(rows))
	for i, row := range rows {
		out[i] = make([]string, len(columns))
		for k, n := range row.Columns {
			at, _ := slices.BinarySearch(columns, n)
			out[i][at] = row.Texts[k]
		}
	}
	return out
}

// findTable looks in which row a sheet's table begins. why says why a file cannot be read as the first one is.
func (p *recordFiles) findTable(ctx context.Context, name string, first bool, o Options) (head int, why string,
	err error) {
	f, err := openText(p.texts[name], name)
	if err != nil {
		return 0, "", err
	}
	defer f.Close()
	rows, err := records.TopRows(ctx, f, f.size, filespec.Spec{Format: p.Format}, sheetRows)
	if err != nil || len(rows) == 0 {
		return 0, "", in(name, err)
	}
	at := sheetHeader(rows, o)
	if first && at > 0 {
		p.top = rows[at].Row
		p.from.Range = fmt.Sprintf("A%d", p.top)
		p.Notes = append(p.Notes, fmt.Sprintf("row %d was taken for the header, %s above it: see range", p.top,
			strings.Replace(linesAre(at), "line", "row", 1)))
	}
	if o.Header == HeaderGuess {
		table := asRecords(rows[at:])
		if below := laterHeader(table); below > 0 {
			p.guessed("row %d of %s, %s, may be the header: its names are above values, those of row %d are not "+
				"(see range)", rows[at+below].Row, name, someQuoted(table[below]), rows[at].Row)
		}
	}
	if begins := slices.IndexFunc(rows, func(row records.SheetRow) bool { return row.Row >= p.top }); begins != at {
		return rows[at].Row, fmt.Sprintf("its header is in row %d", rows[at].Row), nil
	}
	return rows[at].Row, "", nil
}
