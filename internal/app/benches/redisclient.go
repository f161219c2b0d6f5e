package benches

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"thalweg/internal/ops/load"
)

// redisClient speaks as much of the protocol (RESP2) as a load needs. With a general client, sixteen or a hundred
// operations that are sent together take more of the processor than the server does: docs/dependencies.md.
type redisClient struct {
	t      *redis
	by     *wire
	conn   *connection // nil: to be made
	ctx    context.Context
	stop   func() bool // ends the watch over ctx
	out    []byte      // what is sent
	key    []byte
	value  []byte   // of all fields
	names  []string // of fields
	seen   []int    // by field: the hash that had it last
	hashes int      // that were read
	got    int      // bytes of the value that was read last
}

// Sizes of what is read.
const (
	redisBuffer  = 64 << 10
	redisItemMax = 1 << 20 // elements of an answer

	redisErrorMax = 256 // bytes of what a server says of an error
)

var (
	errOdd     = errors.New("the server answers what is not asked for")
	errForeign = errors.New("keys that were there before are not written")
)

// redisError is what a server says of a command that it has not carried out.
type redisError string

// Error implements error.
func (e redisError) Error() string { return "the server says: " + string(e) }

// connect makes the connection.
func (c *redisClient) connect(ctx context.Context) (err error) {
	conn, err := c.by.dial(ctx, c.t.network, c.t.address)
	if err != nil {
		return err
	}
	if c.t.tls != nil {
		secured := tls.Client(conn, c.t.tls)
		limited, cancel := context.WithTimeout(ctx, connectPatience)
		defer cancel()
		if err := secured.HandshakeContext(limited); err != nil {
			return errors.Join(fmt.Errorf("agree with %s on encryption: %w", c.t.address, err), conn.Close())
		}
		conn = secured
	}
	c.conn = &connection{conn, replies{bufio.NewReaderSize(conn, redisBuffer)}}
	ok := func(r *replies) error { _, err := r.line('+'); return err }
	if c.t.password != "" {
		auth := []string{"AUTH", c.t.password}
		if c.t.username != "" {
			auth = []string{"AUTH", c.t.username, c.t.password}
		}
		err = c.ask(ctx, auth, ok)
	}
	if err == nil && c.t.database != 0 {
		err = c.ask(ctx, []string{"SELECT", strconv.Itoa(c.t.database)}, ok)
	}
	if err != nil {
		_ = c.Close()
	}
	return err
}

// ask sends a command and reads its answer.
func (c *redisClient) ask(ctx context.Context, command []string, read func(*replies) error) error {
	if err := c.ready(ctx); err != nil {
		return err
	}
	c.out = header(c.out[:0], '*', len(command))
	for _, word := range command {
		c.out = bulk(c.out, word)
	}
	_, err := c.conn.Write(c.out)
	if err == nil {
		err = read(&c.conn.in)
	}
	return c.over(err)
}

// ready connects again if that is needed, and has ctx end what waits.
func (c *redisClient) ready(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if c.ctx != nil && c.ctx.Err() != nil { // that has closed the connection
		_ = c.Close()
	}
	if c.conn == nil {
		if err := c.connect(ctx); err != nil {
			return err
		}
	}
	if c.ctx != ctx { // mostly it is the one of the operations before
		c.forget()
		conn := c.conn
		c.ctx, c.stop = ctx, context.AfterFunc(ctx, func() { _ = conn.Close() })
	}
	patience := c.t.o.Timeout
	if patience == 0 {
		patience = redisPatience
	}
	return c.conn.SetDeadline(time.Now().Add(patience))
}

// forget ends the watch over the context.
func (c *redisClient) forget() {
	if c.stop != nil {
		c.stop()
	}
	c.ctx, c.stop = nil, nil
}

// over gives a connection up after an error that leaves unknown what comes on it.
func (c *redisClient) over(err error) error {
	var said redisError
	if err == nil || errors.As(err, &said) || errors.Is(err, load.ErrMissing) || errors.Is(err, load.ErrWrong) {
		return err
	}
	if c.ctx != nil && c.ctx.Err() != nil {
		err = c.ctx.Err()
	}
	_ = c.Close()
	return err
}

// Close implements load.Client.
func (c *redisClient) Close() error {
	c.forget()
	if c.conn == nil {
		return nil
	}
	err := c.conn.Close()
	c.conn = nil
	if errors.Is(err, net.ErrClosed) { // the end of the context before has closed it
		return nil
	}
	return err
}

