package agents

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/stretchr/testify/require"

	"thalweg/internal/base/fault"
	"thalweg/internal/ops/load"
	"thalweg/internal/test/effort"
	"thalweg/internal/test/securetest"
)

const testToken = "a token of twenty letters"

// store counts what is done to each key.
type store struct {
	mu      sync.Mutex
	keys    map[uint64]int
	clients map[int]int // opened less closed, by number
	closed  int
}

func (s *store) Client(_ context.Context, number int) (load.Client, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clients[number]++
	return storeClient{s, number}, nil
}

func (s *store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed++
	return nil
}

type storeClient struct {
	store  *store
	number int
}

func (c storeClient) Do(_ context.Context, ops []load.Op, _ []error) {
	c.store.mu.Lock()
	defer c.store.mu.Unlock()
	for _, op := range ops {
		c.store.keys[op.Key]++
	}
}

func (c storeClient) Close() error {
	c.store.mu.Lock()
	defer c.store.mu.Unlock()
	c.store.clients[c.number]--
	return nil
}

func newStore() *store { return &store{keys: map[uint64]int{}, clients: map[int]int{}} }

// Moved says how many of its keys were used.
func (s *store) Moved() load.Moved {
	s.mu.Lock()
	defer s.mu.Unlock()
	return load.Moved{Payload: int64(len(s.keys)), Sent: 1}
}

// Observe says that it is there.
func (s *store) Observe(context.Context) ([]load.Reading, error) {
	return []load.Reading{{Node: "a"}}, nil
}

func newHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(1, 3_600_000_000, 3) }

// samplesOf are times from 1 µs to above a minute, others for each seed.
func samplesOf(p load.Plan) (out []int64) {
	random := rand.New(rand.NewPCG(p.Seed, 1))
	for range p.Ops {
		out = append(out, 1+int64(random.ExpFloat64()*float64(int64(1)<<random.IntN(24))))
	}
	return out
}

// sampled goes through all of its keys once with all clients, and says that operations took its samples. When it was
// called is among its errors.
func sampled(ctx context.Context, target load.Target, p load.Plan) (r load.Result, err error) {
	select {
	case <-ctx.Done():
		return r, ctx.Err()
	case <-time.After(time.Until(p.Start)):
	}
	began := time.Now()
	r = load.Result{Plan: p, Began: began, Took: time.Second, CPU: time.Millisecond,
		Errors:  map[string]int64{strconv.FormatInt(began.UnixNano(), 10): 1, "both": 2},
		Seconds: []load.Second{{At: 1, Ops: [2]int64{p.Ops, 1}, P99: float64(p.Clients), CPU: 0.5}}}
	for i := range p.Clients {
		c, err := target.Client(ctx, i)
		if err != nil {
			return r, err
		}
		for k := uint64(i); k < p.Keys; k += uint64(p.Clients) {
			c.Do(ctx, []load.Op{{Key: k}}, []error{nil})
		}
		if err := c.Close(); err != nil {
			return r, err
		}
	}
	if o, ok := target.(load.Observer); ok {
		if r.Seconds[0].Servers, err = o.Observe(ctx); err != nil {
			return r, err
		}
	}
	r.Of[load.Read] = load.Measured{Ops: p.Ops, Failed: 1, Response: newHistogram(), Service: newHistogram()}
	for _, v := range samplesOf(p) {
		if err := errors.Join(r.Of[load.Read].Response.RecordValue(v), r.Of[load.Read].Service.RecordValue(1+v/2)); err != nil {
			return r, err
		}
	}
	return r, nil
}

// opens has loads see a store.
func opens(s *store) func(context.Context, json.RawMessage) (load.Target, error) {
	return func(_ context.Context, target json.RawMessage) (load.Target, error) {
		if string(target) != `{"is":"a store"}` {
			return nil, errors.New("the target is " + string(target))
		}
		return s, nil
	}
}

// started serves an agent until the test ends, or stop is called.
func started(t *testing.T, does Does, secure *tls.Config) (address string, stop func()) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address = ln.Addr().String()
	if secure != nil {
		ln = tls.NewListener(ln, secure)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Serve(ctx, ln, testToken, does, slog.New(slog.DiscardHandler)) }()
	stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	t.Cleanup(stop)
	return address, stop
}

func fleetOf(t *testing.T, c Config) *Fleet {
	t.Helper()
	if c.Token == "" {
		c.Token = testToken
	}
	c.Target = json.RawMessage(`{"is":"a store"}`)
	f, err := New(c)
	require.NoError(t, err)
	t.Cleanup(f.Close)
	return f
}

