package expr

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"thalweg/internal/base/sqltext"
)

// DuckDB computes an expression for 2,048 rows at a time on each thread and
// counts none of their texts against its memory limit. So what can make texts
// grow looks at the size before it makes one. An expression of which no text
// can outgrow the limit, which its fields' lengths tell, is computed without.

// Limits of texts that functions make, in bytes.
const (
	textBytesMin = 16 << 10 // of one text, however small the budget
	textBytesMax = 16 << 20 // of one text, however large the budget
	// textCopies divides a thread's share into texts of a row: an expression with more functions that make
	// texts grow gets shorter ones.
	textCopies = 4
	vectorRows = 2048 // rows that DuckDB computes at a time
	// constantBytesMax bounds a text that is put together when a script is loaded.
	constantBytesMax = 1 << 20
	// constantPartBytes limits what literals and widths may add to a text without a check of its size.
	constantPartBytes = 4 << 10
	// repeatsMax limits how often one field may occur in a text without a check of its size.
	repeatsMax = 4
	// scalarBytes is more than what is printed of a value that is no text; a
	// float has up to 309 digits before the point.
	scalarBytes = 400
	// quotedBytes is the largest number of bytes that %q and %x print for one byte.
	quotedBytes = 10
	// layoutGrowth is the largest number of bytes printed for one byte of a layout: a zone's name of three
	// letters.
	layoutGrowth = zoneNameBytes/3 + 8
	// sourceGrowth times the length of the fields that it is made of may a text
	// have in any case: what is there already can be worked on. (JSON with its
	// quotes as &quot; has little more than twice its length.)
	sourceGrowth = 3
)

// TextBytes is the limit of a text for an engine with that much memory.
func TextBytes(memoryBytes int64, threads int) int64 {
	return min(max(memoryBytes/int64(vectorRows*textCopies*max(threads, 1)), textBytesMin), textBytesMax)
}

// textMacros are the macros of the limits.
func textMacros(textBytes int64) []string {
	return []string{
		// k functions of one expression can make texts grow.
		fmt.Sprintf("CREATE OR REPLACE TEMP MACRO thalweg_text_limit(k) AS %d // greatest(k, %d)", textBytes*textCopies,
			textCopies),
		`CREATE OR REPLACE TEMP MACRO thalweg_bytes(x) AS coalesce(strlen(x), 0)`,
		// Length of what thalweg_replace gives, which it does not make.
		`CREATE OR REPLACE TEMP MACRO thalweg_replaced_bytes(x, old, new) AS
			CASE WHEN old = '' THEN strlen(x) + (length(x) + 1) * strlen(new)
				WHEN strlen(new) <= strlen(old) THEN strlen(x)
				ELSE strlen(x) + (strlen(x) - strlen(replace(x, old, ''))) // strlen(old) * (strlen(new) - strlen(old)) END`,
		`CREATE OR REPLACE TEMP MACRO thalweg_too_long(bytes, most, source) AS error(concat('` +
			raisedMarker + RaisedIn + raisedEnd + `', source, '` + raisedEnd + `', ` + tooLongSQL + `))`,
	}
}

// tooLongText ends the message about a text that is too long, behind the numbers.
const tooLongText = "are the most that its share of the memory holds (give more memory, or fewer cores)"

const tooLongSQL = `'the text would have ', bytes, ' bytes, and ', most, ' ` + tooLongText + `'`

// tooLong is thalweg_too_long of functions that are written in Go.
func tooLong(bytes, most int64, source string) error {
	r := Raised{Kind: RaisedIn, Subject: source}
	return fmt.Errorf("%sthe text would have %d bytes, and %d %s", r.head(), bytes, most, tooLongText)
}

// grows reports whether n makes a text that can be much longer than what it is made of.
func (n *node) grows() bool {
	switch {
	case n.op == opConcat:
		return longSum(n.args, 0)
	case n.op != opCall:
		return false
	}
	switch n.fn.name {
	case "strings.ReplaceAll":
		from, a := n.args[1].val.(string)
		to, b := n.args[2].val.(string)
		return !a || !b || from == "" || len(to) > len(from)
	case "fmt.Sprintf":
		pieces, native := n.aux.([]piece)
		return !native || longSum(n.args[1:], constantBytes(pieces))
	}
	return false
}

// constantBytes returns the most bytes that a format's own text and widths take.
func constantBytes(pieces []piece) int {
	return formatBytes(pieces, func(v *verb) int { return max(v.width, v.precision, 0) })
}

