package cassandra

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"regexp"
	"slices"
	"strings"
	"syscall"

	gocql "github.com/apache/cassandra-gocql-driver/v2"

	"thalweg/internal/base/fault"
	"thalweg/internal/base/secure"
)

// Fault wraps an error of a request with the failed action, its kind and a hint. The context's error stays
// what it is.
func Fault(what string, err error) error {
	if err == nil {
		return nil
	}
	var known *fault.Error
	if errors.As(err, &known) {
		return err
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%s: %w", what, err)
	}
	err = short(err, nil)
	return &fault.Error{Kind: fault.Environment, Retryable: Passes(err), Message: what, Err: err, Hint: hint(err)}
}

// Fault is Fault for a request of the session, which knows the nodes that are away.
func (s *Session) Fault(what string, err error) error { return Fault(what, short(err, s.away)) }

// away lists the nodes to which there are no connections.
func (s *Session) away() (hosts []string) {
	for _, h := range s.GetHosts() {
		if !h.IsUp() {
			hosts = append(hosts, h.ConnectAddressAndPort())
		}
	}
	slices.Sort(hosts)
	return hosts
}

// shortage is the failure of a request that fewer nodes have answered than it needs.
type shortage struct {
	needed, answered int      // needed 0: it is not known
	away             []string // the nodes that do not answer, as far as they are known
	err              error    // the driver's
}

// Error says it in our words: the driver's speak of levels and of its own parts.
func (s *shortage) Error() string {
	text := "no node of Cassandra answers in time"
	if s.needed > 0 {
		text = fmt.Sprintf("too few nodes of Cassandra answer: %d of the %d that are needed", s.answered, s.needed)
	}
	if len(s.away) > 0 {
		text += " (away: " + strings.Join(s.away, ", ") + ")"
	}
	return text
}

// Unwrap returns the driver's error.
func (s *shortage) Unwrap() error { return s.err }

// shortageHint is the way out of a shortage.
const shortageHint = "start the nodes that are down, or mend the network to them: `nodetool status` on a node lists " +
	"them, {{do doctor}} looks at all that are named"

// short says of an error of the driver, by its type, that too few nodes have answered; others stay.
func short(err error, away func() []string) error {
	var known *shortage
	var none *gocql.RequestErrUnavailable
	var read *gocql.RequestErrReadTimeout
	var write *gocql.RequestErrWriteTimeout
	var unknown *gocql.RequestErrCASWriteUnknown
	out := &shortage{err: err}
	switch {
	case err == nil, errors.As(err, &known), errors.As(err, new(*fault.Error)):
		return err
	case errors.As(err, &none):
		out.needed, out.answered = none.Required, none.Alive
	case errors.As(err, &read):
		out.needed, out.answered = read.BlockFor, read.Received
	case errors.As(err, &write):
		out.needed, out.answered = write.BlockFor, write.Received
	case errors.As(err, &unknown):
		out.needed, out.answered = unknown.BlockFor, unknown.Received
	case errors.Is(err, gocql.ErrTimeoutNoResponse), errors.Is(err, gocql.ErrNoConnections),
		errors.Is(err, gocql.ErrNoConnectionsStarted),
		errors.Is(err, gocql.ErrConnectionClosed):
	default:
		return err
	}
	if away != nil {
		out.away = away()
	}
	return out
}

// Passes reports whether a request that failed may go well later. Whether it
// was carried out all the same is not known then.
//
// What a node answers passes by its code. All else comes of the way to it: the driver
// gives every request in flight whatever has ended its connection, and that is a node's
// silence, an answer that cannot be read, or a network's error, most of it without a type.
// So all of that passes, but for what the same request would meet again (see lasting), for
// the end of a context, and for what somebody has said already.
func Passes(err error) bool {
	var known *fault.Error
	var request gocql.RequestError
	switch {
	case err == nil, errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return false
	case errors.As(err, &known):
		return known.Retryable
	case errors.As(err, &request):
		return answerPasses(request.Code())
	}
	return !lasting(err)
}

func answerPasses(code int) bool {
	switch code {
	case gocql.ErrCodeUnavailable, gocql.ErrCodeOverloaded, gocql.ErrCodeBootstrapping, gocql.ErrCodeWriteTimeout,
		gocql.ErrCodeReadTimeout,
		gocql.ErrCodeWriteFailure, gocql.ErrCodeReadFailure, gocql.ErrCodeServer, gocql.ErrCodeTruncate,
		gocql.ErrCodeCASWriteUnknown:
		return true
	}
	return false
}

