package infersets

import (
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"thalweg/internal/base/format"
	"thalweg/internal/lang/expr"
	"thalweg/internal/lang/script"
	"thalweg/internal/ops/infer"
)

// failure describes what is wrong with a set's outcome.
type failure struct{ class, message string }

func failed(class, format string, args ...any) *failure {
	return &failure{class, fmt.Sprintf(format, args...)}
}

// unclear is no failure: what the file says can be read in several ways, of which the proposal says one.
var unclear = &failure{class: "unclear"}

// outcome is the outcome of a set.
type outcome struct {
	proposal *infer.Proposal
	script   string
	header   []string
	rows     [][]string
	bad      int64 // rows that the run has put aside
}

// view is a file as the proposal takes it: with the header that is there, without it, or with the first record for one.
type view struct {
	file *file
	name string
	head []string // "": a column without a name
	rows [][]cell
	bad  int

	unread int // rows of a sheet whose values are all in columns that are left out
}

// said reports whether people are told of something in which all of these words are.
func (o *outcome) said(kind infer.DoubtKind, words ...string) bool {
	return slices.ContainsFunc(o.proposal.Doubts, func(d infer.Doubt) bool {
		lacks := func(w string) bool { return !strings.Contains(d.Text, w) }
		return d.Kind == kind && !slices.ContainsFunc(words, lacks)
	})
}

// check compares what came out with what is in the files.
func (s *set) check(o *outcome) *failure {
	views, bad := s.views(o)
	if bad != nil {
		return bad
	}
	want, broken := 0, 0
	for _, v := range views {
		want, broken = want+len(v.rows), broken+v.bad
	}
	p := o.proposal
	switch {
	case p.BadRows != o.bad:
		return failed("count", "infer says that %d rows are bad, the run has put %d aside", p.BadRows, o.bad)
	case int64(len(o.rows)) != int64(want+broken)-o.bad:
		return failed("rows", "%d rows came out, %d were put aside; the files have %d, and %d broken ones", len(o.rows),
			o.bad, want, broken)
	case p.Rows != int64(want+broken):
		return failed("count", "infer says %d rows; the files have %d", p.Rows, want+broken)
	}
	if o.bad > 0 && !o.said(infer.Aside) {
		return failed("silent", "%d rows are put aside, of which nobody is told", o.bad)
	}
	rows, bad := s.align(o, views)
	if bad != nil {
		return bad
	}
	return s.checkColumns(o, views, rows)
}

// views are the files that were read, in their order.
func (s *set) views(o *outcome) (views []view, bad *failure) {
	for _, f := range s.files {
		at := slices.IndexFunc(o.proposal.Files, func(path string) bool { return strings.HasSuffix(path, "/"+f.Name) })
		if at < 0 {
			if !o.said(infer.LeftOut, f.Name) {
				return nil, failed("silent", "%s is left out without a word", f.Name)
			}
			continue
		}
		if s.format == "excel" && !slices.ContainsFunc(f.Header, there) {
			f = f.withFirstAsHeader()
		}
		v := view{file: &f, name: f.Name}
		for _, rec := range f.Records {
			switch {
			case rec.Broken:
				v.bad++
			case s.format == "excel" && o.said(infer.LeftOut, "with values only in columns", f.Name) &&
				onlyLeftOut(rec.Cells, f.Header, s.doubled()):
				v.unread++
			case s.format != "excel" || slices.ContainsFunc(rec.Cells, there):
				v.rows = append(v.rows, rec.Cells)
			}
		}
		if v.unread > 0 && !o.said(infer.LeftOut, format.Counted(int64(v.unread), "row", "rows")+" of ", f.Name) {
			return nil, failed("silent", "%d rows of %s do not come out, of which nobody is told", v.unread, f.Name)
		}
		if bad := s.heads(&v, o); bad != nil {
			return nil, bad
		}
		views = append(views, v)
	}
	return views, nil
}

// there reports a cell that a sheet has.
func there(c cell) bool { return c.Kind != nothing || c.Text != "" }

// withFirstAsHeader is a sheet without a header as it is read: the first row with values is one.
func (f file) withFirstAsHeader() file {
	at := slices.IndexFunc(f.Records, func(rec record) bool { return slices.ContainsFunc(rec.Cells, there) })
	if at >= 0 {
		f.Header, f.Records = f.Records[at].Cells, f.Records[at+1:]
	}
	return f
}

