package concurrency

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"thalweg/internal/base/fault"
)

// Classes of work and their knobs. The texts name metrics: they do not change.
const (
	Load    = "load"
	Join    = "join"
	Python  = "python"
	Write   = "write"
	Batches = "batches" // in flight
	Threads = "threads" // of the engine, a batch
	Writers = "writers" // requests at once that write parts
)

// FixedMost bounds what can be forced.
const FixedMost = 256

// Classes lists the classes.
func Classes() []string { return []string{Load, Join, Python, Write} }

// KnobsOf lists the knobs of a class: interpreters keep an engine's threads waiting,
// and files are no parts.
func KnobsOf(class string) []string {
	switch class {
	case Python:
		return []string{Batches, Writers}
	case Write:
		return []string{Batches, Threads}
	}
	return []string{Batches, Threads, Writers}
}

// ClassOf is the class of a batch, of a node of that type.
func ClassOf(nodeType string) string {
	switch nodeType {
	case "file_table":
		return Load
	case "table_file":
		return Write
	case "table_custom_tfm_table", "py_table":
		return Python
	}
	return Join
}

// Of names a knob of a class.
type Of struct{ Class, Knob string }

// Fixed are numbers that were forced.
type Fixed map[Of]int

// ParseFixed reads what a command line forces: N, for the batches of each class, CLASS=N or
// CLASS.KNOB=N.
func ParseFixed(texts []string) (Fixed, error) {
	out := Fixed{}
	for _, text := range texts {
		name, number, named := strings.Cut(text, "=")
		if !named {
			name, number = "", text
		}
		n, err := strconv.Atoi(number)
		class, knob, _ := strings.Cut(name, ".")
		if knob == "" {
			knob = Batches
		}
		if err != nil || n < 1 || n > FixedMost || name != "" && !(slices.Contains(Classes(), class) &&
			slices.Contains(KnobsOf(class), knob)) {
			return nil, &fault.Error{Kind: fault.Script,
				Message: fmt.Sprintf("%q does not say how much is to be done at once",
					text),
				Hint: fmt.Sprintf("write a number from 1 to %d, or CLASS=NUMBER, with one of the classes %s, or "+
					"CLASS.KNOB=NUMBER, with batches, threads (not of python) or writers (not of write)",
					FixedMost, strings.Join(Classes(), ", "))}
		}
		for _, c := range Classes() {
			if name == "" || c == class {
				out[Of{c, knob}] = n
			}
		}
	}
	return out, nil
}

// Most is the largest number of batches that is forced; 0: none is.
func (f Fixed) Most() (most int) {
	for of, n := range f {
		if of.Knob == Batches {
			most = max(most, n)
		}
	}
	return most
}
