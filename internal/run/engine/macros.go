package engine

import (
	"regexp"

	"thalweg/internal/lang/expr"
)

var macroName = regexp.MustCompile(`thalweg_[a-z0-9_]+`)

// macros are those of compiled SQL, each defined when a statement first names
// it: all of them cost a quarter of opening an instance, and most tasks name
// none.
type macros struct {
	statements []string
	uses       map[string][]int // of each name: the statements that define it, in their order
	defined    map[int]bool
}

func newMacros(textBytes int64) *macros {
	m := &macros{
		statements: expr.Macros(textBytes),
		uses:       map[string][]int{},
		defined:    map[int]bool{},
	}
	for i, s := range m.statements {
		names := macroName.FindAllString(s, -1)
		var uses []int
		for _, n := range names[1:] {
			uses = append(uses, m.uses[n]...)
		}
		m.uses[names[0]] = append(uses, i)
	}
	return m
}

// define runs the statements that define what a query names and no earlier one did.
func (m *macros) define(query string, run func(statement string) error) error {
	for _, name := range macroName.FindAllString(query, -1) {
		for _, i := range m.uses[name] {
			if m.defined[i] {
				continue
			}
			if err := run(m.statements[i]); err != nil {
				return err
			}
			m.defined[i] = true
		}
	}
	return nil
}

// forget is for when what was defined is gone.
func (m *macros) forget() { clear(m.defined) }
