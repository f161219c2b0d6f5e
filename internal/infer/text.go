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

	"thalweg/internal/fault"
	"thalweg/internal/files"
	"thalweg/internal/unpack"
)

// plainText gives where a file's text is in UTF-8: the file itself, or a copy in the
// working directory of one that is compressed or has another encoding.
func (p *Proposal) plainText(ctx context.Context, o Options) error {
	p.text = p.Path
	f, err := os.Open(p.Path)
	if err != nil {
		return openFault(p.Path, err)
	}
	defer f.Close()
	form := unpack.Form{}
	if form.Compression, err = unpack.CompressionIn(f); err != nil {
		return openFault(p.Path, err)
	}
	if form.Changes() {
		if err := p.unpack(ctx, o, "unpacked", form); err != nil {
			return err
		}
		p.Notes = append(p.Notes, fmt.Sprintf("the file is compressed with %s, which needs no saying", form.Compression))
	}
	if p.Encoding, err = encodingOf(p.text); err != nil || p.Encoding == "" {
		return err
	}
	charset, ok := unpack.ParseCharset(p.Encoding)
	if !ok {
		return fault.New(fault.Bug, "there is no encoding %q", p.Encoding)
	}
	if err := p.unpack(ctx, o, "text", unpack.Form{Charset: charset}); err != nil {
		return err
	}
	if p.Encoding == guessedLatin || p.Encoding == guessedWindows {
		p.Notes = append(p.Notes, "the text is not UTF-8; it was taken for "+p.Encoding+": look whether its letters are right")
	}
	return nil
}

// Encodings of one byte a character cannot be told apart but by what people write in them:
// the characters of Windows that ISO 8859-1 has not got.
const (
	guessedLatin   = "latin-1"
	guessedWindows = "windows-1252"
)

// encodingOf says what a text is written in; "": UTF-8.
func encodingOf(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", openFault(path, err)
	}
	defer f.Close()
	if wide := files.UTF16Of(f); wide != "" {
		return wide, nil
	}
	const blockBytes = 1 << 20
	block, kept, windows, broken := make([]byte, blockBytes), 0, false, false
	for {
		n, err := io.ReadFull(f, block[kept:])
		end := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !end {
			return "", openFault(path, err)
		}
		text := block[:kept+n]
		whole := len(text)
		for !end && whole > len(text)-utf8.UTFMax && !utf8.RuneStart(text[whole-1]) {
			whole--
		}
		if !end {
			whole-- // a character that may go on in the next block
		}
		broken = broken || !utf8.Valid(text[:whole])
		windows = windows || bytes.ContainsFunc(text[:whole], func(r rune) bool { return r == utf8.RuneError }) && hasC1(text[:whole])
		if kept = copy(block, text[whole:]); end {
			break
		}
	}
	switch {
	case !broken:
		return "", nil
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

// unpack writes what the text so far stands for.
func (p *Proposal) unpack(ctx context.Context, o Options, name string, form unpack.Form) (err error) {
	from, err := os.Open(p.text)
	if err != nil {
		return openFault(p.Path, err)
	}
	defer from.Close()
	path := filepath.Join(o.WorkDir, name)
	to, err := os.Create(path)
	if err != nil {
		return &fault.Error{Kind: fault.Environment, Message: "make a copy of the file's text", Err: err}
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	if _, err := unpack.Text(ctx, to, from, form); err != nil {
		f := *fault.Of(err)
		f.Place.File = p.Path
		return &f
	}
	p.text = path
	return nil
}
