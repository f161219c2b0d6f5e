package records

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/fault"
	"thalweg/internal/lang/filespec"
)

// convert writes a text's records, given in pieces of so many bytes.
func convert(t *testing.T, text string, piece int, columns ...filespec.Column) (string, error) {
	t.Helper()
	var out bytes.Buffer
	w, err := NewWriter(&out, filespec.Spec{Format: filespec.JSON, Columns: columns})
	require.NoError(t, err)
	for from := 0; from < len(text); from += piece {
		if _, err := w.Write([]byte(text[from:min(from+piece, len(text))])); err != nil {
			return out.String(), err
		}
	}
	err = w.Close()
	require.EqualValues(t, out.Len(), w.Written())
	return out.String(), err
}

func TestValues(t *testing.T) {
	t.Parallel()
	columns := []filespec.Column{{Path: "a", Kind: filespec.Number, Optional: false},
		{Path: "s", Kind: filespec.Text, Optional: false},
		{Path: "o.x", Kind: filespec.Text, Optional: true}, {Path: "l[1].y", Kind: filespec.Number, Optional: true},
		{Path: "b", Kind: filespec.Bool, Optional: true}, {Path: "t", Kind: filespec.Time, Optional: true},
		{Path: `"a.b"`, Kind: filespec.Number, Optional: true}}
	for name, c := range map[string]struct{ text, want string }{
		"plain": {`{"a":1,"s":"x","o":{"x":"y"},"l":[0,{"y":2}],"b":true,"t":"2024","a.b":3}`,
			`1,1,"x","y",2,"true","2024",3`},
		"null":    {`{"a":null,"s":null,"o":null,"l":null}`, `1,,,,,,,`},
		"missing": {`{"a":1}`, `1:1?,"it has no value at ""s""","{""a"":1}",,,,,,`},
		"big":     {`{"a":123456789012345678901234567890.5,"s":""}`, `1,123456789012345678901234567890.5,"",,,,,`},
		"kinds": {`{"a":"1","s":1.50,"b":1,"t":"","o":{"x":[1, {"z" : "q"}]}}`,
			`1,"""1""","1.50","[1,{""z"":""q""}]",,"1 (a number)","""""",`},
		"escapes": {`{"a":1,"s":"\"\\\/\b\f\n\r\t\u00e4\ud834\udd1e"}`, "1,1,\"\"\"\\/\b\f\n\r\tä𝄞\",,,,,"},
		"keys":    {`{"\u0061":1,"s":"x"}`, `1,1,"x",,,,,`},
		"twice":   {`{"a":1,"s":"x","a":2}`, `1,"it has the key a twice","{""a"":1,""s"":""x"",""a"":2}",,,,,,`},
		"no inside": {`{"a":1,"s":"x","o":7}`,
			`1,"o is a number, and has no values inside","{""a"":1,""s"":""x"",""o"":7}",,,,,,`},
		"no object": {`[[1]]`, `1,"it is no object: a record has its values by their names","[1]",,,,,,`},
		"surrogate": {`{"a":1,"s":"\ud800"}`,
			`1:1,"s: \ud800 is half of a pair of \u","{""a"":1,""s"":""\ud800""}",,,,,,`},
		"zero": {`{"a":1,"s":"\u0000"}`,
			`1:1,"s: a text has the character \u0000, which tables cannot hold","{""a"":1,""s"":""\u0000""}",,,,,,`},
		"not utf-8": {"{\"a\":1,\"s\":\"\xff\"}",
			"1,\"it is not UTF-8 text\",\"{\"\"a\"\":1,\"\"s\"\":\"\"\ufffd\"\"}\",,,,,,"},
		"bad number": {`{"a":01,"s":""}`, `1,"""01,\""s\"":\""\""}"" is no JSON number","{""a"":01,""s"":""""}",,,,,,`},
		"deep": {`{"a":` + strings.Repeat("[", 300) + strings.Repeat("]", 300) + `}`,
			`1,"it is nested more than 200 levels deep","{""a"":` + strings.Repeat("[", 300) +
				strings.Repeat("]", 300) + `}",,,,,,`},
	} {
		for _, piece := range []int{1, 7, 1 << 20} {
			got, err := convert(t, c.text, piece, columns...)
			require.NoError(t, err, name)
			require.Equal(t, c.want+"\n", got, "%s by %d", name, piece)
		}
	}
}

