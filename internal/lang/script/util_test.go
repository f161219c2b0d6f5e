package script

import (
	"fmt"
	"strings"

	"thalweg/internal/lang/expr"
)

func orderText(o expr.Order) string {
	var items []string
	for _, i := range o {
		text := i.Field
		if i.Desc {
			text += " desc"
		}
		if i.IgnoreCase {
			text += " ignore_case"
		}
		if i.Length != 0 && i.Length != 64 {
			text += fmt.Sprintf(" %d", i.Length)
		}
		items = append(items, text)
	}
	return strings.Join(items, ", ")
}
