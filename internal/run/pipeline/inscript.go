package pipeline

import (
	"errors"

	"thalweg/internal/base/fault"
	"thalweg/internal/lang/script"
)

// inScript adds to the hint of a failure where the script has what failed, unless
// it says so already: a file that cannot be read has a place in the file only, or none.
func inScript(s *script.Script, node string, err error) error {
	var f *fault.Error
	if !errors.As(err, &f) || f.Kind == fault.Canceled || f.Kind == fault.Bug {
		return err
	}
	if f.Place.Node != "" {
		node = f.Place.Node
	}
	n := s.Node(node)
	if n == nil || f.Place.File == n.Pos.File || f.NamesScript(n.Pos.File) {
		return err
	}
	does, pos := "has the node", n.Pos
	if n.Files != nil && n.Files.Pos.Line > 0 {
		does, pos = "reads it", n.Files.Pos
	}
	if pos.File = n.Pos.File; pos.Line == 0 || pos.File == "" {
		return err
	}
	known := *f
	known.Hint = fault.InScript(f.Hint, does, pos.String())
	return &placedError{known: &known, err: err}
}

// placedError is a failure that says more than it did.
type placedError struct {
	known *fault.Error
	err   error // as it was
}

func (e *placedError) Error() string { return e.err.Error() }

func (e *placedError) Unwrap() []error { return []error{e.known, e.err} }
