package remote

import (
	"compress/gzip"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"thalweg/internal/base/address"
	"thalweg/internal/base/fault"
)

type httpBackend struct {
	client    *http.Client
	transport *http.Transport
}

func newHTTP(c *Client, roots *x509.CertPool) *httpBackend {
	transport := newTransport(c, roots)
	return &httpBackend{transport: transport, client: &http.Client{Transport: transport,
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			if err := checkRedirect(req, via); err != nil {
				return err
			}
			loc, err := address.Parse(req.URL.String())
			if err != nil {
				return err
			}
			return c.policy.ReadAddress(loc)
		}}}
}

func checkRedirect(req *http.Request, via []*http.Request) error {
	req.Header.Del("Referer") // it has the address with its secrets, which are not for another host
	if len(via) > redirectsMax {
		return &fault.Error{Kind: fault.Environment, Message: fmt.Sprintf("the server redirects more than %d times",
			redirectsMax), Hint: "check the address"}
	}
	if via[len(via)-1].URL.Scheme == "https" && req.URL.Scheme != "https" {
		return &fault.Error{Kind: fault.Environment, Message: "the server redirects from https to " + req.URL.Scheme,
			Hint: "use the address that it redirects to, if you trust it"}
	}
	return nil
}

func (b *httpBackend) close() error {
	b.transport.CloseIdleConnections()
	return nil
}

// list: web servers have no listings.
func (b *httpBackend) list(_ context.Context, _ address.Location, _, _ string, _ *lister) ([]entry, error) {
	return nil, fault.New(fault.Script, "a web server does not list its files")
}

// request sends a GET for the bytes from offset on, or for only the first.
func (b *httpBackend) request(ctx context.Context, loc address.Location, set func(http.Header)) (*http.Response,
	error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, loc.URL, nil)
	if err != nil {
		return nil, fault.New(fault.Script, "the address is not a URL")
	}
	req.Header.Set("User-Agent", "thalweg")
	req.Header.Set("Accept-Encoding", "identity")
	set(req.Header)
	resp, err := b.client.Do(req)
	if err != nil {
		return nil, connectFault(err)
	}
	return resp, nil
}

func (b *httpBackend) get(ctx context.Context, loc address.Location, offset int64, since Version, to sink) error {
	check := since.ETag // only a strong one vouches for bytes
	if check == "" || strings.HasPrefix(check, "W/") {
		check = ""
		if !since.ModTime.IsZero() {
			check = since.ModTime.UTC().Format(http.TimeFormat)
		}
	}
	resp, err := b.request(ctx, loc, func(h http.Header) {
		if offset > 0 && check != "" {
			h.Set("Range", fmt.Sprintf("bytes=%d-", offset))
			h.Set("If-Range", check)
		}
	})
	if err != nil {
		return err
	}
	defer resp.Body.Close() // read only: nothing can be lost
	v, start, err := versionOf(resp)
	if err != nil {
		return err
	}
	if resp.StatusCode == http.StatusRequestedRangeNotSatisfiable {
		return to.begin(v, offset) // nothing behind offset, if it still is that file
	}
	body := io.Reader(resp.Body)
	if encoded(resp) {
		if body, err = gzip.NewReader(resp.Body); err != nil {
			return connectFault(err)
		}
	}
	if err := to.begin(v, start); err != nil {
		return err
	}
	if _, err := io.Copy(to, body); err != nil {
		return connectFault(err)
	}
	return nil
}

// stat asks for the first byte: some servers, and most signed addresses,
// answer GET only.
func (b *httpBackend) stat(ctx context.Context, loc address.Location) (Version, error) {
	resp, err := b.request(ctx, loc, func(h http.Header) { h.Set("Range", "bytes=0-0") })
	if err != nil {
		return Version{}, err
	}
	defer resp.Body.Close() // of a server that sends all of it, nothing more is read
	v, _, err := versionOf(resp)
	return v, err
}

// versionOf reads what an answer says of the file, and where its bytes begin.
func versionOf(resp *http.Response) (v Version, start int64, err error) {
	v = Version{Bytes: -1, ETag: resp.Header.Get("ETag")}
	if t, err := http.ParseTime(resp.Header.Get("Last-Modified")); err == nil {
		v.ModTime = t
	}
	switch resp.StatusCode {
	case http.StatusOK:
		v.Bytes = resp.ContentLength
	case http.StatusPartialContent:
		if start, v.Bytes, err = contentRange(resp.Header.Get("Content-Range")); err != nil {
			return v, 0, err
		}
	case http.StatusRequestedRangeNotSatisfiable:
		if n, ok := strings.CutPrefix(resp.Header.Get("Content-Range"), "bytes */"); ok {
			v.Bytes = number(n)
		}
	default:
		return v, 0, statusFault(resp.StatusCode, resp.Header)
	}
	switch strings.ToLower(resp.Header.Get("Content-Encoding")) {
	case "", "identity":
	case "gzip", "x-gzip":
		v.Bytes = -1
		if start > 0 {
			return v, 0, fault.New(fault.Environment, "the server sends a part of a compressed file")
		}
	default:
		f := fault.New(fault.Environment, "the server sends it encoded as %q", resp.Header.Get("Content-Encoding"))
		f.Hint = "store the file as it is"
		return v, 0, f
	}
	return v, start, nil
}

// encoded reports whether the body must be decompressed.
func encoded(resp *http.Response) bool {
	return strings.Contains(strings.ToLower(resp.Header.Get("Content-Encoding")), "gzip")
}

var errContentRange = errors.New("it is not of the form bytes FROM-TO/TOTAL")

// contentRange reads "bytes 5-9/10"; the total may be *.
func contentRange(s string) (start, total int64, err error) {
	rest, ok := strings.CutPrefix(s, "bytes ")
	from, rest, ok2 := strings.Cut(rest, "-")
	_, size, ok3 := strings.Cut(rest, "/")
	start, total = number(from), number(size)
	if !ok || !ok2 || !ok3 || start < 0 || size != "*" && total < 0 {
		return 0, -1, &fault.Error{Kind: fault.Environment,
			Message: fmt.Sprintf("the server sent the Content-Range %.100q",
				s), Err: errContentRange, Hint: "check the server"}
	}
	return start, total, nil
}

// number reads a count of bytes, -1 if it is none.
func number(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 {
		return -1
	}
	return n
}

func (b *httpBackend) stage(context.Context, address.Location, Upload) (Staged, error) {
	return nil, &fault.Error{Kind: fault.Script, Message: "files cannot be written over http",
		Hint: "write to a local path, sftp:// or s3://"}
}

// abandon has nothing to do: nothing is ever left.
func (b *httpBackend) abandon(context.Context, address.Location, Leftover) error { return nil }
