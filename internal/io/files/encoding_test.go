package files

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf16"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/fault"
	"thalweg/internal/lang/script"
)

func inUTF16(order binary.ByteOrder, text string) string {
	var out bytes.Buffer
	for _, unit := range utf16.Encode([]rune(text)) {
		_ = binary.Write(&out, order, unit)
	}
	return out.String()
}

// TestNotText: what is no text in UTF-8 is refused by its beginning, in the short
// form, by headers, by positions, and as the second of two files.
func TestNotText(t *testing.T) {
	t.Parallel()
	const plain = "id,größe\n1,2\n"
	inHeader := map[string]bool{"latin1": true, "zero": true, "cut": true, "one byte": true}
	for name, c := range map[string]struct{ text, message, hint string }{
		"xz":        {"\xfd7zXZ\x00\x00\x04", "compressed with xz", "unxz"},
		"bzip2":     {"BZh91AY&SY\x01\x02", "compressed with bzip2", "bunzip2"},
		"lz4":       {"\x04\x22\x4d\x18id", "compressed with lz4", "unlz4"},
		"zip":       {"PK\x03\x04\x14\x00", "zip archive or a spreadsheet", "unzip"},
		"parquet":   {"PAR1\x15\x04", "a Parquet file", ".parquet"},
		"utf-16":    {"\xff\xfe" + inUTF16(binary.LittleEndian, plain), "UTF-16", "csv: {encoding: utf-16}"},
		"utf-16 be": {"\xfe\xff" + inUTF16(binary.BigEndian, plain), "UTF-16", "csv: {encoding: utf-16}"},
		"bare le":   {inUTF16(binary.LittleEndian, plain), "UTF-16", "csv: {encoding: utf-16le}"},
		"bare be":   {inUTF16(binary.BigEndian, plain), "UTF-16", "csv: {encoding: utf-16be}"},
		"utf-32":    {"\xff\xfe\x00\x00i\x00\x00\x00", "UTF-32", "iconv -f utf-32"},
		"latin1":    {"id,gr\xf6\xdfe\n1,2\n", "not UTF-8 text", "csv: {encoding: windows-1252}"},
		"cut":       {"id,gr\xc3\n1,2\n", "not UTF-8 text", "csv: {encoding: windows-1252}"},
		"one byte": {"id,gr\xc3\nZürich,Genève\nGrün,Süd\n", "the header is not UTF-8",
			"correct it: the rest of the file is UTF-8"},
		"zero": {"id,gr\x00e,and,more,columns\n1,2,3,4,5\n", "a byte that is zero", "encoding: utf-16le"},
	} {
		good, bad := writeFile(t, t.TempDir(), "good.csv", plain), writeFile(t, t.TempDir(), "bad.csv", c.text)
		requireRefused := func(err error, form string) {
			require.ErrorContains(t, err, c.message, "%s, %s", name, form)
			f := fault.Of(err)
			require.Equal(t, fault.UserData, f.Kind)
			require.Equal(t, bad, f.Place.File, form)
			require.Contains(t, f.Hint, c.hint, form)
		}
		_, err := Columns(context.Background(), Look{}, bad, script.CSVReader{Separator: ','}, false)
		requireRefused(err, "short form")
		plan := func(r *script.FileReader) error {
			_, err := readAll(t, openDB(t, 1), r, 1<<20, 1, Unnumbered)
			return err
		}
		requireRefused(plan(csvByHeader("id|string", bad)), "headers")
		requireRefused(plan(csvByHeader("id|string", good, bad)), "the second file")
		if !inHeader[name] { // without a header only what is read has to be text
			requireRefused(plan(csvTexts(1, bad)), "positions")
		}
	}
}

// TestText: these are text, odd as they are.
func TestText(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"BZh,b\n1,2\n", "PK,b\n1,2\n", "PAR1,PAR2\n1,2\n", "\xEF\xBB\xBFgröße\n1\n",
		"a\n\x00\x00\n",
		"a\n", "a", "日,本\n1,2\n", "PAR,b\n1,2\n", "id\n" + strings.Repeat("\x00", 10) + "\n"} {
		path := writeFile(t, t.TempDir(), "x.csv", text)
		_, err := Columns(context.Background(), Look{}, path, script.CSVReader{Separator: ','}, false)
		require.NoError(t, err, "%q", text)
	}
}

// TestMostlyUTF8: some bytes that are none make no other encoding of a text, wherever they are.
func TestMostlyUTF8(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		mostly bool
		broken int64
	}{
		"":                             {false, 0},
		"Genève":                       {true, 0},
		"Z\xfcrich":                    {false, 1},
		"éééé\xe8":                     {true, 1},
		"\xe8éééé\xc3":                 {false, 2},
		"ééé\xe8":                      {false, 1},
		"日本日本日本日本\xe6\x97":             {true, 2},
		"\xef\xbf\xbd\xef\xbf\xbd\xff": {false, 1},
		strings.Repeat("é", 1<<20) + "\xe8 " + "é": {true, 1},
		"x" + strings.Repeat("日", 1<<20):           {true, 0},
	} {
		for _, in := range []io.Reader{strings.NewReader(text), iotest.HalfReader(strings.NewReader(text))} {
			mostly, broken, err := MostlyUTF8(t.Context(), in)
			require.NoError(t, err)
			require.Equal(t, want.mostly, mostly, "%.20q", text)
			require.Equal(t, want.broken, broken, "%.20q", text)
		}
	}
}
