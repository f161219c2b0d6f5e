package infer

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"thalweg/internal/base/allow"
	"thalweg/internal/base/fault"
	"thalweg/internal/base/progress"
	"thalweg/internal/lang/script"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func options(t *testing.T) Options {
	t.Helper()
	return Options{MemoryBytes: 256 << 20, Threads: 2, WorkDir: t.TempDir()}
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// one renders what was proposed for a column.
func one(c Column) string {
	s := c.Type.String()
	if c.Format != "" {
		s += " " + c.Format
	}
	if c.Nullable {
		s += "?"
	}
	if c.NullTexts != nil {
		s += fmt.Sprintf(" %q", c.NullTexts)
	}
	return s + ": " + c.Evidence
}

// TestTypes gives each list as the only column of a file.
func TestTypes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		values []string
		want   string
	}{
		"bool":         {[]string{"true", "FALSE", "True"}, "bool: false … true"},
		"zero and one": {[]string{"0", "1"}, "int: 0 … 1"},
		"int":          {[]string{"-5", "12345", "0"}, "int: -5 … 12345"},
		"plus signs": {[]string{"+1", "2"},
			`string: text, 2 different in 2 rows, "+1" … "2"; 1 has a plus sign, which a number would lose`},
		"plus, money": {[]string{"+1.50", "+2.25"},
			`string: text, 2 different in 2 rows, "+1.50" … "+2.25"; 2 have a plus sign, which a number would lose`},
		"minus zero": {append(many("12", 99), "-0"), `int: 0 … 12`},
		"account numbers": {[]string{"12345678901234567890", "12345678901234567891"},
			"decimal(38,0): 12345678901234567890 … 12345678901234567891"},
		"large and exact": {[]string{"1e20", "999999999999999", "0.5"}, `float: 0.5 … 1e+20`},
		"int with gaps":   {[]string{"1", "", "3"}, "int?: 1 … 3; 1 empty"},
		"null texts": {[]string{"1", "N/A", "3", "NULL", ""},
			`int? ["" "N/A" "NULL"]: 1 … 3; 2 of N/A, NULL; 1 empty`},
		"too long for int": {[]string{"9223372036854775808", "1"}, "decimal(38,0): 1 … 9223372036854775808"},
		"leading zeros": {[]string{"007", "012"},
			`string: text, 2 different in 2 rows, "007" … "012"; 2 have leading zeros, which a number would lose`},
		"money":          {[]string{"1.5", "2", "-3.25"}, "decimal2: -3.25 … 2.00"},
		"three decimals": {[]string{"1.5", "2.125"}, "float: 1.5 … 2.125"},
		"exponent":       {[]string{"1e3", "2.5"}, "float: 2.5 … 1000.0"},
		"days":           {[]string{"2024-01-31", "2023-12-01"}, "date 2006-01-02: 2023-12-01 … 2024-01-31"},
		"no such day": {[]string{"2024-02-30", "2024-02-01", "2024-02-02"},
			`string: text, 3 different in 3 rows, "2024-02-01" … "2024-02-30"; not date 2006-01-02 because of 1 value, e.g. "2024-02-30" in line 2`},
		"moments": {[]string{"2024-01-31 10:00:00"},
			"datetime 2006-01-02 15:04:05: 2024-01-31 10:00:00 … 2024-01-31 10:00:00"},
		"zone": {[]string{"2024-01-31T10:00:00Z", "2024-01-31T10:00:00+02:00"},
			"timestamptz 2006-01-02T15:04:05Z07:00: 2024-01-31 08:00:00+00 … 2024-01-31 10:00:00+00"},
		"rates":       {[]string{"1.0875", "0.9312"}, "decimal(18,4): 0.9312 … 1.0875"},
		"many digits": {[]string{"1234567890123456.5", "0.125"}, "decimal(38,3): 0.125 … 1234567890123456.500"},
		"microseconds": {[]string{"2024-01-31 10:00:00.123456"},
			"timestamptz 2006-01-02 15:04:05: 2024-01-31 10:00:00.123456+00 … 2024-01-31 10:00:00.123456+00"},
		"day first": {[]string{"13/02/2024", "01/02/2024"}, "date 02/01/2006: 2024-02-01 … 2024-02-13"},
		"day or month first": {[]string{"03/02/2024"},
			`string: text "03/02/2024" … "03/02/2024": every value is a day both of 01/02/2006 and of 02/01/2006, so choose`},
		"compact days": {[]string{"20240131", "20231201"},
			`int: 20231201 … 20240131; might be days in the format 20060102`},
		"text":           {[]string{"a", "b", "a", ""}, `string: text, 2 different in 4 rows, "a" … "b"; 1 empty`},
		"one bad number": {append(many("12", 99), "x"), `int: 12 … 12; 1 value of another kind, e.g. "x" in line 101`},
		"nothing":        {[]string{"", " "}, "string: no values; 2 empty"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := options(t)
			o.Header = HeaderYes
			var b strings.Builder
			b.WriteString("value,other\n")
			for _, v := range c.values {
				fmt.Fprintf(&b, "%s,x\n", v)
			}
			p, err := Files(t.Context(), []string{write(t, "in.csv", b.String())}, o)
			require.NoError(t, err)
			require.Equal(t, int64(len(c.values)), p.Rows)
			require.Equal(t, c.want, one(p.Columns[0]))
		})
	}
}

