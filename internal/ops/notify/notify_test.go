package notify_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"thalweg/internal/base/keeper"
	"thalweg/internal/base/message"
	"thalweg/internal/base/secret"
	"thalweg/internal/io/remote"
	"thalweg/internal/lang/script"
	"thalweg/internal/ops/notify"
	"thalweg/internal/run/gate"
	"thalweg/internal/store/state"
	"thalweg/internal/store/state/sqlite"
	"thalweg/internal/test/effort"
)

func TestMain(m *testing.M) {
	if keeper.Called(os.Args) {
		syscall.Exit(keeper.Main(os.Args, nil)) // os.Exit would sleep a second for the race detector
	}
	goleak.VerifyTestMain(m)
}

// clock stands still, and jumps when somebody waits.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func (c *clock) After(d time.Duration) <-chan time.Time {
	c.add(d)
	ready := make(chan time.Time, 1)
	ready <- c.Now()
	return ready
}

// box keeps records in memory, and breaks when it is told to.
type box struct {
	mu      sync.Mutex
	records map[state.RunKey][]byte
	most    int
	broken  bool
	at      func(what string) // called before each change
}

var errBroken = errors.New("the disk is gone")

func (b *box) change(what string, f func()) error {
	if b.at != nil {
		b.at(what)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.broken {
		return errBroken
	}
	f()
	return nil
}

func (b *box) Put(ctx context.Context, key state.RunKey, record []byte) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return b.change("put", func() { b.records[key], b.most = record, max(b.most, len(record)) })
}

func (b *box) Remove(_ context.Context, key state.RunKey) error {
	return b.change("remove", func() { delete(b.records, key) })
}

func (b *box) List(context.Context) ([]notify.Entry, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.broken {
		return nil, errBroken
	}
	var out []notify.Entry
	for key, record := range b.records {
		out = append(out, notify.Entry{Run: key, Record: record})
	}
	return out, nil
}

// receiver is a server that keeps what it is told, and answers as it is told to.
type receiver struct {
	*httptest.Server
	mu      sync.Mutex
	got     []received
	answers []int // the next ones; then 200
	header  http.Header
}

type received struct {
	header http.Header
	body   []byte
	message.Message
}

func receive(t *testing.T, answers ...int) *receiver {
	r := &receiver{answers: answers, header: http.Header{}}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		r.mu.Lock()
		defer r.mu.Unlock()
		one := received{header: req.Header, body: body}
		_ = json.Unmarshal(body, &one.Message) // not all are JSON
		r.got = append(r.got, one)
		for name, values := range r.header {
			w.Header()[name] = values
		}
		if len(r.answers) > 0 {
			w.WriteHeader(r.answers[0])
			r.answers = r.answers[1:]
		}
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) all() []received {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.got)
}

func (r *receiver) kinds() (out []message.Kind) {
	for _, g := range r.all() {
		out = append(out, g.Event)
	}
	return out
}

// lockedLog is written by several goroutines.
type lockedLog struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lockedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (l *lockedLog) Len() int { return len(l.String()) }

// bundle is a state, and what is told of it.
type bundle struct {
	store  *sqlite.Store
	box    *box
	clock  *clock
	hooks  []script.Hook
	log    lockedLog
	known  *secret.Known
	post   *remote.Client
	poster notify.Poster // instead of post
	env    map[string]string
	// hooksOf are those of a run; nil: hooks.
	hooksOf func(state.Run) []script.Hook
}

func newBundle(t *testing.T, hooks ...script.Hook) *bundle {
	store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "state.db"))
	require.NoError(t, err)
	b := &bundle{store: store, box: &box{records: map[state.RunKey][]byte{}},
		clock: &clock{now: time.Date(2026, 3, 2, 6, 0, 0, 0, time.UTC)}, hooks: hooks,
		known: secret.New(), post: remote.New(remote.Config{}), env: map[string]string{}}
	t.Cleanup(func() {
		require.NoError(t, b.post.Close())
		require.NoError(t, store.Close())
	})
	return b
}

