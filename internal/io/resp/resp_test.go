package resp_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/io/resp"
	"thalweg/internal/io/tableindex"
)

// rows are a table in memory. A value "NULL" is NULL.
type rows map[string][]string

func (r rows) Rows() int64 { return int64(len(r)) }

func (r rows) Place(key []byte) uint64 { return uint64(len(key)) }

func (r rows) Touch(places []uint64) byte { return byte(len(places)) }

func (r rows) Lookup(key, buffer []byte) (frames, used []byte, found bool, err error) {
	if string(key) == "broken" {
		return nil, buffer, false, errors.New("the disk is gone")
	}
	values, found := r[string(key)]
	for _, v := range values {
		if v == "NULL" {
			frames = append(frames, tableindex.Null...)
		} else {
			frames = tableindex.Frame(frames, []byte(v))
		}
	}
	return frames, buffer, found, nil
}

var (
	single = resp.NewDataset(rows{"a": {"1"}, "b": {""}, "n": {"NULL"}, "k\r\n": {"$-1\r\n"}}, []string{"v"}, "main/1/x")
	wide   = resp.NewDataset(rows{"a": {"1", "NULL", "x y"}, "b": {"2", "é", ""}}, []string{"id", "näme", "t"}, "main/1/x")
)

// command is a request as a client sends it.
func command(words ...string) string {
	text := fmt.Appendf(nil, "*%d\r\n", len(words))
	for _, w := range words {
		text = fmt.Appendf(text, "$%d\r\n%s\r\n", len(w), w)
	}
	return string(text)
}

func ask(s *resp.Session, d *resp.Dataset, in string) string {
	var out []byte
	for rest := []byte(in); ; {
		used, answers, more := s.Answer(d, rest, out)
		out, rest = answers, rest[used:]
		if !more {
			return string(out)
		}
	}
}

