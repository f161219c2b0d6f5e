package files

import (
	"context"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"thalweg/internal/base/address"
	"thalweg/internal/lang/script"
)

// How long ago a file must have been changed so that a later change shows in
// its time: the system's clock for files goes by ticks of up to 10 ms, and some
// file systems keep whole seconds, or only even ones.
const (
	tickOfFiles = 20 * time.Millisecond
	tickWhole   = 2 * time.Second
)

// Identity identifies the content of an input that was not read.
type Identity struct {
	URL  string // without secrets
	Text string // the same text is the same content
	// Why says why the content may be another one although the text is not; "":
	// it cannot.
	Why string
}

// Identify looks at what the names of r stand for now, in their order. Nothing
// of the files is read. A file whose last change is so young that one behind it
// might look the same is waited for, if that takes a moment.
func Identify(ctx context.Context, r *script.FileReader, at Places) ([]Identity, error) {
	urls, err := Expand(ctx, at, r.URLs)
	if err != nil {
		return nil, err
	}
	out := make([]Identity, len(urls))
	err = eachInOrder(ctx, len(urls), func(ctx context.Context, i int) error {
		var err error
		out[i], err = identify(ctx, urls[i], at)
		return err
	})
	return out, err
}

func identify(ctx context.Context, u script.FileURL, at Places) (Identity, error) {
	if !address.Remote(u.URL) {
		at.Copies = nil // a file of this machine is known by itself, whatever is read of it
	}
	if c := at.Copies[u.URL]; c.Key != "" && c.Path == "" {
		return identifyRemote(address.Redact(u.URL), c.Bytes, c.Tag), nil
	}
	in, err := stat(u, at)
	if err != nil {
		return Identity{}, err
	}
	if in.Copy.Key != "" {
		return identifyRemote(in.URL, in.Bytes, in.Copy.Tag), nil
	}
	for {
		var st unix.Stat_t
		if err := unix.Stat(in.Path, &st); err != nil {
			return Identity{}, in.source().unread(&os.PathError{Op: "stat", Path: in.Path, Err: err})
		}
		changed := time.Unix(st.Ctim.Unix())
		id := Identity{URL: in.URL, Text: fmt.Sprintf("%d bytes, modified %s, changed %s, inode %d", st.Size,
			time.Unix(st.Mtim.Unix()).UTC().Format(time.RFC3339Nano), changed.UTC().Format(time.RFC3339Nano), st.Ino)}
		tick := tickOfFiles
		if st.Ctim.Nsec == 0 && st.Mtim.Nsec == 0 {
			tick = tickWhole
		}
		age := time.Since(changed)
		switch {
		case age >= tick:
			return id, nil
		case age < 0 || tick > tickOfFiles:
			id.Why = "it has been changed so recently that another change could look the same"
			return id, nil
		}
		select {
		case <-ctx.Done():
			return Identity{}, ctx.Err()
		case <-time.After(tick - age):
		}
	}
}

// identifyRemote knows a file of another machine by what its server says.
func identifyRemote(url string, bytes int64, tag string) Identity {
	id := Identity{URL: url, Text: fmt.Sprintf("%d bytes, ETag %s", bytes, tag)}
	if tag == "" {
		id.Why = "its server gives no strong ETag, by which its versions could be told apart"
	}
	return id
}
