package infer

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// columnsOf renders what was proposed for all columns.
func columnsOf(p *Proposal) (out []string) {
	for _, c := range p.Columns {
		optional := ""
		if c.Optional {
			optional = " optional"
		}
		out = append(out, c.Name+optional+" "+one(c))
	}
	return out
}

// asked is the doubt about numbers that can be read in two ways and stay text.
const asked = "its numbers have decimal digits, or separators between thousands: look whether; as it is a text, " +
	"nothing is lost (see decimal and thousands of csv)"

// TestFormsOfNumbers: one file has one way to write numbers, which all of its columns show.
func TestFormsOfNumbers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text               string
		decimal, thousands string
		notes              int
		want               []string
	}{
		"points": {"a;b\n1.50;2\n2.25;3\n", "", "", 1, []string{"a decimal2: 1.50 … 2.25", "b int: 2 … 3"}},
		"commas": {"a;b\n1,5;2\n2,25;3\n", ",", "", 1, []string{"a decimal2: 1.50 … 2.25", "b int: 2 … 3"}},
		"points, thousands": {"a;b\n1.234,50;2\n-2.000.000,25;3\n", ",", ".", 1,
			[]string{"a decimal2: -2000000.25 … 1234.50",
				"b int: 2 … 3"}},
		"quoted": {"a,b\n\"1,234.50\",2\n\"2,000,000.25\",3\n", "", ",", 1,
			[]string{"a decimal2: 1234.50 … 2000000.25", "b int: 2 … 3"}},
		"spaces": {"a;b\n1\u00a0234,50;2\n2 000 000,25;3\n", ",", " ", 1,
			[]string{"a decimal2: 1234.50 … 2000000.25", "b int: 2 … 3"}},
		"Swiss": {"a;b\n1'234.50;2\n2\u2019000'000.25;3\n", "", "'", 1,
			[]string{"a decimal2: 1234.50 … 2000000.25", "b int: 2 … 3"}},
		"one column shows": {"a;b\n1.234;1.001,50\n2.000;2,5\n", ",", ".", 1,
			[]string{"a int: 1234 … 2000", "b decimal2: 2.50 … 1001.50"}},
		"nothing shows": {"a;b\n1.234;1,50\n2.000;2,5\n", ",", "", 1,
			[]string{`a string: text, 2 different in 2 rows, "1.234" … "2.000"; ` + asked, "b decimal2: 1.50 … 2.50"}},
		"millions show": {"a;b\n1.234;1,50\n2.000.000;2,5\n", ",", ".", 1,
			[]string{"a int: 1234 … 2000000", "b decimal2: 1.50 … 2.50"}},
		"small ones show": {"a;b\n" + strings.Repeat("1.234;1,50\n", 60) + "7;2,5\n", ",", ".", 1,
			[]string{"a int: 7 … 1234", "b decimal2: 1.50 … 2.50"}},
		"others are bare": {"a;b\n1.234;1500,50\n2.000;2,5\n", ",", "", 1,
			[]string{`a string: text, 2 different in 2 rows, "1.234" … "2.000"; ` + asked,
				"b decimal2: 2.50 … 1500.50"}},
		"commas, points": {"a,b\n\"1,234\",1.5\n\"2,000\",2.25\n", "", ",", 2,
			[]string{"a int: 1234 … 2000", "b decimal2: 1.50 … 2.25"}},
		"commas, bare": {"a,b\n\"1,234\",1500.5\n\"2,000\",2.25\n", "", "", 1,
			[]string{`a string: text, 2 different in 2 rows, "1,234" … "2,000"; ` + asked,
				"b decimal2: 2.25 … 1500.50"}},
		"thousands or not": {"a;b\n1,234;x\n2,000;y\n", ",", "", 2, []string{"a decimal(18,3): 1.234 … 2.000",
			`b string: text, 2 different in 2 rows, "x" … "y"`}},
		"points or not": {"a;b\n1.234;x\n2.500;y\n", "", "", 2, []string{"a decimal(18,3): 1.234 … 2.500",
			`b string: text, 2 different in 2 rows, "x" … "y"`}},
		"points or not, n": {"a;b\n1.234;1\n2.500;2000\n", "", "", 2, []string{"a decimal(18,3): 1.234 … 2.500",
			"b int: 1 … 2000"}},
		"points, two ways": {"a;b\n1.234;1\n2.50;2000\n", "", "", 1, []string{"a float: 1.234 … 2.5",
			"b int: 1 … 2000"}},
		"a rate": {"a;b\n0.234;1\n0.500;2000\n", "", "", 1, []string{"a decimal(18,3): 0.234 … 0.500",
			"b int: 1 … 2000"}},
		"points, commas": {"a,b\n1.234,1\n2.500,2000\n", "", "", 1, []string{"a decimal(18,3): 1.234 … 2.500",
			"b int: 1 … 2000"}},
		"versions": {"a;b\n1.234;1\nx;2000\n", "", "", 1,
			[]string{`a string: text, 2 different in 2 rows, "1.234" … "x"; not decimal(18,3) because of 1 value, ` +
				`e.g. "x" in line 3`, "b int: 1 … 2000"}},
		"whole": {"a;b\n1234;1\n2500;2000\n", "", "", 1, []string{"a int: 1234 … 2500", "b int: 1 … 2000"}},
		"no groups": {"a;b\n12,34,567;x\n1,2,3;y\n", "", "", 1,
			[]string{`a string: text, 2 different in 2 rows, "1,2,3" … "12,34,567"`,
				`b string: text, 2 different in 2 rows, "x" … "y"`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := Files(t.Context(), []string{write(t, "in.csv", c.text)}, options(t))
			require.NoError(t, err)
			require.Equal(t, c.want, columnsOf(p))
			require.Equal(t, []string{c.decimal, c.thousands}, []string{p.Decimal, p.Thousands})
			require.Len(t, p.Notes, c.notes, p.Notes)
			loads(t, p)
		})
	}
}

