package doctor

import (
	"context"
	"strings"
	"time"

	"thalweg/internal/base/format"
)

// Python holds the inputs of the checks of the interpreter.
type Python struct {
	// Start starts an interpreter as runs do, and gives what it says of itself.
	Start func(ctx context.Context) (string, error)
	// Named: somebody has said which one, and workers do not begin without it.
	Named bool
}

// Service gives the checks.
func (p Python) Service() Service {
	return Service{Name: "python",
		Checks: []Check{{Name: "interpreter", Limit: 20 * time.Second, Look: func(ctx context.Context) Result {
			begun := time.Now()
			text, err := p.Start(ctx)
			if err != nil {
				r := Failed(err)
				if r.Verdict == Bad && !p.Named { // scripts without formulas need none
					r.Verdict = Warning
					r.Mend = strings.TrimSpace(r.Mend + "; only scripts with Python need it")
				}
				return r
			}
			return good("%s, ready in %s", text, format.Span(time.Since(begun)))
		}}}}
}