// Do implements load.Client.
func (c *redisClient) Do(ctx context.Context, ops []load.Op, errs []error) {
	for len(ops) > 0 {
		n := min(len(ops), redisTogether)
		c.some(ctx, ops[:n], errs[:n])
		ops, errs = ops[n:], errs[n:]
	}
}

// some carries out operations that are sent at once.
func (c *redisClient) some(ctx context.Context, ops []load.Op, errs []error) {
	fail := func(from int, err error) {
		for i := from; i < len(ops); i++ {
			errs[i] = err
		}
	}
	if err := c.ready(ctx); err != nil {
		fail(0, err)
		return
	}
	c.out = c.out[:0]
	for i, op := range ops {
		errs[i] = nil
		switch {
		case op.Kind == load.Read:
			c.sendRead(op.Key)
		case c.t.o.There != "":
			errs[i] = errForeign
		default:
			c.sendWrite(op.Key)
		}
	}
	if len(c.out) == 0 {
		return
	}
	if _, err := c.conn.Write(c.out); err != nil {
		fail(0, fmt.Errorf("send to Redis: %w", c.over(err)))
		return
	}
	done := 0
	for i, op := range ops {
		if errs[i] != nil {
			continue
		}
		if errs[i] = c.over(c.answer(op)); errs[i] == nil {
			size := len(c.value)
			if op.Kind == load.Read {
				size = c.got
			}
			done += len(c.name(op.Key)) + size
		}
		if c.conn == nil {
			fail(i, fmt.Errorf("read from Redis: %w", errs[i]))
			break
		}
	}
	c.t.payload.Add(int64(done))
}

// name makes the name of a key.
func (c *redisClient) name(key uint64) []byte {
	c.key = append(c.key[:0], c.t.prefix...)
	at := len(c.key)
	c.key = strconv.AppendUint(c.key, key, 10)
	if missing := redisDigits - (len(c.key) - at); missing > 0 && c.t.o.There == "" {
		c.key = append(c.key, "000000000000"[:missing]...)
		copy(c.key[at+missing:], c.key[at:])
		copy(c.key[at:], "000000000000"[:missing])
	}
	return c.key
}

func (c *redisClient) sendRead(key uint64) {
	c.out = append(c.out, "*2\r\n"...)
	if c.t.o.Fields > 0 {
		c.out = bulk(c.out, "HGETALL")
	} else {
		c.out = bulk(c.out, "GET")
	}
	c.out = bulk(c.out, c.name(key))
}

func (c *redisClient) sendWrite(key uint64) {
	if !c.t.wrote.Load() {
		c.t.wrote.Store(true)
	}
	load.Fill(c.value, key)
	if c.t.o.Fields == 0 {
		c.out = append(c.out, "*3\r\n$3\r\nSET\r\n"...)
		c.out = bulk(bulk(c.out, c.name(key)), c.value)
		return
	}
	c.out = header(c.out, '*', 2+2*len(c.names))
	c.out = bulk(bulk(c.out, "HSET"), c.name(key))
	for i, name := range c.names {
		c.out = bulk(bulk(c.out, name), c.value[i*c.t.size:(i+1)*c.t.size])
	}
}

// answer reads the answer to an operation.
func (c *redisClient) answer(op load.Op) error {
	in := &c.conn.in
	switch {
	case op.Kind == load.Write && c.t.o.Fields > 0:
		_, err := in.header(':')
		return err
	case op.Kind == load.Write:
		_, err := in.line('+')
		return err
	}
	if c.t.o.There == "" {
		load.Fill(c.value, op.Key)
	}
	if c.t.o.Fields > 0 {
		return c.hash(in)
	}
	n, err := in.header('$')
	c.got = n
	switch {
	case err != nil:
		return err
	case n < 0:
		return load.ErrMissing
	case c.t.o.There != "":
		return in.skip(n)
	}
	same, err := in.same(n, c.value)
	return wrongUnless(same, err)
}

