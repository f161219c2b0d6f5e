package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/fault"
	"thalweg/internal/run/sandbox"
	"thalweg/internal/store/parts"
	"thalweg/internal/store/parts/cache"
	partslocal "thalweg/internal/store/parts/local"
	"thalweg/internal/store/state"
	"thalweg/internal/store/state/sqlite"
	"thalweg/internal/test/partstest"
	"thalweg/internal/test/statetest"
)

// What a child has of parts is a part store, whatever its parent has.
func TestPartsOverAConnection(t *testing.T) {
	t.Parallel()
	t.Run("cache", func(t *testing.T) {
		t.Parallel()
		var mu sync.Mutex
		backends := map[string]*partstest.Memory{}
		partstest.Run(t, func(t *testing.T) parts.Store {
			t.Helper()
			mu.Lock()
			defer mu.Unlock()
			if backends[t.Name()] == nil {
				backends[t.Name()] = &partstest.Memory{}
			}
			s, err := cache.New(backends[t.Name()], filepath.Join(t.TempDir(), "copies"), 400_000)
			require.NoError(t, err)
			_, far := sandbox.Lend(t, nil, s)
			return far
		})
	})
	t.Run("local", func(t *testing.T) {
		t.Parallel()
		root := t.TempDir()
		partstest.Run(t, func(t *testing.T) parts.Store {
			t.Helper()
			s, err := partslocal.Open(filepath.Join(root, strings.ReplaceAll(t.Name(), "/", "_")))
			require.NoError(t, err)
			_, far := sandbox.Lend(t, nil, s)
			return far
		})
	})
}

func TestPiecesOverAConnection(t *testing.T) {
	t.Parallel()
	s, err := cache.New(&partstest.Memory{}, filepath.Join(t.TempDir(), "copies"), 1<<20)
	require.NoError(t, err)
	_, far := sandbox.Lend(t, nil, s)
	defer func() { require.NoError(t, far.Close()) }()
	stage, err := far.Stage(t.Context())
	require.NoError(t, err)
	path, err := stage.File(t.Context())
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, []byte("0123456789"), 0o600))
	part, err := far.Put(t.Context(), "k", path)
	require.NoError(t, err)
	sum, _, err := parts.Checksum(strings.NewReader("456"))
	require.NoError(t, err)
	pieced, ok := far.(interface{ Far() parts.Store }).Far().(parts.Pieced)
	require.True(t, ok)
	copied, release, err := pieced.FetchPieces(t.Context(), part, []parts.Piece{{From: 4, Bytes: 3, Checksum: sum}})
	require.NoError(t, err)
	defer release()
	text, err := os.ReadFile(copied)
	require.NoError(t, err)
	require.Len(t, text, 10)
	require.Equal(t, "456", string(text[4:7]))

	local, err := partslocal.Open(t.TempDir())
	require.NoError(t, err)
	_, far = sandbox.Lend(t, nil, local)
	defer func() { require.NoError(t, far.Close()) }()
	_, ok = far.(interface{ Far() parts.Store }).Far().(parts.Pieced)
	require.False(t, ok, "whole parts are at hand")
}

// What a child has of the state is a state, to the last field.
func TestStateOverAConnection(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	statetest.Run(t, func(t *testing.T) state.Store {
		t.Helper()
		s, err := sqlite.Open(context.Background(),
			filepath.Join(root, strings.ReplaceAll(t.Name(), "/", "_"), "state.db"))
		require.NoError(t, err)
		far, _ := sandbox.Lend(t, s, nil)
		return far
	})
}

func TestErrorsOverAConnection(t *testing.T) {
	t.Parallel()
	require.NoError(t, sandbox.Carried(nil))
	inner := &fault.Error{Kind: fault.UserData, Retryable: true, Message: "bad value", Hint: "mend it", Detail: "a\nb",
		Place: fault.Place{File: "in.csv", Line: 7, Column: 3, Record: 9, Field: "f", Value: "v", Expr: "e", Node: "n",
			Table: "t"},
		Err: fmt.Errorf("read: %w", &os.PathError{Op: "read", Path: "p", Err: syscall.ENOSPC})}
	got := sandbox.Carried(inner)
	f := fault.Of(got)
	require.Equal(t, error(f), got, "it is that fault itself")
	require.Equal(t, inner.Error(), got.Error())
	require.Equal(t, []any{inner.Kind, inner.Retryable, inner.Message, inner.Hint, inner.Detail, inner.Place},
		[]any{f.Kind, f.Retryable, f.Message, f.Hint, f.Detail, f.Place})
	require.ErrorIs(t, got, syscall.ENOSPC)
	require.Equal(t, inner.Err.Error(), f.Err.Error())

	wrapped := fmt.Errorf("batch 3: %w", inner)
	got = sandbox.Carried(wrapped)
	require.Equal(t, wrapped.Error(), got.Error())
	require.Equal(t, inner.Message, fault.Of(got).Message)
	for name, err := range map[string]error{"canceled": context.Canceled, "lease": state.ErrLeaseLost,
		"part": parts.ErrCorrupt, "end": io.EOF, "none": fs.ErrNotExist} {
		got := sandbox.Carried(errors.Join(errors.New("x"), fmt.Errorf("doing: %w", err)))
		require.ErrorIs(t, got, err, name)
		require.NotErrorIs(t, got, state.ErrConflict, name)
		require.ErrorIs(t, sandbox.Carried(got), err, "also over two connections")
	}
	require.True(t, fault.Passes(sandbox.Carried(syscall.EMFILE)))
	require.False(t, fault.Passes(sandbox.Carried(syscall.EACCES)))
	require.ErrorIs(t, sandbox.Carried(syscall.ENOENT), fs.ErrNotExist)
	require.Equal(t, fault.Bug, fault.Of(sandbox.Carried(errors.New("plain"))).Kind)
}