// skews are how far the clocks of three agents are off.
var skews = []time.Duration{0, 30 * time.Hour, -7 * time.Hour}

// together is how far apart the starts of one load may be where cores are scarce: far less than clocks are off.
const together = 150 * time.Millisecond

// requireTogether requires that an outcome is what all samples of all agents are, and that they began at one time.
func requireTogether(t *testing.T, p load.Plan, n int, out Outcome) {
	t.Helper()
	shares, err := divide(p, n)
	require.NoError(t, err)
	response, service := newHistogram(), newHistogram()
	for _, s := range shares {
		for _, v := range samplesOf(s.Plan) {
			require.NoError(t, errors.Join(response.RecordValue(v), service.RecordValue(1+v/2)))
		}
	}
	reads := out.Of[load.Read]
	require.True(t, response.Equals(reads.Response))
	require.True(t, service.Equals(reads.Service))
	require.Equal(t, response.Max(), reads.Response.Max())
	require.Zero(t, out.Of[load.Write].Ops)
	require.Equal(t, []any{p.Ops, int64(n), p}, []any{reads.Ops, reads.Failed, out.Plan})
	require.Equal(t, time.Duration(n)*time.Millisecond, out.CPU)
	require.Equal(t, int64(2*n), out.Errors["both"])
	require.Equal(t, []load.Second{{At: 1, Ops: [2]int64{p.Ops, int64(n)}, P99: float64(shares[0].Plan.Clients),
		CPU: 0.5 * float64(n), Servers: []load.Reading{{Node: "a"}}}}, out.Seconds)
	var truth []time.Time
	for text := range out.Errors {
		if ns, err := strconv.ParseInt(text, 10, 64); err == nil {
			truth = append(truth, time.Unix(0, ns))
		}
	}
	require.Len(t, truth, n)
	require.Less(t, spread(truth), together)
	require.Less(t, out.Spread, together)
	require.WithinRange(t, out.Began, time.Now().Add(-effort.Patience), time.Now())
}

func TestAgentsDoOneLoad(t *testing.T) {
	authority := securetest.NewAuthority(t)
	files := authority.Sign("127.0.0.1")
	for _, secure := range []bool{false, true} {
		t.Run(fmt.Sprintf("secure %v", secure), func(t *testing.T) {
			s, c := newStore(), Config{}
			var serving *tls.Config
			if secure {
				serving = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{files.Pair}}
				c.TLS = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: authority.Pool()}
			}
			for _, skew := range skews {
				address, _ := started(t, Does{Open: opens(s), Run: sampled, Ahead: skew}, serving)
				c.Agents = append(c.Agents, address)
			}
			f := fleetOf(t, c)
			p := load.Plan{Keys: 1000, Of: load.Sequential, Clients: 7, Ops: 10_001, Seed: 4}
			for loads := 1; loads <= 2; loads++ {
				out, err := f.Run(t.Context(), p)
				require.NoError(t, err)
				requireTogether(t, p, len(skews), out)
				require.Len(t, s.keys, 1000)
				for key, times := range s.keys {
					require.Equal(t, loads, times, "key %d", key)
				}
				require.Equal(t, 3*loads, s.closed)
				require.Equal(t, int64(3), out.Moved.Sent)
				require.Equal(t, map[int]int{0: 0, 1: 0, 2: 0, 3: 0, 4: 0, 5: 0, 6: 0}, s.clients)
				for i, g := range out.Generators {
					require.InDelta(t, skews[i], g.Offset, float64(g.Unsure+time.Millisecond))
					require.GreaterOrEqual(t, g.Late, time.Duration(0))
				}
			}
		})
	}
}