func TestAnswers(t *testing.T) {
	for _, tc := range []struct {
		d    *resp.Dataset
		ask  string
		want string // version 2
		in3  string // in version 3, where that differs
	}{
		{single, "GET a", "$1\r\n1\r\n", ""},
		{single, "get b", "$0\r\n\r\n", ""},
		{single, "GET n", "$-1\r\n", "_\r\n"},
		{single, "GET none", "$-1\r\n", "_\r\n"},
		{single, "GET k\r\n", "$5\r\n$-1\r\n\r\n", ""},
		{single, "GET", "-ERR wrong number of arguments for 'get' command\r\n", ""},
		{single, "GET a b", "-ERR wrong number of arguments for 'get' command\r\n", ""},
		{single, "GET broken", "-ERR the table cannot be read: the server's log says why\r\n", ""},
		{single, "MGET a none n b", "*4\r\n$1\r\n1\r\n$-1\r\n$-1\r\n$0\r\n\r\n",
			"*4\r\n$1\r\n1\r\n_\r\n_\r\n$0\r\n\r\n"},
		{single, "MGET a broken", "-ERR the table cannot be read: the server's log says why\r\n", ""},
		{single, "EXISTS a b a none", ":3\r\n", ""},
		{single, "TYPE a", "+string\r\n", ""},
		{single, "HGET a v", "$1\r\n1\r\n", ""},
		{single, "DBSIZE", ":4\r\n", ""},
		{wide, "GET a", "-WRONGTYPE a row of this table has 3 values: ask with HGET, HMGET or HGETALL\r\n", ""},
		{wide, "MGET a", "-WRONGTYPE a row of this table has 3 values: ask with HGET, HMGET or HGETALL\r\n", ""},
		{wide, "TYPE a", "+hash\r\n", ""},
		{wide, "TYPE none", "+none\r\n", ""},
		{wide, "HGET a t", "$3\r\nx y\r\n", ""},
		{wide, "HGET a näme", "$-1\r\n", "_\r\n"},
		{wide, "HGET a other", "$-1\r\n", "_\r\n"},
		{wide, "HGET none t", "$-1\r\n", "_\r\n"},
		{wide, "HMGET b t id t none", "*4\r\n$0\r\n\r\n$1\r\n2\r\n$0\r\n\r\n$-1\r\n",
			"*4\r\n$0\r\n\r\n$1\r\n2\r\n$0\r\n\r\n_\r\n"},
		{wide, "HMGET none t", "*1\r\n$-1\r\n", "*1\r\n_\r\n"},
		{wide, "HGETALL a", "*6\r\n$2\r\nid\r\n$1\r\n1\r\n$5\r\nnäme\r\n$-1\r\n$1\r\nt\r\n$3\r\nx y\r\n",
			"%3\r\n$2\r\nid\r\n$1\r\n1\r\n$5\r\nnäme\r\n_\r\n$1\r\nt\r\n$3\r\nx y\r\n"},
		{wide, "HGETALL none", "*0\r\n", "%0\r\n"},
		{wide, "PING", "+PONG\r\n", ""},
		{wide, "PING hey", "$3\r\nhey\r\n", ""},
		{wide, "SELECT 0", "+OK\r\n", ""},
		{wide, "SELECT 1", "-ERR DB index is out of range\r\n", ""},
		{wide, "CLIENT SETINFO lib-name x", "+OK\r\n", ""},
		{wide, "CLIENT ID", ":7\r\n", ""},
		{wide, "CLIENT KILL x", "-ERR unknown subcommand \"KILL\" of CLIENT, or a wrong number of arguments\r\n", ""},
		{wide, "CLIENT SETNAME a\nb", "-ERR Client names cannot contain spaces, newlines or special characters.\r\n", ""},
		{wide, "CLIENT SETNAME " + strings.Repeat("x", 257), "-ERR a client's name has at most 256 bytes\r\n", ""},
		{wide, "CONFIG GET save", "*2\r\n$4\r\nsave\r\n$0\r\n\r\n", "%1\r\n$4\r\nsave\r\n$0\r\n\r\n"},
		{wide, "CONFIG GET maxmemory", "*0\r\n", "%0\r\n"},
		{wide, "CONFIG GET APPENDONLY *", "*4\r\n$4\r\nsave\r\n$0\r\n\r\n$10\r\nappendonly\r\n$2\r\nno\r\n",
			"%2\r\n$4\r\nsave\r\n$0\r\n\r\n$10\r\nappendonly\r\n$2\r\nno\r\n"},
		{wide, "READONLY", "+OK\r\n", ""},
		{wide, "COMMAND DOCS", "*0\r\n", "%0\r\n"},
		{wide, "COMMAND", "*0\r\n", ""},
		{wide, "SET a 1", "-READONLY You can't write against a read only table: publish another one instead\r\n", ""},
		{wide, "AUTH x", "-ERR AUTH is called although this server asks for no password\r\n", ""},
		{wide, "FOO\r\n x", "-ERR unknown command \"FOO\\r\\n\"\r\n", ""},
		{wide, "HELLO 4", "-NOPROTO unsupported protocol version\r\n", ""},
		{wide, "HELLO 2 SETNAME", "-ERR Syntax error in HELLO option \"SETNAME\"\r\n", ""},
	} {
		t.Run(tc.ask, func(t *testing.T) {
			in := command(strings.Split(tc.ask, " ")...)
			require.Equal(t, tc.want, ask(&resp.Session{ID: 7}, tc.d, in))
			three := &resp.Session{ID: 7}
			require.Contains(t, ask(three, tc.d, command("HELLO", "3")), "$5\r\nproto\r\n:3\r\n")
			want := tc.in3
			if want == "" {
				want = tc.want
			}
			require.Equal(t, want, ask(three, tc.d, in))
			require.False(t, three.Closing())
		})
	}
}

