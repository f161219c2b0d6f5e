package remote

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"thalweg/internal/base/fault"
)

// newTransport times connecting, writing that stands still and waiting for an
// answer. Reading that stands still is the watchdog's.
func newTransport(c *Client, roots *x509.CertPool) *http.Transport {
	cfg := c.cfg
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment,
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := c.policy.Dialer(cfg.ConnectTimeout, addr).DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return &writeTimedConn{Conn: conn, idle: cfg.IdleTimeout}, nil
		},
		TLSClientConfig:       &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:   cfg.ConnectTimeout,
		ResponseHeaderTimeout: cfg.IdleTimeout,
		IdleConnTimeout:       cfg.IdleTimeout,
		MaxIdleConnsPerHost:   transfersMax,
		DisableCompression:    true, // sizes and ranges are of the bytes as stored
	}
}

// writeTimedConn ends writes that stand still, and tells what is read.
type writeTimedConn struct {
	net.Conn
	idle  time.Duration
	heard atomic.Pointer[func(bytes int)] // nil: nobody wants to know
}

func (c *writeTimedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if heard := c.heard.Load(); heard != nil {
		(*heard)(n)
	}
	return n, err
}

func (c *writeTimedConn) Write(p []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(c.idle)); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

// connectFault classifies the failure to reach a server or to hear it out.
func connectFault(err error) error {
	var known *fault.Error
	if errors.As(err, &known) {
		return err
	}
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err // its text has the whole address in it
	}
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	var verification *tls.CertificateVerificationError
	switch {
	case errors.As(err, &authority):
		return &fault.Error{Kind: fault.Environment,
			Message: "the server's certificate is not of an authority that is trusted here", Err: err,
			Hint: "if the server has a private authority, name its certificate with {{set ca-file=FILE}} (or " +
				"THALWEG_CA_FILE)"}
	case errors.As(err, &host), errors.As(err, &invalid), errors.As(err, &verification):
		return &fault.Error{Kind: fault.Environment, Message: "the server's certificate is not valid", Err: err,
			Hint: "check the address, the server's certificate and this machine's clock"}
	}
	var alert tls.AlertError
	var record tls.RecordHeaderError
	if errors.As(err, &alert) || errors.As(err, &record) || errors.Is(err, http.ErrSchemeMismatch) {
		return &fault.Error{Kind: fault.Environment, Message: "the server and this machine do not agree on TLS",
			Err: err, Hint: "check the address: is it http:// or https://, and the right port?"}
	}
	var dns *net.DNSError
	if errors.As(err, &dns) && dns.IsNotFound {
		return &fault.Error{Kind: fault.Environment, Message: "the host is not known", Err: err,
			Hint: "check the host's name in the address, and the network"}
	}
	return broken(err, "the connection failed")
}

// statusFault classifies an answer that is not what was asked for.
func statusFault(status int, header http.Header) error {
	text := strings.ToLower(http.StatusText(status))
	switch status {
	case http.StatusNotFound, http.StatusGone:
		return missing("the server answered %d %s", status, text)
	case http.StatusUnauthorized, http.StatusForbidden:
		return denied("the server answered %d %s", status, text)
	case http.StatusRequestTimeout, http.StatusTooManyRequests:
	default:
		if status < http.StatusInternalServerError || status == http.StatusNotImplemented {
			return &fault.Error{Kind: fault.Environment, Message: "the server answered " + http.StatusText(status),
				Hint: "check the address"}
		}
	}
	err := broken(nil, "the server answered %d %s", status, text)
	var r retryable
	if errors.As(err, &r) {
		r.after = retryAfter(header, time.Now())
		return r
	}
	return err
}
