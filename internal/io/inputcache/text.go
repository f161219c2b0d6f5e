package inputcache

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"

	"thalweg/internal/base/durable"
	"thalweg/internal/base/fault"
	"thalweg/internal/io/files"
	"thalweg/internal/io/records"
	"thalweg/internal/io/unpack"
	"thalweg/internal/lang/filespec"
)

// text is one file's text. Who holds busy may use the rest.
type text struct {
	busy chan struct{}
	of   string // the version of the file; "": it is not there yet, as far as is known here
}

// source is a file whose text is wanted.
type source struct {
	path      string
	name      string // for people
	version   string
	unchanged func() error // says whether the file is still that; nil: it is a copy itself
}

// note stands beside a complete text.
type note struct {
	Version string `json:"version"` // of the file
	Form    form   `json:"form"`
	Bytes   int64  `json:"bytes"` // of the text
}

// text gives where the text of a file is, and makes it if it is not there.
func (s *Store) text(ctx context.Context, key string, from source, form form) (path string, err error) {
	s.mu.Lock()
	t := s.texts[key]
	if t == nil {
		t = &text{busy: make(chan struct{}, 1)}
		s.texts[key] = t
	}
	s.mu.Unlock()
	select {
	case t.busy <- struct{}{}:
		defer func() { <-t.busy }()
	case <-ctx.Done():
		return "", canceled(ctx)
	}
	path = s.path(key)
	wanted := note{Version: from.version, Form: form}
	if t.of == from.version || s.there(path, wanted) {
		t.of = from.version
		return path, nil
	}
	if err := s.make(ctx, path, from, wanted); err != nil {
		return "", err
	}
	t.of = from.version
	return path, nil
}

// there reports whether an earlier process has left the text.
func (s *Store) there(path string, wanted note) bool {
	data, err := os.ReadFile(path + ".json")
	var have note
	if err != nil || json.Unmarshal(data, &have) != nil {
		return false
	}
	st, err := os.Stat(path)
	wanted.Bytes = have.Bytes
	return err == nil && have == wanted && st.Size() == have.Bytes
}

// make makes the text: under a temporary name first, then whole, and its note after that.
func (s *Store) make(ctx context.Context, path string, from source, n note) (err error) {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return diskFault("make the directory for copies of input files", err)
	}
	open := os.Open
	if from.unchanged != nil { // no copy: it is judged where it leads by now
		open = s.client.Policy().Open
	}
	in, err := open(from.path)
	if err != nil {
		return files.OpenFault(from.name, err)
	}
	defer in.Close()
	if err := os.Remove(path + ".json"); err != nil && !errors.Is(err, os.ErrNotExist) {
		return diskFault("replace the text of an input file", err)
	}
	temp := path + ".part"
	out, err := os.OpenFile(temp, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return diskFault("make the text of an input file", err)
	}
	to, forget := s.spool.Counted(out)
	defer func() {
		if err != nil {
			forget()
			_ = os.Remove(temp) // what stays is overwritten by the next try and goes with the run
		}
	}()
	n.Bytes, err = s.write(ctx, to, in, from, n.Form)
	if err == nil && from.unchanged != nil {
		err = from.unchanged()
	}
	if err = errors.Join(err, out.Close()); err != nil {
		return err
	}
	if err := os.Rename(temp, path); err != nil {
		return diskFault("keep the text of an input file", err)
	}
	data, err := json.Marshal(n)
	if err == nil {
		err = durable.FS{}.WriteFile(path+".json", data, 0o600)
	}
	if err != nil {
		return diskFault("keep the text of an input file", err)
	}
	return nil
}

func (s *Store) write(ctx context.Context, to io.Writer, in io.Reader, from source, form form) (int64, error) {
	if err := checkJSON(from, form); err != nil {
		return 0, err
	}
	n, err := textOf(ctx, to, in, form)
	var f *fault.Error
	switch {
	case err == nil:
		return n, nil
	case ctx.Err() != nil:
		return n, canceled(ctx)
	case errors.As(err, &f):
		placed := *f
		placed.Place.File = from.name
		return n, &placed
	}
	return n, files.OpenFault(from.name, err)
}

// checkJSON refuses a file of JSON that begins as something else does, of which each line would be a bad record.
func checkJSON(from source, form form) error {
	if form.Records == "" || form.Charset != filespec.UTF8 {
		return nil
	}
	spec, err := filespec.Decode(form.Records)
	if err != nil || spec.Format == filespec.Workbooks {
		return err
	}
	head, err := files.Head(from.path, from.name, files.HeadSampleBytes)
	if err != nil {
		return err
	}
	return files.CheckText(bytes.NewReader(head), from.name)
}

// textOf writes a text, or the CSV that is made of its records.
func textOf(ctx context.Context, to io.Writer, in io.Reader, form form) (int64, error) {
	if form.Records == "" {
		return unpack.Text(ctx, to, in, form.Form)
	}
	spec, err := filespec.Decode(form.Records)
	if err != nil {
		return 0, err
	}
	out := bufio.NewWriterSize(to, bufferBytes)
	if spec.Format == filespec.Workbooks {
		n, err := sheetOf(ctx, out, in, spec)
		if err != nil {
			return n, err
		}
		return n, out.Flush()
	}
	w, err := records.NewWriter(out, spec)
	if err != nil {
		return 0, err
	}
	if _, err := unpack.Text(ctx, w, in, form.Form); err != nil {
		var f *fault.Error
		if errors.As(err, &f) {
			return 0, f // what the records are wrong in
		}
		return 0, err
	}
	if err := w.Close(); err != nil {
		return 0, err
	}
	return w.Written(), out.Flush()
}

// sheetOf writes the rows of a workbook's sheet, which is not read from its beginning to its end.
func sheetOf(ctx context.Context, to io.Writer, in io.Reader, spec filespec.Spec) (int64, error) {
	f, ok := in.(*os.File)
	if !ok {
		return 0, fault.New(fault.Bug, "a workbook is no file")
	}
	st, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return records.Excel(ctx, to, f, st.Size(), spec)
}

// bufferBytes are written at a time.
const bufferBytes = 256 << 10

func canceled(ctx context.Context) error {
	return &fault.Error{Kind: fault.Canceled, Message: "canceled", Err: context.Cause(ctx)}
}

func diskFault(what string, err error) error {
	return &fault.Error{Kind: fault.Environment, Message: what, Err: err, Retryable: fault.Passes(err),
		Hint: "check permissions and free space of the state directory"}
}
