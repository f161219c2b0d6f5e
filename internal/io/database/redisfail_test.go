package database_test

import (
	"crypto/x509"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/fault"
	"thalweg/internal/io/database"
	"thalweg/internal/test/effort"
	"thalweg/internal/test/redistest"
	"thalweg/internal/test/remotetest"
	"thalweg/internal/test/securetest"
)

// version is all that a reader finds: the rows 1 to 3.
func version(t *testing.T, s *redistest.Server) (rows [3]string) {
	t.Helper()
	for i := range rows {
		rows[i] = row(t, s, "HGET", fmt.Sprint(i+1), "name")
	}
	return rows
}

// Wherever the connection breaks, readers find all rows of one version; the next attempt brings the table to its end,
// and nothing stays behind. killed: the process is gone as well, and cleans nothing up.
func TestRedisBreaks(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	for _, killed := range []bool{false, true} {
		for _, down := range []bool{false, true} {
			t.Run(fmt.Sprintf("killed %v, answers %v", killed, down), func(t *testing.T) {
				t.Parallel()
				s := redistest.Start(t)
				step := effort.Of[int64](211, 53, 3)
				for at, broke := int64(1), true; broke; at += step {
					broke = breaks(t, s, at, down, killed)
				}
			})
		}
	}
}

// breaks publishes over a connection that breaks after so many bytes, and reports whether it
// left something to do.
func breaks(t *testing.T, s *redistest.Server, at int64, down, killed bool) bool {
	t.Helper()
	s.Do(t, "FLUSHALL")
	rows := func(name string) string {
		return fmt.Sprintf("1,%[1]q,\n2,%[1]q,\n3,%[1]q,\n", name)
	}
	publication{run: 1, rows: rows("old")}.write(t, redisTarget(s.URL, redisColumns...))
	before, began := s.Do(t, "GET", "go[o]*ds:current"), time.Now()
	proxy := remotetest.NewProxy(t, "127.0.0.1:"+s.Port)
	plan := remotetest.Break{Up: at}
	if down {
		plan = remotetest.Break{Down: at}
	}
	proxy.Plan(plan)
	if killed {
		proxy.Plan(remotetest.Break{Up: 1})
	}
	through := redisTarget("redis://"+proxy.Addr+"/0", redisColumns...)
	staged, err := publication{run: 2, rows: rows("new")}.stage(t.Context(), t, through)
	if err == nil {
		require.Equal(t, [3]string{"old", "old", "old"}, version(t, s))
		err = staged.Publish(t.Context())
	}
	broke := err != nil
	if broke {
		require.True(t, fault.Of(err).Retryable, "after %d bytes: %v", at, err)
		require.Equal(t, fault.Environment, fault.Of(err).Kind)
		if staged != nil {
			require.NoError(t, staged.Discard(t.Context()))
		}
	}
	found := version(t, s)
	require.Contains(t, [][3]string{{"old", "old", "old"}, {"new", "new", "new"}}, found, "after %d bytes", at)
	tidy := s.Do(t, "HLEN", "go[o]*ds:versions") == "1"
	if !broke {
		require.Equal(t, "new", found[0])
	}
	if found[0] == "new" { // whoever comes next
		_, err := publication{run: 3, rows: rows("next")}.stage(t.Context(), t, redisTarget(s.URL, redisColumns...))
		require.NoError(t, err)
		requireReadable(t, s, before, 3, began)
		s.Do(t, "DEL", "go[o]*ds:writer") // it dies
	}
	publication{run: 2, attempt: 2, rows: rows("new")}.write(t, redisTarget(s.URL, redisColumns...))
	require.Equal(t, [3]string{"new", "new", "new"}, version(t, s))
	requireAlone(t, s, 3)
	return broke || !tidy
}

