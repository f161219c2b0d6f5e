package remote

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"strings"
	"sync"

	"thalweg/internal/base/allow"

	"thalweg/internal/base/address"
	"thalweg/internal/base/fault"
)

// backend reads and writes the files of one kind of server. Its errors are
// classified, without the address: the Client adds that.
type backend interface {
	// get sends the file from offset on. since is the version of which the
	// bytes before offset are; if the file is another one by now, get begins
	// at 0. It calls begin before the first byte.
	get(ctx context.Context, loc address.Location, offset int64, since Version, to sink) error
	stat(ctx context.Context, loc address.Location) (Version, error)
	// stage sends a file so that publishing it is one small step.
	stage(ctx context.Context, loc address.Location, u Upload) (Staged, error)
	// abandon removes what a stage left whose publication never came.
	abandon(ctx context.Context, loc address.Location, left Leftover) error
	// remove removes a file that stat has just given as v; one that is not there is fine.
	remove(ctx context.Context, loc address.Location, v Version) error
	// list lists what is in a directory, at least what begins with a text; it
	// tells l what has come.
	list(ctx context.Context, loc address.Location, dir, begin string, l *lister) ([]entry, error)
	close() error
}

// sink takes a file.
type sink interface {
	begin(v Version, offset int64) error // the file, and where in it the bytes begin
	Write(p []byte) (int, error)
}

// Client moves files. It may be used by many goroutines at once.
type Client struct {
	cfg       Config
	transfers chan struct{} // bounds them
	listings  chan struct{}
	policy    *allow.Policy // nil: it opens whatever it is asked for
	mu        sync.Mutex
	backends  map[string]backend
	limited   map[string]*Client // by policy
}

// New returns a client. It opens nothing before it is used.
func New(cfg Config) *Client {
	return &Client{cfg: cfg.withDefaults(), transfers: make(chan struct{}, transfersMax),
		listings: make(chan struct{}, listingsMax), backends: map[string]backend{}}
}

// Within returns the client of those who may open only what a policy allows; nil: c. Its transfers count among those
// of c, which closes it.
func (c *Client) Within(policy *allow.Policy) *Client {
	if c == nil || policy == nil {
		return c
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	key := policy.Digest()
	if c.limited[key] == nil {
		if c.limited == nil {
			c.limited = map[string]*Client{}
		}
		c.limited[key] = &Client{cfg: c.cfg, transfers: c.transfers, listings: c.listings, policy: policy,
			backends: map[string]backend{}}
	}
	return c.limited[key]
}

// Policy says what those who use the client may open; nil: everything, as a nil Client's.
func (c *Client) Policy() *allow.Policy {
	if c == nil {
		return nil
	}
	return c.policy
}

// Close ends idle connections.
func (c *Client) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	for _, b := range c.backends {
		errs = append(errs, b.close())
	}
	c.backends = map[string]backend{}
	for _, l := range c.limited {
		errs = append(errs, l.Close())
	}
	return errors.Join(errs...)
}

// Secrets are values that stand in addresses only while a file is opened.
type Secrets interface {
	Reveal(text string) string // with the values in the places of their references
	Hide(text string) string   // the other way round
}

// locate takes an address apart, with its secrets, which errors will not show.
func locate(url string, secrets Secrets) (loc address.Location, err error) {
	if secrets == nil {
		return address.Parse(url)
	}
	loc, err = address.Parse(secrets.Reveal(url))
	loc.Hide = secrets.Hide
	return loc, hidden(err, loc)
}

// Check reports what is wrong with an address or with what is configured for
// it, as far as can be known without asking the server. secrets may be nil.
func (c *Client) Check(ctx context.Context, url string, secrets Secrets) error {
	loc, err := locate(url, secrets)
	if s := address.Scheme(url); (s == "s3" || s == "sftp") && strings.ContainsAny(url, "*?") {
		var p address.Pattern
		p, err = address.ParsePattern(asGlob(url))
		loc = p.Location
	}
	if err != nil {
		return err
	}
	b, err := c.backend(ctx, loc)
	if err != nil {
		return placed(err, loc)
	}
	if s, ok := b.(*sftpBackend); ok {
		_, err = s.signers(loc.User)
	}
	return placed(err, loc)
}