// onlyLeftOut reports a row whose values are all in columns without a header, or with one that a file has twice.
func onlyLeftOut(cells, head []cell, doubled map[string]bool) bool {
	some := false
	for j, c := range cells {
		if !there(c) {
			continue
		}
		if some = true; j < len(head) && strings.TrimSpace(head[j].Text) != "" &&
			!doubled[strings.TrimSpace(head[j].Text)] {
			return false
		}
	}
	return some
}

// doubled are the headers that some sheet has twice.
func (s *set) doubled() map[string]bool {
	out := map[string]bool{}
	for _, f := range s.files {
		if !slices.ContainsFunc(f.Header, there) {
			f = f.withFirstAsHeader()
		}
		seen := map[string]bool{}
		for _, c := range f.Header {
			name := strings.TrimSpace(c.Text)
			out[name] = out[name] || seen[name]
			seen[name] = true
		}
	}
	return out
}

// heads gives a view the header that the proposal takes the file to have.
func (s *set) heads(v *view, o *outcome) *failure {
	f, has := v.file, o.proposal.HasHeader || s.format != "csv"
	columnGuessed := o.said(infer.Guessed, v.name, "as one column") ||
		o.said(infer.Guessed, "texts at the top", v.name) ||
		o.said(infer.Guessed, v.name, "may be the header")
	if above := o.above(s.format); above >= 0 && above != len(f.Titles) {
		if !columnGuessed && (f.Header != nil && clearlyHeader(f.Header, v.rows) || f.Header == nil &&
			clearlyData(v.rows)) {
			return failed("titles", "%d titles are above the table of %s, not %d", len(f.Titles), v.name, above)
		}
		return unclear
	}
	names := func(cells []cell) {
		for _, c := range cells {
			v.head = append(v.head, strings.TrimSpace(c.Text))
		}
	}
	switch {
	case has && f.Header != nil:
		names(f.Header)
	case has: // the first record was taken for one
		switch {
		case !clearlyData(v.rows):
		case o.said(infer.Guessed, v.name, "taken for a header"):
			return unclear
		default:
			return failed("header", "the first record of %s is no header", v.name)
		}
		if len(v.rows) > 0 {
			names(v.rows[0])
			v.rows = v.rows[1:]
		}
	case f.Header != nil:
		if clearlyHeader(f.Header, v.rows) {
			return failed("header", "the header of %s was taken for data", v.name)
		}
		first := slices.Clone(f.Header)
		for j, c := range first {
			switch {
			case c.Text == "":
				first[j].Kind = nothing
			case slices.Contains(nullWords, c.Text) || c.Text == "null":
				first[j].Kind = word
			}
		}
		v.rows = append([][]cell{first}, v.rows...)
	}
	return nil
}

// above returns the number of titles that the proposal sees; -1: files of this format have none.
func (o *outcome) above(format string) int {
	switch format {
	case "csv":
		return o.proposal.Above
	case "excel":
		row, err := strconv.Atoi(strings.TrimLeft(o.proposal.Range(), "A"))
		switch {
		case err != nil:
			row = 1
		case o.byLetters():
			row--
		}
		return row - 1
	}
	return -1
}

// byLetters reports a script that reads columns of sheets by their letters, from the row behind the header on.
func (o *outcome) byLetters() bool {
	return strings.Contains(o.script, "excel: {header: false, range: ")
}

// values reports whether all that a column has are numbers or times, and that there are some.
func values(rows [][]cell, j int) bool {
	n := 0
	for _, rec := range rows {
		switch k := rec[j].Kind; {
		case k == text || k == truth:
			return false
		case k >= number:
			n++
		}
	}
	return n > 1
}

// clearlyHeader: a name is above values.
func clearlyHeader(head []cell, rows [][]cell) bool {
	for j, c := range head {
		name := strings.TrimSpace(c.Text)
		plain := name != "" && strings.IndexFunc(name, func(r rune) bool {
			return !unicode.IsLetter(r) && r != ' ' &&
				r != '_'
		}) < 0
		if plain && !slices.Contains(nullWords, name) && !slices.Contains([]string{"null", "true"}, name) &&
			values(rows, j) {
			return true
		}
	}
	return false
}