func many(s string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = s
	}
	return out
}

// TestLateValue: a value far behind the sample decides too.
func TestLateValue(t *testing.T) {
	t.Parallel()
	text := "n,x\n" + strings.Repeat("1,a\n", 3*sampleRows) + "none of your business,a\n"
	p, err := Files(t.Context(), []string{write(t, "in.csv", text)}, options(t))
	require.NoError(t, err)
	require.Equal(t, `int: 1 … 1; 1 value of another kind, e.g. "none of your business" in line 6002`,
		one(p.Columns[0]))
}

// TestUnreadable: a type that the values only look like makes no bad rows of them all.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	text := "day\n" + strings.Repeat("2024-04-09T01:20:38.192345218\n", 100) + "soon\n"
	p, err := Files(t.Context(), []string{write(t, "in.csv", text)}, options(t))
	require.NoError(t, err)
	require.Equal(t, "string: text: most values cannot be read as timestamptz", one(p.Columns[0]))
	require.Zero(t, p.BadRows)

	path := write(t, "in.csv", "id,much\n1,1e400\n2,2.5\n")
	p, err = Files(t.Context(), []string{path}, options(t))
	require.NoError(t, err)
	require.Equal(t, `string: text: `+path+`:2:3: column much: "1e400" is not a float`, one(p.Columns[1]))
}

