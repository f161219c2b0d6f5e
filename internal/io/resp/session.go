package resp

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"

	"thalweg/internal/io/tableindex"
)

// Session is a connection of a client.
type Session struct {
	// Check reports whether a user's password is right; nil: none is asked for.
	Check func(user, password []byte) bool
	// Counts returns what INFO tells of the server; nil: nothing.
	Counts   func() Counts
	ID       int64
	Commands int64 // that were carried out

	known   bool // a right password was given
	wrong   int
	three   bool // it wants version 3 of the protocol
	closing bool
	name    []byte
	failed  error
	command request
	input   []byte // the command that is carried out
	row     []byte // buffer for rows of a cold table
	values  []int  // buffer for places in a row
	ahead   *lookAhead
}

// Counts are what a server has done since it began.
type Counts struct {
	Commands, Received, Sent int64 // that were carried out; bytes of them and of answers
	User, System             time.Duration
}

// Closing reports whether the connection is to be closed once the answers are sent.
func (s *Session) Closing() bool { return s.closing }

// Failed returns why the table could not be read for the first time, and forgets it.
func (s *Session) Failed() error {
	err := s.failed
	s.failed = nil
	return err
}

// Held is what the session keeps in memory between calls, in bytes.
func (s *Session) Held() int {
	held := cap(s.command.args)*spanBytes + cap(s.row) + len(s.name) + 8*cap(s.values)
	if s.ahead != nil {
		held += s.ahead.held()
	}
	return held
}

// Answer carries out the commands that in begins with, appends the answers to out, and
// returns how much of in it has used up. What is left is the beginning of a command, or
// there are so many answers that they are to be sent first: then more is true. The next
// call gets what is left, and what came behind it.
func (s *Session) Answer(d *Dataset, in, out []byte) (used int, answers []byte, more bool) {
	touched := 0
	for used < len(in) && !s.closing {
		if len(out) >= pauseBytes {
			return used, out, true
		}
		done, err := s.command.read(in[used:], s.known || s.Check == nil)
		if err != nil {
			s.closing = true
			return len(in), appendError(out, "ERR Protocol error: "+err.Error()), false
		}
		if !done {
			return used, out, false
		}
		if used >= touched && (used+s.command.at < len(in) || len(s.command.args) > 2) {
			touched = used + s.lookAhead(d, in[used:])
		}
		if len(s.command.args) > 0 {
			s.input = in[used:]
			out = s.carryOut(d, out)
			s.input = nil
			s.Commands++
			if cap(s.row) > keptRowBytes {
				s.row = nil
			}
		}
		used += s.command.at
		s.command.reset()
	}
	if s.closing {
		used = len(in)
	}
	return used, out, false
}

// arg returns an argument; the command's name is the first.
func (s *Session) arg(i int) []byte {
	a := s.command.args[i]
	return s.input[a.from:a.to]
}

const (
	longestName  = 16
	keptRowBytes = 8 << 10 // of a cold table's row, for the next one
)

// carryOut answers one command.
func (s *Session) carryOut(d *Dataset, out []byte) []byte {
	var upper [longestName]byte
	name := s.arg(0)
	if len(name) > longestName {
		return s.unknown(out)
	}
	for i, c := range name {
		if c >= 'a' && c <= 'z' {
			c -= 'a' - 'A'
		}
		upper[i] = c
	}
	n := len(s.command.args)
	switch cmd := string(upper[:len(name)]); {
	case cmd == "AUTH" || cmd == "HELLO" || cmd == "QUIT" || cmd == "RESET":
		return s.begin(cmd, n, out)
	case s.Check != nil && !s.known:
		return appendError(out, "NOAUTH Authentication required.")
	default:
		return s.reads(d, cmd, n, out)
	}
}

// reads answers a command about the table.
func (s *Session) reads(d *Dataset, cmd string, n int, out []byte) []byte {
	switch cmd {
	case "GET", "TYPE":
		if n != 2 {
			return wrongNumber(out, cmd)
		}
		if cmd == "TYPE" {
			return s.typeOf(d, out)
		}
		return s.get(d, out)
	case "MGET", "EXISTS":
		if n < 2 {
			return wrongNumber(out, cmd)
		}
		if cmd == "EXISTS" {
			return s.exists(d, out)
		}
		return s.mget(d, out)
	case "HGET":
		if n != 3 {
			return wrongNumber(out, cmd)
		}
		return s.hmget(d, out, false)
	case "HMGET":
		if n < 3 {
			return wrongNumber(out, cmd)
		}
		return s.hmget(d, out, true)
	case "HGETALL":
		if n != 2 {
			return wrongNumber(out, cmd)
		}
		return s.hgetall(d, out)
	case "DBSIZE":
		return appendHead(out, ':', int(d.rows.Rows()))
	}
	return s.asked(d, cmd, n, out)
}