// Several runs publish a table at once: the one that began last wins, whole.
func TestRedisAtOnce(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	var all sync.WaitGroup
	for run := range 4 {
		all.Go(func() {
			name := fmt.Sprint("run", run)
			staged, err := publication{run: run, rows: fmt.Sprintf("1,%[1]q,\n2,%[1]q,\n3,%[1]q,\n", name)}.stage(t.Context(),
				t, redisTarget(s.URL, redisColumns...))
			if err == nil {
				err = staged.Publish(t.Context())
			}
			if err != nil && !strings.Contains(err.Error(), "was published by a run that began later") {
				t.Error(err)
			}
		})
	}
	all.Wait()
	require.Equal(t, [3]string{"run3", "run3", "run3"}, version(t, s))
	requireAlone(t, s, 3)
}

// Whoever has read the pointer has time to read its rows, after which they are gone.
func TestRedisGrace(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	to := redisTarget(s.URL, redisColumns...)
	publication{run: 1, rows: "1,\"old\",\n"}.write(t, to)
	before := s.Do(t, "GET", "go[o]*ds:current")
	require.Equal(t, "-1", s.Do(t, "PTTL", before+"1"))
	publication{run: 2, rows: "1,\"new\",\n"}.write(t, to)
	require.Equal(t, "old", s.Do(t, "HGET", before+"1", "name"))
	require.NotEqual(t, "-1", s.Do(t, "PTTL", before+"1"))
	require.Eventually(t, func() bool { return s.Do(t, "EXISTS", before+"1") == "0" }, effort.Patience,
		100*time.Millisecond)
	require.Equal(t, "new", row(t, s, "HGET", "1", "name"))
}

// requireReadable says that a reader with a pointer that was replaced a moment ago finds all rows, and has time to.
func requireReadable(t *testing.T, s *redistest.Server, pointer string, rows int, began time.Time) {
	t.Helper()
	left := s.Do(t, "PTTL", "go[o]*ds:replaced")
	if left == "-2" {
		require.Greater(t, time.Since(began), 10*time.Second, "on a machine that slow the time is over")
		return
	}
	const least = "local n = 0 for _, k in ipairs(redis.call('KEYS', '*')) do if k:sub(1, #KEYS[1]) == KEYS[1] and " +
		"(redis.call('PTTL', k) == -1 or redis.call('PTTL', k) >= redis.call('PTTL', 'go[o]*ds:replaced')) then " +
		"n = n + 1 end end return n"
	require.Equal(t, fmt.Sprint(rows), s.Do(t, "EVAL", least, "1", pointer), "of %s, %s ms left", pointer, left)
}

// A version that was replaced stays for its readers, whoever writes next, and wherever the one before has died. Once
// their time is over, its rows go before others come.
func TestRedisGraceOfNextWriter(t *testing.T) {
	t.Parallel()
	const versions, rows = "go[o]*ds:versions", "1,\"old\",\n2,\"old\",\n3,\"old\",\n"
	for name, died := range map[string][]string{"before it said when rows lapse": {"1", "2", "3"}, "in the middle": {"2"},
		"at the end": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			to := redisTarget(s.URL, redisColumns...)
			publication{run: 1, rows: rows}.write(t, to)
			before := s.Do(t, "GET", "go[o]*ds:current")
			version := strings.TrimSuffix(strings.TrimPrefix(before, "go[o]*ds:"), ":")
			record := s.Do(t, "HGET", versions, version)
			dies := func() {
				s.Do(t, "HSET", versions, version, record)
				for _, key := range died {
					s.Do(t, "PERSIST", before+key)
				}
			}
			began := time.Now()
			publication{run: 2, rows: rows}.write(t, to)
			dies()
			publication{run: 2, attempt: 2, rows: rows}.write(t, to) // it finds its rows
			requireReadable(t, s, before, 3, began)
			requireAlone(t, s, 3)
			dies()
			third, err := publication{run: 3, rows: rows}.stage(t.Context(), t, to)
			require.NoError(t, err)
			requireReadable(t, s, before, 3, began)
			require.Empty(t, s.Do(t, "HGET", versions, version))
			dies()
			require.NoError(t, third.Discard(t.Context()))
			s.Do(t, "DEL", "go[o]*ds:replaced") // as the server does in 10 s
			_, err = publication{run: 4, rows: rows}.stage(t.Context(), t, to)
			require.NoError(t, err)
			require.Empty(t, s.Do(t, "KEYS", "*:"+version+":*"))
		})
	}
}

