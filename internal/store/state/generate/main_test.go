package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMethodsAreThoseOfTheInterface(t *testing.T) {
	t.Parallel()
	want, err := generate(filepath.Join("..", source))
	require.NoError(t, err)
	have, err := os.ReadFile(filepath.Join("..", target))
	require.NoError(t, err)
	require.Equal(t, string(want), string(have), "go generate ./internal/store/state")
}

func TestMarksAndShapes(t *testing.T) {
	t.Parallel()
	for method, says := range map[string]string{
		"ReadIt(ctx context.Context, keys ...int) (a, b int, err error)": `Op{OpReadIt, "read_it", Reads, []any{&keys}, []any{&v, &w}}`,
		"Put(ctx context.Context) error":                                 `Op{OpPut, "put", Changes, nil, nil}`,
		"Put(ctx context.Context) error //around:hint":                   `Op{OpPut, "put", Hints, nil, nil}`,
		"Take(ctx context.Context) (int, error) //around:change":         `Op{OpTake, "take", Changes, nil, []any{&v}}`,
		"Take(ctx context.Context) (int, error) //around:name=get":       `Op{OpTake, "get", Reads, nil, []any{&v}}`,
		"Take(ctx context.Context) (int, error) //around:now":            "error: method Take: //around:now is not understood",
		"Take() error":                    "error: method Take: it must begin with",
		"Take(ctx context.Context) (int)": "error: method Take: it must begin with",
	} {
		path := filepath.Join(t.TempDir(), source)
		require.NoError(t, os.WriteFile(path, []byte("package p\ntype Store interface {\n"+method+"\n}\n"), 0o600))
		code, err := generate(path)
		if message, wrong := strings.CutPrefix(says, "error: "); wrong {
			require.ErrorContains(t, err, message)
			continue
		}
		require.NoError(t, err, method)
		require.Contains(t, string(code), says)
	}
}
