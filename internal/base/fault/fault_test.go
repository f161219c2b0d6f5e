package fault

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOfFindsTheOutermostThroughWrapping(t *testing.T) {
	t.Parallel()
	inner := &Error{Kind: UserData, Message: "bad row", Err: io.EOF}
	wrapped := fmt.Errorf("batch 3: %w", inner)
	require.Same(t, inner, Of(wrapped))
	require.ErrorIs(t, wrapped, io.EOF)
	outer := &Error{Kind: Environment, Message: "node", Err: wrapped}
	require.Same(t, outer, Of(outer))
	require.Nil(t, Of(nil))
}

func TestUnclassifiedIsABug(t *testing.T) {
	t.Parallel()
	f := Of(errors.New("what is this"))
	require.Equal(t, Bug, f.Kind)
	require.False(t, f.Retryable)
	require.ErrorContains(t, f, "what is this")
}

func TestTexts(t *testing.T) {
	t.Parallel()
	for want, e := range map[string]*Error{
		"bad":                 {Message: "bad"},
		"in.csv:7:3: bad":     {Message: "bad", Place: Place{File: "in.csv", Line: 7, Column: 3}},
		"in.csv:7: bad: EOF":  {Message: "bad", Place: Place{File: "in.csv", Line: 7}, Err: io.EOF},
		"in.csv (row 9): bad": {Message: "bad", Place: Place{File: "in.csv", Record: 9}},
		"open a/b: not found": {Message: "open a/b", Err: &fs.PathError{Op: "open", Path: "a/b",
			Err: errors.New("not found")}},
		"make (a/b): none": {Message: "make (a/b)", Err: &fs.PathError{Op: "mkdir", Path: "a/b",
			Err: errors.New("none")}},
		"a/b is bad: none": {Message: "a/b is bad", Err: &fs.PathError{Op: "stat", Path: "a/b",
			Err: errors.New("none")}},
		"open a: stat a/b: x": {Message: "open a", Err: &fs.PathError{Op: "stat", Path: "a/b",
			Err: errors.New("x")}},
		"make a directory b: mkdir a: x": {Message: "make a directory b", Err: &fs.PathError{Op: "mkdir", Path: "a",
			Err: errors.New("x")}},
		"take data (a): x": {Message: "take data (a)", Err: &fs.PathError{Op: "open", Path: "a",
			Err: errors.New("x")}},
		"look at old.csv, in old: stat d: x": {Message: "look at old.csv, in old",
			Err: &fs.PathError{Op: "stat", Path: "d", Err: errors.New("x")}},
		"read my.csv then: open y.csv: x": {Message: "read my.csv then", Err: &fs.PathError{Op: "open", Path: "y.csv",
			Err: errors.New("x")}},
		"read my.csv of y.csv here: x": {Message: "read my.csv of y.csv here",
			Err: &fs.PathError{Op: "open", Path: "y.csv", Err: errors.New("x")}},
		"in.csv: bad": {Message: "bad", Place: Place{File: "in.csv", Column: 3}},
	} {
		require.Equal(t, want, e.Error())
	}
}

func TestPasses(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"disk full":            {fmt.Errorf("write: %w", syscall.ENOSPC), true},
		"too many files":       {&os.PathError{Op: "open", Path: "p", Err: syscall.EMFILE}, true},
		"a layer below says":   {fmt.Errorf("store: %w", &Error{Kind: Environment, Retryable: true}), true},
		"one of several":       {errors.Join(errors.New("other"), syscall.EIO), true},
		"not there":            {&os.PathError{Op: "open", Path: "p", Err: syscall.ENOENT}, false},
		"not allowed":          {syscall.EACCES, false},
		"a layer below denies": {&Error{Kind: UserData}, false},
		"nothing":              {nil, false},
	} {
		require.Equal(t, tc.want, Passes(tc.err), name)
	}
}
