package document

import (
	"maps"
	"slices"
	"strings"

	"thalweg/internal/base/similar"
)

// DidYouMean is a hint with the name most like word, else the list of all
// names if it is short, else nothing.
func DidYouMean(word string, names []string) string {
	if name := similar.Nearest(word, names); name != "" {
		return "did you mean " + Quote(name) + "?"
	}
	return OneOf(names)
}

// SuggestKey is DidYouMean for the keys of a map.
func SuggestKey[V any](word string, m map[string]V) string {
	if len(m) > similar.MaxNames {
		return "" // sorting them for each message would take too long
	}
	return DidYouMean(word, slices.Sorted(maps.Keys(m)))
}

// OneOf is a hint that lists names if they are few.
func OneOf(names []string) string {
	const most = 12
	switch {
	case len(names) == 0 || len(names) > most:
		return ""
	case len(names) == 1:
		return "the only one is " + Quote(names[0])
	}
	return "known: " + strings.Join(names, ", ")
}