// TestDaysOfNeighbours: a column whose days could be months has the order of the others.
func TestDaysOfNeighbours(t *testing.T) {
	t.Parallel()
	p, err := Files(t.Context(), []string{write(t, "in.csv", "a,b\n03/02/2024,31/12/2023\n04/05/2024,01/02/2024\n")},
		options(t))
	require.NoError(t, err)
	require.Equal(t, []string{"a date 02/01/2006: 2024-02-03 … 2024-05-04",
		"b date 02/01/2006: 2023-12-31 … 2024-02-01"},
		columnsOf(p))
}

// TestFilesTogether: what differs between files is said, and the types read all of them.
func TestFilesTogether(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"1.csv": "id,price\n1,1.50\n2,\n",
		"2.csv": "price,id,note\n2.5,x3,later\n3,4,\n",
		"3.csv": "id;price\n1;2\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	p, err := Files(t.Context(), []string{filepath.Join(dir, "*.csv")}, options(t))
	require.NoError(t, err)
	in := func(name string) string { return filepath.Join(dir, name) }
	require.Equal(t, []string{
		`id string: text, 4 different in 4 rows, "1" … "x3"; not int because of 1 value, e.g. "x3" in line 2 of ` +
			in("2.csv") + "; int in " + in("1.csv"),
		"price decimal2?: 1.50 … 3.00; 1 empty",
		`note optional string: text, 1 different in 2 rows, "later" … "later"; not in ` + in("1.csv") + "; 1 empty",
	}, columnsOf(p)[:3])
	require.Equal(t, int64(4), p.Rows)
	require.Contains(t, p.Notes[len(p.Notes)-1], "3.csv is left out: its fields are separated by ';'")
	loads(t, p)

	_, err = Files(t.Context(), []string{filepath.Join(dir, "*.txt")}, options(t))
	require.ErrorContains(t, err, "no file matches")
}

