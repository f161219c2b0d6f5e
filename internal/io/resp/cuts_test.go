package resp_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"thalweg/internal/io/resp"
	"thalweg/internal/test/effort"
)

// cutter sends streams of bytes to sessions, in parts. Its buffers serve one stream after the other.
type cutter struct{ now, before, answers, out []byte }

// ask returns the answers to a stream that comes in parts. Each part is in another buffer than the one before, as
// connections have it, and that one is overwritten: what a session keeps of it would be seen.
func (c *cutter) ask(s *resp.Session, d *resp.Dataset, in []byte, cuts ...int) []byte {
	c.answers = c.answers[:0]
	var left []byte
	from := 0
	for i := 0; i <= len(cuts); i++ {
		to := len(in)
		if i < len(cuts) {
			to = cuts[i]
		}
		c.before = append(append(c.before[:0], left...), in[from:to]...)
		for j := range c.now {
			c.now[j] = '*'
		}
		c.now, c.before = c.before, c.now
		left, from = c.now, to
		for more := true; more; {
			var used int
			used, c.out, more = s.Answer(d, left, c.out[:0])
			c.answers, left = append(c.answers, c.out...), left[used:]
		}
	}
	return c.answers
}

// state is what a session is behind a stream.
func state(s *resp.Session) string {
	return fmt.Sprintf("closing %t, known %t, commands %d, failed: %v", s.Closing(), s.Known(), s.Commands, s.Failed())
}

// setting is what a session is about.
type setting struct {
	d      *resp.Dataset
	secret bool
}

func (o setting) session() *resp.Session {
	s := &resp.Session{ID: 7}
	if o.secret {
		s.Check = func(user, password []byte) bool { return string(user) == "default" && string(password) == "right" }
	}
	return s
}

// same requires that the answers to a stream are the same wherever it is cut: once at each byte, and at all of them.
// It returns how many streams it has sent.
func (c *cutter) same(in []byte, o setting) (sent int64, err error) {
	s := o.session()
	want, after := bytes.Clone(c.ask(s, o.d, in)), state(s)
	check := func(cuts ...int) error {
		sent++
		s := o.session()
		if got := c.ask(s, o.d, in, cuts...); !bytes.Equal(want, got) {
			return fmt.Errorf("%q, cut at %d: %q, and whole %q", in, cuts, got, want)
		}
		if got := state(s); got != after {
			return fmt.Errorf("%q, cut at %d: %s; and whole: %s", in, cuts, got, after)
		}
		return nil
	}
	each := make([]int, len(in))
	for at := range each {
		each[at] = at
		if err := check(at); err != nil {
			return sent, err
		}
	}
	return sent, check(each...)
}

// Of what streams are made.
var (
	verbs = []string{"GET", "get", "MGET", "EXISTS", "TYPE", "HGET", "hmget", "HMGET", "HGETALL", "DBSIZE", "PING", "ECHO",
		"SELECT", "CLIENT", "HELLO", "AUTH", "RESET", "QUIT", "CONFIG", "COMMAND", "INFO", "READONLY", "SET", "POST", "x",
		""}
	words = []string{"a", "b", "n", "none", "broken", "k\r\n", "v", "t", "id", "näme", "0", "2", "3", "AUTH", "default",
		"right", "wrong", "SETNAME", "GETNAME", "ID", "GET", "save", "*", "DOCS", "", "é\r\n", "$5\r\n", "*1\r\n"}
	// Commands that hardly come of words by chance.
	whole = []string{"HELLO 3", "HELLO 2", "HELLO 3 AUTH default right", "HELLO 3 SETNAME a",
		"HELLO 3 AUTH default right SETNAME b", "AUTH right", "AUTH default right", "CLIENT SETNAME none",
		"CLIENT SETINFO lib-name x", "CLIENT GETNAME", "CLIENT GETNAME",
		"HMGET a t id", "HGET b näme", "HGETALL a", "MGET a n none", "GET n", "CONFIG GET save *", "CONFIG GET APPENDONLY"}
	odd = []string{"*0\r\n", "*-1\r\n", "*\r\n", "*x\r\n", "*1\r\n", "*2\r\n$3\r\n", "$3\r\n", "$-1\r\n", "*1\r\n$-1\r\n",
		"*1\r\n$0\r\n\r\n", "*65536\r\n", "*65537\r\n", "*11\r\n", "*1\r\n$65536\r\n", "*1\r\n$65537\r\n",
		"*1\r\n$1025\r\n", "*00000000001\r\n", "*000000000001\r\n", "*1\r\n$04\r\nPING\r\n", "*1\r\n$4\r\nPINGxx", "\r\n",
		"\n", "\r", "\x00", "*1\rx", "+OK\r\n", " \t\r\n", "GET  a\n", "Host: x\r\n"}
)

