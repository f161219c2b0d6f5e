package infersets

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// generate makes the set of a seed.
func generate(seed uint64) *set {
	g := &gen{Rand: rand.New(rand.NewPCG(seed, 47)), dayLast: true}
	s := &set{seed: seed, keyed: !g.one(4)}
	s.format = pick(g, "csv", "csv", "csv", "csv", "csv", "csv", "json", "json", "excel", "parquet")
	g.format, g.dayLast = s.format, g.one(3)
	form := g.form()
	specs, rows := g.specs(), g.rows()
	files := 1 + g.IntN(4)
	headed := s.format != "csv" || !g.one(12)
	titled := g.one(12) && s.format != "json" && s.format != "parquet"
	for n := range files {
		f := form
		f.Name = g.name(n, s.format)
		g.vary(&f)
		g.fill(&f, g.columnsOf(specs, n), max(0, rows+g.IntN(3)-1), s, n, headed)
		if titled && !g.one(6) {
			g.titles(&f)
		}
		s.files = append(s.files, f)
	}
	return s
}

// rows is about how many a file has.
func (g *gen) rows() int {
	switch n := g.IntN(100); {
	case n < 5:
		return 0
	case n < 30:
		return 1 + g.IntN(3)
	case n < 85:
		return 3 + g.IntN(17)
	case n < 99:
		return 20 + g.IntN(180)
	}
	return 1000 + g.IntN(3000)
}

// form chooses the format of a set's files, and with it the notation of numbers.
func (g *gen) form() file {
	f := file{separator: ",", lineEnd: "\n"}
	g.numbers = notation{".", ","}
	if g.format != "csv" {
		f.list = g.one(2)
		return f
	}
	f.separator = pick(g, ",", ",", ";", ";", "\t", "|")
	f.lineEnd = pick(g, "\n", "\n", "\r\n")
	f.encoding = pick(g, "", "", "", "", "", "utf-16le", "utf-16be", "latin-1", "windows-1252")
	f.bom = g.one(5) || strings.HasPrefix(f.encoding, "utf-16")
	if g.western = f.encoding == "latin-1" || f.encoding == "windows-1252"; g.western {
		f.bom = false
	}
	g.numbers.thousands = pick(g, "", ",", "'", " ")
	if f.separator != "," && g.one(2) {
		g.numbers = notation{",", pick(g, "", ".", ".", " ", "'")}
	}
	return f
}

// vary makes a file that is written otherwise than the others.
func (g *gen) vary(f *file) {
	f.open = g.one(5)
	f.pack = pick(g, "", "", "", "", "", "", "", "gzip", "zstd")
	if g.format != "csv" {
		if g.format != "json" {
			f.pack = ""
		}
		return
	}
	if g.one(25) {
		f.separator = pick(g, ",", ";", "\t")
	}
	if g.one(25) && f.encoding == "" {
		f.bom = !f.bom
	}
	if g.one(40) && f.encoding == "" {
		f.encoding, f.bom = "utf-16le", true
	}
	if g.one(20) {
		f.lineEnd = "\r\n"
	}
	if g.one(15) {
		f.trailing = 1 + g.IntN(2)
	}
}

// name of the file of a number.
func (g *gen) name(n int, format string) string {
	end := map[string]string{"csv": ".csv", "json": ".ndjson", "excel": ".xlsx", "parquet": ".parquet"}[format]
	base := fmt.Sprintf("f%d", n)
	if g.one(15) {
		base = pick(g, "data ", "größe_", "a(b)", "2024-", "a[1]", "select", "x'y", "n;m,") + fmt.Sprint(n)
	}
	switch {
	case format == "csv":
		end = pick(g, ".csv", ".csv", ".csv", ".tsv", ".txt", "")
	case format == "json":
		end = pick(g, ".ndjson", ".json", ".jsonl", ".txt")
	}
	return base + end
}