func TestShape(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text      string
		separator byte
		header    bool
		names     string
	}{
		"commas":         {"a,b\n1,2\n", ',', true, "a b"},
		"semicolons":     {"Preis;Menge in Stück;c\n1,5;2;3\n", ';', true, "Preis Menge_in_St_ck c"},
		"tabs":           {"a\tb\tc\n1\t2\t3,5\n", '\t', true, "a b c"},
		"no header":      {"1,2\n3,4\n", ',', false, "col_0 col_1"},
		"two line ends":  {"\"a\r\nb\",c\r\n1,2\r\n", ',', true, "a_b c"},
		"equal names":    {"a,A b,a-b\n1,2,3\n", ',', true, "a A_b a_b_2"},
		"twice the same": {"a,a\n1,2\n", ',', true, "a a_2"},
		"an index":       {",a,b\n0,x,1\n1,y,2\n", ',', true, "col_0 a b"},
		"years":          {"country,2019,2020\nCH,1,2\nDE,,4\n", ',', true, "country _2019 _2020"},
		"years as data":  {"CH,2019\nDE,2020\n", ',', false, "col_0 col_1"},
		"a true name":    {"true,day\nx,2024-01-02\n", ',', true, "true day"},
		"carets":         {"a^b\n1^2,5\n", '^', true, "a b"},
		"a title":        {"Sales, of 2024\n# by us\n\na;b;c\n1,5;2;3\n", ';', true, "a b c"},
		"a filled title": {"Sales,,\n,,\na,b,c\nx,y,2\n", ',', true, "a b c"},
		"decimal commas": {"1,5;2,25\n3,5;4,75\n", ';', false, "col_0 col_1"},
		"comma and tab":  {"1,5\tx\n2,5\ty\n", '\t', false, "col_0 col_1"},
		"a first gap":    {"x,,\ny,1,2\n", ',', false, "col_0 col_1 col_2"},
		"a pivot":        {",2019,2020,2021\nA,10,20,30\nB,40,50,60\n", ',', true, "col_0 _2019 _2020 _2021"},
		"World Bank": {"Country,Code,1960,1961,\nA,x,0,1,\nB,y,100,101,\n", ',', true,
			"Country Code _1960 _1961 col_4"},
		"a bank's": {"\"Konto:\";\"1234\";\n\"Zeit:\";\"01.01.2024 - 31.01.2024\";\n" +
			"\nTag;Zweck;Betrag;\n12.01.2024;Kauf;-12,50;\n13.01.2024;Miete;-9,00;\n", ';', true,
			"Tag Zweck Betrag col_3"},
		"below a title": {"\"Data Source\",\"WDI\",\n\n\"Updated\",\"2024-01-31\",\n\n" +
			"Country,Code,1960,1961,\nA,x,0,1,\nB,y,100,101,\n", ',', true, "Country Code _1960 _1961 col_4"},
		"a wide title": {"EXPORT;v2;shop " +
			"7;2024-01-31;full\nid;name;qty;price;day;x\n1;a;1;2;2024-01-02;1\n2;b;1;2;2024-01-02;1\n", ';', true,
			"id name qty price day x"},
		"only years":     {"2019,2020\n12.5,13.1\n", ',', true, "_2019 _2020"},
		"years of years": {"2001,2002\n1990,2010\n", ',', false, "col_0 col_1"},
		"odd years":      {"2000,1950\n150,4000\n", ',', false, "col_0 col_1"},
		"days": {"store,2024-01-01,2024-02-01\nA,10,20\nB,11,21\n", ',', true,
			"store _2024_01_01 _2024_02_01"},
		"German days": {"Laden;01.01.2024;01.02.2024\nA;10;20\nB;11;21\n", ';', true,
			"Laden _01_01_2024 _01_02_2024"},
		"months": {"store,2024-01,2024-02\nA,10,20\nB,11,21\n", ',', true,
			"store _2024_01 _2024_02"},
		"months, points": {"store;01.2024;02.2024\nA;10,5;20\nB;11;21\n", ';', true,
			"store _01_2024 _02_2024"},
		"rates":            {"EURUSD,1.2024\nEURGBP,0.8561\n", ',', false, "col_0 col_1"},
		"hours":            {"day,08:00,09:00\nMo,1,2\nTu,3,4\n", ',', true, "day _08_00 _09_00"},
		"days as data":     {"2024-01-01,5\n2024-01-02,6\n", ',', false, "col_0 col_1"},
		"an index, texts":  {",name,city\n0,Ann,Bern\n1,Bob,Thun\n", ',', true, "col_0 name city"},
		"a trailing gap":   {"name,city,\nAnn,Bern,\nBob,Thun,\n", ',', true, "name city col_2"},
		"counted":          {",0,1,2\n0,5,6,7\n1,8,9,9\n", ',', true, "col_0 _0 _1 _2"},
		"counted as data":  {"0,1,2\n3,4,5\n", ',', false, "col_0 col_1 col_2"},
		"a text again":     {"Ann,Bern\nBob,Bern\nCid,Thun\n", ',', false, "col_0 col_1"},
		"the header again": {"name,city\nAnn,Bern\nname,city\nBob,Thun\n", ',', true, "name city"},
		"one column":       {"name\nx\ny\n", ',', false, "col_0"},
		"free text":        {"name\nSmith, J\nx\n", ';', false, "col_0"},
		"one of numbers":   {"count\n1\n2\n", ',', true, "count"},
		"exponents":        {"Unit Price;x\n3,48e12;a\n6,18e-16;b\n", ';', true, "Unit_Price x"},
		"quoted newlines":  {"a,b\n\"1\n,2\",3\n", ',', true, "a b"},
		"byte order mark":  {"\ufeffa,b\n1,2\n", ',', true, "a b"},
		"digits first":     {"1st,rowid\nx,y\n", ',', true, "_1st rowid_"},
		"braces":           {"{a},b\nx,y\n", ',', true, "a b"},
		"comments": {"# c1\n# c2; x\nid;name;amt\n1;a;1.5\n2;b;2.5\n", ';',
			true, "id name amt"},
		"other commas": {"# made by x, y, z\nid;name;amt\n1;a;1,5\n2;b;2,5\n", ';',
			true, "id name amt"},
		"as many fields":                   {"# a,b,c\n# d,e,f\nid,name,amt\n1,a,1.5\n", ',', true, "id name amt"},
		"a marked header":                  {"## by x\n#id;name\n1;a\n2;b\n", ';', true, "id name"},
		"marked texts":                     {"#id;name\nx;a\ny;b\n", ';', true, "id name"},
		"separators at ends below a title": {"Report;x\nid;n;\n1;2;\n3;4;\n", ';', true, "id n col_2"},
		"a padded title": {"Report of 2024;\nby shop\nday;n\n08/08/1984;1\n12/20/1977;2\n", ';',
			true, "day n"},
		"titles, no header": {"Report of 2024\n\"Sales, by shop\"\n" + strings.Repeat("x,1.5,a\ny,2.5,b\n", 5),
			',', false, "col_0 col_1 col_2"},
		"only comments": {"# c1\n# c2; x\n1;2;3\n4;5;6\n", ';', false, "col_0 col_1 col_2"},
		"one below":     {"# c1, x\ncount\n1\n2\n", ',', true, "count"},
		"marked data":   {"#a\n#b\nc\n", ',', false, "col_0"},
		"nothing below": {"# c1, x\nid;name;amt\n", ';', true, "id name amt"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := Files(t.Context(), []string{write(t, "in.csv", c.text)}, options(t))
			require.NoError(t, err)
			require.Equal(t, string(c.separator), string(p.Separator))
			require.Equal(t, c.header, p.HasHeader)
			var names []string
			for _, col := range p.Columns {
				names = append(names, col.Name)
			}
			require.Equal(t, c.names, strings.Join(names, " "))
			loads(t, p)
		})
	}
}

