package gate

import (
	"fmt"

	"thalweg/internal/base/action"
	"thalweg/internal/store/state"
)

// Look makes the action that shows a table of a run.
func Look(key state.RunKey, table string) action.Action {
	return key.Beside("sql", "query", fmt.Sprintf("SELECT * FROM run%d.%s", key.Run, table))
}

// Decide makes the action that approves or rejects a gate (verb). It contains the
// default answers and the digest of what the gate shows. If that has changed when
// somebody takes the action, nothing is decided.
func (r Record) Decide(key state.RunKey, verb string) action.Action {
	args := []any{"gate", r.Gate}
	if r.Digest != "" {
		args = append(args, "digest", r.Short())
	}
	args = append(args, "comment", "TEXT")
	if len(r.By) > 0 {
		args = append(args, "role", r.By[0])
	}
	if verb == "approve" {
		for _, q := range r.Answers {
			args = append(args, "answer", q.Name+"="+q.Default)
		}
	}
	return key.Do(verb, args...)
}