// lasting reports whether the driver does not send such a request, or not any more, or
// cannot give such an answer.
func lasting(err error) bool {
	var encode gocql.MarshalError
	var decode gocql.UnmarshalError
	if errors.As(err, &encode) || errors.As(err, &decode) {
		return true
	}
	for _, last := range []error{
		gocql.ErrSessionClosed, gocql.ErrTooManyStmts, gocql.ErrUseStmt, gocql.ErrFrameTooBig, gocql.ErrUnsupported,
		gocql.ErrNotFound, gocql.ErrNoHosts, gocql.ErrNoKeyspace, gocql.ErrKeyspaceDoesNotExist, gocql.ErrNoMetadata,
	} {
		if errors.Is(err, last) {
			return true
		}
	}
	// Values that are too many or too few have no type. Should their text change, the only
	// harm is that a program that is wrong tries it again.
	text := err.Error()
	return strings.Contains(text, "values send got") || strings.Contains(text, "columns to scan into")
}

// Asked returns the error of a request with a context. While the driver prepares a statement, an end of the
// connection's context reaches the waiting request as if its own had ended. Asked returns ErrConnectionClosed
// for that.
func Asked(ctx context.Context, err error) error {
	if ctx.Err() == nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
		return gocql.ErrConnectionClosed
	}
	return err
}

// connecting is Fault for who opens a session. The driver gives that no more than a text,
// so only what is known to pass does.
func connecting(err error) error {
	out := Fault("connect to Cassandra", err)
	var f *fault.Error
	if errors.As(out, &f) && !errors.As(err, new(*fault.Error)) {
		f.Retryable = reachableLater(err)
	}
	return out
}

func reachableLater(err error) bool {
	var request gocql.RequestError
	if errors.As(err, &request) {
		return answerPasses(request.Code())
	}
	for _, passing := range []error{
		gocql.ErrTimeoutNoResponse, gocql.ErrConnectionClosed, gocql.ErrNoConnections, gocql.ErrNoConnectionsStarted,
		io.EOF, io.ErrUnexpectedEOF, io.ErrClosedPipe, net.ErrClosed, syscall.ECONNRESET, syscall.EPIPE,
		syscall.ECONNREFUSED,
	} {
		if errors.Is(err, passing) {
			return true
		}
	}
	var network net.Error
	return errors.As(err, &network)
}

// hint suggests a remedy for an error; "" if there is none.
func hint(err error) string {
	if errors.As(err, new(*shortage)) {
		return shortageHint
	}
	var request gocql.RequestError
	text := err.Error()
	if errors.As(err, &request) {
		switch code := request.Code(); {
		case code == gocql.ErrCodeCredentials, code == gocql.ErrCodeUnauthorized:
			return "check the user name and the password, and what the user is allowed"
		case code == gocql.ErrCodeInvalid && strings.Contains(text, "eyspace"), code == gocql.ErrCodeInvalid &&
			strings.Contains(text, "table"):
			return "{{do cluster-init}} makes the keyspace and its tables"
		}
		return "see the logs of Cassandra's nodes"
	}
	if errors.Is(err, gocql.ErrKeyspaceDoesNotExist) || strings.Contains(text, "eyspace") &&
		strings.Contains(text, "exist") {
		return "{{do cluster-init}} makes the keyspace and its tables"
	}
	if h := secure.Hint(err); h != "" {
		return h
	}
	if unknown := (*net.DNSError)(nil); errors.As(err, &unknown) && unknown.IsNotFound {
		return "check the names of the hosts"
	}
	if errors.Is(err, errEnded) {
		return "check the port, and whether the nodes want TLS there: tls: true, or tls: {ca: FILE}"
	}
	return "check the hosts and ports, the network, and that the nodes run"
}

// names of keyspaces and datacenters go into statements as they are.
var (
	keyspaceNamed   = regexp.MustCompile(`^[a-z][a-z0-9_]{0,47}$`)
	datacenterNamed = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)
)

func isName(keyspace string) bool { return keyspaceNamed.MatchString(keyspace) }

func nameFault(keyspace string) error {
	return &fault.Error{Kind: fault.Environment, Message: fmt.Sprintf("%q cannot be the name of a keyspace", keyspace),
		Hint: "a small letter, then small letters, digits and _, 48 together at most"}
}

func replicationText(copies map[string]int) (string, error) {
	var b strings.Builder
	b.WriteString("{'class': ")
	if n, ok := copies[""]; ok && len(copies) == 1 && n > 0 {
		fmt.Fprintf(&b, "'SimpleStrategy', 'replication_factor': %d}", n)
		return b.String(), nil
	}
	b.WriteString("'NetworkTopologyStrategy'")
	for _, dc := range slices.Sorted(maps.Keys(copies)) {
		if !datacenterNamed.MatchString(dc) || copies[dc] < 1 {
			return "", &fault.Error{Kind: fault.Environment,
				Message: fmt.Sprintf("replication %d in datacenter %q cannot be",
					copies[dc], dc), Hint: "name each datacenter with the number of copies it keeps"}
		}
		fmt.Fprintf(&b, ", '%s': %d", dc, copies[dc])
	}
	if len(copies) == 0 {
		return "", &fault.Error{Kind: fault.Environment, Message: "no replication is given",
			Hint: "say how many copies are kept, by datacenter"}
	}
	b.WriteByte('}')
	return b.String(), nil
}