// TestCommasInNumbers: commas that cut numbers and quoted texts alone lose to what cuts all records, though not quite
// evenly.
func TestCommasInNumbers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text      string
		separator byte   // 0: it is refused
		why       string // then
	}{
		"trailing tabs": {"key\tamount\t2020\nx\t208,16\tN/A\t\ny\t\"223,01\"\t23.05.1994\t\n", 0,
			":2: the record has 4 fields, the first record of the file has 3"},
		"a name with a comma": {"key;a,b;price;;r\nx;;2,66e12;I3; ;\n", 0,
			":2: the record has 6 fields, the first record of the file has 5"},
		"a title with one": {"Sales, by shop;\nkey;price;town\nx;895,401;Bern\ny;704,759;Thun\nz;1,5;Thun\n", ';', ""},
		"even":             {"key;a,b;price\nx;u;2,66e12\ny;v;1,5\n", ';', ""},
		"texts in quotes":  {"key;town;x\n1;\"Thun, CH\";2\n2;\"Bern, CH\";3\n", ';', ""},
		"exponents":        {"a,5;1,5\n4,11e-15;2,5\n", ',', ""},
		"commas":           {"id;code,a,b\n1;2,3,4\n2;3,4,5\n", ',', ""},
		"commas, two":      {"id;code,a\n1;2,3\n2;3,4\n", ',', ""},
		"a list":           {"a;b,c\nx;y,1\n", ',', ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := Files(t.Context(), []string{write(t, "in.csv", c.text)}, options(t))
			if c.separator == 0 {
				require.ErrorContains(t, err, c.why)
				return
			}
			require.NoError(t, err)
			require.Equal(t, string(c.separator), string(p.Separator))
		})
	}
}

