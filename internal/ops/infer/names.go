package infer

import (
	"fmt"
	"strings"
	"unicode"
)

// nameCharsMax keeps names readable; the language allows more.
const nameCharsMax = 40

// identifier makes a name for a script of what a file calls a column: letters,
// digits and underscores, in lower case, not beginning with a digit.
func identifier(source string, index int) string {
	var b strings.Builder
	gap := false
	for _, r := range strings.TrimSpace(source) {
		switch {
		case r < 0x80 && (unicode.IsLetter(r) || unicode.IsDigit(r)):
			if gap && b.Len() > 0 {
				b.WriteByte('_')
			}
			gap = false
			b.WriteRune(unicode.ToLower(r))
		default:
			gap = true
		}
		if b.Len() >= nameCharsMax {
			break
		}
	}
	name := b.String()
	switch {
	case name == "":
		return fmt.Sprintf("col_%d", index)
	case name[0] >= '0' && name[0] <= '9':
		return "col_" + name
	}
	return name
}
