package infersets

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// kind is the kind of a cell's value.
type kind int

// The kinds.
const (
	nothing kind = iota // an empty cell, or one of blanks
	word                // a text that stands for a missing value
	text
	number
	day
	moment
	truth
)

// cell is one of a file.
type cell struct {
	Text  string // as the file has it
	Kind  kind
	Is    string // of a number, a day, a moment, a truth value: in plain notation
	Quote bool   // CSV: in quotes though it needs none
	Bare  bool   // CSV: quotes inside of quotes are not doubled
}

// record is one of a file: broken ones have another number of fields than the file.
type record struct {
	Cells  []cell
	Broken bool
}

// file is one of a set: what is in it, and how it is written.
type file struct {
	Name     string
	Titles   [][]cell // records above the header
	Header   []cell   // nil: there is none
	Records  []record
	Width    int
	trailing int // CSV: a separator ends 1: all records, 2: those of data

	separator, lineEnd, encoding, pack string
	bom, open                          bool // open: the last line has no end
	list                               bool // JSON: records are in a list
	types                              []string
}

// set holds the files that are read together.
type set struct {
	seed   uint64
	format string
	files  []file
	keyed  bool // the first column of the first file, "row key" of all, tells rows apart
}

// notation is the notation of numbers.
type notation struct{ decimal, thousands string }

// gen makes sets.
type gen struct {
	*rand.Rand
	format  string
	western bool // texts are of characters that latin-1 has
	numbers notation
	dayLast bool // of days with slashes the month comes first
}

func pick[T any](g *gen, some ...T) T { return some[g.IntN(len(some))] }

// one reports true once in n times.
func (g *gen) one(n int) bool { return g.IntN(n) == 0 }

// spec is a column that the files of a set have, each in its way.
type spec struct {
	header cell
	kind   string
	gaps   int // so many of a hundred cells are empty
	word   string
}

func plainText(s string) cell { return cell{Text: s, Kind: text} }

// kinds of columns.
var kinds = []string{"int", "int", "ids", "long", "cents", "cents", "thirds", "rates", "grouped", "exponents",
	"zeros", "plus",
	"year", "iso", "dotted", "slashed", "compact", "moment", "zoned", "bool", "bits", "words", "words",
	"names", "notes", "codes", "odd",
	"nothing", "blanks"}

// csvOnly are kinds that other formats have no notation for, or one that is a text there.
var csvOnly = []string{"grouped", "exponents", "zeros", "plus", "dotted", "slashed", "compact", "zoned", "blanks"}

// value makes a cell of a kind of columns.
func (g *gen) value(kind string) cell {
	switch kind {
	case "int":
		return g.number(int64(g.IntN(2000)-500), 0, false)
	case "ids":
		return g.number(10_000_000_000_000_000+g.Int64N(9_000_000_000_000_000)*10+1, 0, false)
	case "long":
		digits := fmt.Sprintf("1%010d%010d", g.IntN(1e10), g.IntN(1e10))
		return cell{Text: digits, Kind: number, Is: digits}
	case "cents":
		return g.number(int64(g.IntN(1_000_000)-1000), 2, false)
	case "thirds":
		return g.number(int64(g.IntN(1_000_000)), 3, false)
	case "rates":
		return g.number(int64(g.IntN(100_000)), 1+g.IntN(5), false)
	case "grouped":
		return g.number(g.Int64N(10_000_000), pick(g, 0, 2), true)
	case "exponents":
		s := fmt.Sprintf("%d.%de%d", g.IntN(10), g.IntN(100), g.IntN(40)-20)
		return cell{Text: strings.Replace(s, ".", g.numbers.decimal, 1), Kind: number, Is: s}
	case "zeros":
		return plainText(fmt.Sprintf("%05d", g.IntN(20_000)))
	case "plus":
		n := g.IntN(100)
		return cell{Text: fmt.Sprintf("+%d", n), Kind: number, Is: fmt.Sprint(n)}
	case "year":
		return g.number(int64(1950+g.IntN(90)), 0, false)
	case "bits":
		return g.number(int64(g.IntN(2)), 0, false)
	case "bool":
		is := pick(g, "true", "false")
		return cell{Text: pick(g, is, is, strings.ToUpper(is)), Kind: truth, Is: is}
	case "nothing":
		return cell{}
	case "blanks":
		return cell{Text: pick(g, "", " ", "  ")}
	}
	if c, ok := g.time(kind); ok {
		return c
	}
	return plainText(g.text(kind))
}

// number writes n with so many of its digits behind the point.
func (g *gen) number(n int64, scale int, grouped bool) cell {
	sign := ""
	if n < 0 {
		sign, n = "-", -n
	}
	digits := fmt.Sprintf("%0*d", scale+1, n)
	whole, fraction := digits[:len(digits)-scale], digits[len(digits)-scale:]
	is := sign + whole
	if grouped && g.numbers.thousands != "" {
		for at := len(whole) - 3; at > 0; at -= 3 {
			whole = whole[:at] + g.numbers.thousands + whole[at:]
		}
	}
	out := cell{Text: sign + whole, Kind: number, Is: is}
	if scale > 0 {
		out.Text, out.Is = out.Text+g.numbers.decimal+fraction, out.Is+"."+fraction
	}
	return out
}

