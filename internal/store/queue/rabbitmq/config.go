package rabbitmq

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"thalweg/internal/base/fault"
)

// PrefixDefault begins the names of everything that is declared.
const PrefixDefault = "thalweg"

// Config of a queue. Zero values are defaults.
type Config struct {
	// URL is amqp://user:password@host:port/vhost, or amqps://. What is given
	// apart is used instead of what it says.
	URL      string
	Hosts    []string // host:port of the broker's nodes: they are tried in turn
	Username string
	Password string
	Vhost    string
	TLS      *tls.Config // not nil: the connection is encrypted
	Prefix   string      // of names in the broker
	Logger   *slog.Logger
	// Observe is told of each answer of the broker; nil is allowed. It is called
	// from several goroutines.
	Observe func(op Op, took time.Duration, err error)
	// Explain says more of a failure to connect, for the log; nil: what is said is enough.
	Explain func(err error) error
	// Dial opens connections; nil: the net's.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Op names what the broker was asked for.
type Op string

// The operations.
const (
	OpConnect Op = "connect"
	OpPublish Op = "publish" // of some hints, until all are confirmed
	OpGet     Op = "get"
	OpDepth   Op = "depth"
)

// Ports of the protocol.
const (
	plainPort = "5672"
	tlsPort   = "5671"
)

// withDefaults takes the URL apart and fills in what is missing.
func (c Config) withDefaults() (Config, error) {
	port := plainPort
	if c.URL != "" {
		u, err := url.Parse(c.URL)
		// the parser's error would repeat the address
		if err != nil || u.Scheme != "amqp" && u.Scheme != "amqps" || u.Host == "" {
			return c, &fault.Error{Kind: fault.Script, Message: "the broker's address cannot be read",
				Hint: "write amqp://user:password@host:5672/vhost, special characters as %XX"}
		}
		c = c.with(u)
	}
	if c.TLS != nil {
		port = tlsPort
	}
	if len(c.Hosts) == 0 {
		return c, &fault.Error{Kind: fault.Script, Message: "no host of the broker is named"}
	}
	hosts := make([]string, len(c.Hosts))
	for i, h := range c.Hosts {
		if _, _, err := net.SplitHostPort(h); err != nil {
			h = net.JoinHostPort(strings.Trim(h, "[]"), port)
		}
		hosts[i] = h
	}
	c.Hosts = hosts
	if c.Vhost == "" {
		c.Vhost = "/"
	}
	if c.Prefix == "" {
		c.Prefix = PrefixDefault
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Observe == nil {
		c.Observe = func(Op, time.Duration, error) {}
	}
	if c.Explain == nil {
		c.Explain = func(err error) error { return err }
	}
	if c.Dial == nil {
		c.Dial = (&net.Dialer{Timeout: answerTimeout}).DialContext
	}
	return c, nil
}

// with takes from an address what is not given apart.
func (c Config) with(u *url.URL) Config {
	if len(c.Hosts) == 0 {
		c.Hosts = []string{u.Host}
	}
	if u.Scheme == "amqps" && c.TLS == nil {
		c.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	if c.Username == "" {
		c.Username = u.User.Username()
	}
	if password, ok := u.User.Password(); ok && c.Password == "" {
		c.Password = password
	}
	if v := strings.TrimPrefix(u.Path, "/"); c.Vhost == "" {
		c.Vhost = v
	}
	return c
}

// logins returns the ways in which this process logs in: by its certificate if it has one and no name is
// given.
func (c Config) logins() []amqp.Authentication {
	if c.Username == "" && c.TLS != nil && (len(c.TLS.Certificates) > 0 || c.TLS.GetClientCertificate != nil) {
		return []amqp.Authentication{&amqp.ExternalAuth{}}
	}
	name, password := c.Username, c.Password
	if name == "" {
		name, password = "guest", "guest" // the broker takes it from its own host only
	}
	return []amqp.Authentication{&amqp.PlainAuth{Username: name, Password: password}}
}
