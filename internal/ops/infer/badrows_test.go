package infer

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/fault"
)

// lines numbers copies of a line.
func lines(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// TestBadRowsOfAllFormats: what cannot be read is counted, the first of it is told with its place, and a
// file of which nothing can be read is over the limit that is proposed.
func TestBadRowsOfAllFormats(t *testing.T) {
	t.Parallel()
	sheet := []row{{"id", "n"}, nil}
	for i := range 60 {
		sheet = append(sheet, row{i, i})
	}
	half := []row{{"id", "n"}, {1, 2}, {2, "x"}}
	misfits := "id"
	for i := range 60 {
		misfits += fmt.Sprintf(",c%d", i)
	}
	misfits += "\n"
	for i := range 100 {
		misfits += fmt.Sprint(i)
		for k := range 60 {
			if misfits += ",1"; k == i {
				misfits += "x"
			}
		}
		misfits += "\n"
	}
	for name, c := range map[string]struct{ path, want string }{
		"CSV": {write(t, "in.csv", "id,n\n"+lines(30, "%d,1\n")+"1\n"),
			"bad_rows: quarantine  # 1 of 31 rows cannot be read, the first broken record: in.csv:32: the record has " +
				"1 fields, the first record of the file has 2"},
		"JSON": {write(t, "in.ndjson", lines(30, "{\"a\": %d}\n")+"{oops\n"),
			`bad_rows: quarantine  # 1 of 31 rows cannot be read, the first broken record: in.ndjson:31: ` +
				`the record cannot be read: "oops" is no JSON: a key in quotes is expected`},
		"JSON, more": {write(t, "in.ndjson", lines(12, "{\"a\": %d}\n")+"{oops\n"),
			"bad_rows: (action: quarantine, max_rows: 1000, max_percent: 10)  # 1 of 13 rows"},
		"JSON, values": {write(t, "in.ndjson", lines(70, "{\"a\": %d}\n\n")+"{\"a\": 1, \"a\": 2}\n"),
			"bad_rows: quarantine  # 1 of 71 rows cannot be read, the first broken record: in.ndjson:141: the record " +
				"cannot be read: it has the key a twice"},
		"a sheet": {workbook(t, append(sheet, row{61, formula("1+1")})...),
			`bad_rows: quarantine  # 1 of 61 rows cannot be read, the first broken record: in.xlsx:63: ` +
				`the record cannot be read: cell B63 of sheet "Sheet1": it has a formula without a value`},
		"a mixed sheet": {workbook(t, half...), ""},
		"UTF-8": {write(t, "in.csv", "id,name\n"+lines(30, "%d,Zürich\n")+"1,Gen\xe8ve\n"),
			"bad_rows: quarantine  # 1 of 31 rows cannot be read, the first broken record: in.csv:32:3: column name " +
				"is not valid UTF-8"},
		"JSON in UTF-8": {write(t, "in.ndjson", lines(30, "{\"id\": %d, \"name\": \"Zürich\"}\n")+
			"{\"id\": 1, \"name\": \"Gen\xe8ve\"}\n"),
			"bad_rows: quarantine  # 1 of 31 rows cannot be read, the first broken record: in.ndjson:31: the record " +
				"cannot be read: it is not UTF-8 text"},
		"latin-1": {write(t, "in.csv", "id,name\n"+lines(30, "%d,Z\xfcrich\n")+"1,Genève\n"), ""},
		"many misfits": {write(t, "in.csv", misfits),
			"bad_rows: (action: quarantine, max_rows: 1000, max_percent: 60)  # 60 of 100 rows cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := Files(t.Context(), []string{c.path}, options(t))
			require.NoError(t, err)
			var b strings.Builder
			require.NoError(t, p.WriteScript(&b, false))
			got := strings.NewReplacer(c.path, c.path[strings.LastIndexByte(c.path, '/')+1:], "{", "(", "}",
				")").Replace(b.String())
			if c.want == "" {
				require.NotContains(t, got, "bad_rows")
			} else {
				require.Contains(t, got, c.want)
			}
			loads(t, p)
		})
	}
}

// TestTooBroken: a file with many broken records is refused, whatever its format.
func TestTooBroken(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ path, want string }{
		"CSV": {write(t, "in.csv", "a,b\n1,2\n3,4\n5\n6\n"),
			":4: the record has 1 fields, the first record of the file has 2"},
		"behind": {write(t, "in.csv", "a,b\n"+lines(headBytes/10, "%09d,2\n")+lines(headBytes/5, "%d\n")),
			"the record has 1 fields"},
		"JSON": {write(t, "in.ndjson", `{"a": 1}`+"\n{oops\n"+`{"a": 1}`+"\n{oops\n"),
			`:2: the record cannot be read: "oops" is no JSON: a key in quotes is expected`},
		"UTF-8": {write(t, "in.csv", "a,b\n1,éééééééé\xe9\n2,éééééé\xe9\n"),
			":2: field 2 of the record is not valid UTF-8"},
		"header": {write(t, "in.csv", "id,n\xe4me\n"+lines(30, "%d,Zürich\n")), "the header is not UTF-8 text"},
	} {
		_, err := Files(t.Context(), []string{c.path}, options(t))
		require.ErrorContains(t, err, c.want, name)
		require.Equal(t, fault.UserData, fault.Of(err).Kind, name)
		require.Equal(t, c.path, fault.Of(err).Place.File, name)
		require.NotEmpty(t, fault.Of(err).Hint, name)
	}
}