func TestLoadsAreDividedWithoutRest(t *testing.T) {
	p := load.Plan{Keys: 1<<63 + 12345, Of: load.Sequential, Clients: 10, Ops: 1<<62 + 7, Rate: 1000, Seed: 9, Depth: 4}
	shares, err := divide(p, 3)
	require.NoError(t, err)
	var ops, clients int64
	var keys uint64
	var rate float64
	seeds := map[uint64]bool{}
	for _, s := range shares {
		require.Equal(t, []any{keys, int(clients), 4}, []any{s.FirstKey, s.FirstClient, s.Plan.Depth})
		ops, clients, keys, rate = ops+s.Plan.Ops, clients+int64(s.Plan.Clients), keys+s.Plan.Keys, rate+s.Plan.Rate
		seeds[s.Plan.Seed] = true
	}
	require.Equal(t, []any{p.Ops, int64(10), p.Keys, 3}, []any{ops, clients, keys, len(seeds)})
	require.InDelta(t, 1000, rate, 1e-9)
	require.Equal(t, []int{4, 3, 3}, []int{shares[0].Plan.Clients, shares[1].Plan.Clients, shares[2].Plan.Clients})
	for _, few := range []load.Plan{{Clients: 2}, {Clients: 4, Ops: 3},
		{Clients: 4, Ops: 10, Of: load.Sequential, Keys: 3}} {
		_, err := divide(few, 3)
		require.ErrorContains(t, err, "too few")
	}
	uniform, err := divide(load.Plan{Keys: 100, Of: load.Uniform, Clients: 4}, 2)
	require.NoError(t, err)
	require.Equal(t, uint64(100), uniform[1].Plan.Keys)
	require.Zero(t, uniform[1].FirstKey)
}

// waits is a load that goes on until it is ended.
func waits(begun chan<- string, name string, ended chan<- error) func(context.Context, load.Target,
	load.Plan) (load.Result, error) {
	return func(ctx context.Context, _ load.Target, _ load.Plan) (load.Result, error) {
		begun <- name
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return load.Result{}, ctx.Err()
	}
}

// A search for a peak begins with one client.
func TestFewClientsNeedFewAgents(t *testing.T) {
	first, _ := started(t, Does{Open: opens(newStore()), Run: sampled}, nil)
	out, err := fleetOf(t, Config{Agents: []string{first, "nowhere.invalid:1"}}).Run(t.Context(),
		load.Plan{Keys: 10, Clients: 1, Ops: 100})
	require.NoError(t, err)
	require.Len(t, out.Generators, 1)
}

func TestAnAgentThatDiesIsNamed(t *testing.T) {
	begun, ended := make(chan string, 3), make(chan error, 3)
	s := newStore()
	first, _ := started(t, Does{Open: opens(s), Run: waits(begun, "first", ended)}, nil)
	second, stop := started(t, Does{Open: opens(newStore()), Run: waits(begun, "second", ended)}, nil)
	f := fleetOf(t, Config{Agents: []string{first, second}})
	result := make(chan error, 1)
	go func() {
		_, err := f.Run(t.Context(), load.Plan{Clients: 2, Keys: 1, For: time.Hour})
		result <- err
	}()
	<-begun
	<-begun
	stop()
	require.ErrorContains(t, <-result, "agent "+second)
	require.ErrorIs(t, <-ended, errInterrupted)
	require.Error(t, <-ended) // the other one does not go on
	require.Equal(t, 1, s.closed)
}

func TestALoadThatIsInterruptedEndsEverywhere(t *testing.T) {
	begun, ended := make(chan string, 2), make(chan error, 2)
	var at []string
	for _, name := range []string{"first", "second"} {
		address, _ := started(t, Does{Open: opens(newStore()), Run: waits(begun, name, ended)}, nil)
		at = append(at, address)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-begun
		<-begun
		cancel()
	}()
	_, err := fleetOf(t, Config{Agents: at}).Run(ctx, load.Plan{Clients: 2, Keys: 1, For: time.Hour})
	require.ErrorIs(t, err, context.Canceled)
	require.Len(t, ended, 2)
}

func TestAnAgentThatDoesNotAnswerIsNamed(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0") // it accepts, and says nothing
	require.NoError(t, err)
	defer ln.Close()
	f := fleetOf(t, Config{Agents: []string{ln.Addr().String()}})
	f.agents[0].within = 50 * time.Millisecond
	f.agents[0].closing = 50 * time.Millisecond
	_, err = f.Run(t.Context(), load.Plan{Clients: 1, Keys: 1, Ops: 1})
	require.ErrorContains(t, err, "agent "+ln.Addr().String()+": ask for /v1/prepare: no answer in 50ms")
}

func TestWhatFailsAtAnAgentIsSaid(t *testing.T) {
	fails := func(context.Context, load.Target, load.Plan) (load.Result, error) {
		return load.Result{}, errors.New("no operation has succeeded")
	}
	address, _ := started(t, Does{Open: opens(newStore()), Run: fails}, nil)
	f := fleetOf(t, Config{Agents: []string{address}})
	_, err := f.Run(t.Context(), load.Plan{Clients: 1, Keys: 1, Ops: 1})
	require.ErrorContains(t, err, "agent "+address+": no operation has succeeded")
	f.target = json.RawMessage(`{"is":"unknown"}`)
	_, err = f.Run(t.Context(), load.Plan{Clients: 1, Keys: 1, Ops: 1})
	require.ErrorContains(t, err, `agent `+address+`: open the target: the target is {"is":"unknown"}`)
}