// TestBadRows: a few values of another kind and broken records are put aside, and counted
// as a run does.
func TestBadRows(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("n,day,text\n")
	for i := range 500 {
		fmt.Fprintf(&b, "%d,2024-01-%02d,x\n", i, i%31+1)
	}
	b.WriteString("many,2024-01-01,x\n1,2024-02-31,x\n2,2024-01-01\n3,2024-01-01,\"open\n4,2024-01-01,x\n")
	p, err := Files(t.Context(), []string{write(t, "in.csv", b.String())}, options(t))
	require.NoError(t, err)
	require.Equal(t, []int64{505, 4}, []int64{p.Rows, p.BadRows})
	require.Equal(t, []string{`n int: 0 … 499; 1 value of another kind, e.g. "many" in line 502`,
		`day date 2006-01-02: 2024-01-01 … 2024-01-31; 1 value of another kind, e.g. "2024-02-31" in line 503`,
		`text string: text, 1 different in 505 rows, "x" … "x"`}[:2], columnsOf(p)[:2])
	var script strings.Builder
	require.NoError(t, p.WriteScript(&script, false))
	require.Contains(t, script.String(), "bad_rows: quarantine  # 4 of 505 rows cannot be read, the first "+
		"broken record: ")
	loads(t, p)
}

// TestColumnsOfSeveralFiles: no value gets into another column, and what is not certain is said.
func TestColumnsOfSeveralFiles(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		texts  []string
		want   []string // name, index, whether some files lack it, or that it is left out
		doubts []string // what is in each
	}{
		"trailing separators": {texts: []string{"id,qty,\n1,10,\n", "id,price,\n2,99,\n"},
			want: []string{"id 0", "qty 1?", "price 1?", "col_3 2"}},
		"one more, unnamed": {texts: []string{"id,qty\n1,10\n", "id,qty,\n2,20,x\n"},
			want: []string{"id 0", "qty 1", "col_2 2?"}},
		"one more at first": {texts: []string{"id,qty,\n1,10,x\n", "id,qty\n2,20\n"},
			want: []string{"id 0", "qty 1", "col_2 2?"}},
		"reordered, unnamed": {texts: []string{"id,qty,\n1,10,x\n", "qty,id,\n20,2,\n"},
			want: []string{"id 0", "qty 1", "col_2 2"}},
		"other neighbours": {texts: []string{"id,,qty\n1,a,10\n2,b,10\n", "qty,,id\n20,c,2\n30,d,2\n"},
			want:   []string{"id 0", "col_1 left out", "qty 2"},
			doubts: []string{"column 2: what stands beside it differs in"}},
		"an index": {texts: []string{",a,b\n0,1,2\n1,1,2\n", ",a,b\n0,3,4\n1,3,4\n"},
			want: []string{"col_0 0", "a 1", "b 2"}},
		"doubled, the same": {texts: []string{"id,x,x\n1,5,6\n", "id,x,x\n2,7,8\n"},
			want: []string{"id 0", "x 1", "x_2 2"}},
		"doubled in one": {texts: []string{"id,x,x\n1,5,6\n", "id,x,y\n2,7,8\n"},
			want:   []string{"id 0", "x 1", "x_2 2?", "y 2?"},
			doubts: []string{`column "x" of 1.csv was taken for the same as column "x" of 0.csv`}},
		"an index of others": {texts: []string{",a,b\n5,1,2\n6,1,2\n", ",a,c\n0,3,4\n1,3,4\n"},
			want:   []string{"col_0 0", "a 1", "b 2?", "c 2?"},
			doubts: []string{"column 1 of 1.csv was taken for the same as column 1 of 0.csv"}},
		"doubled, elsewhere": {texts: []string{"id,x,x\n1,5,6\n", "x,id,x\n7,2,8\n"},
			want:   []string{"id 0", "x 1?", "x_2 left out", "x_3 0?"},
			doubts: []string{`column "x": what stands beside it differs`}},
		"once and twice": {texts: []string{"x,id\n5,1\n", "id,x,x\n2,7,8\n"}, want: []string{"x 0?", "id 1", "x_2 1?",
			"x_3 2?"}},
		"other case": {texts: []string{"ID,Name\n1,a\n2,b\n", "id,name\n3,c\n4,d\n"},
			want: []string{"ID 0?", "Name 1?", "id_2 0?", "name_2 1?"},
			doubts: []string{`column "id" of 1.csv may be column "ID" of 0.csv`,
				`column "name" of 1.csv may be column "Name" of 0.csv`}},
		"blanks around": {texts: []string{"id, name \n1,a\n2,b\n", "id,name\n3,c\n4,d\n"},
			want:   []string{"id 0", "name 1?", "name_2 1?"},
			doubts: []string{`column "name" of 1.csv may be column " name " of 0.csv`}},
		"other case, doubled": {texts: []string{"id,x,x\n1,5,6\n", "id,X\n2,7\n"},
			want:   []string{"id 0", "x 1?", "x_2 2?", "X_3 1?"},
			doubts: []string{`column "X" of 1.csv may be column "x" of 0.csv`}},
		"two cases in one": {texts: []string{"id,ID\n1,5\n2,6\n", "id,n\n3,7\n"},
			want: []string{"id 0", "ID_2 1?", "n 1?"}},
		"braces": {texts: []string{"id,{x}\n1,2\n", "{x},id\n3,4\n"}, want: []string{"id 0", "x left out"},
			doubts: []string{"its header has braces"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			var names []string
			for i, text := range c.texts {
				names = append(names, filepath.Join(dir, fmt.Sprintf("%d.csv", i)))
				require.NoError(t, os.WriteFile(names[i], []byte(text), 0o600))
			}
			p, err := Files(t.Context(), names, options(t))
			require.NoError(t, err)
			var got []string
			for _, col := range p.Columns {
				one := fmt.Sprintf("%s %d", col.Name, col.Index)
				switch {
				case col.left != "":
					one = col.Name + " left out"
				case col.Optional:
					one += "?"
				}
				got = append(got, one)
			}
			require.Equal(t, c.want, got)
			require.Len(t, p.Doubts, len(c.doubts), p.Doubts)
			for i, want := range c.doubts {
				require.Contains(t, strings.ReplaceAll(p.Doubts[i].Text, dir+"/", ""), want)
			}
			loads(t, p)
		})
	}
}

