package gate

import (
	"fmt"
	"strings"

	"thalweg/internal/store/state"
)

// Look is the command line that shows a table of a run.
func Look(key state.RunKey, table string) string {
	return key.Command(fmt.Sprintf(`sql "SELECT * FROM run%d.%s"`, key.Run, table))
}

// Decide is the command line that approves or rejects a gate. What the gate asks
// for is in it, with the defaults, and what it shows: typed later, it decides about
// that or nothing.
func (r Record) Decide(key state.RunKey, verb string) string {
	line := fmt.Sprintf("%s %d %s", verb, key.Run, shellWord(r.Gate))
	if r.Digest != "" {
		line += " --digest " + r.Short()
	}
	line += " --comment TEXT"
	if len(r.By) > 0 {
		line += " --role " + shellWord(r.By[0])
	}
	if verb == "approve" {
		for _, q := range r.Answers {
			line += " --answer " + shellWord(q.Name+"="+q.Default)
		}
	}
	return key.Command(line)
}

// shellWord quotes a word for a shell where it has to be.
func shellWord(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-+.,:=/@%", r)
	}
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
