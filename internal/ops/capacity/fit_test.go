package capacity

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// planned has runs that follow a model exactly.
func exactRuns(s, p, q float64, shapes ...Shape) (out []Run) {
	for _, shape := range shapes {
		out = append(out, Run{Shape: shape,
			Seconds: s + p/float64(shape.Total()) + q/float64(shape.Cores)})
	}
	return out
}

var someShapes = []Shape{{1, 2}, {2, 2}, {4, 2}, {8, 2}, {1, 8}, {4, 8}, {2, 16}, {3, 5}}

func TestAFitFindsThePartsThatMadeTheRuns(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.OneOf(rapid.Just(0.0), rapid.Float64Range(0.01, 1e5))
		s, p, q := part.Draw(t, "s"), part.Draw(t, "p"), part.Draw(t, "q")
		if s+p+q == 0 {
			return
		}
		f, err := FitRuns(Floors, exactRuns(s, p, q, someShapes...))
		require.NoError(t, err)
		for _, shape := range []Shape{{16, 4}, {1, 64}, {5, 5}} {
			want := exactRuns(s, p, q, shape)[0].Seconds
			require.InEpsilon(t, want, f.At(shape), 1e-6)
		}
		for _, v := range f.Values {
			require.GreaterOrEqual(t, v, 0.0)
		}
	})
}

// No parts near those of the fit, none below 0, have smaller squares.
func TestAFitIsTheLeast(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		runs := exactRuns(10, 500, 30, someShapes...)
		for i := range runs {
			runs[i].Seconds *= math.Exp(rapid.Float64Range(-1, 1).Draw(t, "noise"))
		}
		for _, m := range models {
			f, err := FitRuns(m, runs)
			require.NoError(t, err)
			least := f.squares(runs)
			for k := range f.Values {
				for _, by := range []float64{-1, 1, -1e-3, 1e-3} {
					other := f
					other.Values = append([]float64{}, f.Values...)
					other.Values[k] += by * max(1e-3, math.Abs(f.Values[k])) * 1e-2
					if !m.power && other.Values[k] < 0 {
						continue
					}
					require.GreaterOrEqual(t, other.squares(runs), least-1e-9, "%s %d %g", m.Name, k, by)
				}
			}
		}
	})
}

func TestWhatCannotBeFittedIsRefused(t *testing.T) {
	t.Parallel()
	_, err := FitRuns(Floors, exactRuns(1, 2, 3, Shape{1, 2}, Shape{2, 4}, Shape{4, 8}))
	require.ErrorContains(t, err, "3 runs are too few to fit T = s + p/(n·c) + q/c, which needs 4")
	_, err = FitRuns(Floors, exactRuns(1, 2, 3, Shape{4, 2}, Shape{4, 4}, Shape{4, 8}, Shape{4, 16}, Shape{4, 32}))
	require.ErrorContains(t, err, "do not tell the parts of T = s + p/(n·c) + q/c apart")
	_, err = LeftOut(Floors, exactRuns(1, 2, 3, Shape{4, 2}, Shape{4, 4}, Shape{4, 8}, Shape{4, 16}, Shape{2, 2}))
	require.ErrorContains(t, err, "without the deployment 2 × 2, the shapes of the runs do not tell")
}

// A deployment that is left out has no part in what is foreseen of it, however often it ran.
func TestLeftOutRunsAreNotSeen(t *testing.T) {
	t.Parallel()
	runs := exactRuns(10, 500, 30, someShapes...)
	wrong := runs[3]
	wrong.Seconds *= 7
	foreseen, err := LeftOut(Floors, append([]Run{wrong, wrong}, append(runs[:3:3], runs[4:]...)...))
	require.NoError(t, err)
	require.InEpsilon(t, runs[3].Seconds, foreseen[0].Seconds, 1e-6)
	require.InEpsilon(t, runs[3].Seconds, foreseen[1].Seconds, 1e-6)
}
