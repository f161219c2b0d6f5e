package sources

import (
	"thalweg/internal/base/document"
)

// InvalidScriptError is returned for a script that cannot be loaded.
type InvalidScriptError struct{ Diagnostics document.Diagnostics }

// Error gives the first problem in one line.
func (e *InvalidScriptError) Error() string { return e.Diagnostics.Err().Error() }

// Unwrap gives the classified failure.
func (e *InvalidScriptError) Unwrap() error { return e.Diagnostics.Err() }
