package expr

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A comment is found where it is one, and not inside of a text.
func TestComment(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]string{
		`7 // 2`:                "// 2 is a comment: it is not computed",
		"r.a + // the first\n1": "// the first is a comment: it is not computed",
		"7 /* or 8 */":          "/* or 8 */ is a comment: it is not computed",
		`"http://host/" + r.a`:  "",
		"`a // b` + r.a":        "",
		`7 / 2`:                 "",
	} {
		e, err := Parse(src)
		require.NoError(t, err, src)
		note := e.Comment()
		if want == "" {
			require.Nil(t, note, src)
			continue
		}
		require.NotNil(t, note, src)
		require.Equal(t, want, note.Message, src)
	}
}
