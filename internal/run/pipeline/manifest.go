package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"thalweg/internal/base/address"
	"thalweg/internal/base/durable"
	"thalweg/internal/io/outfile"
	"thalweg/internal/lang/script"
	"thalweg/internal/run/engine"
	"thalweg/internal/store/state"
)

// A manifest is written by a batch of its own, behind those that write the node's
// files. Each of these removes what an earlier run left before it shows its file: a
// manifest is never beside files that it does not speak of.

// writeManifest writes the manifest under the temporary name of the batch's file.
func (x *attempt) writeManifest(ctx context.Context) (engine.Result, error) {
	m, err := x.manifest(ctx)
	if err != nil {
		return engine.Result{}, err
	}
	text, err := m.Encode()
	if err != nil {
		return engine.Result{}, err
	}
	if err := os.WriteFile(x.batch.OutPath, text, 0o666); err != nil { //nolint:gosec // as readable as the files beside it
		return engine.Result{}, x.outputFault("write the manifest "+x.final, err)
	}
	return engine.Result{Written: []engine.Written{{Path: x.batch.OutPath}}}, nil
}

// manifest describes what the node's other batches have committed.
func (x *attempt) manifest(ctx context.Context) (*outfile.Manifest, error) {
	m, err := x.describe(ctx)
	if err != nil {
		return nil, err
	}
	files, err := state.All(ctx, x.p.cfg.Store.Files, x.claim.NodeKey)
	if err != nil {
		return nil, fmt.Errorf("read the files of %s: %w", x.claim.Node, err)
	}
	for _, f := range files {
		if f.Manifest {
			continue
		}
		m.Add(outfile.ManifestFile{Name: besideManifest(address.Redact(x.final), f.URL), Rows: f.Rows, Bytes: f.Bytes,
			SHA256: f.SHA256})
	}
	return m, nil
}

// describe begins a manifest of the node's files.
func (x *attempt) describe(ctx context.Context) (*outfile.Manifest, error) {
	run, err := x.p.cfg.Store.Run(ctx, x.claim.RunKey)
	if err != nil {
		return nil, fmt.Errorf("read run %d: %w", x.claim.Run, err)
	}
	m := &outfile.Manifest{Thalweg: run.Program, Workspace: run.Workspace, Run: run.Run, Node: x.claim.Node,
		Fingerprint: run.Fingerprint}
	m.Describe(x.node.Out)
	return m, nil
}

// besideManifest is a file's name as it is seen from the manifest's directory.
func besideManifest(manifest, file string) string {
	if !address.Remote(manifest) {
		if rel, err := filepath.Rel(filepath.Dir(manifest), file); err == nil {
			return filepath.ToSlash(rel)
		}
		return file
	}
	if rel, ok := strings.CutPrefix(file, path.Dir(manifest)+"/"); ok {
		return rel
	}
	if i := strings.Index(manifest, "://"); i >= 0 {
		from, to := strings.Split(manifest, "/"), strings.Split(file, "/")
		same := 0
		for same < min(len(from), len(to))-1 && from[same] == to[same] {
			same++
		}
		return strings.Repeat("../", len(from)-1-same) + strings.Join(to[same:], "/")
	}
	return file
}

// manifestAddress returns the address of the manifest of the node's files.
func (x *attempt) manifestAddress() (string, error) {
	return x.address(script.ExpandURL(x.node.Out.ManifestURL(), int(x.claim.Run), 0))
}

// replacesManifest reports whether the batch shows a file beside which there may be a manifest that
// does not speak of it.
func (x *attempt) replacesManifest() bool {
	return x.node.Out != nil && x.node.Out.Manifest && !x.batch.Work.Manifest && !x.isDir()
}

// An attempt that has lost its lease, and does not know it, may be about to show its file when
// others have written it, and the manifest: it must not remove that one. On this machine its
// file is in a directory of its own, and the earlier manifest is moved into that directory; who
// tries the batch again removes the directory before anything else, and nothing can be moved
// into it from then. At a server only the manifest is removed that was there when the attempt began.

// makeHold makes the attempt's own directory for its file.
func (x *attempt) makeHold() error {
	hold := x.batch.OutPath
	if err := os.Mkdir(hold, 0o777); err != nil {
		return x.outputFault("make a directory for output file "+x.final, err)
	}
	x.batch.OutPath = filepath.Join(hold, "out")
	return nil
}

// heldFile is a file of this machine in a directory of the attempt.
type heldFile struct {
	localFile
}

// Publish takes the earlier manifest away, and shows the file.
func (f *heldFile) Publish(ctx context.Context) error {
	at, err := f.x.manifestAddress()
	if err != nil {
		return err
	}
	files := f.x.p.cfg.Files
	err = files.Rename(at, filepath.Join(filepath.Dir(f.temp), "manifest"))
	if err == nil {
		err = files.SyncDir(filepath.Dir(at))
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // if it is the directory that is gone, so is the file
		return f.x.outputFault("remove the manifest "+at+" of files that are replaced", err)
	}
	if err := f.localFile.Publish(ctx); err != nil {
		return err
	}
	return f.Discard(ctx)
}

// Discard removes the directory.
func (f *heldFile) Discard(context.Context) error {
	hold := filepath.Dir(f.temp)
	if err := f.x.p.cfg.Files.Do(durable.Remove, hold, func() error { return os.RemoveAll(hold) }); err != nil {
		return f.x.outputFault("remove the directory in which output file "+f.x.final+" was made", err)
	}
	return nil
}

// noteManifest notes which manifest lies at the server when the attempt begins.
func (x *attempt) noteManifest(ctx context.Context) error {
	at, err := x.manifestAddress()
	if err != nil {
		return err
	}
	x.manifestWas, err = x.p.cfg.Remote.Look(ctx, at, x.p.cfg.Script)
	return err
}

// withoutManifest is a file at a server whose earlier manifest goes before it is shown.
type withoutManifest struct {
	staged
	x *attempt
}

// Publish removes the manifest that was there when the attempt began, and shows the file.
func (f *withoutManifest) Publish(ctx context.Context) error {
	if was := f.x.manifestWas; was != nil {
		at, err := f.x.manifestAddress()
		if err != nil {
			return err
		}
		if err := f.x.p.cfg.Remote.RemoveVersion(ctx, at, *was, f.x.p.cfg.Script); err != nil {
			return err
		}
	}
	return f.staged.Publish(ctx)
}