// leastBytes returns the least bytes that a format's own text and widths take.
func leastBytes(pieces []piece) int {
	return formatBytes(pieces, func(v *verb) int { return max(v.width, 0) })
}

func formatBytes(pieces []piece, ofVerb func(*verb) int) int {
	total := 0
	for _, p := range pieces {
		total += len(p.literal)
		if p.verb != nil {
			total += ofVerb(p.verb)
		}
	}
	return total
}

// longSum reports whether the texts joined can be much longer than their fields.
func longSum(parts []*node, constant int) bool {
	repeats := map[Ref]int{}
	var walk func(n *node)
	walk = func(n *node) {
		if s, ok := n.val.(string); ok {
			constant += len(s)
		}
		if n.op == opRef {
			repeats[n.ref]++
		}
		for _, a := range n.args {
			if a.typ == String {
				walk(a)
			}
		}
	}
	for _, p := range parts {
		if p.typ == String {
			walk(p)
		}
	}
	for _, count := range repeats {
		if count > repeatsMax {
			return true
		}
	}
	return constant > constantPartBytes
}

// growing counts the parts of n that can make texts grow.
func growing(n *node) int {
	count := 0
	if n.grows() {
		count++
	}
	for _, a := range n.args {
		count += growing(a)
	}
	return count
}

// guard selects how the length of growing texts is checked.
type guard int

const (
	guardAround guard = iota // nothing has been decided: at the first such text
	guardOff                 // all are short enough
	guardOn                  // each is looked at
)

// guarded renders the outermost text that can grow, with all inside of it.
func (r *renderer) guarded(n *node, render func(*node) string) string {
	size, share := r.size(n), growing(n)
	defer func(limit string) { r.guard, r.limit = guardAround, limit }(r.limit)
	sources := map[string]bool{}
	r.sources(n, sources)
	limit := "thalweg_text_limit(" + strconv.Itoa(share) + ")"
	r.limit = limit
	if len(sources) > 0 {
		r.limit = "greatest(" + limit + ", " + strconv.Itoa(sourceGrowth) + " * " +
			sum(slices.Sorted(maps.Keys(sources))) + ")"
	}
	r.guard = guardOff
	short := render(n)
	if len(size.per) == 0 && size.base <= float64(textBytesMin*textCopies/max(share, textCopies)) {
		return short
	}
	r.guard = guardOn
	return "CASE WHEN " + size.sql() + " > " + limit + " THEN " + render(n) + " ELSE " + short + " END"
}

// sources collects the lengths of the fields that n is made of.
func (r *renderer) sources(n *node, out map[string]bool) {
	if n.typ == String && (n.op == opRef || n.op == opRaw) {
		out["thalweg_bytes("+r.sql(n)+")"] = true
	}
	for _, a := range n.args {
		r.sources(a, out)
	}
}

// sizeMax stands for every larger size, so that none becomes infinite.
const sizeMax = math.MaxFloat32

// size is a length in bytes: a constant and multiples of lengths that are known by row only.
type size struct {
	base float64
	per  map[string]float64
}

func (s *size) add(other size, times float64) {
	s.base = min(s.base+other.base*times, sizeMax)
	for length, count := range other.per {
		if s.per == nil {
			s.per = map[string]float64{}
		}
		s.per[length] = min(s.per[length]+count*times, sizeMax)
	}
}

// times is the product of two sizes.
func (s size) times(other size) size {
	if len(other.per) == 0 {
		out := size{}
		out.add(s, other.base)
		return out
	}
	if len(s.per) == 0 {
		return other.times(s)
	}
	return size{per: map[string]float64{"(" + s.sql() + " * " + other.sql() + ")": 1}}
}

func (s size) sql() string {
	var parts []string
	if s.base > 0 {
		parts = append(parts, sqltext.Float(s.base))
	}
	for _, length := range slices.Sorted(maps.Keys(s.per)) {
		if count := s.per[length]; count == 1 {
			parts = append(parts, "CAST("+length+" AS DOUBLE)")
		} else {
			parts = append(parts, length+" * "+sqltext.Float(count))
		}
	}
	return sum(parts)
}

// sum adds pairwise, so that DuckDB's parser has no depth to complain of.
func sum(parts []string) string {
	switch len(parts) {
	case 0:
		return "0"
	case 1:
		return parts[0]
	}
	half := len(parts) / 2
	return "(" + sum(parts[:half]) + " + " + sum(parts[half:]) + ")"
}