// Where records begin and end, and in which line.
func TestShapes(t *testing.T) {
	t.Parallel()
	n := filespec.Column{Path: "n", Kind: filespec.Number, Optional: false}
	for name, c := range map[string]struct{ text, want, fails string }{
		"empty":      {"", "", ""},
		"blank":      {" \n\n", "", ""},
		"empty list": {"[]", "", ""},
		"lines":      {"{\"n\":1}\n\r\n{\"n\":2}\r\n{\"n\":3}", "1,1\n3,2\n4,3\n", ""},
		"one line":   {`{"n":1} {"n":2}{"n":3}`, "1,1\n1,2\n1,3\n", ""},
		"pretty":     {"{\n  \"n\": 1\n}\n{\n  \"n\": 2\n}", "1,1\n4,2\n", ""},
		"list":       {"\ufeff [\n{\"n\":1},\n{\"n\":2}\n]\n", "2,1\n3,2\n", ""},
		"cut line": {"{\"n\":1}\n{\"n\":2, \"x\": \"ab\n{\"n\":3}",
			"1,1\n2,\"a text is not closed at the end of its line\",\"{\"\"n\"\":2, \"\"x\"\": \"\"ab\"\n3,3\n", ""},
		"cut": {"{\"n\":1}\n{\"n\":2, ",
			"1,1\n2,\"the record is not whole: the file ends in it\",\"{\"\"n\"\":2,\"\n", ""},
		"list, cut":     {"[{\"n\":1},\n{\"n\":2}", "1,1\n2,2\n", "2: the list of records is not closed"},
		"list, broken":  {"[{\"n\":1},\n{\"n\":x}]", "1,1\n", `2: "x}]" is no JSON`},
		"list, no ,":    {"[{\"n\":1}\n{\"n\":2}]", "1,1\n", "2: .*a comma or ] is expected"},
		"list, then ,":  {"[{\"n\":1},\n]", "1,1\n", "2: .*a record is expected behind the comma"},
		"list and more": {"[{\"n\":1}]\n{\"n\":2}", "1,1\n", "2: .* is behind the end"},
	} {
		for _, piece := range []int{1, 5, 1 << 20} {
			got, err := convert(t, c.text, piece, n)
			require.Equal(t, c.want, got, "%s by %d", name, piece)
			if c.fails == "" {
				require.NoError(t, err, name)
				continue
			}
			f := fault.Of(err)
			require.Regexp(t, c.fails, fmt.Sprintf("%d: %s", f.Place.Line, f.Message), name)
		}
	}
}

// What encoding/json takes is taken, and means the same.
func TestAsEncodingJSON(t *testing.T) {
	t.Parallel()
	alphabet := []string{"{", "}", "[", "]", ",", ":", `"k"`, `"`, "1", "-", "0", ".5", "e3", "true", "null", " ", "\n",
		`\n`, `\u00`, "ä", "tru"}
	rng := rand.New(rand.NewPCG(1, 2))
	sound := 0
	for range 200_000 {
		var b strings.Builder
		b.WriteString("{")
		for range rng.IntN(8) {
			b.WriteString(alphabet[rng.IntN(len(alphabet))])
		}
		b.WriteString("}")
		text := []byte(b.String())
		end, err := value(text, 0, 0)
		ok := err == nil && len(bytes.TrimSpace(text[end:])) == 0
		valid := json.Valid(text) && !bytes.Contains(text, []byte(`\u00`))
		if bytes.Contains(text, []byte(`\`)) {
			continue // escapes are looked at when a text is wanted
		}
		require.Equal(t, valid, ok, "%s: %v", text, err)
		if ok {
			sound++
		}
	}
	require.Positive(t, sound)
}

func TestTextsAsEncodingJSON(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(3, 4))
	for range 2_000 {
		var b strings.Builder
		for range rng.IntN(20) {
			r := rune(1 + rng.IntN(0x11000))
			if !utf8.ValidRune(r) {
				r = '"'
			}
			b.WriteRune(r)
		}
		raw, err := json.Marshal(map[string]string{"s": b.String()})
		require.NoError(t, err)
		got, err := convert(t, string(raw), 3, filespec.Column{Path: "s", Kind: filespec.Text, Optional: false})
		require.NoError(t, err)
		rec, err := csv.NewReader(strings.NewReader(strings.ReplaceAll(got, "\r", "~"))).Read()
		require.NoError(t, err, "%q", got)
		require.Equal(t, strings.ReplaceAll(b.String(), "\r", "~"), rec[1])
	}
}

func TestLook(t *testing.T) {
	t.Parallel()
	got, err := Look([]byte(`{"i":1,"f":1,"s":"x","b":true,"o":{},"n":null,"big":12345678901234567890} ` +
		`{"f":1.5,"s":1,"i":2,"more":1}` + "\n{\"i\":"))
	require.NoError(t, err)
	require.Equal(t, []Found{{Key: "i", Value: Integer}, {Key: "f", Value: Fraction}, {Key: "s", Value: Any},
		{Key: "b", Value: Truth, Missing: true}, {Key: "o", Value: Any, Missing: true},
		{Key: "n", Value: Nothing, Missing: true}, {Key: "big", Value: Any, Missing: true},
		{Key: "more", Value: Integer, Missing: true}}, got)
	_, err = Look([]byte("[]"))
	require.Error(t, err)
}

func BenchmarkJSON(b *testing.B) {
	line := `{"id":123456,"name":"some ` +
		`name","address":{"city":"Bern","zip":"3000"},"tags":["a","b"],"price":12.50,"note":null}` + "\n"
	text := []byte(strings.Repeat(line, 2_000))
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		w, _ := NewWriter(&bytes.Buffer{}, filespec.Spec{Format: filespec.JSON, Columns: []filespec.Column{
			{Path: "id", Kind: filespec.Number, Optional: false},
			{Path: "name", Kind: filespec.Text, Optional: false},
			{Path: "address.city", Kind: filespec.Text, Optional: false},
			{Path: "price", Kind: filespec.Number, Optional: false}}})
		_, _ = w.Write(text)
		_ = w.Close()
	}
}
