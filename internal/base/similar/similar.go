// Package similar finds the name that somebody probably meant, for hints in
// messages about scripts and expressions. It promises bounded work whatever
// the names are; it cannot fail.
package similar

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// These bound the work of finding a similar name.
const (
	maxNameBytes = 64 // longer names are not looked at
	// MaxNames limits how many names Nearest looks through: with more it finds none.
	MaxNames = 2000
)

// Nearest finds the name most like word, or "" if none is like it.
func Nearest(word string, names []string) string {
	if word == "" || len(word) > maxNameBytes || len(names) > MaxNames {
		return ""
	}
	word = strings.ToLower(word)
	best, bestCost := "", 1+max(min(len(word)-1, 1), len(word)/3)
	for _, name := range names {
		if len(name) > maxNameBytes {
			continue
		}
		cost := editCost(word, strings.ToLower(name), bestCost)
		if begins(word, strings.ToLower(name)) {
			cost = min(cost, 2)
		}
		if cost < bestCost || (cost == bestCost && best != "" && before(word, name, best)) {
			best, bestCost = name, cost
		}
	}
	return best
}

// Mistyped finds the name that word is by a typing error or two, or "": unlike
// Nearest it does not take a word that begins with a name for that name. A
// beginning of a name is one that was not written to its end.
func Mistyped(word string, names []string) string {
	if word == "" || len(word) > maxNameBytes || len(names) > MaxNames {
		return ""
	}
	word = strings.ToLower(word)
	var near []string
	for _, name := range names {
		known := strings.ToLower(name)
		most := max(min(len(word)-1, 1), len(word)/3)
		if len(known) <= maxNameBytes && (editCost(word, known, most) <= most || strings.HasPrefix(known, word) &&
			begins(word, known)) {
			near = append(near, name)
		}
	}
	if name := Nearest(word, near); name != "" || len(near) == 0 {
		return name
	}
	return near[0]
}

// Typed reports whether word is name by one typing error, in long words two: closer than
// Mistyped asks for.
func Typed(word, name string) bool {
	const long = 8
	most := 1
	if len(word) >= long {
		most = 2
	}
	return len(word) <= maxNameBytes && len(name) <= maxNameBytes && editCost(strings.ToLower(word),
		strings.ToLower(name), most) <= most
}

// before decides between two names as near: the one that starts like the
// word, then the alphabet.
func before(word, a, b string) bool {
	likeA, likeB := strings.HasPrefix(strings.ToLower(a), word[:1]), strings.HasPrefix(strings.ToLower(b), word[:1])
	if likeA != likeB {
		return likeA
	}
	return a < b
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

// FileHint puts before a hint the name of the file that was probably meant, if err says that a
// file is not there and there is one like it.
func FileHint(err error, hint string) string {
	var p *fs.PathError
	if errors.Is(err, fs.ErrNotExist) && errors.As(err, &p) {
		if near := File(p.Path); near != "" {
			return "did you mean " + near + "? " + hint
		}
	}
	return hint
}

// File finds the name of a file beside path that was probably meant, "" if there is none:
// path is not there.
func File(path string) string {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return ""
	}
	defer dir.Close()
	names, err := dir.Readdirnames(MaxNames + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return ""
	}
	return Mistyped(filepath.Base(path), names)
}