func one(r *rand.Rand, of []string) string { return of[r.IntN(len(of))] }

// stream makes a pipeline of commands, most of them right, and changes a byte of some.
func stream(r *rand.Rand) []byte {
	var in []byte
	for range 1 + r.IntN(5) {
		said := []string{one(r, verbs)}
		for range r.IntN(4) {
			said = append(said, one(r, words))
		}
		if r.IntN(3) == 0 {
			said = strings.Split(one(r, whole), " ")
		}
		switch kind := r.IntN(200); {
		case kind < 20:
			in = append(in, strings.Join(said, one(r, []string{" ", "  ", "\t", "\r"}))...)
			in = append(in, one(r, []string{"\r\n", "\n"})...)
			continue
		case kind < 40:
			in = append(in, one(r, odd)...)
			continue
		case kind == 40: // more keys than are looked ahead at once
			for range r.IntN(100) {
				said = append(said, one(r, words))
			}
		}
		in = append(in, command(said...)...)
	}
	if len(in) == 0 || r.IntN(4) > 0 {
		return in
	}
	at := r.IntN(len(in))
	switch r.IntN(4) {
	case 0:
		in[at] = "\r\n*$0123456789 -x\x00\xff"[r.IntN(19)]
	case 1:
		in = append(in[:at], in[at+1:]...)
	case 2:
		in = append(in[:at:at], append([]byte(one(r, odd)), in[at:]...)...)
	default:
		in = in[:at]
	}
	return in
}

// TestChaosCuts: however a stream of bytes is cut, its answers are the same.
func TestChaosCuts(t *testing.T) {
	most, seed := effort.Of[int64](10_000, 100_000, 100_000_000), uint64(1)
	if effort.All() {
		seed = rand.Uint64()
	}
	var sent, streams atomic.Int64
	group, ctx := errgroup.WithContext(t.Context())
	for worker := range runtime.GOMAXPROCS(0) {
		group.Go(func() error { return cutMany(ctx, rand.New(rand.NewPCG(seed, uint64(worker))), most, &sent, &streams) })
	}
	require.NoError(t, group.Wait(), "seed %d", seed)
	require.GreaterOrEqual(t, sent.Load(), most)
	t.Logf("%d streams, cut in %d ways, of the seed %d", streams.Load(), sent.Load(), seed)
}

// cutMany cuts streams until so many cuts were sent by all.
func cutMany(ctx context.Context, r *rand.Rand, most int64, sent, streams *atomic.Int64) error {
	var c cutter
	for sent.Load() < most && ctx.Err() == nil {
		o := setting{d: []*resp.Dataset{single, wide}[r.IntN(2)], secret: r.IntN(4) == 0}
		n, err := c.same(stream(r), o)
		if err != nil {
			return err
		}
		sent.Add(n)
		streams.Add(1)
	}
	return ctx.Err()
}

// What is too much for streams of TestChaosCuts: answers that are sent before more are made, and many keys.
func TestCutsOfMuch(t *testing.T) {
	large := resp.NewDataset(rows{"a": {strings.Repeat("v", 60_000)}, "b": {""}}, []string{"v"}, "main/1/x")
	keys := append([]string{"MGET"}, strings.Split(strings.Repeat("a b none ", 50), " ")...)
	var c cutter
	for _, tc := range []struct {
		d  *resp.Dataset
		in string
	}{
		{large, strings.Repeat(command("GET", "a"), 18) + "PING\r\n"},
		{single, command(keys...) + command("GET", "a") + command(keys...)},
		{wide, strings.Repeat(command("HGETALL", "a"), 70)},
	} {
		_, err := c.same([]byte(tc.in), setting{d: tc.d})
		require.NoError(t, err)
	}
}

// FuzzAnswer cuts each input at every byte.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte(command("HELLO", "3")+command("HGETALL", "a")+"PING\r\n"), false)
	f.Add([]byte("*2\r\n$3\r\nGET\r\n$1\r\na\r\n*1\r\n$-1\r\n"), true)
	f.Fuzz(func(t *testing.T, in []byte, secret bool) {
		var c cutter
		_, err := c.same(in, setting{d: wide, secret: secret})
		require.NoError(t, err)
	})
}
