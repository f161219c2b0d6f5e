package script

import (
	"sort"
	"strings"

	"thalweg/internal/similar"
)

// didYouMean is a hint with the name most like word, else the list of all
// names if it is short, else nothing.
func didYouMean(word string, names []string) string {
	if name := similar.Nearest(word, names); name != "" {
		return "did you mean " + quote(name) + "?"
	}
	return oneOf(names)
}

// suggestKey is didYouMean for the keys of a map.
func suggestKey[V any](word string, m map[string]V) string {
	if len(m) > similar.MaxNames {
		return "" // sorting them for each message would take too long
	}
	return didYouMean(word, sortedKeys(m))
}

// oneOf is a hint that lists names if they are few.
func oneOf(names []string) string {
	const most = 12
	switch {
	case len(names) == 0 || len(names) > most:
		return ""
	case len(names) == 1:
		return "the only one is " + quote(names[0])
	}
	return "known: " + strings.Join(names, ", ")
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