// size bounds the lengths of all texts that are made on the way to n: it is
// never less than that of a part.
func (r *renderer) size(n *node) size {
	switch {
	case n.op == opConst:
		if s, ok := n.val.(string); ok {
			return size{base: float64(len(s))}
		}
		return size{base: scalarBytes}
	case n.op == opRef || n.op == opRaw:
		if n.typ == String {
			return size{per: map[string]float64{"thalweg_bytes(" + r.sql(n) + ")": 1}}
		}
		return size{base: scalarBytes}
	case n.op == opCall && n.fn.name == "strings.ReplaceAll":
		return r.replacedSize(n)
	case n.op == opCall && n.fn.name == "fmt.Sprintf":
		return r.printedSize(n)
	}
	var out size
	if n.op != opConcat {
		out.base = scalarBytes
	}
	each := 1.0
	if n.op == opCall && n.fn.name == "time.Format" {
		each = layoutGrowth
	}
	for _, a := range n.args {
		out.add(r.size(a), each)
	}
	return out
}

func (r *renderer) replacedSize(n *node) size {
	s, from, to := r.size(n.args[0]), r.size(n.args[1]), r.size(n.args[2])
	old, literal := n.args[1].val.(string)
	growth := size{base: 1}
	switch {
	case !literal || old == "":
		s.base++ // new stands at the end too
		growth.add(to, 1)
	case len(to.per) == 0:
		growth.base = max(1, to.base/float64(len(old)))
	default:
		growth.add(to, 1/float64(len(old)))
	}
	out := s.times(growth)
	out.add(from, 1)
	out.add(to, 1)
	return out
}

func (r *renderer) printedSize(n *node) size {
	var args size
	for _, a := range n.args[1:] {
		args.add(r.size(a), 1)
		args.base += scalarBytes
	}
	pieces, native := n.aux.([]piece)
	if native {
		out := size{base: float64(constantBytes(pieces))}
		out.add(args, 2) // %x
		return out
	}
	verbs := size{base: 1}
	if format, literal := n.args[0].val.(string); literal {
		verbs.base += float64(strings.Count(format, "%"))
	} else {
		verbs.add(r.size(n.args[0]), 1)
	}
	out := size{base: MaxFormatWidth}
	out.add(args, quotedBytes)
	out = out.times(verbs)
	out.add(r.size(n.args[0]), 1)
	return out
}

// checked renders made where a text of that many bytes may be made.
func (r *renderer) checked(n *node, bytes, made string) string {
	tooLong := "thalweg_too_long(" + bytes + ", " + r.limit + ", " + sqltext.String(shorten(n.text)) + ")"
	return "CASE WHEN " + bytes + " > " + r.limit + " THEN " + tooLong + " ELSE " + made + " END"
}

// textPart is a piece of a text that is put together.
type textPart struct {
	sql  string
	from *node // what it was made of; nil: text of a format
	bare bool  // it is the text of from, as it is
}

// checkedSum joins the texts parts after adding up their lengths; least is
// what they have in any case.
func (r *renderer) checkedSum(n *node, parts []textPart, least int, join func(parts []string) string) string {
	texts, lengths := make([]string, len(parts)), make([]string, len(parts))
	var from func(i int) string
	from = func(i int) string {
		if i == len(parts) {
			made := r.checked(n, sum(lengths), join(texts))
			if least == 0 {
				return made
			}
			return r.checked(n, strconv.Itoa(least), made)
		}
		p := parts[i]
		return r.bind(p.sql, p.from == nil || growing(p.from) == 0, func(v string) string {
			texts[i], lengths[i] = v, "thalweg_bytes("+v+")"
			if p.bare && v == p.sql {
				lengths[i] = r.length(p.from)
			}
			return from(i + 1)
		})
	}
	return from(0)
}

// length renders the length of a text without making it, where that can be.
func (r *renderer) length(n *node) string {
	switch {
	case n.op == opConcat:
		lengths := make([]string, len(n.args))
		for i, a := range n.args {
			lengths[i] = r.length(a)
		}
		return sum(lengths)
	case n.op == opCall && n.fn.group == "Choice":
		return "coalesce(" + r.choice(n, r.length) + ", 0)"
	}
	return "thalweg_bytes(" + r.sql(n) + ")"
}

// constantText makes n a constant that is no longer than it may be.
func (n *node) constantText(bytes int, text func() string) *Error {
	if bytes > constantBytesMax {
		return n.at.errorf("the text would have %d bytes, a constant has at most %d", bytes, constantBytesMax)
	}
	n.constant(text())
	return nil
}
