package remote

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"

	"thalweg/internal/base/address"
	"thalweg/internal/base/fault"
)

// posixRename is the extension of servers that can rename to a name that is taken.
const posixRename = "posix-rename@openssh.com"

// sftpStaged is a file under a temporary name beside its final one.
type sftpStaged struct {
	b    *sftpBackend
	loc  address.Location
	temp string
	u    Upload
	open bool // the temporary file may be there
	sent bool // the server was asked to rename it
	done bool
}

func (b *sftpBackend) stage(ctx context.Context, loc address.Location, u Upload) (Staged, error) {
	f, err := openUpload(u)
	if err != nil {
		return nil, err
	}
	defer f.Close() // read only: nothing can be lost
	s := &sftpStaged{b: b, loc: loc, u: u, temp: path.Join(path.Dir(loc.Path), u.Temp)}
	err = b.c.retry(ctx, loc, func(ctx context.Context) (bool, error) {
		ctx, watch := b.c.watch(ctx)
		defer watch.stop()
		return false, watch.explain(b.with(ctx, loc, func(c *sftpConn) error { return s.send(c, f, watch) }))
	})
	if err != nil {
		b.c.giveUp(ctx, s, loc)
		return nil, err
	}
	return s, nil
}

// send makes the directory and writes the temporary file.
func (s *sftpStaged) send(c *sftpConn, f *os.File, watch *watchdog) (err error) {
	dir := path.Dir(s.loc.Path)
	if err := c.MkdirAll(dir); err != nil {
		return named(err, "make the directory "+dir)
	}
	s.open = true
	out, err := c.OpenFile(s.temp, os.O_CREATE|os.O_TRUNC|os.O_WRONLY)
	if err != nil {
		return named(err, "write into the directory "+dir)
	}
	_, err = out.ReadFrom(&fedReader{Reader: io.NewSectionReader(f, 0, s.u.Bytes), bytes: s.u.Bytes, watch: watch})
	if _, ok := c.HasExtension("fsync@openssh.com"); ok && err == nil {
		err = out.Sync()
	}
	if err = errors.Join(err, out.Close()); err != nil {
		return err
	}
	st, err := c.Stat(s.temp)
	if err == nil && st.Size() != s.u.Bytes {
		err = broken(nil, "the server has %d bytes of %d", st.Size(), s.u.Bytes)
	}
	return err
}

// named says what was being done when the server refused.
func named(err error, what string) error {
	f := sftpFault(err)
	var known *fault.Error
	if answered(err) && errors.As(f, &known) {
		known.Message = what + ": " + known.Message
	}
	return f
}

// fedReader feeds the watchdog with what is sent. Its Size lets several
// packets be on their way at once.
type fedReader struct {
	io.Reader
	bytes int64
	watch *watchdog
}

func (r *fedReader) Read(p []byte) (int, error) {
	r.watch.feed()
	return r.Reader.Read(p)
}

func (r *fedReader) Size() int64 { return r.bytes }

// Publish renames the file. Where the server cannot replace a file by
// renaming, the old one is removed first.
func (s *sftpStaged) Publish(ctx context.Context) error {
	err := s.b.c.retry(ctx, s.loc, func(ctx context.Context) (bool, error) {
		ctx, watch := s.b.c.watch(ctx)
		defer watch.stop()
		return false, watch.explain(s.b.with(ctx, s.loc, s.rename))
	})
	s.done = s.done || err == nil
	return err
}

func (s *sftpStaged) rename(c *sftpConn) error {
	if _, err := c.Lstat(s.temp); errors.Is(err, fs.ErrNotExist) {
		// The answer to an earlier try may have been lost. Without one, a file
		// of the same size is another run's.
		if st, err := c.Stat(s.loc.Path); s.sent && err == nil && st.Size() == s.u.Bytes {
			return nil
		}
		return named(err, "put the file in place")
	}
	s.sent = true
	if _, ok := c.HasExtension(posixRename); ok {
		return s.renamed(c.PosixRename(s.temp, s.loc.Path))
	}
	err := c.Rename(s.temp, s.loc.Path)
	if err == nil || !answered(err) {
		return err
	}
	return s.replace(c)
}

// replace puts the file in the place of another one by a server that cannot rename to a name that
// is taken. If it cannot be done, or somebody has removed the temporary file meanwhile, the
// one that was there gets its name again.
func (s *sftpStaged) replace(c *sftpConn) error {
	old := s.temp + oldSuffix
	if err := c.takeBack(s.temp, s.loc.Path); err != nil { // of an earlier try whose answer was lost
		return named(err, "replace the file")
	}
	if err := c.Rename(s.loc.Path, old); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return named(err, "replace the file")
	}
	if err := c.Rename(s.temp, s.loc.Path); err != nil {
		return s.renamed(errors.Join(err, c.takeBack(s.temp, s.loc.Path)))
	}
	if err := absent(c.Remove(old)); err != nil {
		return named(err, "remove the file that was replaced")
	}
	return nil
}

// oldSuffix is behind the temporary name of a file in the name that the one has which it replaces,
// for the moment in which there is none.
const oldSuffix = "-old"

// takeBack ends what replace began: what was being replaced gets its name again, unless it is taken.
func (c *sftpConn) takeBack(temp, final string) error {
	old := temp + oldSuffix
	if _, err := c.Lstat(old); err != nil {
		return absent(err)
	}
	if _, err := c.Lstat(final); errors.Is(err, fs.ErrNotExist) {
		return absent(c.Rename(old, final))
	} else if err != nil {
		return err
	}
	return absent(c.Remove(old))
}

// absent takes it for fine that something is not there.
func absent(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (s *sftpStaged) renamed(err error) error {
	if err == nil {
		return nil
	}
	return named(err, "put the file in place")
}

func (s *sftpStaged) Discard(ctx context.Context) error {
	if s.done || !s.open {
		return nil
	}
	return s.b.abandon(ctx, s.loc, Leftover{Temp: s.u.Temp})
}

// abandon removes a temporary file.
func (b *sftpBackend) abandon(ctx context.Context, loc address.Location, left Leftover) error {
	if left.Temp == "" {
		return nil
	}
	return b.c.retry(ctx, loc, func(ctx context.Context) (bool, error) {
		ctx, watch := b.c.watch(ctx)
		defer watch.stop()
		return false, watch.explain(b.with(ctx, loc, func(c *sftpConn) error {
			temp := path.Join(path.Dir(loc.Path), left.Temp)
			if _, ok := c.HasExtension(posixRename); !ok {
				if err := c.takeBack(temp, loc.Path); err != nil {
					return named(err, "give the file back its name that an earlier attempt was replacing")
				}
			}
			if err := c.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return named(err, "remove what an earlier attempt left")
			}
			return nil
		}))
	})
}