// TestHeadersOfSeveralFiles: files say together whether they have headers.
func TestHeadersOfSeveralFiles(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		texts        []string
		header       bool
		rows, doubts int
	}{
		"only a header": {[]string{"id,2019,2020\n1,5,6\n2,7,8\n", "id,2019,2020\n"}, true, 2, 0},
		"texts":         {[]string{"name\nAnn\n", "name\nBob\n"}, true, 2, 1},
		"data":          {[]string{"Ann\nBob\n", "Cid\nDan\n"}, false, 4, 0},
		"the same data": {[]string{"1,2\n3,4\n", "1,2\n5,6\n"}, false, 4, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, _ := filesOf(t, c.texts)
			require.Equal(t, c.header, p.HasHeader)
			require.Equal(t, int64(c.rows), p.Rows)
			require.Len(t, p.Doubts, c.doubts, p.Doubts)
		})
	}
}

// TestNamesOfFiles: what a file's name says of it, and is not so, does not count.
func TestNamesOfFiles(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		names, texts []string
		want         []string
	}{
		"commas in .tsv": {[]string{"a.tsv"}, []string{"id,price\n1,1.50\n"}, []string{"id int", "price decimal2"}},
		"tabs, two endings": {[]string{"a.csv", "b.tsv"}, []string{"id\tn\n1\t2\n", "id\tn\n3\t4\n"},
			[]string{"id int", "n int"}},
		"an empty list": {[]string{"a.json", "b.json"}, []string{"[]", `[{"id": 1}]`}, []string{"id int"}},
		"no records":    {[]string{"a.ndjson", "b.ndjson"}, []string{`{"id": 1}`, "\n"}, []string{"id int"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var paths []string
			for i, text := range c.texts {
				paths = append(paths, write(t, c.names[i], text))
			}
			p, err := Files(t.Context(), paths, options(t))
			require.NoError(t, err)
			var got []string
			for _, col := range p.Columns {
				got = append(got, col.Name+" "+col.Type.String())
			}
			require.Equal(t, c.want, got)
			loads(t, p)
		})
	}
}