// An attempt that was published, and does not know it, is replaced while it cleans up: its rows have readers.
func TestRedisGraceOfUnknown(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	to := redisTarget(s.URL, redisColumns...)
	staged, err := publication{run: 1, rows: "1,,\n2,,\n"}.stage(t.Context(), t, to)
	require.NoError(t, err)
	version := s.Do(t, "GET", "go[o]*ds:writer")
	record := s.Do(t, "HGET", "go[o]*ds:versions", version)
	before := "go[o]*ds:" + version + ":"
	s.Do(t, "SET", "go[o]*ds:current", before) // its commit, whose answer was lost
	s.Do(t, "DEL", "go[o]*ds:writer")
	began := time.Now()
	publication{run: 2, rows: "1,,\n"}.write(t, to)
	s.Do(t, "HSET", "go[o]*ds:versions", version, record) // the other one is not done with it
	require.NoError(t, staged.Discard(t.Context()))
	requireReadable(t, s, before, 2, began)
	requireAlone(t, s, 1)
}

// Rows are published one by one if they are large, up to a limit.
func TestRedisLargeRows(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	s := redistest.Start(t)
	to := redisTarget(s.URL, redisColumns...)
	large := strings.Repeat("x", 20<<20)
	publication{run: 1, rows: fmt.Sprintf("1,%[1]q,\n2,%[1]q,\n3,,\n", large)}.write(t, to)
	require.Equal(t, fmt.Sprint(len(large)), s.Do(t, "HSTRLEN", s.Do(t, "GET", "go[o]*ds:current")+"2", "name"))
	_, err := publication{run: 2, rows: fmt.Sprintf("1,,\n2,%q,\n", strings.Repeat(large, 4))}.stage(t.Context(), t, to)
	require.ErrorContains(t, err, "row 2 of what is written: it has more than 64 MiB")
	require.Equal(t, fault.UserData, fault.Of(err).Kind)
	requireAlone(t, s, 3)
}

