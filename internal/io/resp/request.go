package resp

import (
	"bytes"
	"fmt"
)

// The limits of what a client may send and ask for.
const (
	MaxArguments      = 64 << 10
	MaxArgumentBytes  = 64 << 10
	MaxRequestBytes   = 8 << 20
	MaxInlineBytes    = 64 << 10
	MaxAnswerBytes    = 64 << 20 // of one command
	maxStrangerParts  = 10       // arguments before a password was given
	maxStrangerBytes  = 1 << 10
	maxWrongPasswords = 10
	// pauseBytes of answers are handed over before more commands are carried out.
	// A little less than 1 MiB: buffers have powers of two.
	pauseBytes = 1<<20 - 64<<10
)

// span is an argument within a request.
type span struct{ from, to int }

// request is a command as far as it has come.
type request struct {
	want int    // arguments that it announced; 0: it has not
	at   int    // where to go on reading
	args []span // what has come whole
}

const (
	spanBytes = 16
	keptArgs  = 256 // space for so many is kept for the next command
)

func (r *request) reset() {
	r.want, r.at, r.args = 0, 0, r.args[:0]
	if cap(r.args) > keptArgs {
		r.args = nil
	}
}

// protocolError ends a connection: where the next command begins is not known.
type protocolError string

func (e protocolError) Error() string { return string(e) }

// read goes on reading a command. done is false if more has to come: the next call gets
// the same bytes and those behind them.
func (r *request) read(in []byte, known bool) (done bool, err error) {
	parts, size, total := MaxArguments, MaxArgumentBytes, MaxRequestBytes
	if !known {
		parts, size, total = maxStrangerParts, maxStrangerBytes, maxStrangerParts*maxStrangerBytes
	}
	if r.want == 0 {
		if in[0] != '*' {
			return r.inline(in, min(size, MaxInlineBytes))
		}
		n, next, err := number(in, 1, parts, "number of arguments")
		if err != nil || next == 0 {
			return false, err
		}
		if r.want, r.at = n, next; n == 0 {
			return true, nil
		}
	}
	for len(r.args) < r.want {
		if r.at == len(in) {
			return false, nil
		}
		if in[r.at] != '$' {
			return false, protocolError(fmt.Sprintf("expected '$', got %q", in[r.at]))
		}
		n, next, err := number(in, r.at+1, size, "length of an argument")
		if err != nil || next == 0 {
			return false, err
		}
		if next+n > total {
			return false, protocolError(fmt.Sprintf("a command has at most %d bytes", total))
		}
		if next+n+2 > len(in) {
			return false, nil
		}
		if in[next+n] != '\r' || in[next+n+1] != '\n' {
			return false, protocolError("an argument is longer than it says")
		}
		r.args = append(r.args, span{next, next + n})
		r.at = next + n + 2
	}
	return true, nil
}

// number reads a number and the end of its line. next is 0 if more has to come.
func number(in []byte, at, most int, what string) (n, next int, err error) {
	for i := at; i < len(in); i++ {
		switch c := in[i]; {
		case c >= '0' && c <= '9':
			if n = n*10 + int(c-'0'); n > most {
				return 0, 0, protocolError(fmt.Sprintf("invalid %s: at most %d", what, most))
			}
		case c == '\r' && i > at:
			if i+1 == len(in) {
				return 0, 0, nil
			}
			if in[i+1] != '\n' {
				return 0, 0, protocolError("invalid " + what)
			}
			return n, i + 2, nil
		default:
			return 0, 0, protocolError("invalid " + what)
		}
		const digits = 10
		if i-at > digits {
			return 0, 0, protocolError("invalid " + what)
		}
	}
	return 0, 0, nil
}

// inline reads a command as people type it: words in a line.
func (r *request) inline(in []byte, most int) (done bool, err error) {
	end := bytes.IndexByte(in[r.at:], '\n')
	if end < 0 {
		if r.at = len(in); r.at > most {
			return false, protocolError("too big inline request")
		}
		return false, nil
	}
	end += r.at
	if end > most {
		return false, protocolError("too big inline request")
	}
	for i := 0; i < end; {
		if blank(in[i]) {
			i++
			continue
		}
		from := i
		for i < end && !blank(in[i]) {
			i++
		}
		r.args = append(r.args, span{from, i})
		if len(r.args) > maxStrangerParts {
			return false, protocolError("too many words in a line")
		}
	}
	r.at = end + 1
	return true, nil
}

func blank(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == 0 }