// TestHeaderOfOtherWidth: where all records have a field more or less than the header, the refusal says so, and a file
// that is corrected as it says is read.
func TestHeaderOfOtherWidth(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, hint, header, right string }{
		"separators at ends": {"a;b\n1;2;\n3;4;\n",
			"the header has 2 fields, and 2 records below have a separator more, at the end: write one " +
				"behind the header", "a;b\n", "a;b;\n"},
		"a text below": {"a;b\n2020-01-02;none;\n2020-01-03;1;\n",
			"the header has 2 fields, and 2 records below have a separator more", "a;b\n", "a;b;\n"},
		"row numbers": {"a,b\n1,2,3\n",
			"the header has 2 fields, and 1 record below has 3: write a name for the column that has none", "a,b\n",
			"row,a,b\n"},
		"header's end": {"a,b,c,\n1,2,3\n4,5,6\n",
			"the header ends with a separator, and 2 records below have none there: take it away",
			"a,b,c,\n", "a,b,c\n"},
		"a name more": {"a;b;c;d\n1;2;3\n4;5;6\n",
			"the header has 4 fields, and 2 records below have 3: take the name away", "a;b;c;d\n", "a;b;c\n"},
		"some only": {"a,b\n1,2,3\n4,5\n6,7,8\n", "correct that line", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Files(t.Context(), []string{write(t, "in.csv", c.text)}, options(t))
			require.ErrorContains(t, err, ":2: the record has")
			require.Contains(t, fault.Of(err).Hint, c.hint)
			if c.header != "" {
				p, err := Files(t.Context(),
					[]string{write(t, "in.csv", strings.Replace(c.text, c.header, c.right, 1))}, options(t))
				require.NoError(t, err)
				require.True(t, p.HasHeader)
			}
		})
	}
}

