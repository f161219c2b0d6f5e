package apiclient

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"thalweg/internal/app"
	"thalweg/internal/app/view"
	"thalweg/internal/base/fault"
)

// Limits.
const (
	requestTimeout = 2 * time.Minute
	answerBytesMax = 256 << 20
	repeatsMax     = 3 // of an order whose answer was lost
	repeatPause    = 500 * time.Millisecond
)

// Client asks a server. It implements app.Operations.
type Client struct {
	base  string // https://host
	token string
	http  *http.Client
	long  *http.Client // for streams, which have no end of their own
}

var _ app.Operations = (*Client)(nil)

// New returns a client of the server at an address. A token is sent over TLS, or on this machine, and to no other
// host that the server might redirect to.
func New(address, token string) (*Client, error) {
	u, err := url.Parse(strings.TrimRight(address, "/"))
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.Path != "" || u.RawQuery != "" ||
		u.User != nil {
		return nil, &fault.Error{Kind: fault.Script, Message: "this is no address of a server", Err: err,
			Hint: "write https://HOST:PORT, and nothing else"}
	}
	if u.Scheme == "http" && !app.Loopback(u.Hostname()) {
		return nil, &fault.Error{Kind: fault.Script, Message: "a token is not sent to " + u.Host + " without encryption",
			Hint: "write https://, or reach the server through a tunnel"}
	}
	refuse := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Client{base: u.String(), token: token, http: &http.Client{Timeout: requestTimeout, CheckRedirect: refuse},
		long: &http.Client{CheckRedirect: refuse}}, nil
}

// Login exchanges a password for a token that lives for days, with all that its owner may. It returns the name under
// which the server knows the owner.
func Login(ctx context.Context, address, name, password, purpose string, days int) (token string, err error) {
	c, err := New(address, "")
	if err != nil {
		return "", err
	}
	answer, err := c.do(ctx, http.MethodPost, "/v1/login", nil, map[string]string{"name": name, "password": password})
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	var cookie string
	for _, k := range answer.Cookies() {
		cookie = k.Name + "=" + k.Value
	}
	session := http.Header{"Cookie": {cookie}}
	var me struct {
		Grants json.RawMessage `json:"grants"`
	}
	if err := c.ask(ctx, http.MethodGet, "/v1/me", session, nil, &me); err != nil {
		return "", err
	}
	var made struct {
		Secret string `json:"secret"`
	}
	err = c.ask(ctx, http.MethodPost, "/v1/tokens", session,
		map[string]any{"name": purpose, "days": days, "grants": me.Grants}, &made)
	return made.Secret, errors.Join(err, c.ask(ctx, http.MethodPost, "/v1/logout", session, nil, nil))
}

// problem is a failure as the server tells it.
type problem struct {
	Detail   string           `json:"detail"`
	Kind     fault.Kind       `json:"kind"`
	Code     fault.Code       `json:"code"`
	Place    *fault.Place     `json:"place"`
	Hint     string           `json:"hint"`
	Evidence string           `json:"evidence"`
	Diags    view.Diagnostics `json:"diagnostics"`
	Errors   []struct {
		Location string `json:"location"`
		Message  string `json:"message"`
	} `json:"errors"`
}

// ask sends a request and decodes the answer into out, unless that is nil.
func (c *Client) ask(ctx context.Context, method, path string, header http.Header, in, out any) error {
	answer, err := c.do(ctx, method, path, header, in)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if out == nil {
		return nil
	}
	if err := json.NewDecoder(io.LimitReader(answer.Body, answerBytesMax)).Decode(out); err != nil {
		return &fault.Error{Kind: fault.Environment, Message: "read the answer of " + c.base, Err: err,
			Hint: "does Thalweg answer at this address?"}
	}
	return nil
}

// do sends a request. An answer that is none of success is an error.
func (c *Client) do(ctx context.Context, method, path string, header http.Header, in any) (*http.Response, error) {
	return c.through(ctx, c.http, method, path, header, in)
}