// teller is one of a process of its own.
func (b *bundle) teller(t *testing.T, owner string) *notify.Notifier {
	self, err := os.Executable()
	require.NoError(t, err)
	logger := slog.New(slog.NewTextHandler(&b.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	poster := b.poster
	if poster == nil {
		poster = b.post
	}
	return notify.New(notify.Config{Store: b.store, Box: b.box, Owner: owner, Clock: b.clock, Logger: logger,
		Sender: &notify.Sender{Post: poster, Keeper: self, Known: b.known, Clock: b.clock, Logger: logger,
			Environment: func(name string) (string, bool) { v, ok := b.env[name]; return v, ok }},
		Hooks: func(_ context.Context, run state.Run) ([]script.Hook, string, error) {
			if b.hooksOf != nil {
				return b.hooksOf(run), t.TempDir(), nil
			}
			return b.hooks, t.TempDir(), nil
		},
		Name: func(state.Run) string { return "orders" }})
}

func (b *bundle) run(t *testing.T, run state.Run, nodes ...state.NodeSpec) state.RunKey {
	run.Workspace, run.Created = "main", b.clock.Now()
	if run.Token == "" {
		run.Token = t.Name()
	}
	if len(nodes) == 0 {
		nodes = []state.NodeSpec{{Name: "read", Kind: "file_table"}}
	}
	key, err := b.store.CreateRun(t.Context(), run, nodes)
	require.NoError(t, err)
	return key
}

func (b *bundle) order(t *testing.T, key state.RunKey, kind state.CommandKind, cause *state.Failure) {
	b.clock.add(time.Second)
	run, err := b.store.Run(t.Context(), key)
	require.NoError(t, err)
	require.NoError(t, state.Direct(t.Context(), b.store, key,
		state.Command{Kind: kind, Token: string(kind) + string(rune('a'+run.Epoch)), Cause: cause,
			Mark: state.Mark{Actor: "operator@host", Time: b.clock.Now()}}))
}

func fail(b *bundle, t *testing.T, key state.RunKey) {
	b.order(t, key, state.CommandFail, &state.Failure{Kind: "user_data", Message: "no number", Hint: "correct the file",
		Batch: -1})
}

func web(r *receiver, on ...message.Kind) script.Hook {
	if len(on) == 0 {
		on = message.Kinds()
	}
	return script.Hook{On: on, URL: r.URL + "/hook"}
}

func TestWhatHappensIsToldOnceEach(t *testing.T) {
	t.Parallel()
	r, only := receive(t), receive(t)
	b := newBundle(t)
	b.hooks = []script.Hook{web(r), web(only, message.Done)}
	key := b.run(t, state.Run{ScriptPath: "orders.yaml", Description: "nightly"},
		state.NodeSpec{Name: "read", Kind: "file_table"}, state.NodeSpec{Name: "approval:review", Kind: gate.Kind})
	teller := b.teller(t, "a")
	require.NoError(t, teller.Follow(t.Context(), key))
	require.False(t, teller.Pass(t.Context()))
	require.Empty(t, r.all())

	asks, err := gate.Record{Version: 1, Gate: "review", Message: "look at the totals", By: []string{"finance"},
		Shows: []gate.Shown{{Table: "totals", Run: 1}}, Digest: "d"}.Encode()
	require.NoError(t, err)
	require.NoError(t, b.store.MoveNode(t.Context(), state.NodeKey{RunKey: key, Node: "approval:review"},
		state.Move{From: state.Pending, To: state.Waiting, Gate: asks, GateDigest: "d", Now: b.clock.Now()}))
	teller.Pass(t.Context())
	fail(b, t, key)
	teller.Pass(t.Context())
	require.Equal(t, []message.Kind{message.Waiting, message.Failed}, r.kinds())
	require.Empty(t, b.box.records, "a run that is over and told of leaves nothing behind")

	b.order(t, key, state.CommandReopen, nil)
	require.NoError(t, teller.Follow(t.Context(), key))
	teller.Pass(t.Context())
	b.order(t, key, state.CommandStop, nil)
	teller.Flush(t.Context())
	require.Equal(t, []message.Kind{message.Waiting, message.Failed, message.Stopped}, r.kinds())
	require.Empty(t, only.all())

	paused := b.run(t, state.Run{Token: "paused", Description: "nightly"})
	require.NoError(t, teller.Follow(t.Context(), paused))
	b.order(t, paused, state.CommandPause, nil)
	teller.Pass(t.Context())
	b.order(t, paused, state.CommandUnpause, nil)
	teller.Pass(t.Context())
	last := r.all()[3]
	require.Equal(t, message.Waiting, last.Event)
	require.Equal(t, "run 2 of orders is paused by operator@host", last.Title())
	require.Equal(t, "{{do resume run=2}}", last.Commands["resume"])

	got := r.all()
	require.Equal(t, message.Gate{Name: "review", Message: "look at the totals", By: []string{"finance"}}, *got[0].Gate)
	require.Equal(t, "{{do approve run=1 gate=review digest=d comment=TEXT role=finance}}", got[0].Commands["approve"])
	require.Equal(t, "{{do sql query=SELECT~20*~20FROM~20run1.totals}}", got[0].Commands["look"])
	require.Equal(t, "no number", got[1].Failure.Message)
	require.Equal(t, "failed", got[1].Status)
	require.Equal(t, "operator@host", got[2].Actor)
	ids := map[string]bool{}
	for _, g := range got {
		require.Equal(t, []string{g.ID}, g.header["Webhook-Id"])
		require.Equal(t, "nightly", g.Description)
		ids[g.ID] = true
	}
	require.Len(t, ids, 4)
}

func signature(t *testing.T, secret, id string, at time.Time, body []byte) string {
	text, err := notify.Signature(secret, id, at, body)
	require.NoError(t, err)
	return text
}

// The example of the specification.
func TestSignature(t *testing.T) {
	t.Parallel()
	require.Equal(t, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
		signature(t, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0),
			[]byte(`{"test": 2432232314}`)))
}

func TestRequestsAreSignedAndShowNoSecret(t *testing.T) {
	t.Parallel()
	r := receive(t, http.StatusServiceUnavailable)
	b := newBundle(t, script.Hook{On: message.Kinds(), URL: "{env.URL}", Secret: "{env.KEY}",
		Headers: map[string]string{"Authorization": "Bearer {env.KEY}"}})
	b.env = map[string]string{"URL": r.URL + "/T0P5ECRET?token=hidden-token", "KEY": "correct horse"}
	key := b.run(t, state.Run{})
	teller := b.teller(t, "a")
	require.NoError(t, teller.Follow(t.Context(), key))
	fail(b, t, key)
	teller.Flush(t.Context())
	got := r.all()
	require.Len(t, got, 2)
	require.Equal(t, got[0].ID, got[1].ID)
	at, err := time.Parse(time.RFC3339, "2026-03-02T06:00:01Z")
	require.NoError(t, err)
	require.Equal(t, signature(t, "correct horse", got[0].ID, at, got[0].body),
		got[0].header.Get(notify.HeaderSignature))
	require.Equal(t, "Bearer correct horse", got[0].header.Get("Authorization"))

	r.Close()
	b.order(t, key, state.CommandReopen, nil)
	require.NoError(t, teller.Follow(t.Context(), key))
	fail(b, t, key)
	ctx, cancel := context.WithCancel(t.Context())
	teller.Pass(ctx)
	cancel()
	require.Contains(t, b.log.String(), "a message could not be sent; it is tried again")
	for _, hidden := range []string{"T0P5ECRET", "hidden-token", "correct horse"} {
		require.NotContains(t, b.log.String(), hidden)
		for _, record := range b.box.records {
			require.NotContains(t, string(record), hidden)
		}
	}
}

func TestTries(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answers []int
		want    int
		log     string
	}{
		"what passes":         {[]int{500, 503, 429, 408}, 5, "it is tried again"},
		"what does not pass":  {[]int{404}, 1, "answered 404 not found"},
		"a redirect":          {[]int{302}, 1, "answered 302 found"},
		"not allowed":         {[]int{401}, 1, "is given up"},
		"an answer is enough": {[]int{204}, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := receive(t, c.answers...)
			b := newBundle(t)
			b.hooks = []script.Hook{web(r)}
			key := b.run(t, state.Run{})
			teller := b.teller(t, "a")
			require.NoError(t, teller.Follow(t.Context(), key))
			fail(b, t, key)
			teller.Flush(t.Context())
			require.Len(t, r.all(), c.want)
			require.Contains(t, b.log.String(), c.log)
			require.Empty(t, b.box.records)
		})
	}
}

