package pipeline

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"thalweg/internal/base/durable"
	"thalweg/internal/io/outfile"
	"thalweg/internal/lang/script"
	"thalweg/internal/run/engine"
	"thalweg/internal/run/job"
	"thalweg/internal/store/state"
)

// A directory of output files is made beside its final name, with its manifest, and takes
// the place of the one before as a whole, in one step where the file system can exchange two
// names. So whoever opens the directory finds files of one run, and none is left of another.

// isDir reports whether the batch writes a directory of files.
func (x *attempt) isDir() bool { return x.node.Out != nil && x.node.Out.Dir() }

// announceDir records the names beside the final one: of what is made, and of what it replaces
// where two names cannot be exchanged.
func (x *attempt) announceDir(ctx context.Context, temp string) error {
	if err := x.replaceable(); err != nil {
		return err
	}
	if err := x.announce(ctx, state.Publication{Temp: temp}); err != nil {
		return err
	}
	return x.announce(ctx, state.Publication{Temp: tempName("old-" + filepath.Base(x.final))})
}

func (x *attempt) replaceable() error {
	err := outfile.Replaceable(x.final)
	if err != nil {
		return x.outputPlace(err)
	}
	return nil
}

// dirResult makes the directory durable under its temporary name.
func (x *attempt) dirResult(ctx context.Context, out job.Result, discardParts func(),
	res engine.Result) (job.Result, error) {
	m, err := x.describe(ctx)
	if err == nil {
		out.Outcome.Files, err = x.dirFiles(m, res.Written)
	}
	if err == nil {
		err = x.syncDirs()
	}
	if err != nil {
		discardParts()
		return job.Result{}, x.outputFault("make output directory "+x.final+" durable", err)
	}
	for _, f := range out.Outcome.Files {
		out.Outcome.Stats.BytesOut += f.Bytes
	}
	dir := &localDir{x: x, temp: x.batch.OutPath, old: filepath.Join(filepath.Dir(x.final), x.announced[1].Temp)}
	out.Publications, out.Publish = x.announced, dir.Publish
	out.Discard = func() {
		discardParts()
		x.drop(ctx, dir.Discard)
	}
	return out, nil
}

// dirFiles makes the files durable, and writes the manifest beside them.
func (x *attempt) dirFiles(m *outfile.Manifest, written []engine.Written) (files []state.File, err error) {
	for _, w := range written {
		sums, bytes, err := x.syncFile(w.Path)
		if err != nil {
			return nil, err
		}
		m.Add(outfile.ManifestFile{Name: w.Name, Rows: w.Rows, Bytes: bytes, SHA256: sums.sha})
		files = append(files, state.File{NodeKey: x.claim.NodeKey, Batch: x.claim.Batch,
			URL:  filepath.Join(x.final, filepath.FromSlash(w.Name)),
			Rows: w.Rows, Bytes: bytes, Checksum: sums.crc, SHA256: sums.sha})
	}
	text, err := m.Encode()
	if err != nil {
		return nil, err
	}
	path := filepath.Join(x.batch.OutPath, script.DirManifest)
	if err := os.WriteFile(path, text, 0o666); err != nil { //nolint:gosec // as readable as the files beside it
		return nil, err
	}
	sums, bytes, err := x.syncFile(path)
	return append(files, state.File{NodeKey: x.claim.NodeKey, Batch: x.claim.Batch,
		URL: filepath.Join(x.final, script.DirManifest), Bytes: bytes,
		Checksum: sums.crc, SHA256: sums.sha, Manifest: true}), err
}

// syncDirs flushes the names of the files.
func (x *attempt) syncDirs() error {
	return filepath.WalkDir(x.batch.OutPath, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		return x.p.cfg.Files.SyncDir(path)
	})
}

// localDir is a directory of this machine under its temporary name.
type localDir struct {
	x         *attempt
	temp, old string
	shown     bool
}

// Publish puts the directory in the place of the one before.
func (d *localDir) Publish(context.Context) error {
	if d.shown {
		return nil
	}
	if err := d.x.replaceable(); err != nil { // somebody may have put files there meanwhile
		return err
	}
	files := d.x.p.cfg.Files
	if err := files.Exchange(d.temp, d.x.final, d.old); err != nil {
		return d.x.outputFault("put output directory "+d.x.final+" in place, durably", err)
	}
	d.shown = true
	return errors.Join(d.remove(d.temp), d.remove(d.old)) // what was there before
}

// Discard removes what was not published.
func (d *localDir) Discard(context.Context) error {
	return errors.Join(d.remove(d.temp), d.remove(d.old))
}

func (d *localDir) remove(path string) error {
	if err := d.x.p.cfg.Files.Do(durable.Remove, path, func() error { return os.RemoveAll(path) }); err != nil {
		return d.x.outputFault("remove what the output directory "+d.x.final+" has replaced", err)
	}
	return nil
}
