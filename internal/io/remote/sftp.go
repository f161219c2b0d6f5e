package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"

	"thalweg/internal/base/action"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"

	"thalweg/internal/base/address"
	"thalweg/internal/base/fault"
)

type sftpBackend struct {
	c          *Client
	pool       connPool
	known      ssh.HostKeyCallback
	knownHosts string // its file
}

func newSFTP(c *Client) (*sftpBackend, error) {
	path := c.cfg.KnownHosts
	if path == "" {
		path = filepath.Join(c.cfg.HomeDir, ".ssh", "known_hosts")
	}
	known, err := loadKnownHosts(path)
	if err != nil {
		return nil, err
	}
	return &sftpBackend{c: c, known: known, knownHosts: path, pool: connPool{idle: map[string][]*sftpConn{}}}, nil
}

func (b *sftpBackend) close() error {
	b.pool.close()
	return nil
}

// identities are the files in which a user's own key is looked for, as ssh does.
var identities = []string{"id_ed25519", "id_ecdsa", "id_rsa"}

// signers reads the private keys with which a user logs in.
func (b *sftpBackend) signers(user string) ([]ssh.Signer, error) {
	if path := b.c.cfg.SFTPKeys[user]; path != "" {
		s, err := readKey(path)
		if err != nil {
			return nil, err
		}
		return []ssh.Signer{s}, nil
	}
	var out []ssh.Signer
	for _, name := range identities {
		path := filepath.Join(b.c.cfg.HomeDir, ".ssh", name)
		if _, err := os.Stat(path); err != nil {
			continue
		}
		s, err := readKey(path)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	if len(out) == 0 {
		return nil, &fault.Error{Kind: fault.Environment,
			Message: fmt.Sprintf("there is no private key for user %s", user),
			Hint: fmt.Sprintf("name it with %s (or THALWEG_SFTP_KEYS)",
				action.Setting("sftp-key", user+"=FILE"))}
	}
	return out, nil
}

func readKey(path string) (ssh.Signer, error) {
	data, err := readLimited(path, keyBytesMax)
	if err != nil {
		return nil, &fault.Error{Kind: fault.Environment, Message: "the private key " + path + " cannot be read",
			Err: err, Hint: "check {{set sftp-key}} (THALWEG_SFTP_KEYS) and the file's permissions"}
	}
	s, err := ssh.ParsePrivateKey(data)
	var locked *ssh.PassphraseMissingError
	if errors.As(err, &locked) {
		return nil, &fault.Error{Kind: fault.Environment, Message: "the private key " + path + " has a passphrase",
			Hint: "use a key without one, readable by its owner only: nobody is there to type it"}
	}
	if err != nil { // its text could quote the file
		return nil, &fault.Error{Kind: fault.Environment, Message: "the private key " + path +
			" is not in a format that is known here",
			Hint: "use an OpenSSH or PEM private key (ssh-keygen makes them), not the .pub file"}
	}
	return s, nil
}

func versionOfInfo(st os.FileInfo) Version {
	return Version{Bytes: st.Size(), ModTime: st.ModTime().UTC()}
}

func (b *sftpBackend) get(ctx context.Context, loc address.Location, offset int64, since Version, to sink) error {
	return b.with(ctx, loc, func(c *sftpConn) (err error) {
		f, err := c.Open(loc.Path)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }() // read only: nothing can be lost
		st, err := f.Stat()
		if err != nil {
			return err
		}
		if !st.Mode().IsRegular() {
			return &fault.Error{Kind: fault.UserData, Message: "it is not a regular file", Hint: "check the address"}
		}
		v := versionOfInfo(st)
		if !v.same(since) {
			offset = 0
		}
		if err := to.begin(v, offset); err != nil {
			return err
		}
		if _, err := f.Seek(offset, io.SeekStart); err != nil {
			return err
		}
		if _, err := f.WriteTo(to); err != nil {
			return err
		}
		// Somebody may be writing it.
		if st, err = f.Stat(); err != nil {
			return err
		}
		if !versionOfInfo(st).same(v) {
			return broken(nil, "the file changed while it was read")
		}
		return nil
	})
}

func (b *sftpBackend) stat(ctx context.Context, loc address.Location) (v Version, err error) {
	err = b.with(ctx, loc, func(c *sftpConn) error {
		st, err := c.Stat(loc.Path)
		if err == nil {
			v = versionOfInfo(st)
		}
		return err
	})
	return v, err
}

// list lists a directory, with what links in it lead to.
func (b *sftpBackend) list(ctx context.Context, loc address.Location, dir, _ string, l *lister) (out []entry,
	err error) {
	err = b.with(ctx, loc, func(c *sftpConn) error {
		var said atomic.Int64
		heard := func(bytes int) { // the library asks for the whole of it
			l.watch.feed()
			if said.Add(int64(bytes)) > listedBytesMax {
				_ = c.net.Close() // there is no other way to end it
			}
		}
		c.net.heard.Store(&heard)
		defer c.net.heard.Store(nil)
		all, err := c.ReadDirContext(ctx, dir)
		switch {
		case said.Load() > listedBytesMax:
			return errors.Join(tooMany("the server says more than %d MiB about one directory", listedBytesMax>>20),
				net.ErrClosed)
		case errors.Is(err, fs.ErrNotExist):
			return missing("the server has no directory %s", dir)
		case err != nil:
			return err
		}
		for _, st := range all {
			link := st.Mode()&fs.ModeSymlink != 0
			if link {
				if st, err = c.Stat(dir + st.Name()); errors.Is(err, fs.ErrNotExist) {
					continue
				} else if err != nil {
					return err
				}
			}
			if st.IsDir() || st.Mode().IsRegular() {
				out = append(out, entry{name: st.Name(), dir: st.IsDir(), link: link, version: versionOfInfo(st)})
			}
		}
		return l.came(len(all))
	})
	return out, err
}

// answered reports an error that a server in good health gives.
func answered(err error) bool {
	var status *sftp.StatusError
	var known *fault.Error
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.ENOTDIR) ||
		errors.As(err, &status) || errors.As(err, &known)
}

// sftpFault classifies the errors of an operation.
func sftpFault(err error) error {
	var known *fault.Error
	var status *sftp.StatusError
	switch {
	case err == nil, errors.As(err, &known):
		return err
	case errors.Is(err, fs.ErrNotExist):
		return missing("the server answered")
	case errors.Is(err, fs.ErrPermission):
		f := denied("the server answered")
		f.Hint = "check what the user may do on the server"
		return f
	case errors.Is(err, syscall.ENOTDIR):
		return &fault.Error{Kind: fault.Environment, Message: "a part of the path is a file", Err: err,
			Hint: "check the path on the server"}
	case errors.As(err, &status):
		return &fault.Error{Kind: fault.Environment, Message: "the server failed", Err: err,
			Hint: "check free space, quota and the path on the server"}
	}
	return broken(err, "the connection broke")
}
