package view_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app/view"
	"thalweg/internal/base/action"
	"thalweg/internal/base/fault"
)

// A failure as JSON has the code of whoever gave one, and what the hint proposes as data.
func TestFailuresForPrograms(t *testing.T) {
	t.Parallel()
	inner := &fault.Error{Kind: fault.Script, Code: fault.Conflict, Message: "it has changed"}
	err := fmt.Errorf("order it: %w", &fault.Error{Kind: fault.Script, Message: "not done", Err: inner,
		Hint: "look: " + action.Do("show", "run", 7).String()})
	for name, tc := range map[string]struct {
		failed view.Failed
		want   string
	}{
		"of a command": {view.FailedOf(err, 2), `{"kind":"script","retryable":false,"place":{},` +
			`"message":"not done: it has changed","hint":"look: {{do show run=7}}","batch":-1,"code":"conflict",` +
			`"actions":[{"verb":"show","args":[{"name":"run","value":"7"}]}],"exit_code":2}`},
		"of a run": {view.FailedFrom(view.FailureOf(err), 2, "mend it"), `{"kind":"script","retryable":false,"place":{},` +
			`"message":"not done: it has changed","hint":"look: {{do show run=7}}","batch":-1,` +
			`"actions":[{"verb":"show","args":[{"name":"run","value":"7"}]}],"exit_code":2,"next":"mend it"}`},
		"without proposals": {view.FailedOf(inner, 2), `{"kind":"script","retryable":false,"place":{},` +
			`"message":"it has changed","batch":-1,"code":"conflict","exit_code":2}`},
	} {
		got, err := view.JSON(tc.failed)
		require.NoError(t, err)
		require.Equal(t, tc.want, string(got), name)
	}
}