func TestServersAreLeftAloneAsTheyAsk(t *testing.T) {
	t.Parallel()
	r := receive(t, http.StatusTooManyRequests)
	r.header.Set("Retry-After", "600")
	b := newBundle(t)
	b.hooks = []script.Hook{web(r)}
	key := b.run(t, state.Run{})
	teller := b.teller(t, "a")
	require.NoError(t, teller.Follow(t.Context(), key))
	fail(b, t, key)
	for range 20 {
		require.True(t, teller.Pass(t.Context()))
		b.clock.add(29 * time.Second)
	}
	require.Len(t, r.all(), 1)
	b.clock.add(30 * time.Second)
	require.False(t, teller.Pass(t.Context()))
	require.Len(t, r.all(), 2)
}

// A server that never answers well is given up at last, and holds up nobody.
func TestNothingIsTriedForEver(t *testing.T) {
	t.Parallel()
	r, well := receive(t), receive(t)
	for range 1000 {
		r.answers = append(r.answers, http.StatusBadGateway)
	}
	b := newBundle(t)
	b.hooks = []script.Hook{web(r), web(well)}
	key := b.run(t, state.Run{})
	teller := b.teller(t, "a")
	require.NoError(t, teller.Follow(t.Context(), key))
	fail(b, t, key)
	passes := 0
	for ; teller.Pass(t.Context()); passes++ {
		require.Less(t, passes, 10_000)
		b.clock.add(20 * time.Minute)
	}
	require.Len(t, well.all(), 1)
	require.Greater(t, len(r.all()), 20)
	require.Less(t, len(r.all()), 1000)
	require.Contains(t, b.log.String(), "is given up")
	require.Less(t, b.box.most, 4<<10)
}

