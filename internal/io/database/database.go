package database

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"thalweg/internal/base/allow"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"

	"thalweg/internal/base/address"
	"thalweg/internal/base/fault"
)

// connectTimeout is for the connection, TLS and the login together.
const connectTimeout = 15 * time.Second

// lockSeconds is the longest that a statement waits for a lock on a table; PostgreSQL counts
// locks on rows alike. It is as long as a transaction may stay open in which nothing happens,
// so that a machine that is gone is not waited for in vain.
const lockSeconds = 600

// ColumnsMax is the most columns that a table or query may have.
const ColumnsMax = 1600

// Source is a table or a query of a database to read from.
type Source struct {
	URL   string // with its secrets, if there are some
	Table string // may have a schema before a point
	Query string // instead of a table
	// Millis are columns that are read as datetimes, which are of milliseconds: a value
	// that is finer gets words behind it, so that whoever reads it refuses it.
	Millis []string
}

// finer is put behind a time that is finer than a millisecond.
const finer = " (finer than a millisecond)"

// Column is one of a table or a query.
type Column struct {
	Name     string
	Kind     string // what the server calls its type
	Type     string // the name of the type that holds its values exactly
	Layout   string // of a datetime: how the CSV has it, as Go's package time says it
	Required bool   // the server lets no NULL in
}

func tooWide(columns int) error {
	return &fault.Error{Kind: fault.Script, Message: fmt.Sprintf("there are %d columns, the limit is %d", columns,
		ColumnsMax), Hint: "select those that are needed with query"}
}

// Client opens sessions. The zero value trusts the system's authorities.
type Client struct {
	// Roots gives the authorities that are trusted; nil, or a nil pool: the system's.
	Roots func() (*x509.CertPool, error)
	// Hide takes the values of secrets out of texts; nil: there are none.
	Hide func(string) string
	// Dir is the directory that relative names of SQLite files refer to; "": the working directory.
	Dir string
	// Policy says which databases may be opened; nil: all.
	Policy *allow.Policy
}

// Snapshot is one moment of a database.
type Snapshot interface {
	// Copy writes a source as CSV, and says how many rows that were.
	Copy(ctx context.Context, src Source, to io.Writer) (rows int64, err error)
	// Close ends the session.
	Close()
}

// session is a connection to one kind of database.
type session interface {
	Snapshot
	columns(ctx context.Context, src Source) ([]Column, error)
}

// Columns lists what a source has.
func (c Client) Columns(ctx context.Context, src Source) ([]Column, error) {
	s, err := c.open(ctx, src.URL)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	columns, err := s.columns(ctx, src)
	if err != nil {
		return nil, c.placed(ctx, src.URL, err)
	}
	return columns, nil
}

// Snapshot begins a session whose copies are of one moment.
func (c Client) Snapshot(ctx context.Context, at string) (Snapshot, error) {
	s, err := c.open(ctx, at)
	if err != nil {
		return nil, err
	}
	return &placedSnapshot{s, c}, nil
}

// Check logs in, and out again.
func (c Client) Check(ctx context.Context, at string) error {
	s, err := c.open(ctx, at)
	if err == nil {
		s.Close()
	}
	return err
}

// placedSnapshot names the database in errors.
type placedSnapshot struct {
	session
	c Client
}

func (s *placedSnapshot) Copy(ctx context.Context, src Source, to io.Writer) (int64, error) {
	n, err := s.session.Copy(ctx, src, to)
	if err != nil {
		err = s.c.placed(ctx, src.URL, err)
	}
	return n, err
}

// May reports why a database may not be opened.
func (c Client) May(at string) error {
	_, err := c.may(at)
	return err
}

// may takes an address apart that the policy allows. A database that is a file is judged by where its links lead.
func (c Client) may(at string) (address.Location, error) {
	loc, err := address.Parse(at)
	if err != nil || c.Policy == nil {
		return loc, err
	}
	judged := loc
	if loc.Scheme == "sqlite" {
		judged.URL = (&url.URL{Scheme: "sqlite", Path: address.Resolve(c.sqliteFile(loc))}).String()
		return loc, c.Policy.ReadAddress(judged)
	}
	if u, err := url.Parse(loc.URL); err == nil {
		for name := range u.Query() {
			if !slices.Contains([]string{"sslmode", "ssl-mode", "application_name"}, name) {
				return loc, &fault.Error{Kind: fault.Script, Code: fault.Forbidden,
					Message: "?" + name + "=… of the address may not be used by this run",
					Hint:    "it may lead to another database than the one that is named"}
			}
		}
	}
	return loc, c.Policy.ReadAddress(judged)
}