// lookup finds the row of an argument. A table that cannot be read is an error in the answer.
func (s *Session) lookup(d *Dataset, key []byte) (frames []byte, found, ok bool) {
	frames, buffer, found, err := d.rows.Lookup(key, s.row)
	s.row = buffer
	if err != nil {
		if s.failed == nil {
			s.failed = err
		}
		return nil, false, false
	}
	return frames, found, true
}

const unreadable = "ERR the table cannot be read: the server's log says why"

func (s *Session) null(out []byte) []byte {
	if s.three {
		return append(out, "_\r\n"...)
	}
	return append(out, tableindex.Null...)
}

// pairs appends the head of an answer of names and values.
func (s *Session) pairs(out []byte, n int) []byte {
	if s.three {
		return appendHead(out, '%', n)
	}
	return appendHead(out, '*', 2*n)
}

// value appends a value's frame.
func (s *Session) value(out, frames []byte) []byte {
	first, _, null := frame(frames)
	if null {
		return s.null(out)
	}
	return append(out, first...)
}

// single refuses a command that is about keys of one value in a table that has others.
func single(d *Dataset) (refused string) {
	if len(d.names) == 1 {
		return ""
	}
	return fmt.Sprintf("WRONGTYPE a row of this table has %d values: ask with HGET, HMGET or HGETALL", len(d.names))
}

func (s *Session) get(d *Dataset, out []byte) []byte {
	if refused := single(d); refused != "" {
		return appendError(out, refused)
	}
	frames, found, ok := s.lookup(d, s.arg(1))
	switch {
	case !ok:
		return appendError(out, unreadable)
	case !found:
		return s.null(out)
	}
	return s.value(out, frames)
}

// answer bounds the answer that begins at from; past its limit, it is an error instead.
func answer(out []byte, from int) ([]byte, bool) {
	if len(out)-from <= MaxAnswerBytes {
		return out, true
	}
	return appendError(out[:from], fmt.Sprintf("ERR the answer has more than %d bytes: ask for less at once",
		MaxAnswerBytes)), false
}

func (s *Session) mget(d *Dataset, out []byte) []byte {
	if refused := single(d); refused != "" {
		return appendError(out, refused)
	}
	from := len(out)
	out = appendHead(out, '*', len(s.command.args)-1)
	for i := 1; i < len(s.command.args); i++ {
		frames, found, ok := s.lookup(d, s.arg(i))
		switch {
		case !ok:
			return appendError(out[:from], unreadable)
		case !found:
			out = s.null(out)
		default:
			out = s.value(out, frames)
		}
		if out, ok = answer(out, from); !ok {
			return out
		}
	}
	return out
}

func (s *Session) exists(d *Dataset, out []byte) []byte {
	n := 0
	for i := 1; i < len(s.command.args); i++ {
		_, found, ok := s.lookup(d, s.arg(i))
		if !ok {
			return appendError(out, unreadable)
		}
		if found {
			n++
		}
	}
	return appendHead(out, ':', n)
}

func (s *Session) typeOf(d *Dataset, out []byte) []byte {
	_, found, ok := s.lookup(d, s.arg(1))
	switch {
	case !ok:
		return appendError(out, unreadable)
	case !found:
		return append(out, "+none\r\n"...)
	case len(d.names) == 1:
		return append(out, "+string\r\n"...)
	}
	return append(out, "+hash\r\n"...)
}

// hmget answers HMGET, and HGET, which has no list around its one value.
func (s *Session) hmget(d *Dataset, out []byte, list bool) []byte {
	frames, found, ok := s.lookup(d, s.arg(1))
	if !ok {
		return appendError(out, unreadable)
	}
	from, all := len(out), frames
	if list {
		out = appendHead(out, '*', len(s.command.args)-2)
	}
	s.values = s.values[:0] // where each value is, as far as it was needed
	for i := 2; i < len(s.command.args); i++ {
		column, known := d.column[string(s.arg(i))]
		if !found || !known {
			out = s.null(out)
			continue
		}
		for len(s.values) <= column {
			s.values = append(s.values, len(frames))
			_, frames, _ = frame(frames)
		}
		if out, ok = answer(s.value(out, all[len(all)-s.values[column]:]), from); !ok {
			return out
		}
	}
	return out
}

func (s *Session) hgetall(d *Dataset, out []byte) []byte {
	frames, found, ok := s.lookup(d, s.arg(1))
	if !ok {
		return appendError(out, unreadable)
	}
	n := 0
	if found {
		n = len(d.names)
	}
	out = s.pairs(out, n)
	for i := range n {
		out = s.value(append(out, d.names[i]...), frames)
		_, frames, _ = frame(frames)
	}
	return out
}