// through is do with the client that waits for the answer.
func (c *Client) through(ctx context.Context, by *http.Client, method, path string, header http.Header,
	in any) (*http.Response, error) {
	var content io.Reader
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return nil, fmt.Errorf("write a request: %w", err)
		}
		content = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, content)
	if err != nil {
		return nil, fmt.Errorf("make a request to %s: %w", c.base, err)
	}
	for name, values := range header {
		req.Header[name] = values
	}
	req.Header.Set("Thalweg-Texts", "marks") // whoever shows a failure shows its actions as commands
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	answer, err := by.Do(req)
	if err != nil {
		return nil, c.unreached(ctx, err)
	}
	if answer.StatusCode/100 == 2 {
		return answer, nil
	}
	defer answer.Body.Close()
	return nil, c.failure(answer)
}

// unreached is the failure of a request that no server has answered.
func (c *Client) unreached(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return &fault.Error{Kind: fault.Canceled, Message: "the request was interrupted", Err: context.Cause(ctx)}
	}
	if bad := (*tls.CertificateVerificationError)(nil); errors.As(err, &bad) {
		return &fault.Error{Kind: fault.Script, Message: c.base + " has a certificate that is not trusted here", Err: bad.Err,
			Hint: "SSL_CERT_FILE can name the authority that has signed it; is the name in the address that of the certificate?"}
	}
	return &fault.Error{Kind: fault.Environment, Retryable: true, Message: "the server cannot be reached", Err: err,
		Hint: "is it there? `curl " + c.base + "/healthz` says ok"}
}

// failure makes an error of a problem.
func (c *Client) failure(answer *http.Response) error {
	var p problem
	err := json.NewDecoder(io.LimitReader(answer.Body, answerBytesMax)).Decode(&p)
	if err != nil || p.Kind == "" {
		return &fault.Error{Kind: fault.Environment, Message: "the answer of " + c.base + " is " + answer.Status, Err: err,
			Hint: "does Thalweg answer at this address?"}
	}
	out := p.failure(answer.StatusCode)
	if f := (*fault.Error)(nil); answer.StatusCode == http.StatusUnauthorized && errors.As(out, &f) {
		f.Hint = "{{do login}} makes a token, and keeps it for this server"
	}
	return out
}

// failure returns the error that a problem tells; status is that of its answer, 0: it was part of one.
func (p problem) failure(status int) error {
	if len(p.Diags) > 0 {
		return &app.InvalidScriptError{Diagnostics: p.Diags}
	}
	out := &fault.Error{Kind: p.Kind, Code: p.Code, Message: p.Detail, Hint: p.Hint, Detail: p.Evidence,
		Retryable: status == http.StatusServiceUnavailable}
	if p.Place != nil { // it is in the message, too
		out.Place = *p.Place
		out.Message = strings.TrimPrefix(out.Message, p.Place.String()+": ")
	}
	for _, e := range p.Errors {
		out.Message += "; " + e.Location + ": " + e.Message
	}
	return out
}

// order sends an order with a key, and repeats it if its answer is lost.
func (c *Client) order(ctx context.Context, path string, in, out any) error {
	key := http.Header{"Idempotency-Key": {rand.Text()}}
	for try := 1; ; try++ {
		err := c.ask(ctx, http.MethodPost, path, key, in, out)
		if err == nil || !fault.Of(err).Retryable || try == repeatsMax {
			return err
		}
		pause := time.NewTimer(repeatPause)
		select {
		case <-ctx.Done():
			pause.Stop()
			return errors.Join(err, context.Cause(ctx))
		case <-pause.C:
		}
	}
}

// in returns the path of a workspace.
func in(workspace string) string { return "/v1/workspaces/" + url.PathEscape(workspace) }

// of returns the path of a run.
func of(key view.RunKey) string { return in(key.Workspace) + "/runs/" + strconv.FormatInt(key.Run, 10) }