// hash reads a hash, whose fields come in any order.
func (c *redisClient) hash(in *replies) error {
	n, err := in.header('*')
	switch {
	case err != nil:
		return err
	case n <= 0:
		return load.ErrMissing
	case n > redisItemMax || n%2 != 0:
		return errOdd
	}
	right := n == 2*len(c.names)
	c.hashes++
	c.got = 0
	for range n / 2 {
		name, err := in.short()
		if err != nil {
			return within(err)
		}
		field := c.field(name)
		size, err := in.header('$')
		if err != nil {
			return within(err)
		}
		c.got += max(size, 0)
		same := false
		if field < 0 {
			err = in.skip(size)
		} else if same, err = in.same(size, c.value[field*c.t.size:(field+1)*c.t.size]); same {
			same = c.seen[field] != c.hashes // else it comes again, in place of another
			c.seen[field] = c.hashes
		}
		if err != nil {
			return err
		}
		right = right && same
	}
	return wrongUnless(right || c.t.o.There != "", nil)
}

// field returns the number of a field of ours; -1: it is another.
func (c *redisClient) field(name []byte) int {
	if len(name) < 2 || c.t.o.There != "" {
		return -1
	}
	n, err := strconv.Atoi(string(name[1:])) // nothing is allocated
	if err != nil || n < 0 || n >= len(c.names) || string(name) != c.names[n] {
		return -1
	}
	return n
}

// within is an error in the middle of an answer: what the server says there is not about a command.
func within(err error) error {
	var said redisError
	if errors.As(err, &said) {
		return errOdd
	}
	return err
}

// wrongUnless is the error of a value that is not the one that was written.
func wrongUnless(same bool, err error) error {
	if err == nil && !same {
		return load.ErrWrong
	}
	return err
}

// header appends what begins a list or a text of a size.
func header(to []byte, mark byte, n int) []byte {
	return append(strconv.AppendInt(append(to, mark), int64(n), 10), "\r\n"...)
}

// bulk appends a text.
func bulk[T string | []byte](to []byte, text T) []byte {
	return append(append(header(to, '$', len(text)), text...), "\r\n"...)
}

// line reads a line that begins with a mark, and gives what is behind it, until the next read.
func (r replies) line(mark byte) ([]byte, error) {
	line, err := r.ReadSlice('\n')
	if err != nil {
		return nil, err
	}
	line = bytes.TrimRight(line, "\r\n")
	switch {
	case len(line) > 0 && line[0] == '-':
		return nil, redisError(strings.ToValidUTF8(string(line[1:min(len(line), redisErrorMax)]), "?"))
	case len(line) == 0 || line[0] != mark:
		return nil, errOdd
	}
	return line[1:], nil
}

// header reads the number in a line; -1: there is nothing.
func (r replies) header(mark byte) (int, error) {
	line, err := r.line(mark)
	if err != nil {
		return 0, err
	}
	if len(line) == 2 && line[0] == '-' && line[1] == '1' {
		return -1, nil
	}
	n := 0
	for _, d := range line {
		if d < '0' || d > '9' || n > valueMax {
			return 0, errOdd
		}
		n = n*10 + int(d-'0')
	}
	if len(line) == 0 {
		return 0, errOdd
	}
	return n, nil
}

// skip reads a text of n bytes and its end.
func (r replies) skip(n int) error {
	if n < 0 { // there is none
		return nil
	}
	_, err := r.Discard(n + 2)
	return err
}

// same reads a text of n bytes, and reports whether it is the one that is wanted.
func (r replies) same(n int, wanted []byte) (bool, error) {
	if n != len(wanted) {
		return false, r.skip(n)
	}
	for len(wanted) > 0 {
		some, err := r.Peek(min(len(wanted), r.Size()))
		if err != nil {
			return false, err
		}
		if !bytes.Equal(some, wanted[:len(some)]) {
			return false, r.skip(len(wanted))
		}
		wanted = wanted[len(some):]
		if _, err := r.Discard(len(some)); err != nil {
			return false, err
		}
	}
	return true, r.skip(0)
}

// short reads a text of a line's size, until the next read.
func (r replies) short() ([]byte, error) {
	n, err := r.header('$')
	switch {
	case err != nil:
		return nil, err
	case n < 0 || n+2 > r.Size():
		return nil, errOdd
	}
	text, err := r.Peek(n + 2)
	if err != nil {
		return nil, err
	}
	_, err = r.Discard(n + 2)
	return text[:n], err
}

// text reads a text.
func (r replies) text() (string, error) {
	n, err := r.header('$')
	if err != nil {
		return "", err
	}
	if n < 0 || n > exporterBytesMax {
		return "", errOdd
	}
	text := make([]byte, n+2)
	_, err = io.ReadFull(r, text)
	return string(text[:n]), err
}
