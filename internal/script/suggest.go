package script

import (
	"sort"
	"strings"
)

// These bound the work of finding a similar name.
const (
	maxSuggestChars = 64   // of a name
	maxSuggestNames = 2000 // that are looked through
)

// nearest finds the name most like word, or "" if none is like it.
func nearest(word string, names []string) string {
	if word == "" || len(word) > maxSuggestChars || len(names) > maxSuggestNames {
		return ""
	}
	word = strings.ToLower(word)
	best, bestCost := "", 1+max(min(len(word)-1, 1), len(word)/3)
	for _, name := range names {
		if len(name) > maxSuggestChars {
			continue
		}
		cost := editCost(word, strings.ToLower(name), bestCost)
		if begins(word, strings.ToLower(name)) {
			cost = min(cost, 2)
		}
		if cost < bestCost || (cost == bestCost && best != "" && name < best) {
			best, bestCost = name, cost
		}
	}
	return best
}

// begins reports whether one of the words is an abbreviation of the other.
func begins(a, b string) bool {
	const least = 3
	if len(a) > len(b) {
		a, b = b, a
	}
	return len(a) >= least && strings.HasPrefix(b, a)
}

// editCost counts the insertions, deletions, replacements and swaps of
// neighbours that turn a into b; more than limit is all the same.
func editCost(a, b string, limit int) int {
	if d := len(a) - len(b); d > limit || -d > limit {
		return limit + 1
	}
	before, row, next := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		next[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			next[j] = min(row[j]+1, next[j-1]+1, row[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				next[j] = min(next[j], before[j-2]+1)
			}
		}
		before, row, next = row, next, before
	}
	return row[len(b)]
}

// didYouMean is a hint with the name most like word, else the list of all
// names if it is short, else nothing.
func didYouMean(word string, names []string) string {
	if name := nearest(word, names); name != "" {
		return "did you mean " + quote(name) + "?"
	}
	return oneOf(names)
}

// suggestKey is didYouMean for the keys of a map.
func suggestKey[V any](word string, m map[string]V) string {
	if len(m) > maxSuggestNames {
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
