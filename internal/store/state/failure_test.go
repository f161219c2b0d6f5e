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
		failure           *state.Failure
		show, goOn, order string
	}{
		"data":    {&state.Failure{Kind: fault.UserData, Node: "read"}, "show 7 read", "retry 7", state.Retry},
		"script":  {&state.Failure{Kind: fault.Script}, "show 7", "retry 7", state.Retry},
		"disk":    {&state.Failure{Kind: fault.Environment, Node: "read"}, "show 7 read", "resume 7", state.Resume},
		"unknown": {nil, "show 7", "resume 7", state.Resume},
	} {
		show, goOn, order := state.Run{RunKey: state.RunKey{Run: 7}, Failure: tc.failure}.AfterFailure()
		require.Equal(t, []string{tc.show, tc.goOn, tc.order}, []string{show, goOn, order}, name)
	}
}
