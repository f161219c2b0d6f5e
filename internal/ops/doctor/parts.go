package doctor

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"thalweg/internal/base/fault"
	"thalweg/internal/base/format"
	"thalweg/internal/store/parts"
)

const (
	// partBytes is the size of the part that is tried: more than one chunk of Cassandra's.
	partBytes = 1<<20 + 1
	// partRoot begins its key: no workspace can be called so.
	partRoot = "_doctor/"
	// partForget is the age at which a part that an earlier look has left behind is removed.
	partForget = time.Hour
	// partPause is slow: a part of this size takes a second.
	partSlow = time.Second
	// rangeAt and rangeBytes are read alone.
	rangeAt, rangeBytes = 600 << 10, 4 << 10
)

// Parts tries where tables are kept. open gives the backend, and a directory in
// which files can be made that are put there; the rest ends with closing. Where parts are kept
// with another service, what cannot be opened is told there.
func Parts(with string, open func(ctx context.Context) (b parts.Backend, dir string, closing func(),
	err error)) Service {
	p := &partProbe{with: with, open: open}
	return Service{Name: "parts", Close: p.close, Checks: []Check{
		{Name: "reach", Limit: 15 * time.Second, Gate: true, Look: p.reach},
		{Name: "write", Limit: 15 * time.Second, Gate: true, Look: p.write},
		{Name: "read", Limit: 15 * time.Second, Look: p.read},
		{Name: "read a range", Look: p.readRange},
		{Name: "remove", Look: p.remove},
	}}
}

type partProbe struct {
	with    string
	open    func(ctx context.Context) (parts.Backend, string, func(), error)
	backend parts.Backend
	dir     string
	closing func()
	key     string // "": nothing is there
	content []byte
}

// Checker is a backend that can say beforehand why nothing can be kept in it.
type Checker interface {
	Check(ctx context.Context) error
}

func (p *partProbe) reach(ctx context.Context) Result {
	var err error
	if p.backend, p.dir, p.closing, err = p.open(ctx); err != nil {
		if p.with != "" {
			return FailedAs(p.with, err)
		}
		return Failed(err)
	}
	if c, ok := p.backend.(Checker); ok {
		if err := c.Check(ctx); err != nil {
			return Failed(err)
		}
	}
	return good("it is there")
}

func (p *partProbe) write(ctx context.Context) Result {
	p.content = make([]byte, partBytes)
	_, _ = rand.Read(p.content) // it never fails
	path := filepath.Join(p.dir, "probe")
	if err := os.WriteFile(path, p.content, 0o600); err != nil {
		return Failed(&fault.Error{Kind: fault.Environment, Message: "write a file to be put there", Err: err,
			Hint: "check permissions and free space of the directory"})
	}
	key := partRoot + strconv.FormatInt(time.Now().Unix(), 10) + "-" + rand.Text()
	begun := time.Now()
	p.key = key // also what fails may have left something
	info, err := p.backend.Put(ctx, key, path)
	if err != nil {
		return Failed(err)
	}
	if sum, n, err := parts.Checksum(bytes.NewReader(p.content)); err != nil || sum != info.Checksum ||
		n != info.Bytes {
		return Result{Verdict: Bad, Seen: "what was written is acknowledged with another checksum",
			Mend: "see the service's log; do not use it"}
	}
	return took("wrote", partBytes, time.Since(begun))
}

// took says how fast something was.
func took(what string, n int64, d time.Duration) Result {
	r := good("%s %s in %s", what, format.Size(n), format.Span(d))
	if d > partSlow {
		r.Verdict, r.Mend = Warning, "look for what makes it slow: runs move their tables through it"
	}
	return r
}

func (p *partProbe) read(ctx context.Context) Result { return p.compare(ctx, 0, -1, p.content) }

func (p *partProbe) readRange(ctx context.Context) Result {
	return p.compare(ctx, rangeAt, rangeBytes, p.content[rangeAt:rangeAt+rangeBytes])
}

func (p *partProbe) compare(ctx context.Context, from, length int64, want []byte) Result {
	begun := time.Now()
	body, total, err := p.backend.Open(ctx, p.key, from, length)
	if err != nil {
		return Failed(environment("read it", err))
	}
	got, err := io.ReadAll(body)
	if err = errors.Join(err, body.Close()); err != nil {
		return Failed(environment("read it", err))
	}
	if !bytes.Equal(got, want) || total != partBytes {
		return Result{Verdict: Bad, Seen: "what is read is not what was written",
			Mend: "see the service's log; do not use it"}
	}
	return took("read", int64(len(got)), time.Since(begun))
}

// environment is an error that nobody has classified because it decides nothing where it comes from.
func environment(what string, err error) error {
	var known *fault.Error
	if errors.As(err, &known) {
		return err
	}
	return &fault.Error{Kind: fault.Environment, Message: what, Err: err, Hint: "see the service's log"}
}

// remove removes it, and what earlier looks have left that were interrupted.
func (p *partProbe) remove(ctx context.Context) Result {
	if err := p.backend.Delete(ctx, p.key); err != nil {
		return Failed(err)
	}
	key := p.key
	p.key = ""
	removed := 0
	for info, err := range p.backend.List(ctx, partRoot, "") {
		if err != nil {
			return Failed(environment("list what is there", err))
		}
		text, _, _ := strings.Cut(strings.TrimPrefix(info.Key, partRoot), "-")
		seconds, err := strconv.ParseInt(text, 10, 64)
		switch {
		case info.Key == key:
			return Result{Verdict: Bad, Seen: "what was removed is still listed", Mend: "see the service's log"}
		case err != nil, time.Since(time.Unix(seconds, 0)) < partForget:
			continue
		}
		if err := p.backend.Delete(ctx, info.Key); err != nil {
			return Failed(err)
		}
		removed++
	}
	if removed > 0 {
		return good("removed, with %d that were left behind", removed)
	}
	return good("removed")
}

// close removes what is left where a check has not come to that.
func (p *partProbe) close() {
	if p.key != "" {
		ctx, stop := context.WithTimeout(context.Background(), afterLimit)
		defer stop()
		_ = p.backend.Delete(ctx, p.key) // a later look does it
	}
	if p.closing != nil {
		p.closing()
	}
}