// columnsOf are the columns of the file of a number: in another order, without some, with others.
func (g *gen) columnsOf(specs []spec, n int) []spec {
	out := slices.Clone(specs)
	if n > 0 && g.one(3) {
		g.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	}
	if n > 0 && g.one(5) && len(out) > 1 {
		out = slices.Delete(out, 0, 1)
	}
	for i := range out {
		g.varyColumn(&out[i], n)
	}
	if g.one(6) { // a column more: named, doubled, or without a name
		s := spec{header: g.headerOf(), kind: g.kind()}
		switch n := g.IntN(3); {
		case g.format == "json" || g.format == "parquet":
		case n == 0:
			s.header = cell{}
		case n == 1:
			s.header = pick(g, out...).header
		}
		out = slices.Insert(out, g.IntN(len(out)+1), s)
	}
	return g.distinct(out)
}

// varyColumn makes a column of a file that is not quite as in the others.
func (g *gen) varyColumn(s *spec, n int) {
	if n > 0 && g.one(8) {
		s.kind = map[string]string{"int": "cents", "cents": "names", "thirds": "cents"}[s.kind]
		if s.kind == "" || g.one(4) {
			s.kind = g.kind()
		}
	}
	if g.one(20) {
		s.kind = "nothing"
	}
	switch {
	case g.one(30) && g.format == "csv", g.one(30) && g.format == "excel":
		s.header.Text = ""
	case g.one(30):
		s.header.Text = strings.ToUpper(s.header.Text)
	case g.one(30):
		s.header.Text = pick(g, " ", "") + s.header.Text + pick(g, " ", "")
	}
}

// distinct leaves out columns that the format cannot hold beside others of the same name.
func (g *gen) distinct(list []spec) []spec {
	if g.format == "csv" || g.format == "excel" {
		return list
	}
	taken := map[string]bool{}
	return slices.DeleteFunc(list, func(s spec) bool {
		key := strings.ToLower(s.header.Text)
		gone := taken[key] || key == ""
		taken[key] = true
		return gone
	})
}

// fill makes the header and the records of a file.
func (g *gen) fill(f *file, columns []spec, rows int, s *set, n int, headed bool) {
	if s.keyed {
		columns = slices.Insert(slices.Clone(columns), 0, spec{header: plainText("row key"), kind: "key"})
	}
	if f.Width = len(columns); f.Width == 1 {
		f.trailing = 0 // such a separator is the only one
	}
	for _, c := range columns {
		f.types = append(f.types, c.kind)
		f.Header = append(f.Header, c.header)
	}
	for r := range rows {
		rec := record{}
		for _, c := range columns {
			value := cell{Text: fmt.Sprintf("f%dr%d", n, r), Kind: text}
			if c.kind != "key" {
				value = g.cellOf(c, c.kind)
			}
			if c.kind == "int" && g.one(400) {
				value = plainText("about ten")
			}
			if s.format == "excel" && c.kind == "long" && value.Kind == number {
				value.Kind = text // no number of a sheet has so many digits
			}
			if s.format == "parquet" && value.Is == "" && typeOf(c.kind) != "VARCHAR" {
				value = cell{}
			}
			rec.Cells = append(rec.Cells, value)
		}
		f.Records = append(f.Records, rec)
		if s.format == "csv" && len(columns) > 1 && rows > 5 && g.one(400) {
			f.Records = append(f.Records, record{Broken: true, Cells: []cell{plainText("Total of all")}})
		}
	}
	if s.format == "csv" && !headed {
		f.Header = nil
	}
}

// titles puts records above the header.
func (g *gen) titles(f *file) {
	lines := []string{"Report of 2024", "# made by a program", "Sales, by shop", `Size "cm"`, "printed 2024-01-31",
		`"Quoted" title`}
	for range 1 + g.IntN(3) {
		rec := []cell{{Text: pick(g, lines...), Kind: text, Quote: g.one(3), Bare: g.one(2)}}
		for g.one(2) && len(rec) < f.Width {
			rec = append(rec, cell{})
		}
		f.Titles = append(f.Titles, rec)
	}
}