// refusing is a store that lets nobody in.
type refusing struct{ *store }

func (r refusing) Client(context.Context, int) (load.Client, error) {
	return nil, errors.New("too many clients")
}

func TestFailuresSayWhoMustAct(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	nobody := ln.Addr().String()
	require.NoError(t, ln.Close())
	other := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(other.Close)
	talks := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(talks.Close)
	agent := func(version string, target load.Target, err error) string {
		address, _ := started(t, Does{Version: version, Run: sampled,
			Open: func(context.Context, json.RawMessage) (load.Target, error) { return target, err }}, nil)
		return address
	}
	refused := &fault.Error{Kind: fault.Script, Message: "login refused", Hint: "name a user"}
	for name, c := range map[string]struct {
		address, token string
		kind           fault.Kind
		says, hint     string
	}{
		"nobody listens":     {address: nobody, kind: fault.Environment, says: "refused", hint: "agent listens"},
		"another program":    {address: other.Listener.Addr().String(), kind: fault.Environment, says: "404", hint: "agent listens"},
		"one that says less": {address: talks.Listener.Addr().String(), kind: fault.Environment, says: "JSON", hint: "agent listens"},
		"a wrong token": {address: agent("1", newStore(), nil), token: "another token of letters", kind: fault.Script,
			says: "token is wrong", hint: "give the coordinator the token"},
		"another version": {address: agent("2", newStore(), nil), kind: fault.Script, says: "version 2", hint: "the same program"},
		"what it says":    {address: agent("1", nil, refused), kind: fault.Script, says: "login refused", hint: "name a user"},
		"a store that is full": {address: agent("1", refusing{newStore()}, nil), kind: fault.Environment,
			says: "open client 1: too many clients", hint: "lets so many connect"},
	} {
		t.Run(name, func(t *testing.T) {
			f := fleetOf(t, Config{Agents: []string{c.address}, Token: c.token, Version: "1"})
			_, err := f.Run(t.Context(), load.Plan{Clients: 1, Keys: 1, Ops: 1})
			require.ErrorContains(t, err, "agent "+c.address+": ")
			require.ErrorContains(t, err, c.says)
			require.Equal(t, c.kind, fault.Of(err).Kind, err)
			require.Contains(t, fault.Of(err).Hint, c.hint)
		})
	}
}

// TestALoadGoesOnWhileItIsAnswered: longer than it may stand still.
func TestALoadGoesOnWhileItIsAnswered(t *testing.T) {
	t.Parallel()
	const stall, moves = 500 * time.Millisecond, 12
	began, asked := time.Now(), int64(0)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++ // one question at a time
		select {
		case <-r.Context().Done():
		case <-time.After(stall / 10):
		}
		_ = json.NewEncoder(w).Encode(statusAnswer{State: begun, Answered: min(asked, moves)})
	}))
	defer server.Close()
	f := fleetOf(t, Config{Agents: []string{server.Listener.Addr().String()}})
	_, err := f.agents[0].follow(t.Context(), "x", begun, stall)
	require.ErrorContains(t, err, "no operation was answered in 500ms")
	require.Greater(t, asked, int64(moves))
	require.Greater(t, time.Since(began), moves*stall/10+stall)
}

func TestStrangersAreToldNothing(t *testing.T) {
	opened := func(context.Context, json.RawMessage) (load.Target, error) {
		t.Error("a stranger has opened a target")
		return nil, errors.New("refused")
	}
	address, _ := started(t, Does{Open: opened, Run: sampled}, nil)
	f := fleetOf(t, Config{Agents: []string{address}, Token: "another token of letters"})
	_, err := f.Run(t.Context(), load.Plan{Clients: 1, Keys: 1, Ops: 1})
	require.ErrorContains(t, err, "agent "+address+": the token is wrong")
	for _, path := range []string{pathClock, pathPrepare, pathStart, pathStatus, pathResult, pathEnd} {
		answer, err := http.Post("http://"+address+path, "application/json", strings.NewReader("{}"))
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.Equal(t, http.StatusUnauthorized, answer.StatusCode, path)
	}
	_, err = New(Config{Agents: []string{address}, Token: "short"})
	require.ErrorContains(t, err, "16 is the least")
}