// begin answers what may be asked before a password was given.
func (s *Session) begin(cmd string, n int, out []byte) []byte {
	switch cmd {
	case "QUIT":
		s.closing = true
		return append(out, "+OK\r\n"...)
	case "RESET":
		s.known, s.three, s.name = false, false, nil
		return append(out, "+RESET\r\n"...)
	case "HELLO":
		return s.hello(n, out)
	}
	switch n {
	case 2:
		return s.auth([]byte("default"), s.arg(1), out)
	case 3:
		return s.auth(s.arg(1), s.arg(2), out)
	}
	return wrongNumber(out, cmd)
}

func (s *Session) auth(user, password, out []byte) []byte {
	switch {
	case s.Check == nil:
		return appendError(out, "ERR AUTH is called although this server asks for no password")
	case !s.Check(user, password):
		s.known = false
		if s.wrong++; s.wrong >= maxWrongPasswords {
			s.closing = true
		}
		return appendError(out, "WRONGPASS invalid username-password pair or user is disabled.")
	}
	s.known = true
	return append(out, "+OK\r\n"...)
}

// hello answers HELLO [version [AUTH user password] [SETNAME name]].
func (s *Session) hello(n int, out []byte) []byte {
	three := s.three
	if n > 1 {
		switch string(s.arg(1)) {
		case "2":
			three = false
		case "3":
			three = true
		default:
			return appendError(out, "NOPROTO unsupported protocol version")
		}
	}
	name := -1
	for i := 2; i < n; {
		switch option := strings.ToUpper(string(s.arg(i))); {
		case option == "AUTH" && i+2 < n:
			before := len(out)
			if out = s.auth(s.arg(i+1), s.arg(i+2), out); out[before] == '-' {
				return out
			}
			out = out[:before]
			i += 3
		case option == "SETNAME" && i+1 < n:
			name = i + 1
			i += 2
		default:
			return appendError(out, "ERR Syntax error in HELLO option "+quoted(s.arg(i)))
		}
	}
	if s.Check != nil && !s.known {
		return appendError(out, "NOAUTH HELLO must be called with the client already authenticated, otherwise "+
			"HELLO <proto> AUTH <user> <pass> can be used to authenticate and select the protocol at once")
	}
	if name > 0 {
		if refused := s.named(s.arg(name)); refused != "" {
			return appendError(out, refused)
		}
	}
	s.three = three
	const facts = 7
	out = s.pairs(out, facts)
	version := 2
	if s.three {
		version = 3
	}
	out = bulk(out, "server", "thalweg", "version", speaks, "proto")
	out = appendHead(out, ':', version)
	out = bulk(out, "id")
	out = appendHead(out, ':', int(s.ID))
	out = bulk(out, "mode", "standalone", "role", "master", "modules")
	return append(out, "*0\r\n"...)
}

// speaks is the version of Redis whose answers these are: clients choose by it what they ask.
const speaks = "7.0.0"

func bulk(out []byte, texts ...string) []byte {
	for _, text := range texts {
		out = tableindex.Frame(out, []byte(text))
	}
	return out
}

// asked answers what clients ask beside the table.
func (s *Session) asked(d *Dataset, cmd string, n int, out []byte) []byte {
	sub := ""
	if n > 1 {
		sub = strings.ToUpper(string(s.arg(1)))
	}
	switch {
	case cmd == "PING" && n == 1:
		return append(out, "+PONG\r\n"...)
	case (cmd == "PING" || cmd == "ECHO") && n == 2:
		return tableindex.Frame(out, s.arg(1))
	case cmd == "SELECT" && n == 2:
		if sub != "0" {
			return appendError(out, "ERR DB index is out of range")
		}
		return append(out, "+OK\r\n"...)
	case cmd == "CLIENT" && n > 1:
		return s.client(sub, n, out)
	case cmd == "READONLY" && n == 1:
		return append(out, "+OK\r\n"...)
	case cmd == "CONFIG" && sub == "GET" && n > 2:
		return s.config(n, out)
	case cmd == "COMMAND" && sub == "DOCS":
		return s.pairs(out, 0)
	case cmd == "COMMAND" && sub == "COUNT":
		return appendHead(out, ':', commands)
	case cmd == "COMMAND":
		return append(out, "*0\r\n"...)
	case cmd == "INFO":
		return bulk(out, s.info(d))
	}
	return s.unknown(out)
}

// commands is how many there are.
const commands = 20

// settings are what CONFIG GET tells: redis-benchmark asks for them.
var settings = [][2]string{{"save", ""}, {"appendonly", "no"}}

func (s *Session) config(n int, out []byte) []byte {
	var told []string
	for _, setting := range settings {
		for i := 2; i < n; i++ {
			if asked := strings.ToLower(string(s.arg(i))); asked == setting[0] || asked == "*" {
				told = append(told, setting[0], setting[1])
				break
			}
		}
	}
	return bulk(s.pairs(out, len(told)/2), told...)
}

