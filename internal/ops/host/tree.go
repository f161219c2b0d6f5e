package host

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// tree is the directory below which the files of the kernel are: "/" on the machine itself.
type tree string

// fileMost bounds what is read of a file of the kernel.
const fileMost = 4 << 20

// text returns what a file has, without blanks around it.
func (t tree) text(path ...string) (string, error) {
	f, err := os.Open(t.path(path...))
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // it was only read
	text, err := io.ReadAll(io.LimitReader(f, fileMost))
	return strings.TrimSpace(string(text)), err
}

// said is text of a file that need not be there; "": it is not, or cannot be read.
func (t tree) said(path ...string) string {
	text, err := t.text(path...)
	if err != nil {
		return ""
	}
	return text
}

// number returns the number that a file has, which may be followed by others.
func (t tree) number(path ...string) (float64, bool) {
	first, _, _ := strings.Cut(t.said(path...), " ")
	n, err := strconv.ParseFloat(first, 64)
	return n, err == nil
}

// names lists the names in a directory that begin with prefix; none if it is not there. Numbers in them are in order.
func (t tree) names(prefix string, dir ...string) (out []string) {
	entries, _ := os.ReadDir(t.path(dir...)) // not on every machine
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), prefix) {
			out = append(out, e.Name())
		}
	}
	slices.SortFunc(out, func(a, b string) int {
		if len(a) != len(b) {
			return len(a) - len(b)
		}
		return strings.Compare(a, b)
	})
	return out
}

// target is the last element of what a link leads to; "": it is none.
func (t tree) target(path ...string) string {
	to, err := os.Readlink(t.path(path...))
	if err != nil {
		return ""
	}
	return filepath.Base(to)
}

func (t tree) there(path ...string) bool {
	_, err := os.Stat(t.path(path...))
	return err == nil
}

func (t tree) path(path ...string) string {
	return filepath.Join(append([]string{string(t)}, path...)...)
}

// coresIn reads a list of processors, as the kernel writes them: 0-3,8.
func coresIn(list string) (out []int) {
	for part := range strings.SplitSeq(list, ",") {
		from, to, isRange := strings.Cut(strings.TrimSpace(part), "-")
		first, err := strconv.Atoi(from)
		last := first
		if isRange && err == nil {
			last, err = strconv.Atoi(to)
		}
		if err != nil || last-first > coresMost {
			continue
		}
		for c := first; c <= last; c++ {
			out = append(out, c)
		}
	}
	return out
}

// coresMost is more than any machine has.
const coresMost = 1 << 16

// coresOfMask counts the processors of a mask, as the kernel writes them: 00000000,0000000f.
func coresOfMask(mask string) (n int) {
	for _, digit := range mask {
		if v, err := strconv.ParseUint(string(digit), 16, 8); err == nil {
			for ; v > 0; v &= v - 1 {
				n++
			}
		}
	}
	return n
}
