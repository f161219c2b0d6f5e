package script

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/document"
)

func TestOriginOfReplacedText(t *testing.T) {
	t.Parallel()
	l := &loader{src: Sources{}, script: &Script{texts: map[string]string{}}}
	src := document.NewSource("x", `ab "{n|number}" cd {s} ef`)
	issues, _ := l.substitute(src,
		&parameters{values: map[string]paramValue{"n": {kind: "number", text: "12"},
			"s": {kind: "string", text: "long text"}}, given: true})
	require.Empty(t, issues)
	require.Equal(t, `ab 12 cd long text ef`, src.Text)
	at := func(word string) (int, int) {
		i := strings.Index(src.Text, word)
		return src.Origin(i, false), src.Origin(i+len(word), true)
	}
	for word, want := range map[string]string{"ab": "ab", "12": `"{n|number}"`, "cd": "cd", "text": "{s}", "ef": "ef"} {
		from, to := at(word)
		require.Equal(t, want, src.Original[from:to], word)
	}
	require.Equal(t, []string{"n", "s"}, src.Params(0, len(src.Text)))
	require.Empty(t, src.Params(0, 2))
}
