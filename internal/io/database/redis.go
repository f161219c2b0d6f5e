package database

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"thalweg/internal/base/address"
	"thalweg/internal/base/fault"
)

// Bounds of what is said with Redis and Valkey.
const (
	redisTimeout    = 30 * time.Second // for the answers to one pipeline
	redisReplyBytes = 128 << 20        // of all answers to one pipeline
	redisItemBytes  = 64               // that an answer counts for, beside its text
	redisDepthMax   = 8                // lists in lists
)

// redis is a connection to Redis or Valkey, in version 2 of their protocol. It is never renewed: what was watched, and
// what became of the last commands, would be lost with the one before.
type redis struct {
	conn net.Conn
	r    *bufio.Reader
	out  []byte // the commands that are not sent yet
	sent int    // how many those are
	left int    // bytes that the answers may still have
}

// reply is an answer: a text, a number as text, a list, or nothing.
type reply struct {
	text string
	list []reply
	null bool
	err  redisError
}

// redisError is what a server says about a command that it refuses; "": it does not.
type redisError string

func (e redisError) Error() string { return string(e) }

// redis logs in.
func (c Client) redis(ctx context.Context, loc address.Location) (*redis, error) {
	u, err := url.Parse(loc.URL)
	if err != nil {
		return nil, fault.New(fault.Script, "the address cannot be read")
	}
	hostPort := u.Host
	if u.Port() == "" {
		hostPort = net.JoinHostPort(u.Hostname(), "6379")
	}
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	conn, err := c.Policy.Dialer(connectTimeout, hostPort).DialContext(ctx, "tcp", hostPort)
	if err != nil {
		return nil, connectFault(err)
	}
	if loc.Scheme == "rediss" {
		settings := &tls.Config{ServerName: u.Hostname(), MinVersion: tls.VersionTLS12}
		if err := c.trust(settings); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
		secured := tls.Client(conn, settings)
		if err := secured.HandshakeContext(ctx); err != nil {
			_ = conn.Close()
			return nil, redisConnectFault(err)
		}
		conn = secured
	}
	const bufferBytes = 64 << 10
	s := &redis{conn: conn, r: bufio.NewReaderSize(conn, bufferBytes)}
	err = s.login(ctx, u)
	if err == nil {
		err = s.keeps(ctx)
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// login names the user and the database. A password is found where redis-cli finds it.
func (s *redis) login(ctx context.Context, u *url.URL) error {
	user := u.User.Username()
	password, given := u.User.Password()
	if !given {
		password = os.Getenv("REDISCLI_AUTH")
	}
	switch {
	case user != "":
		s.add("AUTH", user, password)
	case password != "":
		s.add("AUTH", password)
	}
	s.add("SELECT", strings.Trim(u.Path, "/"))
	_, err := s.all(ctx)
	if f := (*fault.Error)(nil); errors.As(err, &f) && errors.Is(f.Err, io.EOF) {
		f.Hint = "the server closes the connection: if it speaks TLS, write rediss:// instead of redis://"
	}
	return err
}

// keeps refuses a server that removes rows by itself when its memory is full: a table would lose some of them
// without anybody noticing. A server that says nothing of its memory to this user is believed.
func (s *redis) keeps(ctx context.Context) error {
	s.add("INFO", "memory")
	got, err := s.send(ctx)
	if err != nil {
		return err
	}
	said := map[string]string{}
	for line := range strings.Lines(got[0].text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		said[name] = value
	}
	if policy := said["maxmemory_policy"]; said["maxmemory"] != "0" && strings.HasPrefix(policy, "allkeys-") {
		return &fault.Error{Kind: fault.Script,
			Message: "the server removes any key when its memory is full (maxmemory-policy " + policy + ")",
			Hint:    "let it keep what has no expiry: CONFIG SET maxmemory-policy noeviction, or volatile-lru"}
	}
	return nil
}

func (s *redis) Close() { _ = s.conn.Close() }

// add puts a command behind those that are sent next.
func (s *redis) add(words ...string) {
	s.sent++
	s.out = append(strconv.AppendInt(append(s.out, '*'), int64(len(words)), 10), "\r\n"...)
	for _, w := range words {
		s.out = append(strconv.AppendInt(append(s.out, '$'), int64(len(w)), 10), "\r\n"...)
		s.out = append(append(s.out, w...), "\r\n"...)
	}
}

// all sends the commands, and returns the answers. It fails if the server refuses one of them.
func (s *redis) all(ctx context.Context) ([]reply, error) {
	got, err := s.send(ctx)
	if err != nil {
		return nil, err
	}
	for _, r := range got {
		if r.err != "" {
			return nil, redisFault(r.err)
		}
	}
	return got, nil
}

// do is all for one command.
func (s *redis) do(ctx context.Context, words ...string) (reply, error) {
	s.add(words...)
	got, err := s.all(ctx)
	if err != nil {
		return reply{}, err
	}
	return got[0], nil
}

// send sends the commands and reads an answer to each. The end of ctx cuts the connection.
func (s *redis) send(ctx context.Context) ([]reply, error) {
	out, n := s.out, s.sent
	s.out, s.sent = s.out[:0], 0
	if err := s.conn.SetDeadline(time.Now().Add(redisTimeout)); err != nil {
		return nil, lostRedis(err)
	}
	defer context.AfterFunc(ctx, func() { _ = s.conn.SetDeadline(time.Unix(1, 0)) })()
	if _, err := s.conn.Write(out); err != nil {
		return nil, lostRedis(err)
	}
	got := make([]reply, n)
	s.left = redisReplyBytes
	for i := range got {
		var err error
		if got[i], err = s.read(0); err != nil {
			return nil, lostRedis(err)
		}
	}
	return got, nil
}

// read reads an answer. What an answer says of its size is believed as far as the bound goes.
func (s *redis) read(depth int) (reply, error) {
	line, err := s.r.ReadSlice('\n')
	if err != nil {
		return reply{}, err
	}
	text := strings.TrimRight(string(line), "\r\n")
	if text == "" {
		return reply{}, errors.New("it answers in no form of Redis")
	}
	s.left -= redisItemBytes
	kind, text := text[0], text[1:]
	switch kind {
	case '+', ':':
		return reply{text: text}, nil
	case '-':
		return reply{err: redisError(text)}, nil
	case '$', '*':
	default:
		return reply{}, errors.New("it answers in no form of Redis")
	}
	n, err := strconv.Atoi(text)
	switch {
	case err != nil || n < -1 || n > s.left || s.left < 0 || depth > redisDepthMax:
		return reply{}, errors.New("it answers with a size that cannot be")
	case n == -1:
		return reply{null: true}, nil
	case kind == '$':
		const end = "\r\n"
		s.left -= n
		buf := make([]byte, n+len(end))
		_, err := io.ReadFull(s.r, buf)
		return reply{text: string(buf[:n])}, err
	}
	var r reply
	for range n {
		one, err := s.read(depth + 1)
		if err != nil {
			return r, err
		}
		r.list = append(r.list, one)
	}
	return r, nil
}

// transaction sends the commands that were added as one that happens whole or not at all. Not
// done: a key that was watched has changed, and nothing has happened.
func (s *redis) transaction(ctx context.Context) (got []reply, done bool, err error) {
	n := s.sent
	commands := s.out
	s.out, s.sent = nil, 0
	s.add("MULTI")
	s.out, s.sent = append(s.out, commands...), s.sent+n
	s.add("EXEC")
	got, err = s.send(ctx)
	if err != nil {
		return nil, false, err
	}
	for _, r := range got { // the first that is refused says why the others are
		if r.err != "" {
			return nil, false, redisFault(r.err)
		}
	}
	end := got[len(got)-1]
	for _, r := range end.list {
		if r.err != "" {
			return nil, false, redisFault(r.err)
		}
	}
	return end.list, !end.null, nil
}

// lostRedis is about a connection that broke: what became of the last commands is not known.
func lostRedis(err error) error {
	return &fault.Error{Kind: fault.Environment, Message: "the connection to Redis was lost", Err: err, Retryable: true,
		Hint: "check that the server runs, and its log"}
}

// redisConnectFault is connectFault for TLS that was not answered as such.
func redisConnectFault(err error) error {
	f := connectFault(err)
	var none tls.RecordHeaderError
	if errors.As(err, &none) || errors.Is(err, io.EOF) {
		f.Retryable, f.Hint = false, "the server speaks no TLS at this port: name the right one, or write redis:// if the "+
			"way to it is safe"
	}
	return f
}

// redisFault classifies what a server refuses.
func redisFault(said redisError) error {
	f := &fault.Error{Kind: fault.Environment, Message: "Redis: " + string(said)}
	word, _, _ := strings.Cut(string(said), " ")
	switch word {
	case "NOAUTH", "WRONGPASS":
		f.Hint = "check user and password: a password is taken from REDISCLI_AUTH, or a secret in the address"
	case "NOPERM":
		f.Hint = "give the user of the address the right to do so: ACL SETUSER"
	case "MOVED", "ASK", "CROSSSLOT", "CLUSTERDOWN":
		f.Kind, f.Hint = fault.Script, "the server is part of a cluster, to which tables are not published"
	case "WRONGTYPE":
		f.Kind, f.Hint = fault.Script, "a key is in use for something else: give the table another name"
	case "OOM":
		f.Retryable, f.Hint = true, "raise maxmemory: while a table is published, the server has it twice"
	case "READONLY":
		f.Retryable, f.Hint = true, "the server is a replica: name its primary"
	case "LOADING", "BUSY", "MASTERDOWN", "TRYAGAIN", "MISCONF", "NOREPLICAS", "UNBLOCKED":
		f.Retryable = true
	case "ERR":
		switch {
		case strings.Contains(string(said), "DB index"):
			f.Kind, f.Hint = fault.Script, "check the number of the database at the end of the address"
		case strings.Contains(string(said), "AUTH"):
			f.Hint = "the server wants no password, or another user"
		case strings.Contains(string(said), "max number of clients"):
			f.Retryable = true
		}
	}
	return f
}
