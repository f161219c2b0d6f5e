package files

import (
	"errors"
	"io/fs"
	"os"
	"strings"

	"thalweg/internal/base/allow"
	"thalweg/internal/base/fault"
	"thalweg/internal/base/similar"
)

// source is an input file as people know it. What is wrong with a file is said by its source, which names it.
type source struct {
	url  string // without secrets
	path string // on this machine; "" of a text that is no file there
	// policy judges what is opened; nil: it is a copy, or what is read is judged once more when it has been
	policy *allow.Policy
}

// source is the file of the input.
func (in Input) source() source { return source{in.URL, in.Path, in.policy} }

// source is the file of the slice.
func (s Slice) source() source { return source{url: s.URL, path: s.Path} }

// open opens the file to read it.
func (s source) open() (*os.File, error) {
	if s.policy == nil {
		f, err := os.Open(s.path)
		return f, s.unread(err)
	}
	f, err := s.policy.Open(s.path)
	return f, s.unread(err)
}

// unread classifies the failure to open or read the file, if there is one. The end of a context stays what it is.
func (s source) unread(err error) error {
	if err == nil || ctxDone(err) {
		return err
	}
	return OpenFault(s.url, err)
}

// bad says what is wrong with what is in the file.
func (s source) bad(format string, args ...any) *fault.Error {
	return s.fault(fault.UserData, format, args...)
}

// fault is a failure of any kind that the file has to do with.
func (s source) fault(kind fault.Kind, format string, args ...any) *fault.Error {
	f := fault.New(kind, format, args...)
	f.Place.File = s.url
	return f
}

// named puts the file's name into a failure, which somebody has classified who does not know it.
func (s source) named(err error) *fault.Error {
	f := *fault.Of(err)
	f.Place.File = s.url
	return &f
}

// irregular returns the error for what is no file to read, such as a folder.
func (s source) irregular(st fs.FileInfo) *fault.Error {
	if !st.IsDir() {
		f := s.fault(fault.Environment, "it is not a regular file (%s)", st.Mode().Type())
		f.Hint = "name a file, not a pipe or a device"
		return f
	}
	f := s.bad("it is a folder, not a file")
	f.Hint = "name the files in it: " + strings.TrimSuffix(s.url, "/") + "/*.csv"
	return f
}

// OpenFault classifies the failure to open or read an input that people know as u.
func OpenFault(u string, err error) error {
	if fault.CodeOf(err) == fault.Forbidden { // by a policy, which has said what may be read
		return err
	}
	f := source{url: u}.fault(fault.Environment, "cannot read input file")
	f.Err = err
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.Kind = fault.UserData // whoever names a file can mend its name
		f.Message, f.Hint = "input file does not exist",
			similar.FileHint(err, "check urls in the script and the directory the command runs in")
	case errors.Is(err, fs.ErrPermission):
		f.Hint = "check the file's permissions"
	default:
		f.Retryable = true
	}
	return f
}
