package runtime

import (
	"thalweg/internal/base/fault"
	"thalweg/internal/run/python"
)

// FindInterpreter looks whether an interpreter is there, before a run needs it. named is where it was: of one
// that nobody has named the caller makes what it likes, runs without Python need none.
func FindInterpreter(name string, named fault.Place) error {
	_, err := python.Find(name)
	if err == nil {
		return nil
	}
	f := fault.Of(err)
	return &fault.Error{Kind: fault.Script, Place: named, Message: f.Message, Err: f.Err,
		Hint: "install it, or name another one: {{set python}}, THALWEG_PYTHON, or worker: {python: …} of a " +
			"cluster's configuration"}
}