func (c Client) open(ctx context.Context, at string) (session, error) {
	var s session
	loc, err := c.may(at)
	if err == nil {
		switch Kind(at) {
		case Postgres:
			s, err = c.postgres(ctx, loc)
		case MySQL:
			s, err = c.mysql(ctx, loc)
		case SQLite:
			s, err = c.sqlite(ctx, loc)
		case Redis:
			err = &fault.Error{Kind: fault.Script, Message: "tables are published to Redis, not read from it",
				Hint: "read what the table is made of"}
		default:
			err = fault.New(fault.Script, "there is no database of the kind %s", address.Scheme(at))
		}
	}
	if err != nil {
		return nil, c.placed(ctx, at, err)
	}
	return s, nil
}

// The kinds of databases.
const (
	Postgres = "postgres"
	MySQL    = "mysql"
	SQLite   = "sqlite"
	Redis    = "redis" // and Valkey; it is only written
)

// Kind is which database an address is of; "": none.
func Kind(at string) string {
	if !address.Database(at) {
		return ""
	}
	switch s := address.Scheme(at); s {
	case "postgresql":
		return Postgres
	case "mariadb":
		return MySQL
	case "rediss":
		return Redis
	default:
		return s
	}
}

// placed adds the database to an error, and takes secrets out of it.
func (c Client) placed(ctx context.Context, at string, err error) error {
	if ctx.Err() != nil {
		return &fault.Error{Kind: fault.Canceled, Message: "canceled", Err: context.Cause(ctx)}
	}
	loc := address.Location{URL: at, Hide: c.Hide}
	f := *fault.Of(err)
	f.Message, f.Hint, f.Detail = c.hidden(at, f.Message), c.hidden(at, f.Hint), c.hidden(at, f.Detail)
	f.Place.File = cmp.Or(f.Place.File, loc.String())
	if f.Err != nil {
		f.Err = errors.New(c.hidden(at, f.Err.Error()))
	}
	return &f
}

// hidden is a text without the password of an address.
func (c Client) hidden(at, text string) string {
	if c.Hide != nil {
		text = c.Hide(text)
	}
	if u, err := url.Parse(at); err == nil {
		if password, ok := u.User.Password(); ok && len(password) > 2 {
			text = strings.ReplaceAll(text, password, address.Mask)
		}
	}
	return address.RedactText(text)
}

// connectFault classifies the failure to reach a server.
func connectFault(err error) *fault.Error {
	f := &fault.Error{Kind: fault.Environment, Message: "cannot connect to the database", Err: err, Retryable: true,
		Hint: "check the host and the port, and that the server runs"}
	if connect := (*pgconn.ConnectError)(nil); errors.As(err, &connect) {
		f.Err = connect.Unwrap() // without the address
	}
	if lines := strings.Split(f.Err.Error(), "\n"); len(lines) > 1 { // of several ways to connect, which fail alike
		f.Err = errors.New(strings.Join(slices.Compact(lines), "\n"))
	}
	var unknown x509.UnknownAuthorityError
	var host x509.HostnameError
	var dns *net.DNSError
	switch {
	case errors.As(err, &unknown):
		f.Retryable, f.Hint = false,
			"the server's certificate is signed by an authority that is not trusted here: name it with {{set ca-file}}"
	case errors.As(err, &host):
		f.Retryable, f.Hint = false, "the server's certificate is for another name: use that one in the address"
	case errors.Is(err, mysql.ErrNoTLS) || answersWithoutTLS(err):
		f.Retryable, f.Hint = false,
			"the server speaks no TLS: set it up there, or write ?sslmode=disable (MySQL: ?ssl-mode=disabled) behind "+
				"the address if the way to it is safe"
	case errors.As(err, &dns):
		f.Retryable, f.Hint = dns.IsTemporary, "check the host in the address"
	}
	return f
}

// answersWithoutTLS reports whether a server of PostgreSQL was reached and said no: what the
// driver has no type for is that, where no connection failed and the server told no error.
func answersWithoutTLS(err error) bool {
	var connect *pgconn.ConnectError
	var network net.Error
	var said *pgconn.PgError
	return errors.As(err, &connect) && !errors.As(err, &network) && !errors.As(err, &said) && !errors.Is(err, io.EOF) &&
		!errors.Is(err, io.ErrUnexpectedEOF)
}

// local reports whether a server is on this machine: its traffic need not be encrypted.
func local(host string) bool {
	if host == "localhost" || strings.HasPrefix(host, "/") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