// TestNumbersOfSeveralFiles: that the numbers of one file are read as those of another one is said.
func TestNumbersOfSeveralFiles(t *testing.T) {
	t.Parallel()
	said := func(one, other string) string {
		return "numbers of " + one + " could be read in two ways, and are read as " + other +
			" are: look whether the values are right"
	}
	for name, c := range map[string]struct {
		texts []string
		want  []string // of the columns that are numbers
		said  string
	}{
		"points": {[]string{"id;x\n1;1.234\n2;2.500\n", "id;x\n3;1.234,50\n4;2,5\n"}, []string{"id int", "x decimal2"},
			said("0.csv", "those of 1.csv")},
		"the other way round": {[]string{"id;x\n3;1.234,50\n4;2,5\n", "id;x\n1;1.234\n2;2.500\n"},
			[]string{"id int", "x decimal2"},
			said("1.csv", "those of 0.csv")},
		"commas cut": {[]string{"id,x\n1,1.234\n2,2.500\n", "id,x\n3,\"1.234,50\"\n4,\"2,5\"\n"},
			[]string{"id int", "x decimal2"}, said("0.csv", "those of 1.csv")},
		"decimal": {[]string{"id;x\n1;1.234\n2;2.500\n", "id;x\n3;1.5\n4;2.25\n"}, []string{"id int", "x float"},
			said("0.csv", "those of 1.csv")},
		"other columns": {[]string{"id;x\n1;1.234\n2;2.500\n", "id;y\n3;1.234,50\n4;2,5\n"},
			[]string{"id int", "x int", "y decimal2"}, said("0.csv", "those of 1.csv")},
		"whole": {[]string{"id;x\n1;1\n2;2\n", "id;x\n3;1,50\n4;2,5\n"}, []string{"id int", "x decimal2"}, ""},
		"sure": {[]string{"id;x\n1;1.234,5\n2;2.500\n", "id;x\n3;1.234,50\n4;2,5\n"},
			[]string{"id int", "x decimal2"}, ""},
		"text alone": {[]string{"id;x;y\n1;1.234;1,50\n2;2.000;2,5\n", "id;x;y\n3;1.234.567;1,50\n4;2.000;2,5\n"},
			[]string{"id int", "x int", "y decimal2"},
			said("0.csv", "those of 1.csv")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, dir := filesOf(t, c.texts)
			var got []string
			for _, col := range p.Columns {
				got = append(got, col.Name+" "+col.Type.String())
			}
			require.Equal(t, c.want, got)
			var doubts []string
			for _, d := range p.Doubts {
				doubts = append(doubts, strings.ReplaceAll(d.Text, dir+"/", ""))
			}
			require.Equal(t, c.said, strings.Join(doubts, "\n"))
			loads(t, p)
		})
	}
}

// filesOf proposes a script for files of these texts, 0.csv, 1.csv …, in a directory of their own.
func filesOf(t *testing.T, texts []string) (p *Proposal, dir string) {
	t.Helper()
	dir = t.TempDir()
	for i, text := range texts {
		require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.csv", i)), []byte(text), 0o600))
	}
	p, err := Files(t.Context(), []string{filepath.Join(dir, "*.csv")}, options(t))
	require.NoError(t, err)
	return p, dir
}