// backend opens what serves the scheme of loc, if loc may be read.
func (c *Client) backend(ctx context.Context, loc address.Location) (backend, error) {
	if err := c.policy.ReadAddress(loc); err != nil {
		return nil, err
	}
	kind := loc.Scheme
	if kind == "https" {
		kind = "http"
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if b := c.backends[kind]; b != nil {
		return b, nil
	}
	b, err := c.open(ctx, kind)
	if err != nil {
		return nil, err
	}
	c.backends[kind] = b
	return b, nil
}

func (c *Client) open(ctx context.Context, kind string) (backend, error) {
	if kind == "sftp" {
		return newSFTP(c)
	}
	roots, err := loadRoots(c.cfg.CAPath)
	if err != nil {
		return nil, err
	}
	if kind == "s3" {
		return newS3(ctx, c, roots)
	}
	return newHTTP(c, roots), nil
}

// begin waits for leave to transfer. The caller calls done when it has.
func (c *Client) begin(ctx context.Context) (done func(), err error) {
	select {
	case c.transfers <- struct{}{}:
		return func() { <-c.transfers }, nil
	case <-ctx.Done():
		return nil, canceled(ctx)
	}
}

// Read reads a file of at most bytesMax bytes into memory. secrets may be nil.
func (c *Client) Read(ctx context.Context, url string, bytesMax int, secrets Secrets) ([]byte, error) {
	loc, err := locate(url, secrets)
	if err != nil {
		return nil, err
	}
	to := &memory{bytesMax: bytesMax}
	if _, err := c.download(ctx, loc, to, nil); err != nil {
		var f *fault.Error
		if errors.As(err, &f) && f.Kind == fault.UserData {
			f.Kind = fault.Script // what is read into memory belongs to the script
		}
		return nil, err
	}
	return to.buf.Bytes(), nil
}

// memory is a target of small files.
type memory struct {
	buf      bytes.Buffer
	bytesMax int
}

func (m *memory) reset() error {
	m.buf.Reset()
	return nil
}

func (m *memory) Write(p []byte) (int, error) {
	if m.buf.Len()+len(p) > m.bytesMax {
		return 0, fault.New(fault.Script, "the file is larger than %d bytes", m.bytesMax)
	}
	return m.buf.Write(p)
}

// stat asks for a file's version.
func (c *Client) stat(ctx context.Context, loc address.Location) (v Version, err error) {
	done, err := c.begin(ctx)
	if err != nil {
		return v, err
	}
	defer done()
	b, err := c.backend(ctx, loc)
	if err != nil {
		return v, err
	}
	err = c.retry(ctx, loc, func(ctx context.Context) (bool, error) {
		ctx, watch := c.watch(ctx)
		defer watch.stop()
		var err error
		v, err = b.stat(ctx, loc)
		return false, watch.explain(err)
	})
	return v, err
}

// placed adds the address to an error, and takes secrets out of it.
func placed(err error, loc address.Location) error {
	var f *fault.Error
	if errors.As(err, &f) && f.Place.File == "" {
		f.Place.File = loc.String()
	}
	return hidden(err, loc)
}

// hidden is an error without secrets: causes of other packages quote addresses.
func hidden(err error, loc address.Location) error {
	var f *fault.Error
	if !errors.As(err, &f) {
		return err
	}
	f.Message, f.Hint, f.Detail, f.Place.File = loc.Hidden(f.Message), loc.Hidden(f.Hint), loc.Hidden(f.Detail),
		loc.Hidden(f.Place.File)
	if f.Err == nil {
		return err
	}
	if text := f.Err.Error(); loc.Hidden(text) != text {
		f.Err = errors.New(loc.Hidden(text))
	}
	return err
}

// Roots gives the authorities that are trusted, nil: the system's. A nil Client has none of its own.
func (c *Client) Roots() (*x509.CertPool, error) {
	if c == nil {
		return nil, nil
	}
	return loadRoots(c.cfg.CAPath)
}

// loadRoots gives the system's certificates and those of path.
func loadRoots(path string) (*x509.CertPool, error) {
	if path == "" {
		return nil, nil
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	return roots, addRoots(roots, path)
}