func TestQuestionsHaveLimits(t *testing.T) {
	address, _ := started(t, Does{Open: opens(newStore()), Run: sampled}, nil)
	f := fleetOf(t, Config{Agents: []string{address}})
	f.target = json.RawMessage(`"` + string(bytes.Repeat([]byte("x"), askBytesMax)) + `"`)
	_, err := f.Run(t.Context(), load.Plan{Clients: 1, Keys: 1, Ops: 1})
	require.ErrorContains(t, err, "too large")
	_, err = fleetOf(t, Config{Agents: []string{address}}).Run(t.Context(), load.Plan{Clients: load.ClientsMax + 1, Keys: 1,
		Ops: 20_000})
	require.ErrorContains(t, err, "not 1 to 16384 clients")
}

func TestALoadThatNobodyAsksForEnds(t *testing.T) {
	begun, ended := make(chan string, 1), make(chan error, 1)
	does := Does{Open: opens(newStore()), Run: waits(begun, "forgotten", ended)}
	w := begin(t.Context(), does, prepareAsk{Load: "x", Target: json.RawMessage(`{"is":"a store"}`),
		Share: share{Plan: load.Plan{Clients: 1}}}, time.Second)
	<-w.opened
	w.start <- time.Now()
	<-begun
	require.ErrorIs(t, <-ended, errForgotten)
	<-w.ended
	require.Equal(t, failed, w.status().State)
}

func TestAnAgentSaysHowManyAreAnswered(t *testing.T) {
	w := begin(t.Context(), Does{Open: opens(newStore()), Run: load.Run}, prepareAsk{Load: "x",
		Target: json.RawMessage(`{"is":"a store"}`), Share: share{Plan: load.Plan{Of: load.Sequential, Keys: 103, Clients: 3,
			Depth: 4}}}, effort.Patience)
	<-w.opened
	require.Zero(t, w.status().Answered)
	require.NoError(t, w.startAt(time.Now().Add(100*time.Millisecond)))
	<-w.ended
	require.Equal(t, int64(103), w.status().Answered)
}

// One that is ready is asked on while another one is not: it would think itself forgotten.
func TestAgentsWaitForTheSlowest(t *testing.T) {
	quick, err := newAgent(t.Context(), testToken, Does{Open: opens(newStore()), Run: sampled}, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	asked := make(chan struct{}, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == pathStatus {
			asked <- struct{}{}
		}
		quick.handler().ServeHTTP(w, r)
	}))
	defer server.Close()
	open := opens(newStore())
	slow, _ := started(t, Does{Run: sampled, Open: func(ctx context.Context, to json.RawMessage) (load.Target, error) {
		const times = 3 // more often than an agent is asked that is to become ready
		for range times {
			select {
			case <-asked:
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			case <-time.After(effort.Patience):
				return nil, errors.New("the agent that is ready is asked no more")
			}
		}
		return open(ctx, to)
	}}, nil)
	out, err := fleetOf(t, Config{Agents: []string{server.Listener.Addr().String(), slow}}).Run(t.Context(),
		load.Plan{Keys: 10, Clients: 2, Ops: 100})
	require.NoError(t, err)
	require.Len(t, out.Generators, 2)
}

func TestAnAgentHasOneLoad(t *testing.T) {
	begun, ended := make(chan string, 1), make(chan error, 1)
	address, stop := started(t, Does{Open: opens(newStore()), Run: waits(begun, "first", ended)}, nil)
	result := make(chan error, 1)
	go func() {
		_, err := fleetOf(t, Config{Agents: []string{address}}).Run(t.Context(), load.Plan{Clients: 1, For: time.Hour})
		result <- err
	}()
	<-begun
	_, err := fleetOf(t, Config{Agents: []string{address}}).Run(t.Context(), load.Plan{Clients: 1, For: time.Hour})
	require.ErrorContains(t, err, "another load at work")
	require.Empty(t, ended) // and the first one goes on
	stop()
	require.Error(t, <-result)
}

func TestAgentsOfOtherVersionsAreRefused(t *testing.T) {
	address, _ := started(t, Does{Version: "2", Open: opens(newStore()), Run: sampled}, nil)
	_, err := fleetOf(t, Config{Version: "1", Agents: []string{address}}).Run(t.Context(), load.Plan{Clients: 1})
	require.ErrorContains(t, err, "it is of version 2, and the coordinator of 1")
}

func TestFleetsAreNamedRightly(t *testing.T) {
	for _, wrong := range [][]string{nil, {"nowhere"}, {"a:1", "a:1"}} {
		_, err := New(Config{Agents: wrong, Token: testToken})
		require.Error(t, err, wrong)
	}
}
