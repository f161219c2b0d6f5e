package files

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What is said of a broken record is the same wherever a batch ends behind its
// first line: a later quote that happens to stand there changes nothing.
func TestBrokenRecordsDoNotDependOnCuts(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(1, 2))
	pieces := []string{`"`, `"`, "a", ",", "\n", "\r\n"}
	broken := 0
	for range 20_000 {
		var b strings.Builder
		for range 2 + rnd.IntN(20) {
			b.WriteString(pieces[rnd.IntN(len(pieces))])
		}
		text := b.String()
		var whole, cut csvShape
		whole.split([]byte(text), ',', true)
		if !whole.flaw.broken() {
			continue
		}
		broken++
		for at := range len(text) {
			if at < whole.size || text[at-1] != '\n' {
				continue
			}
			cut.split([]byte(text[:at]), ',', true)
			require.Equal(t, []any{whole.flaw, whole.size, whole.lines, len(whole.fields)},
				[]any{cut.flaw, cut.size, cut.lines, len(cut.fields)},
				"%q cut at %d", text, at)
		}
	}
	require.Greater(t, broken, 1000)
}