// What a server refuses is said in words that help.
func TestRedisFaults(t *testing.T) {
	t.Parallel()
	primary := redistest.Start(t)
	authority := securetest.NewAuthority(t)
	signed := authority.Sign("127.0.0.1")
	var many strings.Builder
	for i := range 40_000 {
		fmt.Fprintf(&many, "%d,%q,\n", i, strings.Repeat("x", 100))
	}
	for name, c := range map[string]struct {
		options   []string
		set       string // commands, by line
		url       string // with PORT
		rows      string
		want      string
		hint      string
		kind      fault.Kind
		retryable bool
	}{
		"nobody": {url: "redis://127.0.0.1:1/0", want: "cannot connect", retryable: true, kind: fault.Environment},
		"no password": {options: []string{"--requirepass", "x"}, want: "NOAUTH", hint: "REDISCLI_AUTH",
			kind: fault.Environment},
		"password": {options: []string{"--requirepass", "x"}, url: "redis://:secret-word@127.0.0.1:PORT/0",
			want: "WRONGPASS", kind: fault.Environment},
		"rights": {set: "ACL SETUSER reader on >secret-word ~* +@read", url: "redis://reader:secret-word@127.0.0.1:PORT/0",
			want: "NOPERM", hint: "ACL SETUSER", kind: fault.Environment},
		"number": {url: "redis://127.0.0.1:PORT/99", want: "DB index is out of range", hint: "number of the database",
			kind: fault.Script},
		"memory": {options: []string{"--maxmemory", "4mb"}, rows: many.String(), want: "OOM", hint: "maxmemory",
			retryable: true, kind: fault.Environment},
		"evicts": {options: []string{"--maxmemory", "4mb", "--maxmemory-policy", "allkeys-lru"}, want: "removes any key",
			hint: "noeviction", kind: fault.Script},
		"replica": {options: []string{"--replicaof", "127.0.0.1 " + primary.Port}, want: "READONLY", hint: "primary",
			retryable: true, kind: fault.Environment},
		"cluster": {options: []string{"--cluster-enabled", "yes"},
			set: "CLUSTER ADDSLOTSRANGE 0 16383\nCONFIG SET cluster-require-full-coverage no", want: "CROSSSLOT",
			hint: "part of a cluster", kind: fault.Script},
		"name": {options: tlsOptions(t, authority, signed), url: "rediss://localhost:PORT/0", want: "certificate",
			hint: "another name", kind: fault.Environment},
		"plain": {options: tlsOptions(t, authority, signed), want: "lost", hint: "rediss://", retryable: true,
			kind: fault.Environment},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t, c.options...)
			for command := range strings.Lines(c.set) {
				require.Equal(t, "OK", s.Do(t, strings.Fields(command)...))
			}
			url := s.URL
			if c.url != "" {
				url = strings.ReplaceAll(c.url, "PORT", s.Port)
			}
			client := database.Client{Roots: func() (*x509.CertPool, error) { return authority.Pool(), nil }}
			_, err := publication{run: 1, rows: c.rows}.stageBy(t.Context(), t, client, redisTarget(url, redisColumns...))
			require.ErrorContains(t, err, c.want)
			f := fault.Of(err)
			require.Contains(t, f.Hint, c.hint)
			require.Equal(t, c.kind, f.Kind)
			require.Equal(t, c.retryable, f.Retryable)
			require.NotContains(t, fmt.Sprint(err, f.Hint, f.Place), "secret-word")
		})
	}
	t.Run("with TLS", func(t *testing.T) {
		t.Parallel()
		s := redistest.Start(t, tlsOptions(t, authority, signed)...)
		client := database.Client{Roots: func() (*x509.CertPool, error) { return authority.Pool(), nil }}
		staged, err := publication{run: 1, rows: "1,\"a\",\n"}.stageBy(t.Context(), t, client,
			redisTarget("rediss://127.0.0.1:"+s.Port+"/0", redisColumns...))
		require.NoError(t, err)
		require.NoError(t, staged.Publish(t.Context()))
		require.Equal(t, "a", row(t, s, "HGET", "1", "name"))
	})
}

// tlsOptions are those of a server that speaks nothing but TLS.
func tlsOptions(t *testing.T, authority *securetest.Authority, signed securetest.Files) []string {
	return []string{"--tls-port", redistest.FreePort(t), "--tls-cert-file", signed.Cert, "--tls-key-file", signed.Key,
		"--tls-ca-cert-file", authority.File, "--tls-auth-clients", "no"}
}

// A server that is none, or is broken, is not believed what it says of its answers' sizes.
func TestRedisAnswers(t *testing.T) {
	t.Parallel()
	for _, answer := range []string{"$1000000000000\r\n", "$9000000000000000000\r\n", "*1000000000000\r\n", "*-2\r\n",
		strings.Repeat("*1\r\n", 1000), "HTTP/1.1 400 Bad Request\r\n\r\n", "\r\n", strings.Repeat("x", 1<<20), "$x\r\n"} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		var server sync.WaitGroup
		server.Go(func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				_, _ = c.Read(make([]byte, 1<<10))
				_, _ = c.Write([]byte(answer))
				_ = c.Close()
			}
		})
		_, err = database.Client{}.TableThere(t.Context(), "redis://"+l.Addr().String()+"/0", "x")
		require.Equal(t, fault.Environment, fault.Of(err).Kind, "%.20q", answer)
		require.ErrorContains(t, err, "connection to Redis was lost")
		_, err = database.Client{}.TableThere(t.Context(), "rediss://"+l.Addr().String()+"/0", "x")
		require.ErrorContains(t, err, "cannot connect")
		require.Contains(t, fault.Of(err).Hint, "no TLS")
		require.NoError(t, l.Close())
		server.Wait()
	}
}
