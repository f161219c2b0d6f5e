package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"unicode/utf8"

	"thalweg/internal/base/fault"
	"thalweg/internal/lang/script"
)

// HeadSampleBytes of a file's beginning say what it is.
const HeadSampleBytes = 4 << 10

// signature is the beginning of the files of a format, and the error for them.
type signature struct {
	begin   string
	message string
	hint    string
}

const (
	decompress = "decompress it first, for example with "
	convert    = "convert it first, for example with iconv -f "
	noTable    = "name a file of CSV, JSON, Excel or Parquet"
	webPage    = "fetch the data itself: this may be the page of a login, or of an error"
	sayIt      = "say so on the node that reads it: csv: {encoding: "
)

// signatures are of what is handed over as CSV by mistake: each would be read as
// some record of odd characters.
func signatures() []signature {
	return []signature{
		// What was unpacked already may have been packed twice.
		{"\x1f\x8b", "the file is compressed with gzip, inside of another compression", decompress + "gunzip"},
		{"\x28\xb5\x2f\xfd", "the file is compressed with zstd, inside of another compression", decompress + "unzstd"},
		{"\xfd7zXZ\x00", "the file is compressed with xz", decompress + "unxz"},
		{"BZh", "the file is compressed with bzip2", decompress + "bunzip2"},
		{"\x04\x22\x4d\x18", "the file is compressed with lz4", decompress + "unlz4"},
		{"PK\x03\x04", "the file is a zip archive or a spreadsheet",
			"say format: excel of a workbook (.xlsx); other archives are unpacked first: unzip -p FILE > NAME.csv; " +
				"other spreadsheets saved as CSV in UTF-8"},
		// PAR1 alone may be a header; the first byte of a page or of the footer may not.
		{"PAR1\x15", "the file is a Parquet file",
			"let its name end in .parquet, or give its columns parquet instead of csv"},
		{"\x89PNG", "the file is a picture", noTable},
		{"\xff\xd8\xff", "the file is a picture", noTable},
		{"%PDF-", "the file is a PDF document",
			"save its tables as CSV: a PDF says where characters stand, not which columns they are"},
		{"\xd0\xcf\x11\xe0", "the file is an old document of Excel or Word",
			"open it in Excel or LibreOffice and save it as .xlsx, which format: excel reads, or as CSV"},
		{"\x7fELF", "the file is a program", noTable},
		{"SQLite format 3\x00", "the file is a SQLite database",
			"name it as urls: [\"sqlite://FILE\"] with table: NAME"},
		{"<!DOCTYPE html", "the file is a web page", webPage},
		{"<!doctype html", "the file is a web page", webPage},
		{"<html", "the file is a web page", webPage},
		{"<?xml", "the file is XML", "convert it to CSV or JSON first"},
		{"\xff\xfe\x00\x00", "the file is text in UTF-32, not in UTF-8", convert + "utf-32 -t utf-8"},
		{"\x00\x00\xfe\xff", "the file is text in UTF-32, not in UTF-8", convert + "utf-32 -t utf-8"},
		{"\xff\xfe", "the file is text in UTF-16, not in UTF-8", sayIt + "utf-16}"},
		{"\xfe\xff", "the file is text in UTF-16, not in UTF-8", sayIt + "utf-16}"},
	}
}

// CheckText refuses a file that begins as no CSV file in UTF-8 does: compressed, an
// archive, in UTF-16 with or without a mark.
func CheckText(f io.ReaderAt, u string) error { return source{url: u}.checkText(f) }

func (s source) checkText(f io.ReaderAt) error {
	head := make([]byte, HeadSampleBytes)
	n, err := f.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return s.unread(err)
	}
	head = head[:n]
	for _, known := range signatures() {
		// BZh alone may be a header; what follows it in a compressed file may not.
		if bytes.HasPrefix(head, []byte(known.begin)) &&
			(known.begin != "BZh" || bytes.HasPrefix(head[min(n, 4):], []byte("1AY&SY"))) {
			return s.noText(known.message, known.hint)
		}
	}
	if order := unmarkedUTF16(head); order != "" {
		return s.noText("the file is text in UTF-16, not in UTF-8", sayIt+order+"}")
	}
	return nil
}

// UTF16Of is the encoding of a text in UTF-16, by its mark or its zeros; "" of any other.
func UTF16Of(f io.ReaderAt) string {
	head := make([]byte, HeadSampleBytes)
	n, _ := f.ReadAt(head, 0) // whoever reads it all says what is wrong
	head = head[:n]
	switch {
	case bytes.HasPrefix(head, []byte("\xff\xfe\x00\x00")), bytes.HasPrefix(head, []byte("\x00\x00\xfe\xff")):
		return "" // UTF-32
	case bytes.HasPrefix(head, []byte("\xff\xfe")), bytes.HasPrefix(head, []byte("\xfe\xff")):
		return "utf-16"
	}
	return unmarkedUTF16(head)
}

