package pipeline

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"thalweg/internal/address"
	"thalweg/internal/engine"
	"thalweg/internal/fault"
	"thalweg/internal/script"
	"thalweg/internal/state"
	"thalweg/internal/worker"
)

// tempMark is in the name of every output file that is not committed yet.
const tempMark = ".thalweg-"

// openOutput decides where the batch's file will be and under which temporary
// name beside it, and removes what dead attempts at it left.
func (x *attempt) openOutput() error {
	url := script.ExpandURL(x.node.Out.URL, int(x.claim.Run), x.claim.Batch)
	if address.Remote(url) {
		return x.openUpload(url)
	}
	final, err := address.Local(url)
	if err != nil {
		return err
	}
	if final, err = filepath.Abs(final); err != nil {
		return fmt.Errorf("find the output file: %w", err)
	}
	x.final = final
	dir, base := filepath.Split(final)
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return x.outputFault("make the directory of output file "+final, err)
	}
	prefix := x.tempPrefix(base)
	x.batch.OutPath = filepath.Join(dir, fmt.Sprintf("%s%d.tmp", prefix, x.claim.Attempt))
	entries, err := os.ReadDir(dir)
	if err != nil {
		return x.outputFault("look into the directory of output file "+final, err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), prefix) {
			if err := os.Remove(filepath.Join(dir, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return x.outputFault("remove what an earlier attempt left", err)
			}
		}
	}
	return nil
}

// tempPrefix begins the temporary names of all attempts at this batch and of
// nobody else: of no other node, run, workspace or state directory.
func (x *attempt) tempPrefix(base string) string {
	const baseBytesMax = 100 // a file's name has 255 bytes at most
	owner := sha256.Sum256([]byte(fmt.Sprintf("%s\n%s\n%d\n%s\n%d", x.p.cfg.StateDir, x.claim.Workspace, x.claim.Run, x.claim.Node, x.claim.Batch)))
	return fmt.Sprintf(".%s%s%x-a", base[:min(len(base), baseBytesMax)], tempMark, owner[:8])
}

func (x *attempt) outputFault(what string, err error) error {
	pos := x.node.Out.Pos
	return &fault.Error{Kind: fault.Environment, Place: fault.Place{File: pos.File, Line: int64(pos.Line), Column: pos.Col},
		Message: what, Err: err, Hint: "check the path in url_template, its permissions and free space"}
}

// outputResult makes the file durable under its temporary name, or sends it to
// where it will be; the worker shows it under its final name when it commits.
func (x *attempt) outputResult(ctx context.Context, out worker.Result, res engine.Result) (worker.Result, error) {
	temp, discardParts := x.batch.OutPath, out.Discard
	out.Discard = func() {
		if discardParts != nil {
			discardParts()
		}
		_ = os.Remove(temp)
	}
	sum, bytes, err := syncFile(temp)
	if err != nil {
		out.Discard()
		return worker.Result{}, x.outputFault("make the output file durable", err)
	}
	out.Outcome.Stats.BytesOut = bytes
	out.Outcome.Files = []state.File{{NodeKey: x.claim.NodeKey, Batch: x.claim.Batch, URL: address.Redact(x.final), Rows: res.RowsOut, Bytes: bytes, Checksum: sum}}
	if address.Remote(x.final) {
		return x.uploadResult(ctx, out)
	}
	out.Publish = func(context.Context) error {
		if err := os.Rename(temp, x.final); err != nil {
			return x.outputFault("put the output file in place", err)
		}
		if err := syncDir(filepath.Dir(x.final)); err != nil {
			return x.outputFault("make the output file's name durable", err)
		}
		return nil
	}
	return out, nil
}

// uploadResult sends the file.
func (x *attempt) uploadResult(ctx context.Context, out worker.Result) (worker.Result, error) {
	discardLocal := out.Discard
	staged, err := x.upload(ctx, out.Outcome.Files[0])
	if err != nil {
		discardLocal()
		return worker.Result{}, err
	}
	out.Publish = staged.Publish
	out.Discard = func() {
		discardLocal()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), discardTimeout)
		defer cancel()
		if err := staged.Discard(ctx); err != nil {
			x.p.cfg.Logger.Warn("a dropped attempt's file stays at the server until the next attempt", "url", address.Redact(x.final), "error", err)
		}
	}
	return out, nil
}

// discardTimeout bounds the removal of what was sent in vain.
const discardTimeout = 10 * time.Second

// syncFile makes a file durable and returns its checksum and size.
func syncFile(path string) (sum string, bytes int64, err error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return "", 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := f.Sync(); err != nil {
		return "", 0, err
	}
	h := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	if bytes, err = io.Copy(h, f); err != nil {
		return "", 0, err
	}
	return fmt.Sprintf("crc32c:%08x", h.Sum32()), bytes, nil
}

func syncDir(path string) (err error) {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	return d.Sync()
}