// clearlyData: no record differs from the others in a column of values.
func clearlyData(rows [][]cell) bool {
	for j := range rowWidth(rows) {
		if values(rows, j) && rows[0][j].Kind == number && strings.ContainsAny(rows[0][j].Is, ".-") {
			return true
		}
	}
	return false
}

func rowWidth(rows [][]cell) int {
	if len(rows) == 0 {
		return 0
	}
	return len(rows[0])
}

// align says which row of which view a row that came out is; nil: it is not known, because some are put aside.
func (s *set) align(o *outcome, views []view) (at [][2]int, bad *failure) {
	var all [][2]int
	for v := range views {
		for r := range views[v].rows {
			all = append(all, [2]int{v, r})
		}
	}
	if o.bad == 0 {
		return all, nil
	}
	k := slices.IndexFunc(o.header, func(name string) bool { return name == "row_key" })
	if k < 0 {
		return nil, nil
	}
	where := map[string][2]int{}
	for _, a := range all {
		if j := slices.Index(views[a[0]].head, "row key"); j >= 0 {
			where[views[a[0]].rows[a[1]][j].Text] = a
		}
	}
	for _, row := range o.rows {
		a, known := where[row[k]]
		if !known {
			return nil, failed("column", "the row %q came out, which no file has", row)
		}
		at = append(at, a)
	}
	return at, nil
}

// checkColumns looks for the column of each file that an output column has the values of.
func (s *set) checkColumns(o *outcome, views []view, rows [][2]int) *failure {
	if rows == nil {
		return nil
	}
	found := make([]map[int]bool, len(views))
	for v := range views {
		found[v] = map[int]bool{}
	}
	columns := readable(o.proposal)
	if len(columns) != len(o.header) {
		return failed("column", "%d columns are proposed, and %d came out", len(columns), len(o.header))
	}
	for i, c := range columns {
		for v := range views {
			of := allowed(c, views[v], o.proposal.HasHeader || s.format != "csv")
			if o.byLetters() {
				of = []int{int(c.Source[0] - 'A')}
			}
			j, bad := o.sourceOf(i, c, v, &views[v], of, rows)
			if bad != nil {
				return bad
			}
			for _, j := range j {
				found[v][j] = true
			}
		}
	}
	for v, view := range views {
		for j := range rowWidth(view.rows) {
			if !found[v][j] && filled(view.rows, j) && !o.excused(view, j) {
				return failed("lost", "the values of column %d, %q, of %s did not come out, without a word", j+1,
					headAt(view, j), view.name)
			}
		}
	}
	return nil
}

func headAt(v view, j int) string {
	if j < len(v.head) {
		return v.head[j]
	}
	return ""
}

func readable(p *infer.Proposal) (out []infer.Column) {
	for _, c := range p.Columns {
		if c.Type != "" {
			out = append(out, c)
		}
	}
	return out
}

func filled(rows [][]cell, j int) bool {
	return slices.ContainsFunc(rows, func(rec []cell) bool { return rec[j].Kind > word })
}

// excused reports whether people are told that a column is left out.
func (o *outcome) excused(v view, j int) bool {
	letter := string(rune('A' + j%26))
	head := headAt(v, j)
	return o.said(infer.LeftOut, v.name) && (head == "" || o.said(infer.LeftOut, head)) ||
		head != "" && (o.said(infer.LeftOut, head) || o.said(infer.LeftOut, strconv.Quote(head))) ||
		o.said(infer.LeftOut, "column", letter, v.name)
}

// allowed are the columns of a file that an output column may have its values from: those that are
// called as it is, or without a header that of its place.
func allowed(c infer.Column, v view, headed bool) (out []int) {
	if !headed {
		return []int{c.Index}
	}
	want := strings.TrimSpace(c.Source)
	if quoted, err := unquoted(want); err == nil {
		want = strings.TrimSpace(quoted)
	}
	for j, h := range v.head {
		own := script.Identifiers([]string{h})[0]
		switch {
		case c.Source != "" && h == want, c.Source == "" && h != "" &&
			(c.Name == own || numbered.ReplaceAllString(c.Name, "") == own),
			c.Source == "" && h == "" && unnamed.MatchString(c.Name):
			out = append(out, j)
		}
	}
	return out
}

