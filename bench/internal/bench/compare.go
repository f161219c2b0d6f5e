package bench

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"thalweg/internal/base/fault"
)

// Output is one result file of a run.
type Output struct {
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// outputs lists the result files in a directory, by name.
func outputs(dir string) ([]Output, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, &fault.Error{Kind: fault.Environment, Message: "listing result files", Err: err}
	}
	var all []Output
	for _, e := range entries {
		if e.IsDir() {
			continue
		}
		o, err := digest(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		all = append(all, o)
	}
	if len(all) == 0 {
		return nil, fault.New(fault.Environment, "the run left no result files in %s", dir)
	}
	return all, nil
}

func digest(path string) (o Output, err error) {
	f, err := os.Open(path)
	if err != nil {
		return o, &fault.Error{Kind: fault.Environment, Message: "opening a result file", Err: err}
	}
	hash := sha256.New()
	n, err := io.Copy(hash, f)
	if err := errors.Join(err, f.Close()); err != nil {
		return o, &fault.Error{Kind: fault.Environment, Message: "reading " + path, Err: err}
	}
	return Output{filepath.Base(path), n, hex.EncodeToString(hash.Sum(nil))}, nil
}

// How alike two sets of result files are.
const (
	alikeBytes  = "equal byte for byte"
	alikeBlanks = "equal apart from white space at line ends"
)

// alike compares the files of two directories by name and says how they are
// alike, or what the first difference is.
func alike(a, b string) (how string, same bool, err error) {
	in, err := outputs(a)
	if err != nil {
		return "", false, err
	}
	other, err := outputs(b)
	if err != nil {
		return "", false, err
	}
	if slices.Equal(in, other) {
		return alikeBytes, true, nil
	}
	name := func(o Output) string { return o.Name }
	if x, y := mapped(in, name), mapped(other, name); !slices.Equal(x, y) {
		return fmt.Sprintf("different files: %v and %v", x, y), false, nil
	}
	for _, o := range in {
		difference, err := firstDifference(filepath.Join(a, o.Name), filepath.Join(b, o.Name))
		if err != nil {
			return "", false, err
		}
		if difference != "" {
			return o.Name + " " + difference, false, nil
		}
	}
	return alikeBlanks, true, nil
}

func mapped[A, B any](in []A, f func(A) B) []B {
	out := make([]B, len(in))
	for i, a := range in {
		out[i] = f(a)
	}
	return out
}

// maxLineBytes bounds a line of a compared file.
const maxLineBytes = 1 << 20

// firstDifference compares two text files line by line, white space at line
// ends aside, as `diff -b` does with our files. Empty text means equal.
func firstDifference(a, b string) (difference string, err error) {
	left, closeLeft, err := lines(a)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, closeLeft()) }()
	right, closeRight, err := lines(b)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, closeRight()) }()
	for n := 1; ; n++ {
		more, moreRight := left.Scan(), right.Scan()
		if err := errors.Join(left.Err(), right.Err()); err != nil {
			return "", fmt.Errorf("comparing %s with %s: %w", a, b, err)
		}
		x, y := bytes.TrimRight(left.Bytes(), " \t\r"), bytes.TrimRight(right.Bytes(), " \t\r")
		switch {
		case !more && !moreRight:
			return "", nil
		case more != moreRight:
			return fmt.Sprintf("line %d: one file ends", n), nil
		case !bytes.Equal(x, y):
			return fmt.Sprintf("line %d: %q and %q", n, x, y), nil
		}
	}
}

func lines(path string) (*bufio.Scanner, func() error, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, &fault.Error{Kind: fault.Environment, Message: "opening a result file", Err: err}
	}
	s := bufio.NewScanner(f)
	s.Buffer(nil, maxLineBytes)
	return s, f.Close, nil
}

// alikeRows is the verdict on files that differ only by the order of their lines.
const alikeRows = "equal, as sets of lines"

// alikeLines compares the files of two directories by name, line by line
// whatever their order, white space at line ends aside.
func alikeLines(a, b string) (how string, same bool, err error) {
	in, err := outputs(a)
	if err != nil {
		return "", false, err
	}
	for _, o := range in {
		left, err := lineSet(filepath.Join(a, o.Name))
		if err != nil {
			return "", false, err
		}
		right, err := lineSet(filepath.Join(b, o.Name))
		if err != nil {
			return "", false, err
		}
		if left != right {
			return fmt.Sprintf("%s: %d lines and %d lines, of different contents", o.Name, left.count, right.count),
				false, nil
		}
	}
	return alikeRows, true, nil
}

// lineDigest stands for a file's lines whatever their order.
type lineDigest struct {
	count int64
	sum   [2]uint64 // of the lines' hashes, modulo 2^64
}

func lineSet(path string) (d lineDigest, err error) {
	scan, closeFile, err := lines(path)
	if err != nil {
		return d, err
	}
	defer func() { err = errors.Join(err, closeFile()) }()
	for scan.Scan() {
		h := sha256.Sum256(bytes.TrimRight(scan.Bytes(), " \t\r"))
		d.count++
		for i := range d.sum {
			d.sum[i] += binary.LittleEndian.Uint64(h[8*i:])
		}
	}
	if err := scan.Err(); err != nil {
		return d, &fault.Error{Kind: fault.Environment, Message: "reading " + path, Err: err}
	}
	return d, nil
}
