package state_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/fault"
	"thalweg/internal/store/state"
)

// TestAfterFailure: what is wrong with data and scripts is corrected for a new run, all else goes on.
func TestAfterFailure(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		failure    *state.Failure
		show, goOn string
	}{
		"data": {&state.Failure{Kind: fault.UserData, Node: "read"}, "{{do show run=7 node=read}}",
			"{{do retry run=7}}"},
		"script": {&state.Failure{Kind: fault.Script}, "{{do show run=7}}", "{{do retry run=7}}"},
		"disk": {&state.Failure{Kind: fault.Environment, Node: "read"}, "{{do show run=7 node=read}}",
			"{{do resume run=7}}"},
		"unknown": {nil, "{{do show run=7}}", "{{do resume run=7}}"},
	} {
		show, goOn := state.Run{RunKey: state.RunKey{Run: 7}, Failure: tc.failure}.AfterFailure()
		require.Equal(t, []string{tc.show, tc.goOn}, []string{show.String(), goOn.String()}, name)
	}
}