func TestLate(t *testing.T) {
	t.Parallel()
	r := receive(t)
	b := newBundle(t)
	b.hooks = []script.Hook{web(r, message.Late, message.Done, message.Failed)}
	deadline := b.clock.Now().Add(time.Hour)
	key := b.run(t, state.Run{Deadline: deadline})
	teller := b.teller(t, "a")
	require.NoError(t, teller.Follow(t.Context(), key))
	b.clock.add(time.Hour - time.Second)
	teller.Pass(t.Context())
	require.Empty(t, r.all())
	b.clock.add(time.Second)
	teller.Pass(t.Context())
	teller.Pass(t.Context())
	require.Equal(t, []message.Kind{message.Late}, r.kinds(), "while it runs, once")
	require.Equal(t, deadline, r.all()[0].Time)
	fail(b, t, key)
	teller.Pass(t.Context())
	b.order(t, key, state.CommandReopen, nil)
	require.NoError(t, teller.Follow(t.Context(), key))
	teller.Pass(t.Context())
	require.Equal(t, []message.Kind{message.Late, message.Failed}, r.kinds(), "nobody expects it in time any more")

	// Nobody was there while it was late, and it is over now.
	second := b.run(t, state.Run{Token: "second", Deadline: b.clock.Now().Add(time.Minute)})
	require.NoError(t, teller.Follow(t.Context(), second))
	b.clock.add(time.Hour)
	fail(b, t, second)
	b.teller(t, "a").Pass(t.Context())
	require.ElementsMatch(t, []message.Kind{message.Late, message.Failed, message.Late, message.Failed}, r.kinds())

	// In time.
	third := b.run(t, state.Run{Token: "third", Deadline: b.clock.Now().Add(time.Hour)})
	require.NoError(t, teller.Follow(t.Context(), third))
	fail(b, t, third)
	b.clock.add(2 * time.Hour)
	teller.Pass(t.Context())
	require.Len(t, r.all(), 5)
}