var (
	numbered = regexp.MustCompile(`_[0-9]+$`)
	unnamed  = regexp.MustCompile(`^col_[0-9]+(_[0-9]+)?$`) // another column may have the name
)

// sourceOf are the columns of a file whose values an output column has: of those that it may have.
func (o *outcome) sourceOf(i int, c infer.Column, n int, v *view, of []int, rows [][2]int) (list []int, bad *failure) {
	empty := true
	for r, a := range rows {
		empty = empty && (a[0] != n || o.isNull(o.rows[r][i]))
	}
	if empty { // what it should have is looked for behind all columns
		return nil, nil
	}
	var first string
	for _, j := range of {
		if why := o.differs(i, c, n, v, j, rows); why == "" {
			list = append(list, j)
		} else if first == "" {
			first = why
		}
	}
	if len(list) > 0 {
		return list, nil
	}
	for j := range rowWidth(v.rows) {
		if !slices.Contains(of, j) && filled(v.rows, j) && o.differs(i, c, n, v, j, rows) == "" {
			return nil, failed("column", "column %s has the values of column %d, %q, of %s", c.Name, j+1,
				headAt(*v, j), v.name)
		}
	}
	if first == "" {
		return nil, failed("column", "column %s has values in the rows of %s, which has no such column", c.Name, v.name)
	}
	return nil, failed("value", "column %s (%s): %s", c.Name, c.Type, first)
}

// isNull reports a NULL of the output; in a file of one column it may be a text.
func (o *outcome) isNull(value string) bool {
	return value == "" || len(o.header) == 1 && value == "NULL"
}

// differs says where an output column is not as a file's column; "": nowhere.
func (o *outcome) differs(i int, c infer.Column, n int, v *view, j int, rows [][2]int) string {
	for r, a := range rows {
		if a[0] != n {
			continue
		}
		var want cell // where separators are at the end, a column has no name and no values
		if j < len(v.rows[a[1]]) {
			want = v.rows[a[1]][j]
		}
		if got := o.rows[r][i]; !o.same(got, want, c) {
			return fmt.Sprintf("row %d of %s has %q, not %q", a[1]+1, v.name, got, want.Text)
		}
	}
	return ""
}

// same compares a value that came out with what a file has.
func (o *outcome) same(got string, c cell, of infer.Column) bool {
	if got == c.Text {
		return true
	}
	null := o.isNull(got)
	switch c.Kind {
	case nothing:
		return null
	case word:
		return null && slices.Contains(of.NullTexts, c.Text)
	case text: // some look like numbers or truths, or are headers that were taken for data
		if of.Type == expr.Bool {
			return strings.EqualFold(got, c.Text)
		}
		return !strings.HasPrefix(c.Text, "0") && equalNumbers(got, strings.Replace(c.Text, ",", ".", 1))
	case number:
		return got == c.Is || equalNumbers(got, c.Is) || digitsOf(got) == digitsOf(c.Text) && o.doubtsNumbers()
	case day, moment:
		return sameTime(got, c.Is)
	case truth:
		return strings.EqualFold(got, c.Is)
	}
	return false
}

// doubtsNumbers reports whether the proposal says that numbers can be read in another way.
func (o *outcome) doubtsNumbers() bool {
	return slices.ContainsFunc(o.proposal.Notes,
		func(note string) bool { return strings.Contains(note, "umbers could") })
}

// digitsOf are a number's digits without what is at its end: they are the same in all notations.
func digitsOf(s string) string {
	return strings.TrimRight(strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, s), "0")
}

func equalNumbers(a, b string) bool {
	x, ok := new(big.Rat).SetString(a)
	y, fine := new(big.Rat).SetString(b)
	return ok && fine && x.Cmp(y) == 0
}

func sameTime(got, is string) bool {
	want, err := time.Parse(time.DateTime, is)
	if err != nil {
		want, err = time.Parse(time.DateOnly, is)
	}
	if err != nil {
		return false
	}
	for _, layout := range []string{time.DateOnly, time.DateTime, "2006-01-02 15:04:05Z07", "2006-01-02 15:04:05Z07:00",
		time.RFC3339} {
		if at, err := time.Parse(layout, got); err == nil && at.Equal(want) {
			return true
		}
	}
	return false
}

// unquoted is the key that a path names which has quotes around it.
func unquoted(path string) (string, error) { return strconv.Unquote(path) }
