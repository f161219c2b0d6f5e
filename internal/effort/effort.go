package effort

import (
	"os"
	"testing"
)

// chaosVariable asks for everything; scripts/chaos sets it.
const chaosVariable = "THALWEG_CHAOS"

// All reports whether everything is asked for.
func All() bool { return os.Getenv(chaosVariable) == "1" }

// Of is what a test does: quick with -short, usual without, all where everything is asked for.
func Of[T any](quick, usual, all T) T {
	switch {
	case All():
		return all
	case testing.Short():
		return quick
	}
	return usual
}