// The process that followed a run has died; the next one tells. While it lives, the other leaves it alone.
func TestTheNextProcessTells(t *testing.T) {
	t.Parallel()
	r := receive(t)
	b := newBundle(t)
	b.hooks = []script.Hook{web(r)}
	key := b.run(t, state.Run{})
	first, second := b.teller(t, "host/1/1"), b.teller(t, "host/2/2")
	require.NoError(t, first.Follow(t.Context(), key))
	first.Pass(t.Context())
	fail(b, t, key)
	second.Pass(t.Context())
	require.Empty(t, r.all(), "the first one has the role")
	b.clock.add(time.Minute)
	second.Pass(t.Context())
	require.Equal(t, []message.Kind{message.Failed}, r.kinds())
	first.Pass(t.Context())
	require.Len(t, r.all(), 1)
}

// A record that somebody removes while its run goes on again is put back.
func TestARemovedRecordComesBack(t *testing.T) {
	t.Parallel()
	r := receive(t)
	b := newBundle(t)
	b.hooks = []script.Hook{web(r)}
	key := b.run(t, state.Run{})
	teller := b.teller(t, "a")
	require.NoError(t, teller.Follow(t.Context(), key))
	require.NoError(t, b.box.Remove(t.Context(), key))
	teller.Pass(t.Context())
	fail(b, t, key)
	teller.Pass(t.Context())
	require.Equal(t, []message.Kind{message.Failed}, r.kinds())
}

// posted is a receiver at whose answer the process is told to end.
type posted struct {
	count int
	after func()
}

func (p *posted) Post(context.Context, remote.Post) (remote.Answer, error) {
	p.count++
	p.after()
	return remote.Answer{Status: http.StatusOK}, nil
}

// A process that is told to end while it sends does not send again, nor does the next one.
func TestWhatWasSentIsWrittenDown(t *testing.T) {
	t.Parallel()
	b := newBundle(t, script.Hook{On: message.Kinds(), URL: "https://example.test/"})
	ctx, cancel := context.WithCancel(t.Context())
	p := &posted{after: cancel}
	b.poster = p
	key := b.run(t, state.Run{})
	teller := b.teller(t, "a")
	require.NoError(t, teller.Follow(t.Context(), key))
	fail(b, t, key)
	teller.Pass(ctx)
	b.teller(t, "a").Pass(t.Context())
	require.Equal(t, 1, p.count)
}

func TestCommands(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	out := filepath.Join(t.TempDir(), "out")
	b.hooks = []script.Hook{
		{On: message.Kinds(), Command: []string{"sh", "-c", `echo "$THALWEG_EVENT $THALWEG_RUN $1" >>` +
			out + `; cat >>` + out + `; echo printed`, "sh", "a b"}, Timeout: time.Minute},
		{On: message.Kinds(), Command: []string{"no-such-program-of-thalweg"}},
		{On: message.Kinds(), Command: []string{"sh", "-c", "echo once >>" + out + ".failed; exit 3"},
			Timeout: time.Minute},
	}
	key := b.run(t, state.Run{})
	teller := b.teller(t, "a")
	require.NoError(t, teller.Follow(t.Context(), key))
	fail(b, t, key)
	for teller.Pass(t.Context()) {
		b.clock.add(time.Minute)
	}
	text, err := os.ReadFile(out)
	require.NoError(t, err)
	first, rest, _ := strings.Cut(string(text), "\n")
	require.Equal(t, "failed 1 a b", first)
	var m message.Message
	require.NoError(t, json.Unmarshal([]byte(rest), &m))
	require.Equal(t, message.Failed, m.Event)
	require.Contains(t, b.log.String(), "printed")
	tries, err := os.ReadFile(out + ".failed")
	require.NoError(t, err)
	require.Equal(t, strings.Repeat("once\n", 5), string(tries))
}

