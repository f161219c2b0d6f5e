package pipeline

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"

	"thalweg/internal/base/address"
	"thalweg/internal/base/fault"
	"thalweg/internal/io/remote"
	"thalweg/internal/lang/script"
	"thalweg/internal/run/engine"
	"thalweg/internal/run/job"
	"thalweg/internal/store/parts"
	"thalweg/internal/store/state"
)

// tempMark is in the name of every output file that is not committed yet.
const tempMark = ".thalweg-"

// staged is an output file that is whole and that nobody sees yet: beside its
// final name on this machine, or at a server.
type staged interface {
	// Publish shows it under its final name. It may be repeated.
	Publish(ctx context.Context) error
	// Discard removes it. After Publish it does nothing.
	Discard(ctx context.Context) error
}

// outputAddress returns the final address of the batch's file: an absolute path, whatever this process's
// directory is, or a URL.
func (x *attempt) outputAddress() (string, error) {
	if x.batch.Work.Manifest {
		return x.manifestAddress()
	}
	return x.address(script.ExpandURL(x.node.Out.URL, int(x.claim.Run), x.claim.Batch))
}

// address makes the place of an output that of this run.
func (x *attempt) address(url string) (string, error) {
	if address.Remote(url) {
		return url, nil
	}
	final, err := address.LocalIn(x.p.cfg.Dir, url)
	if err != nil {
		return "", err
	}
	if final, err = filepath.Abs(final); err != nil {
		return "", fmt.Errorf("find the output file: %w", err)
	}
	if err := x.p.cfg.Remote.Policy().MayWrite(final); err != nil {
		return "", err
	}
	if !x.isDir() {
		return final, nil
	}
	if there, err := filepath.EvalSymlinks(final); err == nil {
		return there, nil // what a link leads to is replaced, not the link
	}
	return final, nil
}

// openOutput decides where the batch's file will be and where it is made, and
// removes what dead attempts at it left.
func (x *attempt) openOutput(ctx context.Context) (err error) {
	if x.final, err = x.outputAddress(); err != nil {
		return err
	}
	if err := x.clearEarlier(ctx); err != nil {
		return err
	}
	if address.Remote(x.final) {
		x.batch.OutPath = filepath.Join(x.dir, "out")
		if x.replacesManifest() {
			return x.noteManifest(ctx)
		}
		return nil
	}
	dir := filepath.Dir(x.final)
	if err := x.p.makeDir(dir); err != nil {
		return x.outputFault("make the directory of output file "+x.final, err)
	}
	if err := x.clearUnannounced(dir); err != nil {
		return err
	}
	temp := tempName(filepath.Base(x.final))
	x.batch.OutPath = filepath.Join(dir, temp)
	if x.isDir() {
		return x.announceDir(ctx, temp)
	}
	if err := x.announce(ctx, state.Publication{Temp: temp}); err != nil {
		return err
	}
	if x.replacesManifest() {
		return x.makeHold()
	}
	return nil
}

// makeDir makes a directory for output files, whose name outlasts a power cut
// before the first file in it counts. Once for all batches: flushing takes time.
func (p *Pipeline) makeDir(dir string) error {
	p.mu.Lock()
	made := p.dirsMade[dir]
	p.mu.Unlock()
	if made {
		if _, err := os.Stat(dir); err == nil {
			return nil
		}
	}
	if err := p.cfg.Files.MakeAll(dir, 0o777); err != nil {
		return err
	}
	p.mu.Lock()
	p.dirsMade[dir] = true
	p.mu.Unlock()
	return nil
}

