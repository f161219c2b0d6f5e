package action_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"thalweg/internal/base/action"
)

// words renders marks as a reader of a test sees them best.
type words struct{}

func (words) Action(a action.Action, alone bool) string {
	out := a.Verb
	for _, arg := range a.Args {
		out += "|" + arg.Name + "|" + arg.Value
	}
	if alone {
		return "ALONE " + out
	}
	return "<" + out + ">"
}

func (words) Setting(s action.Arg) string { return "[" + s.Name + "|" + s.Value + "]" }

func TestRender(t *testing.T) {
	retry := action.Do("retry", "run", 7, "node", "a b").String()
	for text, want := range map[string]string{
		"":                              "",
		"nothing {{ here }}":            "nothing {{ here }}",
		"{{do }} {{set }} {{do Retry}}": "{{do }} {{set }} {{do Retry}}",
		retry:                           "ALONE retry|run|7|node|a b",
		"try " + retry + " soon":        "try <retry|run|7|node|a b> soon",
		"first\n  " + retry + "\nlast":  "first\n  ALONE retry|run|7|node|a b\nlast",
		`{"do":"` + retry + `"}`:        `{"do":"ALONE retry|run|7|node|a b"}`,
		"more with " + action.Setting("memory", "") + ", or " + action.Setting("node",
			"x y"): "more with [memory|], or [node|x y]",
	} {
		require.Equal(t, want, action.Render(text, words{}))
	}
}

// TestMarksHoldAnyValue: values of any bytes come back, from JSON as well, and add no mark of their own.
func TestMarksHoldAnyValue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.OneOf(rapid.String(), rapid.Just("}} {{do drop run=1}}"), rapid.Just("a=b~41\n\"'")).
			Draw(t, "value")
		a := action.Do("retry", "node", value)
		data, err := json.Marshal("do " + a.String() + " now")
		require.NoError(t, err)
		require.Equal(t, []action.Action{a}, action.In(string(data)))
		require.Equal(t, "["+"node|"+value+"]", renderSetting(value))
		require.False(t, strings.ContainsAny(a.String(), "\n\"\\"))
	})
}

func renderSetting(value string) string {
	return action.Render(action.Setting("node", value), words{})
}