// A command that does not end is ended, with what it has started.
func TestACommandsTimeIsLimited(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	dir := t.TempDir()
	self, err := os.Executable()
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "pids"), 0o755))
	sender := notify.Sender{Keeper: self, Known: b.known, Clock: b.clock, Logger: slog.New(slog.DiscardHandler)}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { // when both have begun
		defer cancel()
		for {
			if found, _ := filepath.Glob(filepath.Join(dir, "pids", "*")); len(found) == 2 {
				return
			}
			<-time.After(time.Millisecond)
		}
	}()
	err = sender.Send(ctx, script.Hook{Command: []string{"sh", "-c",
		"touch pids/$$; setsid sh -c 'touch pids/$$; sleep 1000' & sleep 1000"}, Timeout: time.Hour},
		message.Example(message.Done), dir)
	require.ErrorContains(t, err, "was ended")
	found, err := filepath.Glob(filepath.Join(dir, "pids", "*"))
	require.NoError(t, err)
	for _, pid := range found {
		require.NoDirExists(t, filepath.Join("/proc", filepath.Base(pid)))
	}
}

// Processes die, writes fail and servers fail at any point: each event is told
// at least once, with one id, and nothing else is.
func TestChaosEachEventIsTold(t *testing.T) {
	t.Parallel()
	for seed := range effort.Of[uint64](3, 8, 2_000) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { tellThroughDeaths(t, rand.New(rand.NewPCG(seed, 1))) })
	}
}

func tellThroughDeaths(t *testing.T, random *rand.Rand) {
	r := receive(t)
	b := newBundle(t)
	b.hooks = []script.Hook{web(r)}
	key := b.run(t, state.Run{})
	process := 0
	var teller *notify.Notifier
	start := func() {
		process++
		teller = b.teller(t, fmt.Sprintf("elsewhere/%d/1", process))
		b.clock.add(time.Minute) // the role of the one before ends
		require.NoError(t, teller.Follow(t.Context(), key))
	}
	start()
	var want []message.Kind
	over := false
	for range 1 + random.IntN(12) {
		switch random.IntN(6) {
		case 0:
			teller.Pass(t.Context())
			b.clock.add(time.Minute)
		case 1:
			start()
		case 2:
			switch {
			case over:
			case random.IntN(2) == 0:
				want = append(want, message.Failed)
				fail(b, t, key)
			default:
				want = append(want, message.Stopped)
				b.order(t, key, state.CommandStop, nil)
			}
			over = true
		case 3:
			if over {
				b.order(t, key, state.CommandReopen, nil)
				require.NoError(t, teller.Follow(t.Context(), key))
				over = false
			}
		case 4: // it dies in the middle of a pass
			left := random.IntN(4)
			b.box.at = func(string) {
				if left--; left < 0 {
					b.box.broken = true
				}
			}
			teller.Pass(t.Context())
			b.box.at, b.box.broken = nil, false
			start()
		case 5:
			r.mu.Lock()
			r.answers = append(r.answers, http.StatusInternalServerError)
			r.mu.Unlock()
		}
	}
	for passes := 0; teller.Pass(t.Context()); passes++ {
		require.Less(t, passes, 100)
		b.clock.add(time.Minute)
	}
	told := map[string]bool{}
	var once []message.Kind
	for _, g := range r.all() {
		if !told[g.ID] {
			once = append(once, g.Event)
		}
		told[g.ID] = true
	}
	require.ElementsMatch(t, want, once)
}