// clearUnannounced removes what attempts left before temporary files were
// announced: their names follow from the batch and the attempt.
func (x *attempt) clearUnannounced(dir string) error {
	owner := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%d\n%s\n%d", x.p.cfg.StateDir, x.claim.Workspace, x.claim.Run,
		x.claim.Node, x.claim.Batch))
	base := filepath.Base(x.final)
	for a := 1; a < x.claim.Attempt; a++ {
		name := fmt.Sprintf(".%s%s%x-a%d.tmp", base[:min(len(base), tempBaseBytesMax)], tempMark, owner[:8], a)
		if err := removeFile(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// tempBaseBytesMax limits how much of a file's name is part of its temporary name: a name may have 255 bytes.
const tempBaseBytesMax = 100

// tempName is a name that nobody else has for a file that is not to be seen yet.
func tempName(base string) string {
	const randomBytes = 16
	return fmt.Sprintf(".%s%s%s.tmp", base[:min(len(base), tempBaseBytesMax)], tempMark, rand.Text()[:randomBytes])
}

// announce records what is about to lie beside the final name or at a server,
// before it does: whoever works on the run later can remove it.
func (x *attempt) announce(ctx context.Context, p state.Publication) error {
	p.Seq, p.Address, p.Begun = len(x.announced), address.Redact(x.final), time.Now().UTC().Truncate(time.Millisecond)
	if err := x.p.cfg.Store.Announce(ctx, x.claim, []state.Publication{p}, x.claim.Lease); err != nil {
		return fmt.Errorf("announce output file %s: %w", p.Address, err)
	}
	x.announced = append(x.announced, p)
	return nil
}

// outputPlace says of a fault where in the script the output is.
func (x *attempt) outputPlace(err error) error {
	pos := x.node.Out.Pos
	f := *fault.Of(err)
	f.Place = fault.Place{File: pos.File, Line: int64(pos.Line), Column: pos.Col}
	return &f
}

func (x *attempt) outputFault(what string, err error) error {
	pos := x.node.Out.Pos
	return &fault.Error{Kind: fault.Environment, Retryable: fault.Passes(err),
		Place:   fault.Place{File: pos.File, Line: int64(pos.Line), Column: pos.Col},
		Message: what, Err: err, Hint: "check the path in url_template, its permissions and free space"}
}

// outputResult makes the file durable under its temporary name, or sends it to
// where it will be; the worker shows it under its final name when it commits.
func (x *attempt) outputResult(ctx context.Context, out job.Result, res engine.Result) (job.Result, error) {
	discardParts := out.Discard
	if discardParts == nil {
		discardParts = func() {}
	}
	defer during(&x.strain.measured.write)()
	if x.isDir() {
		return x.dirResult(ctx, out, discardParts, res)
	}
	sums, bytes, err := x.syncFile(x.batch.OutPath)
	if err != nil {
		discardParts()
		return job.Result{}, x.outputFault("make output file "+x.final+" durable", err)
	}
	file, err := x.staged(ctx, bytes, sums.crc, res.RowsOut)
	if err != nil {
		discardParts()
		return job.Result{}, err
	}
	out.Outcome.Stats.BytesOut = bytes
	out.Outcome.Files = []state.File{{NodeKey: x.claim.NodeKey, Batch: x.claim.Batch, URL: address.Redact(x.final),
		Rows: res.RowsOut, Bytes: bytes, Checksum: sums.crc,
		SHA256: sums.sha, Manifest: x.batch.Work.Manifest}}
	out.Publications, out.Publish = x.announced, file.Publish
	out.Discard = func() {
		discardParts()
		x.drop(ctx, file.Discard)
	}
	return out, nil
}

// staged is the batch's file, whole, where nobody sees it yet.
func (x *attempt) staged(ctx context.Context, bytes int64, sum string, rows int64) (staged, error) {
	local := localFile{x: x, temp: x.batch.OutPath}
	switch {
	case address.Remote(x.final):
		file, err := x.send(ctx, bytes, sum, rows)
		if err == nil && x.replacesManifest() {
			file = &withoutManifest{file, x}
		}
		return file, err
	case x.replacesManifest():
		return &heldFile{local}, nil
	}
	return &local, nil
}

// send sends the batch's file to its server, where it is not visible yet.
func (x *attempt) send(ctx context.Context, bytes int64, sum string, rows int64) (staged, error) {
	temp := tempName(path.Base(x.final))
	if err := x.announce(ctx, state.Publication{Temp: temp}); err != nil {
		return nil, err
	}
	if x.node.Out.Target != nil {
		return x.sendRows(ctx, fmt.Sprintf("%s, %d bytes", sum, bytes), rows)
	}
	return x.p.cfg.Remote.Stage(ctx, x.final, remote.Upload{Path: x.batch.OutPath, Bytes: bytes,
		Checksum: sum, Temp: temp, Secrets: x.p.cfg.Script,
		Named: func(ctx context.Context, upload string) error {
			return x.announce(ctx, state.Publication{Upload: upload})
		},
		Alone: x.leavings().alone(x.claim.BatchKey)})
}

// dropOutput removes what an attempt that failed made of its file.
func (x *attempt) dropOutput(ctx context.Context) {
	if len(x.announced) > 0 {
		x.drop(ctx, func(ctx context.Context) error { return x.leavings().remove(ctx, x.claim.BatchKey, x.announced) })
	}
}

// drop removes by discard what is not published, and forgets that it was announced.
func (x *attempt) drop(ctx context.Context, discard func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), discardTimeout)
	defer cancel()
	err := discard(ctx)
	if err == nil {
		err = x.p.cfg.Store.Forget(ctx, x.claim.BatchKey, x.claim.Attempt)
	}
	if err != nil {
		x.p.cfg.Logger.Warn("a dropped attempt's file stays until the next attempt, or until the run is over", "url",
			address.Redact(x.final), "error", err)
	}
}

// discardTimeout bounds the removal of what was made in vain.
const discardTimeout = 10 * time.Second

// localFile is a file of this machine under its temporary name.
type localFile struct {
	x    *attempt
	temp string
}

func (f *localFile) Publish(context.Context) error {
	if err := f.x.p.cfg.Files.Rename(f.temp, f.x.final); err != nil {
		return f.x.outputFault("put output file "+f.x.final+" in place, durably", err)
	}
	return nil
}

func (f *localFile) Discard(context.Context) error { return removeFile(f.temp) }

// removeFile removes a file that may be gone.
func removeFile(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return &fault.Error{Kind: fault.Environment, Retryable: fault.Passes(err),
			Message: "remove what an earlier attempt left", Err: err, Hint: "check the permissions of its directory"}
	}
	return nil
}

// sumFile reads a file for its checksum and size.
func sumFile(ctx context.Context, path string) (sum string, bytes int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	stop := context.AfterFunc(ctx, func() { _ = f.Close() }) // reading a large one ends with the context
	defer stop()
	return parts.Checksum(f)
}

// sums holds a file's checksums.
type sums struct{ crc, sha string }

// syncFile makes a file durable and returns its checksums and size. The second
// one costs more, and is made where a manifest tells it.
func (x *attempt) syncFile(path string) (out sums, bytes int64, err error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return out, 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := x.p.cfg.Files.Sync(f); err != nil {
		return out, 0, err
	}
	if !x.node.Out.Manifest || x.batch.Work.Manifest {
		out.crc, bytes, err = parts.Checksum(f)
		return out, bytes, err
	}
	h := sha256.New()
	out.crc, bytes, err = parts.Checksum(io.TeeReader(f, h))
	out.sha = hex.EncodeToString(h.Sum(nil))
	return out, bytes, err
}
