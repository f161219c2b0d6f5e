package effort

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// chaosVariable asks for everything; scripts/chaos sets it.
const chaosVariable = "THALWEG_CHAOS"

// stageVariable says which of the two stages of `make test` this is; scripts/test sets it. Elsewhere it is not set,
// and every test runs.
const stageVariable = "THALWEG_TEST_STAGE"

// The stages: with the race detector, and then without it.
const (
	stageRaced   = "raced"
	stageUnraced = "unraced"
)

// Raced is called first by a test that `make test` runs with the race detector only. A test of a package that both
// stages run, and that calls neither Raced nor Unraced, runs in both: with little effort where it is raced.
func Raced(t testing.TB) {
	t.Helper()
	skipIn(t, stageUnraced)
}

// Unraced is called first by a test that `make test` runs without the race detector only. Such a test takes long
// under it, and goes through code that other tests race.
func Unraced(t testing.TB) {
	t.Helper()
	skipIn(t, stageRaced)
}

func skipIn(t testing.TB, stage string) {
	t.Helper()
	if os.Getenv(stageVariable) == stage {
		t.Skipf("not in the stage %q", stage)
	}
}

// All reports whether everything is asked for.
func All() bool { return os.Getenv(chaosVariable) == "1" }

// Of returns a test's amount of work: quick with -short, all where everything is asked for, otherwise usual.
func Of[T any](quick, usual, all T) T {
	switch {
	case All():
		return all
	case testing.Short():
		return quick
	}
	return usual
}

// Patience is a test's wait for an event that has to come. It is in minutes, because a machine may be a hundredth as
// fast as usual for a while.
const Patience = 5 * time.Minute

// Promised requires that what began then has ended within the promised time where
// everything is asked for, which is on a machine that has time for it, and within
// Patience elsewhere.
func Promised(t testing.TB, began time.Time, within time.Duration, why ...any) {
	t.Helper()
	require.Less(t, time.Since(began), Of(Patience, Patience, within), why...)
}
