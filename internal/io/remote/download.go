package remote

import (
	"context"

	"thalweg/internal/base/address"
)

// target receives the bytes of a file.
type target interface {
	Write(p []byte) (int, error)
	reset() error // empty it again
}

// download is one file on its way here. It is the sink of its tries.
type download struct {
	to      target
	admit   func(Version) error // may refuse a version before its first byte; may be nil
	watch   *watchdog           // of the current try
	version Version
	at      int64 // bytes in the target
}

// download brings a file into to. It goes on where it stopped when a transfer
// breaks, as long as the server still has the same version.
func (c *Client) download(ctx context.Context, loc address.Location, to target, admit func(Version) error) (Version,
	error) {
	done, err := c.begin(ctx)
	if err != nil {
		return Version{}, err
	}
	defer done()
	b, err := c.backend(ctx, loc)
	if err != nil {
		return Version{}, placed(err, loc)
	}
	d := &download{to: to, admit: admit}
	err = c.retry(ctx, loc, func(ctx context.Context) (bool, error) {
		ctx, d.watch = c.watch(ctx)
		defer d.watch.stop()
		before := d.at
		err := b.get(ctx, loc, d.at, d.version, d)
		if err == nil && d.version.Bytes >= 0 && d.at != d.version.Bytes {
			err = broken(nil, "the server sent %d bytes of %d", d.at, d.version.Bytes)
			if d.at > d.version.Bytes {
				d.version = Version{} // begin again
			}
		}
		return d.at > before, d.watch.explain(err)
	})
	if err == nil && d.version.Bytes < 0 {
		d.version.Bytes = d.at
	}
	return d.version, err
}

// begin takes note of the version that comes. A file that does not go on where
// it stopped begins again.
func (d *download) begin(v Version, offset int64) error {
	d.watch.feed()
	if offset == d.at && offset > 0 && v.same(d.version) {
		return nil
	}
	if offset != 0 {
		d.version, d.at = Version{}, 0
		if err := d.to.reset(); err != nil {
			return err
		}
		return broken(nil, "the file changed while it was read")
	}
	d.version, d.at = v, 0
	if err := d.to.reset(); err != nil {
		return err
	}
	if d.admit != nil {
		return d.admit(v)
	}
	return nil
}

func (d *download) Write(p []byte) (int, error) {
	d.watch.feed()
	n, err := d.to.Write(p)
	d.at += int64(n)
	return n, err
}
