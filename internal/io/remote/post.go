package remote

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"time"

	"thalweg/internal/base/allow"

	"thalweg/internal/base/address"
	"thalweg/internal/base/fault"
)

// Post is a request that tells somebody something.
type Post struct {
	URL    string // of http or https, with its secrets
	Header http.Header
	Body   []byte
	Policy *allow.Policy            // of who asks for it; nil: whoever runs the process
	Hide   func(text string) string // takes secrets out of errors; nil: only what addresses show is
}

// Answer is the answer to a request.
type Answer struct {
	Status     int
	RetryAfter time.Duration // that the server asks to be left alone for; 0: it does not say
}

// answerBytesMax limits the bytes that are read of an answer, so that the connection can be used again.
const answerBytesMax = 64 << 10

// Post sends a request once. It is not redirected: what it carries is for the
// one address. An error says that there was no answer; certificates, proxies and
// authorities are those of files.
func (c *Client) Post(ctx context.Context, p Post) (Answer, error) {
	loc, err := address.Parse(p.URL)
	if p.Hide != nil {
		loc.Hide = p.Hide
	}
	if err != nil || loc.Scheme != "http" && loc.Scheme != "https" {
		return Answer{}, hidden(&fault.Error{Kind: fault.Script, Message: "this is not an http:// or https:// address"},
			loc)
	}
	// It waits for no transfer, and none waits for it: the runs need their files.
	b, err := c.Within(p.Policy).backend(ctx, loc)
	if err != nil {
		return Answer{}, hidden(err, loc)
	}
	answer, err := b.(*httpBackend).post(ctx, loc, p)
	return answer, hidden(err, loc)
}

func (b *httpBackend) post(ctx context.Context, loc address.Location, p Post) (Answer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, loc.URL, bytes.NewReader(p.Body))
	if err != nil {
		return Answer{}, fault.New(fault.Script, "the address is not a URL")
	}
	req.Header = p.Header.Clone()
	req.Header.Set("User-Agent", "thalweg")
	once := http.Client{Transport: b.transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := once.Do(req)
	if err != nil {
		return Answer{}, connectFault(err)
	}
	defer resp.Body.Close() // what it says is nobody's
	// an answer was given, whatever becomes of the rest
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, answerBytesMax))
	return Answer{Status: resp.StatusCode, RetryAfter: retryAfter(resp.Header, time.Now())}, nil
}

// retryAfter reads how long a server asks to be left alone: seconds, or a date.
func retryAfter(h http.Header, now time.Time) time.Duration {
	text := h.Get("Retry-After")
	if d, err := time.ParseDuration(text + "s"); err == nil && d > 0 {
		return d
	}
	if at, err := http.ParseTime(text); err == nil && at.After(now) {
		return at.Sub(now)
	}
	return 0
}
