package remote

import (
	"context"
	"encoding/binary"
	"errors"
	"os"

	"thalweg/internal/base/address"
	"thalweg/internal/base/fault"
)

// tailBytes of a Parquet file are asked for first: most footers fit.
const tailBytes = 64 << 10

// Sample makes a file at path that is good for looking at the beginning of a
// remote file: its first headBytes, or less if it is shorter.
func (c *Client) Sample(ctx context.Context, url string, headBytes int64, path string, secrets Secrets) error {
	return c.sample(ctx, url, path, secrets, func(loc address.Location, f *os.File) error {
		_, err := c.download(ctx, loc, &headTarget{f: f, left: headBytes}, nil)
		if errors.Is(err, errEnough) {
			return nil
		}
		return err
	})
}

// SampleParquet makes a file at path that is good for looking at the footer of
// a remote Parquet file: it has the same size, with a hole where the data are.
func (c *Client) SampleParquet(ctx context.Context, url, path string, secrets Secrets) error {
	return c.sample(ctx, url, path, secrets, func(loc address.Location, f *os.File) error {
		v, err := c.stat(ctx, loc)
		if err != nil {
			return err
		}
		if err := c.tail(ctx, loc, v, f, tailBytes); err != nil {
			return err
		}
		st, err := f.Stat()
		if err != nil || st.Size() < 8 {
			return err // too short to be Parquet: whoever reads it says so
		}
		var end [8]byte
		if _, err := f.ReadAt(end[:], st.Size()-8); err != nil {
			return localFault("look at a remote file", err)
		}
		if footer := int64(binary.LittleEndian.Uint32(end[:4])) + 8; footer > tailBytes {
			return c.tail(ctx, loc, v, f, footer)
		}
		return nil
	})
}

func (c *Client) sample(ctx context.Context, url, path string, secrets Secrets,
	fill func(loc address.Location, f *os.File) error) (err error) {
	loc, err := locate(url, secrets)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return localFault("look at a remote file", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return placed(fill(loc, f), loc)
}

// errEnough ends a download of which the beginning is wanted.
var errEnough = errors.New("enough was read")

// headTarget takes the beginning of a file.
type headTarget struct {
	f    *os.File
	at   int64
	left int64
}

func (t *headTarget) reset() error {
	t.left, t.at = t.left+t.at, 0
	return nil
}

func (t *headTarget) Write(p []byte) (int, error) {
	n, err := t.f.WriteAt(p[:min(int64(len(p)), t.left)], t.at)
	t.at, t.left = t.at+int64(n), t.left-int64(n)
	if err != nil {
		return n, localFault("look at a remote file", err)
	}
	if t.left == 0 {
		return n, &fault.Error{Kind: fault.Canceled, Message: "the rest is not needed", Err: errEnough}
	}
	return n, nil
}

// tail brings the last bytes of a file, or all of it from a server that cannot
// send less.
func (c *Client) tail(ctx context.Context, loc address.Location, v Version, f *os.File, bytes int64) error {
	done, err := c.begin(ctx)
	if err != nil {
		return err
	}
	defer done()
	b, err := c.backend(ctx, loc)
	if err != nil {
		return err
	}
	return c.retry(ctx, loc, func(ctx context.Context) (bool, error) {
		ctx, watch := c.watch(ctx)
		defer watch.stop()
		return false, watch.explain(b.get(ctx, loc, max(v.Bytes-bytes, 0), v, &tailSink{f: f, watch: watch}))
	})
}

// tailSink takes bytes of a file at their places in it.
type tailSink struct {
	f     *os.File
	at    int64
	watch *watchdog
}

func (t *tailSink) begin(v Version, offset int64) error {
	t.watch.feed()
	t.at = offset
	if err := t.f.Truncate(max(v.Bytes, 0)); err != nil {
		return localFault("look at a remote file", err)
	}
	return nil
}

func (t *tailSink) Write(p []byte) (int, error) {
	t.watch.feed()
	n, err := t.f.WriteAt(p, t.at)
	t.at += int64(n)
	if err != nil {
		return n, localFault("look at a remote file", err)
	}
	return n, nil
}
