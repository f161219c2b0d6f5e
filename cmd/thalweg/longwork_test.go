package main

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app/view"
)

func TestProgressOfLongWork(t *testing.T) {
	t.Parallel()
	for want, p := range map[string]view.Progress{
		"following rows: 3 of 12 nodes":         {Phase: "following rows", Done: 3, Of: 12, Unit: "nodes"},
		"writing the rows: 1,500 rows":          {Phase: "writing the rows", Done: 1500, Unit: "rows"},
		"looking at in.csv: 1.0 KiB of 2.0 KiB": {Phase: "looking at in.csv", Done: 1024, Of: 2048, Unit: "bytes"},
		"waiting for memory":                    {Phase: "waiting for memory"},
		"at work on \u241b[2J":                  {Phase: "at work on \x1b[2J"},
	} {
		require.Equal(t, want, progressText(p))
	}
	var said bytes.Buffer
	long := longWork{a: &console{stderr: &said, terminal: true}, begun: time.Now().Add(-time.Minute)}
	long.show(view.Progress{Phase: "at work"})
	require.Contains(t, said.String(), "at work")
	long.end()
	require.Regexp(t, `\r\x1b\[K$`, said.String(), "it is cleared")
	said.Reset()
	long.show(view.Progress{Phase: "at work"})
	short := longWork{a: long.a, begun: time.Now()}
	short.show(view.Progress{Phase: "at work"})
	pipe := longWork{a: &console{stderr: &said}, begun: time.Now().Add(-time.Minute)}
	pipe.show(view.Progress{Phase: "at work"})
	require.Empty(t, said.String(), "what has ended, is short, or is read by a program shows nothing")
}
