package pipeline

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"thalweg/internal/address"
	"thalweg/internal/engine"
	"thalweg/internal/outfile"
	"thalweg/internal/script"
	"thalweg/internal/state"
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
		m.Add(outfile.ManifestFile{Name: besideManifest(address.Redact(x.final), f.URL), Rows: f.Rows, Bytes: f.Bytes, SHA256: f.SHA256})
	}
	return m, nil
}

// describe begins a manifest of the node's files.
func (x *attempt) describe(ctx context.Context) (*outfile.Manifest, error) {
	run, err := x.p.cfg.Store.Run(ctx, x.claim.RunKey)
	if err != nil {
		return nil, fmt.Errorf("read run %d: %w", x.claim.Run, err)
	}
	m := &outfile.Manifest{Thalweg: run.Program, Workspace: run.Workspace, Run: run.Run, Node: x.claim.Node, Fingerprint: run.Fingerprint}
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

// manifestAddress is where the manifest of the node's files is.
func (x *attempt) manifestAddress() (string, error) {
	return x.address(script.ExpandURL(x.node.Out.ManifestURL(), int(x.claim.Run), 0))
}

// removeManifest removes the manifest of files that are about to be replaced.
func (x *attempt) removeManifest(ctx context.Context) error {
	at, err := x.manifestAddress()
	if err != nil {
		return err
	}
	if address.Remote(at) {
		return x.p.cfg.Remote.Remove(ctx, at, x.p.cfg.Script)
	}
	if err := removeFile(at); err != nil {
		return x.outputFault("remove the manifest "+at+" of files that are replaced", err)
	}
	return nil
}
