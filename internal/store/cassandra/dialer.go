package cassandra

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"

	"thalweg/internal/base/fault"
	"thalweg/internal/base/secure"
)

// dialer opens connections for the driver, and remembers why that failed: the driver's errors are only texts.
type dialer struct {
	dial   func(ctx context.Context, network, addr string) (net.Conn, error)
	tls    *tls.Config
	name   string // of the user; "": none
	pass   string
	hosts  []string
	within time.Duration // a node has to answer

	mu      sync.Mutex
	latest  error
	said    gocql.RequestError // that a node has refused a connection with
	silent  bool               // a node has not answered in time, or not any more
	dialed  bool
	asked   bool // who this is
	refused bool // it was not believed, or has not been
}

func (c Config) dialer() *dialer {
	d := &dialer{dial: c.Dial, tls: c.TLS, name: c.Username, pass: c.Password, hosts: c.Hosts,
		within: cmp.Or(c.Timeout, timeoutDefault)}
	if d.dial == nil {
		d.dial = (&net.Dialer{Timeout: connectTimeout}).DialContext
	}
	return d
}

// DialHost implements gocql.HostDialer.
func (d *dialer) DialHost(ctx context.Context, host *gocql.HostInfo) (*gocql.DialedHost, error) {
	d.mu.Lock()
	d.dialed = true
	d.mu.Unlock()
	address := host.ConnectAddressAndPort()
	conn, err := d.dial(ctx, "tcp", address)
	if err != nil {
		return nil, d.failed(err)
	}
	limited, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	asked := &secure.Asked{}
	out, err := gocql.WrapTLS(limited, conn, host.HostnameAndPort(), asked.Watch(d.tls))
	if err != nil {
		return nil, d.failed(fmt.Errorf("agree with %s on encryption: %w", address, cmp.Or(asked.Missed(0, err), err)))
	}
	out.Conn = heard{out.Conn, d, asked}
	return out, nil
}

// ObserveConnect implements gocql.ConnectObserver: of what it says when no session could be opened,
// the driver gives only a text. A node to which a connection was made, but for a session, has fallen silent.
func (d *dialer) ObserveConnect(c gocql.ObservedConnect) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var said gocql.RequestError
	switch {
	case errors.As(c.Err, &said):
		d.said = said
	case c.Err == nil, c.End.Sub(c.Start) >= d.within:
		d.said, d.silent = nil, true
	}
}

func (d *dialer) failed(err error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.latest = err
	return err
}

// heard is a connection that tells how it ended.
type heard struct {
	net.Conn
	to    *dialer
	asked *secure.Asked
}

// Read implements net.Conn.
func (h heard) Read(p []byte) (int, error) {
	n, err := h.Conn.Read(p)
	missed := h.asked.Missed(n, err)
	switch {
	case missed != nil:
		_ = h.to.failed(missed)
	case errors.Is(err, io.EOF):
		_ = h.to.failed(errEnded)
	case err != nil && !errors.Is(err, net.ErrClosed):
		_ = h.to.failed(err)
	}
	return n, err
}

// Write implements net.Conn.
func (h heard) Write(p []byte) (int, error) {
	n, err := h.Conn.Write(p)
	if missed := h.asked.Missed(0, err); missed != nil {
		_ = h.to.failed(missed)
	}
	return n, err
}

// errEnded reports that a node ended the connection, because it did not understand it or did not believe its
// user.
var errEnded = fmt.Errorf("the node has ended the connection: %w", io.EOF)

// Challenge implements gocql.Authenticator.
func (d *dialer) Challenge(req []byte) ([]byte, gocql.Authenticator, error) {
	d.mu.Lock()
	d.asked, d.refused = true, true
	d.mu.Unlock()
	if d.name == "" {
		return nil, nil, ErrNoLogin
	}
	resp, _, err := gocql.PasswordAuthenticator{Username: d.name, Password: d.pass}.Challenge(req)
	return resp, d, err
}

// Whom the nodes do not let in.
var (
	ErrLogin   = errors.New("the nodes do not accept the user name and the password")
	ErrNoLogin = errors.New("the node wants a user name and a password")
)

// LoginError is ErrLogin with what a node says of it.
type LoginError struct{ Said string }

// Error says both.
func (e *LoginError) Error() string { return ErrLogin.Error() + ": " + e.Said }

// Unwrap returns ErrLogin.
func (e *LoginError) Unwrap() error { return ErrLogin }

// Success implements gocql.Authenticator.
func (d *dialer) Success([]byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.refused = false
	return nil
}

// why is the reason for which no session could be opened, as far as it is seen here.
func (d *dialer) why(err error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.asked && d.refused && d.name == "":
		return &fault.Error{Kind: fault.Environment, Message: "connect to Cassandra", Err: ErrNoLogin,
			Hint: "name them in the configuration: username, and password or password_file"}
	case d.asked && d.refused && (d.latest == nil || errors.Is(d.latest, errEnded)):
		return d.disbelieved(err)
	case d.latest != nil:
		return d.latest
	case d.said != nil:
		return d.said
	case d.silent && !errors.Is(err, gocql.ErrNoConnectionsStarted):
		return &shortage{away: d.hosts, err: gocql.ErrTimeoutNoResponse}
	}
	return err
}

// cannotTell lists the texts of nodes that cannot read their users, and those of the driver for nodes that do
// not answer.
var cannotTell = []string{"Cannot achieve", "Unable to perform", "timed out", "no response"}

// disbelieved is the failure of a login, with what the node says. It says the same to somebody whom it
// does not believe and to everybody while it cannot read its users: only the text tells them apart.
func (d *dialer) disbelieved(err error) error {
	text := strings.TrimPrefix(strings.TrimPrefix(err.Error(), "gocql: unable to create session: "),
		"unable to discover protocol version: ")
	known := d.pass == "" || !strings.Contains(text, d.pass)
	for _, passing := range cannotTell {
		if !strings.Contains(text, passing) {
			continue
		}
		if !known {
			text = passing
		}
		return &fault.Error{Kind: fault.Environment, Retryable: true,
			Message: "connect to Cassandra: the nodes cannot check the login now",
			Err:     errors.New(text),
			Hint:    "check that enough nodes are up for the copies of the keyspace system_auth"}
	}
	why := ErrLogin
	if known {
		why = &LoginError{Said: text}
	}
	return &fault.Error{Kind: fault.Environment, Message: "connect to Cassandra", Err: why,
		Hint: "check username and password"}
}

// unknownHost is the failure to find any host, if that is why no connection was tried: the
// driver does not say which one.
func (d *dialer) unknownHost(ctx context.Context, hosts []string, err error) error {
	d.mu.Lock()
	dialed := d.dialed
	d.mu.Unlock()
	if dialed {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	for _, host := range hosts {
		if name, _, split := net.SplitHostPort(host); split == nil {
			host = name
		}
		if _, missed := net.DefaultResolver.LookupHost(ctx, host); missed != nil {
			return missed
		}
	}
	return err
}