// TestGuesses: what could be read otherwise is said.
func TestGuesses(t *testing.T) {
	t.Parallel()
	const above = "its names are above values, those of the first record are not (see hdr_line_idx)"
	for name, c := range map[string]struct {
		text string
		want string // "": nothing
	}{
		"titles in quotes": {"\"printed 2024-01-31\"\n\"Sales, by shop\"\n\"qty\",A b,\"note\"\nx,1, ,\ny,2,\"\",\n",
			`in.csv was read as one column, though "," cuts most of its records: see {{set separator}}, and hdr_line_idx if there are titles above the header`},
		"titles above bare data": {"Report of 2024\n\"Sales, by shop\"\n" + strings.Repeat("x,1.5,a\ny,2.5,b\n", 5),
			"2 lines are above the first record of in.csv, which was not taken for a header: see first_data_line_idx"},
		"titles above a column": {"Report of 2024\ntotal\nN/A\n4 535 617\n63 557\n",
			"2 texts at the top of in.csv were taken for data, like the values below them: see hdr_line_idx if the " +
				"last one is a header"},
		"a padded title": {"Report of 2024,\nname,value\nx,1\ny,2\n",
			"a line is above the header of in.csv, which may be data: see hdr_line_idx"},
		"padded titles": {"Report of 2024;\n\"by shop\"\n2024-01-31;\nname;value\nx;1,5\ny;2,5\n",
			"3 lines are above the header of in.csv, which may be data: see hdr_line_idx"},
		"one name":                       {",,id\n" + strings.Repeat("x,1.5,7\ny,2.5,8\n", 5), ""},
		"values that lack, and no title": {"x,\ny,1\nz,2\n", ""},
		"two records": {"a|7|2019|2,5|Ann|5%\nb|8|2024|1,5|Bob|7\n",
			"the first record of in.csv was taken for a header, though it looks like the few below it ({{set " +
				"no-header}} if it is data)"},
		"a title of all columns": {"Report,Region,\nid,name,v\n1,a,2\n2,b,3\n",
			`record 2 of in.csv, "id", "name", "v", may be the header: ` + above},
		"titles of all columns": {"Report: sales, by region\nCreated, by x\nid,amount\n1,5\n2,6\n",
			`record 3 of in.csv, "id", "amount", may be the header: ` + above},
		"a title above many": {"Report,Region,\nid,name,v\n" + strings.Repeat("1,a,2\n", 200),
			`record 2 of in.csv, "id", "name", "v", may be the header: ` + above},
		"a title with a year": {"Sales,2024\nid,amount\n1,5\n2,6\n",
			`record 2 of in.csv, "id", "amount", may be the header: ` + above},
		"a title above texts": {"Report: sales,by region\nname,amount\nAnn,5\nBob,6\n",
			`record 2 of in.csv, "name", "amount", may be the header: ` + above},
		"a title, more below":   {"Report,Region,\nid,first name,last name,v\n1,a,b,2\n2,b,c,3\n", ""},
		"texts above values":    {"name,score\nAnn,absent\nBob,5\n", ""},
		"a text above many":     {"name,score\nAnn,absent\n" + strings.Repeat("Bob,5\n", 100), ""},
		"texts and late values": {"key,value\nhost,local\nmode,fast\nuser,Ann\n", ""},
		"a code above numbers":  {"id,code\n1,abc\n2,5\n3,6\n", ""},
		"texts":                 {"name,city\nAnn,Bern\nBob,Chur\n", ""},
		"headers again":         {"id,name\nid,name\n1,a\n2,b\n", ""},
		"names":                 {"a,b\n1,2\n", ""},
		"years":                 {"country,2019,2020\nCH,1,2\n", ""},
		"a column":              {"count\n1\n2\n", ""},
		"a text column":         {"name\nSmith, J\nx\ny\n", ""},
		"one odd number":        {"Ann\nBob\nCid\n5\nDan\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := write(t, "in.csv", c.text)
			p, err := Files(t.Context(), []string{path}, options(t))
			require.NoError(t, err)
			var got []string
			for _, d := range p.Doubts {
				if d.Kind == Guessed && strings.Contains(d.Text, path) {
					got = append(got, strings.ReplaceAll(d.Text, path, "in.csv"))
				}
			}
			require.Equal(t, c.want, strings.Join(got, "\n"))
		})
	}
}

// loads checks that the written script is one.
func loads(t *testing.T, p *Proposal) *script.Script {
	t.Helper()
	var b strings.Builder
	require.NoError(t, p.WriteScript(&b, false))
	s, diags := script.Load(t.Context(), script.Sources{Path: write(t, "s.yaml", b.String())})
	require.False(t, diags.HasErrors(), "%s\n%s", diags.Render(), b.String())
	return s
}