func TestProtocolErrors(t *testing.T) {
	for in, says := range map[string]string{
		"*1\r\n:3\r\n":             "expected '$'",
		"*x\r\n":                   "invalid number of arguments",
		"*-1\r\n":                  "invalid number of arguments",
		"*65537\r\n":               "at most 65536",
		"*1\r\n$65537\r\n":         "at most 65536",
		"*1\r\n$-1\r\n":            "invalid length",
		"*1\r\n$4\r\nPINGxx":       "longer than it says",
		"*00000000000001\r\n":      "invalid number",
		"*\r\n":                    "invalid number",
		"*1\rx":                    "invalid number",
		strings.Repeat("x", 70000): "too big inline request",
	} {
		s := &resp.Session{}
		out := ask(s, single, command("PING")+in)
		require.True(t, strings.HasPrefix(out, "+PONG\r\n-ERR Protocol error: "), out)
		require.Contains(t, out, says)
		require.True(t, s.Closing())
		require.Empty(t, ask(s, single, command("PING")), "nothing more is answered")
	}
	s := &resp.Session{}
	require.Equal(t, "-ERR this is not a server of HTTP\r\n", ask(s, single, "POST / HTTP/1.1\r\nGET a\r\n"))
	require.Equal(t, "+PONG\r\n$1\r\n1\r\n", ask(&resp.Session{}, single, "\r\nPING\r\n*0\r\n  GET   a \n"))
}

func TestPasswords(t *testing.T) {
	check := func(user, password []byte) bool { return string(user) == "default" && string(password) == "right" }
	s := &resp.Session{Check: check}
	require.Contains(t, ask(s, single, command("GET", "a")), "-NOAUTH")
	require.Contains(t, ask(s, single, command("HELLO", "3")), "-NOAUTH")
	require.Contains(t, ask(s, single, command("HELLO", "3", "AUTH", "default", "wrong")), "-WRONGPASS")
	require.Contains(t, ask(s, single, command("GET", "a")), "-NOAUTH")
	require.Contains(t, ask(s, single, command("HELLO", "3", "AUTH", "default", "right")), "%7\r\n")
	require.Equal(t, "$1\r\n1\r\n", ask(s, single, command("GET", "a")))
	require.Contains(t, ask(s, single, command("AUTH", "wrong")), "-WRONGPASS")
	require.Contains(t, ask(s, single, command("GET", "a")), "-NOAUTH")
	require.Equal(t, "+OK\r\n", ask(s, single, command("AUTH", "right")))
	require.Equal(t, "+RESET\r\n", ask(s, single, command("RESET")))
	require.Contains(t, ask(s, single, command("GET", "a")), "-NOAUTH")
	guessing := &resp.Session{Check: check}
	for range 10 {
		require.False(t, guessing.Closing())
		ask(guessing, single, command("AUTH", "wrong"))
	}
	require.True(t, guessing.Closing())

	stranger := &resp.Session{Check: check}
	require.Contains(t, ask(stranger, single, "*11\r\n"), "-ERR Protocol error")
	stranger = &resp.Session{Check: check}
	require.Contains(t, ask(stranger, single, "*2\r\n$3\r\nGET\r\n$2000\r\n"), "-ERR Protocol error")
}

// What a session keeps between commands is little, whatever was asked before.
func TestHeld(t *testing.T) {
	s := &resp.Session{}
	many := make([]string, 60_000)
	many[0] = "MGET"
	ask(s, single, command(many...))
	require.LessOrEqual(t, s.Held(), 16<<10)
	require.EqualValues(t, 1, s.Commands)
	whole := command(many...)
	_, _, more := s.Answer(single, []byte(whole[:len(whole)-1]), nil)
	require.False(t, more)
	require.GreaterOrEqual(t, s.Held(), 16*60_000-16, "what has come of a command counts")
}

func TestFailuresOfATable(t *testing.T) {
	s := &resp.Session{}
	ask(s, single, command("GET", "broken")+command("GET", "broken"))
	require.ErrorContains(t, s.Failed(), "the disk is gone")
	require.NoError(t, s.Failed())
}
