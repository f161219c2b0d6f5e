package database

import (
	"errors"
	"fmt"

	"thalweg/internal/base/fault"
)

// cascadeFault refuses to replace rows with which those of another table would go.
func cascadeFault(table, other string) error {
	return &fault.Error{Kind: fault.Script,
		Message: fmt.Sprintf("rows of %s cannot be replaced: %s refers to them, and its rows would be removed or "+
			"changed with them", table, other),
		Hint: "use mode: merge, which keeps rows that stay, or take ON DELETE from the reference"}
}

// keptFault says what to do about rows that others refer to.
func keptFault(err error) error {
	var f *fault.Error
	if errors.As(err, &f) && f.Kind == fault.UserData && f.Hint == "" {
		f.Hint = "rows of other tables refer to those that are replaced: use mode: merge, which keeps them"
	}
	return err
}

// idents quotes names.
func idents(w writer, names []string) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = w.ident(n)
	}
	return out
}