// time makes a day or a moment.
func (g *gen) time(kind string) (cell, bool) {
	y, m, d := 1960+g.IntN(80), 1+g.IntN(12), 1+g.IntN(28)
	is := fmt.Sprintf("%04d-%02d-%02d", y, m, d)
	switch kind {
	case "iso":
		return cell{Text: is, Kind: day, Is: is}, true
	case "dotted":
		return cell{Text: fmt.Sprintf("%02d.%02d.%d", d, m, y), Kind: day, Is: is}, true
	case "slashed":
		if g.dayLast {
			d, m = m, d
		}
		return cell{Text: fmt.Sprintf("%02d/%02d/%d", d, m, y), Kind: day, Is: is}, true
	case "compact":
		s := strings.ReplaceAll(is, "-", "")
		return cell{Text: s, Kind: number, Is: s}, true
	case "moment":
		is += fmt.Sprintf(" %02d:%02d:%02d", g.IntN(24), g.IntN(60), g.IntN(60))
		return cell{Text: is, Kind: moment, Is: is}, true
	case "zoned":
		is += fmt.Sprintf(" %02d:%02d:%02d", g.IntN(24), g.IntN(60), g.IntN(60))
		return cell{Text: strings.Replace(is, " ", "T", 1) + "Z", Kind: moment, Is: is}, true
	}
	return cell{}, false
}

// text makes one of a kind of columns.
func (g *gen) text(kind string) string {
	words := []string{"Bern", "Thun", "north", "a", "x", "Ann", "Bob", "left", "right-hand", "first of all"}
	switch kind {
	case "names":
		words = append(words, "Zürich", "Genève", "Ærø", "naïve café", "Müller & Söhne", "O'Brien", `Ann "the" Boss`,
			"Smith, John")
		if !g.western {
			words = append(words, "東京", "Łódź", "🙂", "e\u0301")
		}
	case "notes":
		words = append(words, "two\nlines", "a;b", "a,b", "x\ty", `5" pipe`, `"quoted"`, `say ""`, "| bar", "1,5",
			"line\n\nline", " blank first", "blank last ", "a^b~c")
	case "codes":
		return fmt.Sprintf("%c%03d", 'A'+g.IntN(26), g.IntN(1000))
	case "odd":
		words = []string{"5-", "(5)", "$1,234.50", "5%", "1 2", "12:30", "2024-W05", "1e", "0x1F",
			"1_000", "--5", "1.2.3", "10.0.0.1", "=1+1", "TRUE?", "31.02.2024", "2024-13-01", "#x", "{y}"}
	}
	return pick(g, words...)
}

// nullWords are texts that people write for a missing value.
var nullWords = []string{"NULL", "NA", "N/A", "n/a", "-", "None", "nan", `\N`, "unknown", "?"}

// cellOf makes a cell of a column.
func (g *gen) cellOf(s spec, kind string) cell {
	switch {
	case g.IntN(100) < s.gaps:
		return cell{}
	case s.word != "" && g.one(6):
		return cell{Text: s.word, Kind: word}
	}
	c := g.value(kind)
	c.Quote, c.Bare = g.one(8), g.one(10)
	return c
}

// headers that files have.
var headers = map[string][]string{
	"plain": {"id", "name", "price", "qty", "city", "day", "total", "code", "note", "amount", "Unit Price", "Sold on",
		"First Name", "a_b", "A b"},
	"values": {"2019", "2020", "2021", "1960", "2024-01", "2024-02", "2024-01-31", "1.5", "100", "true", "Q1 2024",
		"Jan-24", "007", "10%"},
	"letters": {"größe", "prix payé", "été", "Größe (m²)", "Straße", "ÅÄÖ", "año"},
	"wide":    {"価格", "数量", "Цена", "Имя", "Größe 🙂"},
	"words": {"select", "from", "order", "group", "table", "index", "row", "rowid", "count(*)", "c0",
		"c1", "null", "NULL", "nan", "column", "col_1", "_1",
		"value", "wf_x", "true", "r", "w", "type", "time", "date", "int", "file_name", "__o0", "func"},
	"odd": {`Size "cm"`, `5" pipe`, "a,b", "x;y", "two\nlines", "it's", "#no", "%", "a.b", "a[0]", "r.x",
		"N/A", "-", "?", "x: y", "y # z", "a|b", "$", "*", "(net)", "{x}", `\`},
}

// headerOf makes a header.
func (g *gen) headerOf() cell {
	of := "plain"
	switch n := g.IntN(20); {
	case n < 2:
		of = "values"
	case n < 3:
		of = "letters"
	case n < 4 && !g.western:
		of = "wide"
	case n < 6:
		of = "words"
	case n < 7:
		of = "odd"
	}
	return cell{Text: pick(g, headers[of]...), Kind: text, Quote: g.one(6), Bare: g.one(4)}
}

// specs are the columns of a set.
func (g *gen) specs() (out []spec) {
	var taken []string
	n := 1 + g.IntN(6)
	if g.one(20) {
		n = 15
	}
	for range n {
		s := spec{header: g.headerOf(), kind: g.kind(), gaps: pick(g, 0, 0, 0, 10, 50)}
		for slices.Contains(taken, strings.ToLower(s.header.Text)) {
			s.header.Text += pick(g, "2", "_x", " b")
		}
		if taken = append(taken, strings.ToLower(s.header.Text)); g.one(8) {
			s.word = pick(g, nullWords...)
		}
		out = append(out, s)
	}
	return out
}

// kind chooses one that the format can hold.
func (g *gen) kind() string {
	for {
		if k := pick(g, kinds...); g.format == "csv" || !slices.Contains(csvOnly, k) {
			return k
		}
	}
}