// maxNameBytes is what a client may call itself.
const maxNameBytes = 256

// named takes a client's name for itself.
func (s *Session) named(name []byte) (refused string) {
	for _, c := range name {
		if c <= ' ' || c > '~' {
			return "ERR Client names cannot contain spaces, newlines or special characters."
		}
	}
	if len(name) > maxNameBytes {
		return fmt.Sprintf("ERR a client's name has at most %d bytes", maxNameBytes)
	}
	s.name = bytes.Clone(name)
	return ""
}

func (s *Session) info(d *Dataset) string {
	counted := ""
	if s.Counts != nil {
		c := s.Counts()
		counted = fmt.Sprintf("# Stats\r\ntotal_commands_processed:%d\r\ntotal_net_input_bytes:%d\r\n"+
			"total_net_output_bytes:%d\r\n\r\n# CPU\r\nused_cpu_sys:%.6f\r\nused_cpu_user:%.6f\r\n\r\n", c.Commands,
			c.Received, c.Sent, c.System.Seconds(), c.User.Seconds())
	}
	return fmt.Sprintf("# Server\r\nredis_version:%s\r\nredis_mode:standalone\r\nserver_name:thalweg\r\n\r\n"+
		"# Replication\r\nrole:master\r\n\r\n%s# Table\r\nsource:%s\r\ncolumns:%d\r\n\r\n"+
		"# Keyspace\r\ndb0:keys=%d,expires=0,avg_ttl=0\r\n", speaks, counted, oneLine(d.source), len(d.names), d.rows.Rows())
}

func (s *Session) client(sub string, n int, out []byte) []byte {
	switch {
	case sub == "SETNAME" && n == 3:
		if refused := s.named(s.arg(2)); refused != "" {
			return appendError(out, refused)
		}
		return append(out, "+OK\r\n"...)
	case sub == "SETINFO" && n == 4, sub == "NO-EVICT" && n == 3, sub == "NO-TOUCH" && n == 3:
		return append(out, "+OK\r\n"...)
	case sub == "GETNAME" && n == 2:
		if len(s.name) == 0 {
			return s.null(out)
		}
		return tableindex.Frame(out, s.name)
	case sub == "ID" && n == 2:
		return appendHead(out, ':', int(s.ID))
	}
	return appendError(out, "ERR unknown subcommand "+quoted(s.arg(1))+" of CLIENT, or a wrong number of arguments")
}

// writes are commands that a server of Redis has and that change something.
var writes = map[string]bool{
	"APPEND": true, "COPY": true, "DECR": true, "DECRBY": true, "DEL": true, "EXPIRE": true, "EXPIREAT": true,
	"FLUSHALL": true, "FLUSHDB": true, "GETDEL": true, "GETEX": true, "GETSET": true, "HDEL": true, "HINCRBY": true,
	"HMSET": true, "HSET": true, "HSETNX": true, "INCR": true, "INCRBY": true, "LPUSH": true, "LPOP": true,
	"MIGRATE": true, "MSET": true, "MSETNX": true, "PERSIST": true, "PEXPIRE": true, "PSETEX": true, "RENAME": true,
	"RENAMENX": true, "RESTORE": true, "RPOP": true, "RPUSH": true, "SADD": true, "SET": true, "SETEX": true,
	"SETNX": true, "SETRANGE": true, "SPOP": true, "SREM": true, "SWAPDB": true, "UNLINK": true, "XADD": true,
	"ZADD": true, "ZREM": true,
}

func (s *Session) unknown(out []byte) []byte {
	switch name := strings.ToUpper(string(s.arg(0))); {
	case writes[name]:
		return appendError(out, "READONLY You can't write against a read only table: publish another one instead")
	case name == "POST" || name == "HOST:": // a browser that a page of somebody else's sends here
		s.closing = true
		return appendError(out, "ERR this is not a server of HTTP")
	}
	return appendError(out, "ERR unknown command "+quoted(s.arg(0)))
}

func wrongNumber(out []byte, cmd string) []byte {
	return appendError(out, "ERR wrong number of arguments for '"+strings.ToLower(cmd)+"' command")
}

// quoted is what a client sent, in an error: short, and in one line.
func quoted(arg []byte) string {
	const most = 64
	return strconv.QuoteToASCII(string(arg[:min(len(arg), most)]))
}

func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, text)
}

func appendError(out []byte, text string) []byte {
	out = append(out, '-')
	out = append(out, oneLine(text)...)
	return append(out, '\r', '\n')
}

// Known reports whether the client has given a right password.
func (s *Session) Known() bool { return s.known }