// unmarkedUTF16 tells UTF-16 from other text: in most of its pairs one byte, always
// the same, is zero. It gives the order of the bytes, "" if it is none.
func unmarkedUTF16(head []byte) string {
	const pairsMin = 2
	var zeros [2]int
	pairs := len(head) / 2
	for i, b := range head[:2*pairs] {
		if b == 0 {
			zeros[i%2]++
		}
	}
	switch {
	case pairs < pairsMin:
		return ""
	case zeros[0] == 0 && zeros[1] > pairs/2:
		return "utf-16le"
	case zeros[1] == 0 && zeros[0] > pairs/2:
		return "utf-16be"
	}
	return ""
}

// checkHeader refuses a header that is not text: its names would lose what cannot
// be read of them, and be the names of nothing that anybody wrote.
func checkHeader(w *csvWalker, header csvRecord) error {
	if bytes.IndexByte(header.text, 0) >= 0 {
		f := w.src.noText("the header has a byte that is zero: it is no text in UTF-8",
			"look whether this is a CSV file; of text in UTF-16 without a byte order mark say csv: {encoding: utf-16le}")
		f.Place.Line = header.line + 1
		return f
	}
	if utf8.Valid(header.text) {
		return nil
	}
	f := NotUTF8(w.src.url)
	f.Place.Line = header.line + 1
	if broken := brokenBytes(context.Background(), io.NewSectionReader(w.in, 0, HeadBytesMax)); broken > 0 {
		f.Message, f.Hint = "the header is not UTF-8 text", "correct it: the rest of the file is UTF-8"
	}
	return f
}

// MostlyUTF8 reports whether a text is UTF-8 with some bytes in it that are not, and not a text in another
// encoding: those that write a character as a byte hardly ever have what could be a character of several. It says how
// many bytes are no UTF-8.
func MostlyUTF8(ctx context.Context, text io.Reader) (mostly bool, broken int64, err error) {
	const blockBytes, characters = 1 << 20, 4 // for each byte that is none
	block, kept, several := make([]byte, blockBytes), 0, int64(0)
	for {
		if ctx.Err() != nil {
			return false, 0, context.Cause(ctx)
		}
		n, err := io.ReadFull(text, block[kept:])
		end := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !end {
			return false, 0, err
		}
		rest := block[:kept+n]
		for len(rest) > 0 && (end || utf8.FullRune(rest)) {
			r, size := utf8.DecodeRune(rest)
			switch {
			case r == utf8.RuneError && size == 1:
				broken++
			case size > 1:
				several++
			}
			rest = rest[size:]
		}
		if kept = copy(block, rest); end {
			return several > 0 && several >= characters*broken, broken, nil
		}
	}
}

// brokenBytes counts the bytes that are no UTF-8 in a text that is mostly that; 0 of others.
func brokenBytes(ctx context.Context, text io.Reader) int64 {
	if mostly, broken, err := MostlyUTF8(ctx, text); err == nil && mostly {
		return broken
	}
	return 0 // whoever reads it says what is wrong
}

// notUTF8Hint is the way out of a value of a file that is not UTF-8.
func notUTF8Hint(ctx context.Context, path string) string {
	const lookedBytes = 1 << 30
	if f, err := os.Open(path); err == nil {
		defer f.Close()
		if broken := brokenBytes(ctx, io.LimitReader(f, lookedBytes)); broken > 0 {
			return fmt.Sprintf("the file is UTF-8 but for %s: correct that value, or say bad_rows: quarantine of the "+
				"node to put such rows aside", counted(int(broken), "byte"))
		}
	}
	return sayIt + "windows-1252}, or what the file is in; or mend that value"
}

// NotUTF8 says that a file has another encoding, which it does not tell.
func NotUTF8(u string) *fault.Error {
	return source{url: u}.noText("the file is not UTF-8 text", sayIt+"windows-1252}, or latin-1, or what else it is in")
}

// noText says that the file is no text that can be read.
func (s source) noText(message, hint string) *fault.Error {
	f := s.bad("%s", message)
	f.Hint = hint
	return f
}

// IsWorkbook reports whether a file begins as Excel's workbooks do, which are zip archives.
func IsWorkbook(f io.ReaderAt) bool {
	head := make([]byte, 4)
	n, _ := f.ReadAt(head, 0) // whoever reads it all says what is wrong
	return string(head[:n]) == "PK\x03\x04"
}

// Head is the beginning of a file's text: of a compressed one, of what it holds.
func Head(path, u string, bytes int64) ([]byte, error) {
	in, err := stat(script.FileURL{URL: u}, Places{Copies: map[string]Copy{u: {Path: path}}})
	if err != nil {
		return nil, err
	}
	f, err := openHead(&script.FileReader{}, in)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.NewSectionReader(f, 0, bytes))
	return text, in.source().unread(err)
}
