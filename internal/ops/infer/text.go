package infer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"unicode/utf8"

	"thalweg/internal/base/fault"
	"thalweg/internal/io/files"
	"thalweg/internal/io/unpack"
	"thalweg/internal/lang/filespec"
)

// text is the text of a file, or the CSV that was made of its records, open to be looked at.
type text struct {
	*os.File
	name string // of the file, for people
	size int64
}

// openText opens the text at a path.
func openText(path, name string) (*text, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, openFault(name, err)
	}
	st, err := f.Stat()
	if err != nil {
		return nil, errors.Join(openFault(name, err), f.Close())
	}
	return &text{f, name, st.Size()}, nil
}

// plainText finds out what the text of the file of this number is written in, and sees to it that
// it is at hand in UTF-8: in the file itself, or in a copy in the working directory of one
// that is compressed or has another encoding.
func (p *Proposal) plainText(ctx context.Context, name string, number int, o Options) (encoding string, err error) {
	f, err := openText(p.texts[name], name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	form := unpack.Form{}
	if form.Compression, err = unpack.CompressionIn(f.File); err != nil {
		return "", openFault(name, err)
	}
	if form.Changes() {
		if err := p.unpack(ctx, name, filepath.Join(o.WorkDir, fmt.Sprintf("unpacked_%d", number)), form); err != nil {
			return "", err
		}
		if number == 0 {
			p.Notes = append(p.Notes, fmt.Sprintf("the file is compressed with %s, which needs no saying",
				form.Compression))
		}
	}
	encoding, broken, err := encodingOf(ctx, p.texts[name], name)
	if broken > 0 {
		p.someBroken = true
		p.Notes = append(p.Notes, fmt.Sprintf("%s is UTF-8 but for %s: the rows that have it are put aside", name,
			counted(broken, "byte")))
	}
	if err != nil || encoding == "" {
		return "", err
	}
	charset, ok := filespec.ParseCharset(encoding)
	if !ok {
		return "", fault.New(fault.Bug, "there is no encoding %q", encoding)
	}
	if err := p.unpack(ctx, name, filepath.Join(o.WorkDir, fmt.Sprintf("text_%d", number)),
		unpack.Form{Charset: charset}); err != nil {
		return "", err
	}
	if number == 0 && (encoding == guessedLatin || encoding == guessedWindows) {
		p.guessed("the text is not UTF-8; it was taken for %s: look whether its letters are right", encoding)
	}
	return encoding, nil
}

// Encodings of one byte a character cannot be told apart but by what people write in them:
// the characters of Windows that ISO 8859-1 has not got.
const (
	guessedLatin   = "latin-1"
	guessedWindows = "windows-1252"
)

// encodingOf says what a text is written in; "": UTF-8, but for some broken bytes.
func encodingOf(ctx context.Context, path, name string) (encoding string, broken int64, err error) {
	f, err := openText(path, name)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	encoding, err = f.encoding()
	if encoding != guessedLatin && encoding != guessedWindows || err != nil {
		return encoding, 0, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return "", 0, openFault(name, err)
	}
	mostly, broken, err := files.MostlyUTF8(ctx, f)
	switch {
	case err != nil && ctx.Err() != nil:
		return "", 0, err
	case err != nil:
		return "", 0, openFault(name, err)
	case mostly:
		return "", broken, nil
	}
	return encoding, 0, nil
}

// encoding finds the encoding of a text, if all of it has the same.
func (f *text) encoding() (string, error) {
	if wide := files.UTF16Of(f); wide != "" {
		return wide, nil
	}
	const blockBytes = 1 << 20
	block, kept, windows, broken, zeros := make([]byte, blockBytes), 0, false, false, false
	for {
		n, err := io.ReadFull(f, block[kept:])
		end := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !end {
			return "", openFault(f.name, err)
		}
		text := block[:kept+n]
		whole := len(text)
		for !end && whole > len(text)-utf8.UTFMax && !utf8.RuneStart(text[whole-1]) {
			whole--
		}
		if !end {
			whole-- // a character that may go on in the next block
		}
		zeros = zeros || bytes.IndexByte(text, 0) >= 0
		broken = broken || !utf8.Valid(text[:whole])
		windows = windows || bytes.ContainsFunc(text[:whole], func(r rune) bool { return r == utf8.RuneError }) &&
			hasC1(text[:whole])
		if kept = copy(block, text[whole:]); end {
			break
		}
	}
	switch {
	case !broken:
		return "", nil
	case zeros:
		if err := files.CheckText(f, f.name); err != nil {
			return "", err
		}
		return "", &fault.Error{Kind: fault.UserData, Place: fault.Place{File: f.name}, Message: "the file is no text",
			Hint: "name a file of CSV, JSON, Excel or Parquet"}
	case windows:
		return guessedWindows, nil
	}
	return guessedLatin, nil
}

// hasC1 reports bytes that are control characters in ISO 8859-1, and letters and quotes in
// the encodings of Windows.
func hasC1(text []byte) bool {
	for _, b := range text {
		if b >= 0x80 && b <= 0x9f {
			return true
		}
	}
	return false
}

// unpack writes what a file's text so far stands for.
func (p *Proposal) unpack(ctx context.Context, name, path string, form unpack.Form) (err error) {
	from, err := openText(p.texts[name], name)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.Create(path)
	if err != nil {
		return &fault.Error{Kind: fault.Environment, Message: "make a copy of the file's text", Err: err}
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	if _, err := unpack.Text(ctx, to, from, form); err != nil {
		return in(name, fault.Of(err))
	}
	p.texts[name] = path
	return nil
}
