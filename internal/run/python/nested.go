package python

import (
	"encoding/json"
	"fmt"

	"thalweg/internal/lang/expr"
)

// nestedKind has the tree of a nested type in it, in JSON: {"list": tree},
// {"struct": [[name, tree], …]}, or the kind of a value that is neither.
func nestedKind(t expr.Type) wireKind {
	text, err := json.Marshal(kindTree(t))
	if err != nil {
		return ""
	}
	return wireNested + wireKind(text)
}

func kindTree(t expr.Type) any {
	if inner, ok := t.Element(); ok {
		return map[string]any{"list": kindTree(inner)}
	}
	if members := t.Members(); members != nil {
		list := make([][2]any, len(members))
		for i, m := range members {
			list[i] = [2]any{m.Name, kindTree(m.Type)}
		}
		return map[string]any{"struct": list}
	}
	if t.IsDecimal() {
		digits, scale := t.Digits()
		return fmt.Sprintf("%s%d:%d", wireDecimal, digits, scale)
	}
	return map[expr.Type]wireKind{expr.String: wireString, expr.Int: wireInt, expr.Float: wireFloat,
		expr.Bool: wireBool, expr.DateTime: wireDatetime, expr.Date: wireDate, expr.Instant: wireInstant}[t]
}
