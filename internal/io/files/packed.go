package files

import (
	"context"
	"errors"
	"os"

	"thalweg/internal/io/unpack"
	"thalweg/internal/lang/filespec"
	"thalweg/internal/lang/script"
)

// Packed reports whether a file that r reads has to be unpacked before: it is compressed,
// or its text is not in UTF-8. Of one that cannot be read it says no: whoever reads it says
// why.
func Packed(r *script.FileReader, path string) bool {
	if r.Parquet {
		return false
	}
	if r.CSV.Charset != filespec.UTF8 || r.Records != "" {
		return true
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	c, err := unpack.CompressionIn(f)
	return err == nil && c != filespec.Plain
}

// openHead opens a file to read its beginning; of one that is packed, the beginning of its
// text. That a file which is seen in part is damaged further on is found when it is read.
func openHead(r *script.FileReader, in Input) (_ *os.File, err error) {
	src := in.source()
	f, err := src.open()
	if err != nil {
		return nil, err
	}
	form := unpack.Form{Charset: r.CSV.Charset}
	if form.Compression, err = unpack.CompressionIn(f); err != nil {
		return nil, errors.Join(src.unread(err), f.Close())
	}
	if !form.Changes() {
		return f, nil
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	text, err := os.CreateTemp("", "thalweg-head-")
	if err != nil {
		return nil, src.unread(err)
	}
	if err := os.Remove(text.Name()); err != nil {
		return nil, errors.Join(src.unread(err), text.Close())
	}
	n, err := unpack.Text(context.Background(), &firstBytes{text, HeadBytesMax}, f, form)
	if err != nil && n == 0 {
		return nil, errors.Join(src.named(err), text.Close())
	}
	return text, nil
}

// firstBytes takes so many bytes, and then no more.
type firstBytes struct {
	to   *os.File
	left int
}

var errEnough = errors.New("enough")

func (f *firstBytes) Write(p []byte) (int, error) {
	n, err := f.to.Write(p[:min(len(p), f.left)])
	if f.left -= n; err == nil && n < len(p) {
		err = errEnough
	}
	return n, err
}
