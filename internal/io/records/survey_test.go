package records

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// All records say which values there are, also inside of objects, and not only the first ones.
func TestSurvey(t *testing.T) {
	t.Parallel()
	many := ""
	for range lookedRecordsMax {
		many += `{"a": 1, "o": {"x": 1, "p.q": {"y": "text"}}, "mixed": {"z": 1}, "none": null, "empty": {}}` + "\n"
	}
	s := NewSurvey()
	text := many + `no JSON` + "\n" + `{"a": 1.5, "o": null, "mixed": 1, "late": true}`
	for _, piece := range []string{text[:7], text[7:100], text[100:]} {
		_, err := s.Write([]byte(piece))
		require.NoError(t, err)
	}
	require.NoError(t, s.Close())
	require.Equal(t, []Found{{Key: "a", Value: Fraction}, {Key: "o.x", Value: Integer}, {Key: `o."p.q".y`, Value: Any},
		{Key: "mixed", Value: Any},
		{Key: "none", Missing: true}, {Key: "empty", Value: Any, Missing: true}, {Key: "late", Value: Truth,
			Missing: true}},
		s.Found())
}

func TestLooksJSON(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{`{"a": 1}`: true, " \n[\n {\"a\" : 1": true, "\ufeff{}": true, "[]": false,
		"": false, "{a,b}\n": false,
		`{"a", "b"}`: false, "id,name\n1,x": false, `["a"]`: false, `"a"`: false} {
		require.Equal(t, want, LooksJSON([]byte(text)), text)
	}
}
