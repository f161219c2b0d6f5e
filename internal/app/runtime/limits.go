package runtime

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"thalweg/internal/base/budget"
	"thalweg/internal/base/fault"
	"thalweg/internal/lang/script"
)

// inNode says which node a failure belongs to that was met before the run, and where the
// script has it.
func inNode(err error, n *script.Node) error {
	var f *fault.Error
	if !errors.As(err, &f) {
		return err
	}
	pos := n.Pos
	if n.PyTable != nil {
		pos = n.PyTable.Pos
	}
	if pos.File == "" {
		pos.File = n.Pos.File
	}
	f.Message = fmt.Sprintf("node %s: %s", n.Name, f.Message)
	switch {
	case f.Place.File == "":
		f.Place.File, f.Place.Line, f.Place.Column = pos.File, int64(pos.Line), pos.Col
	case f.Place.File != pos.File && !f.NamesScript(pos.File) && pos.Line > 0:
		f.Hint = fault.InScript(f.Hint, "has the node", pos.String())
	}
	return f
}

// spillShare of the free disk may be used by the slots' spill files together;
// each may have spillBytesMin at least, so that a full disk says that it is full.
const (
	spillShare    = 0.8
	spillBytesMin = 16 << 20
)

// freeBytes is the free space of the file system that dir is on.
func freeBytes(dir string) (int64, bool) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, false
	}
	return int64(st.Bavail) * int64(st.Bsize), true
}

// interpreterBytesMin is the least address space an interpreter is held to:
// the limit counts what is mapped, which is several times what is used.
const interpreterBytesMin = 512 << 20

// earlyInterpreters bounds the interpreters that are started before it is known
// how much there will be for them to do.
const earlyInterpreters = 8

// groupBytesMin is the memory that a call of a function over many rows may always have. It may have
// more where interpreters have more: values take several times as much in Python.
const groupBytesMin = 16 << 20

// shareProcesses is share for slots that are processes.
func shareProcesses(total int64, cores int, python bool) (budget.Budget, error) {
	if cores == 0 {
		cores = budget.Cores()
	}
	b, err := budget.SplitProcesses(total, cores, python)
	if err != nil {
		return b, &fault.Error{Kind: fault.Script, Message: err.Error(), Hint: "give more with {{set memory}}"}
	}
	return b, nil
}