// TestByPosition: where headers cannot name columns, the script says which are meant.
func TestByPosition(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		want []string // lines of the script
		why  string
	}{
		"equal": {"id,id,amt\n1,2,3\n", []string{"id: {type: int, col_idx: 0}              # 1 … 1",
			"id_2: {type: int, path: id, col_idx: 1}  # 2 … 2",
			"amt: int                                 # 3 … 3"}, ""},
		"equal, and alike": {"id,id,id_2\n1,2,3\n", []string{"id: {type: int, col_idx: 0}              # 1 … 1",
			"id_3: {type: int, path: id, col_idx: 1}  # 2 … 2",
			"id_2: int                                # 3 … 3"}, ""},
		"empty": {"id,a b,\n1,2,\n", []string{"id: int                                      # 1 … 1",
			`a b: int                                     # r.a_b: 2 … 2`,
			`col_2: {type: string, path: "", col_idx: 2}  # no values; 1 empty`}, ""},
		"braces": {"Größe,{x}\n1,2\n", []string{`Gr_e: int  # header "Größe": 1 … 1`,
			`x: int     # header "(x)": 2 … 2`},
			`because the header "(x)" has braces, in which scripts have parameters:`},
		"by headers": {"Größe,x\n1,2\n", []string{`"Größe": int  # r.Gr_e: 1 … 1`, "x: int        # 2 … 2"}, ""},
		"no header":  {"1,2\n3,4\n", []string{"col_0: int  # 1 … 3", "col_1: int  # 2 … 4"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := Files(t.Context(), []string{write(t, "in.csv", c.text)}, options(t))
			require.NoError(t, err)
			var b strings.Builder
			require.NoError(t, p.WriteScript(&b, false))
			for _, line := range c.want {
				require.Contains(t, b.String(), "        "+line+"\n")
			}
			if c.why == "" {
				require.NotContains(t, b.String(), "positions")
			} else {
				require.Len(t, p.Doubts, 1) // a file with other places of columns would be read wrongly
				require.Equal(t, Guessed, p.Doubts[0].Kind)
				require.Contains(t, b.String(), "# Columns are read by their positions, "+c.why+
					" a run does not look at headers then.\n")
			}
			loads(t, p)
		})
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ path, want string }{
		"ragged": {write(t, "in.csv", "a,b\n1,2,3\n"),
			":2: the record has 3 fields, the first record of the file has 2"},
		"open quote": {write(t, "in.csv", "a,b\n1,\"x\n2,y\n"), ":2: field 2 begins with a quote that is not closed"},
		"odd quote": {write(t, "in.csv", "a;b\n1;\"x\"y\nz\";2\n"),
			":2: field 2 begins with a quote that is not closed"},
		"old lines":   {write(t, "in.csv", "a,b\r1,2\r3,4\r"), "its lines seem to end in a carriage return alone"},
		"empty":       {write(t, "in.csv", "\n\n"), "the file is empty"},
		"directory":   {t.TempDir(), "it is a folder, not a file"},
		"not parq":    {write(t, "in.pq", "a,b\n"), "not a readable Parquet file"},
		"missing":     {filepath.Join(t.TempDir(), "no.csv"), "cannot read the file"},
		"no parquet":  {filepath.Join(t.TempDir(), "no.parquet"), "cannot read the file"},
		"no workbook": {filepath.Join(t.TempDir(), "no.xlsx"), "cannot read the file"},
		"not parquet": {write(t, "in.parquet", "a,b\n"), "not a readable Parquet file"},
		"wide": {write(t, "in.csv", strings.Repeat("a,", ColumnsMax)+"b\n"),
			"the file has 1001 columns; the limit is 1000"},
	} {
		_, err := Files(t.Context(), []string{c.path}, options(t))
		require.ErrorContains(t, err, c.want, name)
		require.Equal(t, fault.UserData, fault.Of(err).Kind, name)
		require.Equal(t, c.path, fault.Of(err).Place.File, name)
		require.NotContains(t, fault.Of(err).Hint, "urls", name) // there is no script yet
	}
	o := options(t)
	o.Separator = "::"
	_, err := Files(t.Context(), []string{write(t, "in.csv", "a\n")}, o)
	require.ErrorContains(t, err, "not one ASCII character")
}

