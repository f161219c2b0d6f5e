package main

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app/runner"
	"thalweg/internal/run/job"
	"thalweg/internal/store/state"
)

// A log says every ten seconds how far copying has come.
func TestCopyingIsTold(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	view := newRunView(&console{stdout: &out, stderr: &out}, false)
	view.begin(runner.Started{Key: state.RunKey{Workspace: "main", Run: 1},
		Nodes: []state.Node{{NodeSpec: state.NodeSpec{Name: "read"}}}})
	out.Reset()
	at := time.Now()
	for s, bytes := range []int64{0, 1 << 20, 2 << 20} {
		view.observe(job.Event{Time: at.Add(time.Duration(s*6) * time.Second), Kind: job.NodeCopying, Node: "read",
			Copying: &job.Copying{Files: 3, FilesDone: s, Bytes: bytes}})
	}
	require.Regexp(t, `^ *\S+ ?\S*  read  copying inputs: 0 of 3 files, 0 B\n.*  read  copying inputs: 2 of 3 `+
		`files, 2.0 MiB\n$`, out.String())
	require.Equal(t, "copying inputs: 2 of 3 files, 2.0 MiB", view.line(view.nodes["read"]))
	view.observe(job.Event{Time: at, Kind: job.NodePlanned, Node: "read", Batches: 2})
	require.NotContains(t, view.line(view.nodes["read"]), "copying")
}
