package unpack_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"

	"thalweg/internal/base/fault"
	"thalweg/internal/io/unpack"
	"thalweg/internal/lang/filespec"
)

func text(t *testing.T, from io.Reader, form unpack.Form) (string, error) {
	t.Helper()
	var out bytes.Buffer
	n, err := unpack.Text(t.Context(), &out, from, form)
	require.EqualValues(t, out.Len(), n)
	return out.String(), err
}

func packed(t *testing.T, c filespec.Compression, data string) []byte {
	t.Helper()
	var out bytes.Buffer
	var w io.WriteCloser
	switch c {
	case filespec.Gzip:
		w = gzip.NewWriter(&out)
	case filespec.Zstd:
		z, err := zstd.NewWriter(&out)
		require.NoError(t, err)
		w = z
	default:
		return []byte(data)
	}
	_, err := io.WriteString(w, data)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return out.Bytes()
}

// What other encoders write is read again, however the bytes come.
func TestTextOfOthers(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("name;größe\nMüller;1,5\n", 40_000)
	for _, c := range []struct {
		charset filespec.Charset
		by      encoding.Encoding
		text    string
	}{
		{filespec.UTF8, encoding.Nop, "a,ü,€,𝄞\n"},
		{filespec.UTF8, encoding.Nop, ""},
		{"iso-8859-1", charmap.ISO8859_1, long},
		{"iso-8859-15", charmap.ISO8859_15, "preis;5 €\n"},
		{"windows-1252", charmap.Windows1252, "„quoted“ – 5 €\n" + long},
		{"windows-1251", charmap.Windows1251, "Привет\n"},
		{"ibm850", charmap.CodePage850, long},
		{"utf-16", unicode.UTF16(unicode.LittleEndian, unicode.UseBOM), "a,ü,€,𝄞\n" + long},
		{"utf-16", unicode.UTF16(unicode.BigEndian, unicode.UseBOM), strings.Repeat("𝄞", 200_000)},
		{"utf-16", unicode.UTF16(unicode.BigEndian, unicode.UseBOM), ""},
		{"utf-16le", unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM), long},
		{"utf-16le", unicode.UTF16(unicode.LittleEndian, unicode.UseBOM), long},
		{"utf-16be", unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM), "\ufffd is a character\n"},
	} {
		raw, err := c.by.NewEncoder().String(c.text)
		require.NoError(t, err)
		for _, compression := range []filespec.Compression{filespec.Plain, filespec.Gzip, filespec.Zstd} {
			data := packed(t, compression, raw)
			require.Equal(t, compression, unpack.CompressionOf(data))
			form := unpack.Form{Compression: compression, Charset: c.charset}
			for _, from := range []io.Reader{bytes.NewReader(data), iotest.HalfReader(bytes.NewReader(data)),
				iotest.DataErrReader(bytes.NewReader(data))} {
				got, err := text(t, from, form)
				require.NoError(t, err, "%v", form)
				require.True(t, c.text == got, "%v: %.40q", form, got)
			}
			if len(data) < 1_000 {
				got, err := text(t, iotest.OneByteReader(bytes.NewReader(data)), form)
				require.NoError(t, err)
				require.Equal(t, c.text, got)
			}
		}
	}
}

// Files that were put together are read whole, as gunzip and unzstd do.
func TestSeveralStreams(t *testing.T) {
	t.Parallel()
	for _, c := range []filespec.Compression{filespec.Gzip, filespec.Zstd} {
		data := append(packed(t, c, "a\n1\n"), packed(t, c, "2\n")...)
		got, err := text(t, bytes.NewReader(data), unpack.Form{Compression: c})
		require.NoError(t, err)
		require.Equal(t, "a\n1\n2\n", got)
	}
}

// Behind gzip data there may be zeros, as gunzip has it, and nothing else, which would be left out.
func TestBehindGzip(t *testing.T) {
	t.Parallel()
	data := packed(t, filespec.Gzip, "a\n1\n")
	two := slices.Concat(data, packed(t, filespec.Gzip, ""), data)
	for _, c := range []struct{ behind, fails string }{
		{"\x00", ""}, {strings.Repeat("\x00", 10_000), ""},
		{"x", "behind its gzip data are bytes that are no gzip"}, {strings.Repeat("garbage", 1000),
			"behind its gzip data"},
		{"\x00\x00x", "behind its gzip data"}, {"\x00\x1f\x8b\x08\x00", "behind its gzip data"},
		{"\x1f", "ends too early"}, {string(data[:9]), "ends too early"},
		{string(data[:len(data)-1]), "ends too early"},
		{"\x1fgarbage and more of it", "its gzip data is damaged"},
	} {
		for _, whole := range [][]byte{data, two} {
			for _, from := range []io.Reader{strings.NewReader(string(whole) + c.behind),
				iotest.OneByteReader(strings.NewReader(string(whole) + c.behind))} {
				got, err := text(t, from, unpack.Form{Compression: filespec.Gzip})
				if c.fails != "" {
					require.ErrorContains(t, err, c.fails, "%.20q", c.behind)
					continue
				}
				require.NoError(t, err)
				require.Equal(t, strings.Repeat("a\n1\n", min(2, len(whole)/len(data))), got)
			}
		}
	}
}

