package app

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"thalweg/internal/app/runtime"
	"thalweg/internal/app/scripts"
	"thalweg/internal/app/scripttest"
	"thalweg/internal/app/view"
	"thalweg/internal/base/fault"
)

// authorMemoryBytes is what a test of a script, or a look at files, may take in a process that others use, too.
const authorMemoryBytes = 512 << 20

// Texts are files of scripts that are given as texts, by their paths.
type Texts = scripts.Texts

// ExplainAlone says how a run of a script would proceed. No code of the script is run: what a run would take over from
// others is not known without that.
func (a *App) ExplainAlone(ctx context.Context, by Caller, s *scripts.Script, o ExplainOptions) (view.Explained,
	error) {
	return Explain(ctx, a.in(by), s, o)
}

// RunTexts returns the texts that a run was begun with, without its parameters.
func (a *App) RunTexts(ctx context.Context, run view.Run) (view.RunTexts, error) {
	out := view.RunTexts{Script: run.ScriptPath, Files: []view.RunText{}}
	texts, err := runtime.PinnedTexts(ctx, a.home.State, run)
	if err != nil {
		return out, err
	}
	for _, t := range texts {
		one := view.RunText{File: t.Name, Text: string(t.Text)}
		if filepath.Ext(t.Name) != ".py" {
			one.Nodes = scripts.LinesOf(one.Text)
		}
		out.Files = append(out.Files, one)
	}
	return out, nil
}

// TestScript runs the tests of a script that are in the file, or the text, at path; "": beside the script.
func (a *App) TestScript(ctx context.Context, by Caller, n NamedScript, path string) (out []view.Tested, err error) {
	work, err := os.MkdirTemp("", "thalweg-test-")
	if err != nil {
		return nil, &fault.Error{Kind: fault.Environment, Message: "make a directory for tests", Err: err}
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	o := TestOptions{Process: a.in(by), WorkDir: work, Policy: n.Policy, Texts: n.Texts}
	o.Process.Dir, o.Process.MemoryBytes = n.Dir, authorMemoryBytes
	if path == "" {
		path = scripttest.PathFor(n.Path)
	}
	suite, err := o.Load(ctx, path, n.Path)
	if err != nil {
		return nil, err
	}
	out = []view.Tested{}
	for i, one := range suite.Cases {
		view.TellProgress(ctx, view.Progress{Phase: "running test " + one.Name, Done: int64(i), Of: int64(len(suite.Cases)),
			Unit: "tests"})
		found, err := scripttest.Run(ctx, suite, one, o)
		if err != nil {
			return nil, err
		}
		out = append(out, found.View(suite))
	}
	return out, nil
}

// InferScript proposes a script for files, as far as o.Seen allows to read them.
func (a *App) InferScript(ctx context.Context, files []string, o InferOptions) (Proposal, error) {
	o.MemoryBytes = authorMemoryBytes
	return a.Scripts.Infer(ctx, files, o)
}