// TestRaggedBehindTheHead is a bad row.
func TestRaggedBehindTheHead(t *testing.T) {
	t.Parallel()
	text := "a,b\n" + strings.Repeat("1,some text\n", headBytes/12+100) + "1,2,3\n"
	p, err := Files(t.Context(), []string{write(t, "in.csv", text)}, options(t))
	require.NoError(t, err)
	require.Equal(t, int64(1), p.BadRows)
	require.Equal(t, int64(headBytes/12+101), p.Rows)
	loads(t, p)
}

func TestParquet(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "in.parquet")
	makeParquet(t, path, `SELECT 1::TINYINT AS "Small Int", 'x' AS s, NULL::DOUBLE AS f, 1.2345::DECIMAL(9,4) AS d4, `+
		`DATE '2024-01-31' AS day, [1] AS list, 1::UBIGINT AS big`)
	p, err := Files(t.Context(), []string{path}, options(t))
	require.NoError(t, err)
	var got []string
	for _, c := range p.Columns {
		got = append(got, c.Name+" "+one(c))
	}
	require.Equal(t, []string{
		"Small_Int int: INT32 INT_8, 1 … 1",
		`s string: BYTE_ARRAY UTF8, "x" … "x"`,
		"f float?: DOUBLE, no values; 1 NULL",
		"d4 decimal(9,4): INT32 DECIMAL(9,4), 1.2345 … 1.2345",
		"day date: INT32 DATE, 2024-01-31 … 2024-01-31",
		"list list(int): nested or repeated, [1] … [1]",
		"big int: INT64 UINT_64, 1 … 1",
	}, got)
	loads(t, p)
}

// What is looked at for others is one file, whatever is put at its path meanwhile.
func TestFilesThatAreSwapped(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	for path, text := range map[string]string{"in/sub/a.csv": "id\n1\n2\n", "other/a.csv": "secret\nx\ny\nz\n"} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(path)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, path), []byte(text), 0o600))
	}
	sub := filepath.Join(dir, "in", "sub")
	o := options(t)
	o.Dir, o.Policy = dir, &allow.Policy{Read: []string{filepath.Join(dir, "in")}}
	var once sync.Once
	ctx := progress.Heard(t.Context(), func(progress.Progress) {
		once.Do(func() {
			_ = os.Rename(sub, sub+".old")
			_ = os.Symlink(filepath.Join(dir, "other"), sub)
		})
	})
	p, err := Files(ctx, []string{"in/sub/a.csv"}, o)
	require.NoError(t, err)
	require.Equal(t, int64(2), p.Rows)
	require.Equal(t, "id", p.Columns[0].Source)
	_, err = Files(t.Context(), []string{"in/sub/a.csv"}, o)
	require.Equal(t, fault.Forbidden, fault.CodeOf(err))
	_, err = Files(t.Context(), []string{"in/su*/a.csv"}, o)
	require.Equal(t, fault.Forbidden, fault.CodeOf(err), "what a link leads to is not listed")
}

func TestNoFiles(t *testing.T) {
	t.Parallel()
	_, err := Files(t.Context(), nil, options(t))
	require.ErrorContains(t, err, "no file is named")
}

// A look at files tells how many of the bytes it has seen.
func TestProgressOfInference(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "in.csv")
	text := "id,name\n" + strings.Repeat("1,ann\n", 1000)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	var mu sync.Mutex
	var told []progress.Progress
	ctx := progress.Heard(t.Context(), func(p progress.Progress) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, p)
	})
	_, err := Files(ctx, []string{path}, Options{MemoryBytes: 256 << 20, Threads: 1, WorkDir: t.TempDir()})
	require.NoError(t, err)
	size := int64(len(text))
	require.Contains(t, told, progress.Progress{Phase: "looking at in.csv", Done: size, Of: size, Unit: "bytes"})
}