// A compressed file that is cut anywhere, or of which a bit is another one, is never taken
// for another text.
func TestDamage(t *testing.T) {
	t.Parallel()
	for _, c := range []filespec.Compression{filespec.Gzip, filespec.Zstd} {
		whole := strings.Repeat("abc,1\n", 300) + "x"
		data := packed(t, c, whole)
		for n := 4; n < len(data); n++ {
			_, err := text(t, bytes.NewReader(data[:n]), unpack.Form{Compression: c})
			require.Error(t, err, "%s cut at %d", c, n)
			require.Equal(t, fault.UserData, fault.Of(err).Kind)
			require.Contains(t, fault.Of(err).Message, "ends too early", "%s cut at %d", c, n)
		}
		for n := range len(data) {
			flipped := bytes.Clone(data)
			flipped[n] ^= 1 << rand.IntN(8)
			if got, err := text(t, bytes.NewReader(flipped), unpack.Form{Compression: c}); err == nil {
				require.Equal(t, whole, got, "%s flipped at %d", c, n) // a name or a moment in its head
			} else {
				require.Equal(t, fault.UserData, fault.Of(err).Kind, "%v", err)
			}
		}
		_, err := text(t, bytes.NewReader(append(bytes.Clone(data), "garbage"...)), unpack.Form{Compression: c})
		require.Error(t, err)
	}
}

func TestWhatIsNoText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		charset       filespec.Charset
		bytes         string
		line          int64
		message, hint string
	}{
		{"windows-1252", "a\nb\x81\n", 2, "byte 0x81 is no character of windows-1252", "csv: {encoding"},
		{"iso-8859-1", "a\n\n5 \x80\n", 3, "byte 0x80 is no character of iso-8859-1", "in windows-1252 it is €"},
		{"iso-8859-7", "\xff", 1, "0xff is no character", "csv: {encoding"},
		{"utf-16", "a\x00\n\x00", 1, "no byte order mark", "utf-16le"},
		{"utf-16le", "\xfe\xff\x00a", 1, "is in utf-16be, not in utf-16le", "utf-16}"},
		{"utf-16le", "a\x00\n\x00\x00\xd8b\x00", 2, "half of a pair", "damaged"},
		{"utf-16le", "a\x00\n\x00\x00\xd8", 2, "half of a pair", "damaged"},
		{"utf-16be", "\xdc\x00\xd8\x00", 1, "half of a pair", "damaged"},
		{"utf-16be", "\x00a\x00", 1, "ends within a character", "whole"},
		{"utf-16", "\xff", 1, "byte order mark", "utf-16le"},
	} {
		for _, from := range []io.Reader{strings.NewReader(c.bytes), iotest.OneByteReader(strings.NewReader(c.bytes))} {
			_, err := text(t, from, unpack.Form{Charset: c.charset})
			require.Error(t, err, "%q", c.bytes)
			f := fault.Of(err)
			require.Equal(t, fault.UserData, f.Kind)
			require.Equal(t, c.line, f.Place.Line, "%q", c.bytes)
			require.Contains(t, f.Message, c.message)
			require.Contains(t, f.Hint, c.hint)
		}
	}
}

// A disk that fails is no fault of the data.
func TestReadingFails(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for _, c := range []filespec.Compression{filespec.Plain, filespec.Gzip, filespec.Zstd} {
		data := packed(t, c, "a\n1\n")
		for n := range len(data) {
			_, err := text(t, io.MultiReader(bytes.NewReader(data[:n]), iotest.ErrReader(broken)),
				unpack.Form{Compression: c})
			require.ErrorIs(t, err, broken, "%s at %d", c, n)
		}
	}
}

func TestCharsetsByTheirNames(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]filespec.Charset{
		"UTF-8": "", "utf8": "", "ASCII": "", "latin1": "iso-8859-1", "Latin-1": "iso-8859-1", "ISO_8859-15": "iso-8859-15",
		"cp1252":       "windows-1252",
		"Windows-1252": "windows-1252", "windows1252": "windows-1252", "cp850": "ibm850", "UTF16": "utf-16",
		"utf-16-le": "utf-16le", "UTF-16BE": "utf-16be", "ansi": "windows-1252",
	} {
		got, ok := filespec.ParseCharset(name)
		require.True(t, ok, name)
		require.Equal(t, want, got, name)
	}
	for _, name := range []string{"", "utf", "klingon", "8859-1", "utf-32"} {
		_, ok := filespec.ParseCharset(name)
		require.False(t, ok, name)
	}
	for _, name := range filespec.Charsets() {
		_, ok := filespec.ParseCharset(name)
		require.True(t, ok, name)
	}
}

// However hostile a file is: an error or a text, never more memory than is allowed.
func FuzzText(f *testing.F) {
	f.Add([]byte("a\x00\n\x00"), "utf-16le", "")
	f.Add([]byte("\x1f\x8b\x08\x00"), "", "gzip")
	f.Add([]byte("\x28\xb5\x2f\xfd\x00"), "iso-8859-1", "zstd")
	f.Fuzz(func(t *testing.T, data []byte, charset, compression string) {
		_, _ = unpack.Text(t.Context(), &limited{1 << 20}, bytes.NewReader(data),
			unpack.Form{Charset: filespec.Charset(charset), Compression: filespec.Compression(compression)})
	})
}

type limited struct{ left int }

func (l *limited) Write(p []byte) (int, error) {
	if l.left -= len(p); l.left < 0 {
		return 0, errors.New("too much")
	}
	return len(p), nil
}
