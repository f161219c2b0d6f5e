package agents

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"thalweg/internal/base/fault"
	"thalweg/internal/ops/load"
)

// Times of the protocol.
const (
	leaseTime  = 15 * time.Second // without a question, until an agent ends a load
	startMost  = time.Minute      // from being told to beginning
	statusWait = time.Second      // that a question for the state waits for news
	closeTime  = 30 * time.Second // for a load to end that was told to
	drainTime  = 5 * time.Second
	tokenLeast = 16
)

// Paths of an agent.
const (
	pathClock   = "/v1/clock"
	pathPrepare = "/v1/prepare"
	pathStart   = "/v1/start"
	pathStatus  = "/v1/status"
	pathResult  = "/v1/result"
	pathEnd     = "/v1/end"
)

// agent carries out the loads of coordinators, one at a time.
type agent struct {
	ctx   context.Context // of loads: they outlive the request that begins them
	does  Does
	token [sha256.Size]byte
	log   *slog.Logger
	lease time.Duration

	mu   sync.Mutex
	work *work // nil: none
}

// Serve waits for loads at a listener until ctx ends, and closes it.
func Serve(ctx context.Context, ln net.Listener, token string, does Does, log *slog.Logger) error {
	a, err := newAgent(ctx, token, does, log)
	if err != nil {
		return errors.Join(err, ln.Close())
	}
	server := &http.Server{Handler: a.handler(), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 30 * time.Second,
		WriteTimeout: 2 * time.Minute, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug)}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ln) }()
	select {
	case err = <-ended:
		err = &fault.Error{Kind: fault.Environment, Message: "serve at " + ln.Addr().String(), Err: err}
	case <-ctx.Done():
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
		defer cancel()
		if server.Shutdown(stop) != nil {
			_ = server.Close() // who does not end is cut off
		}
		<-ended
	}
	return errors.Join(err, a.close())
}

func newAgent(ctx context.Context, token string, does Does, log *slog.Logger) (*agent, error) {
	if err := checkToken(token); err != nil {
		return nil, err
	}
	if does.Run == nil {
		does.Run = load.Run
	}
	return &agent{ctx: ctx, does: does, token: sha256.Sum256([]byte(token)), log: log, lease: leaseTime}, nil
}

func checkToken(token string) error {
	if len(token) < tokenLeast {
		return fault.New(fault.Script, "the token of agents has %d characters; %d is the least", len(token), tokenLeast)
	}
	return nil
}

func (a *agent) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+pathClock, func(w http.ResponseWriter, _ *http.Request) {
		a.answer(w, clockAnswer{Now: a.does.now().UnixNano()}, nil)
	})
	mux.HandleFunc("POST "+pathPrepare, a.prepare)
	mux.HandleFunc("POST "+pathStart, func(w http.ResponseWriter, r *http.Request) {
		var ask startAsk
		a.of(w, r, &ask, &ask.Load, func(k *work) (any, error) {
			return struct{}{}, k.startAt(time.Unix(0, ask.At))
		})
	})
	mux.HandleFunc("POST "+pathStatus, func(w http.ResponseWriter, r *http.Request) {
		var ask prepareAsk
		a.of(w, r, &ask, &ask.Load, func(k *work) (any, error) { return a.status(r.Context(), k), nil })
	})
	mux.HandleFunc("POST "+pathResult, func(w http.ResponseWriter, r *http.Request) {
		var ask prepareAsk
		a.of(w, r, &ask, &ask.Load, func(k *work) (any, error) { return k.outcome() })
	})
	mux.HandleFunc("POST "+pathEnd, func(w http.ResponseWriter, r *http.Request) {
		var ask prepareAsk
		a.of(w, r, &ask, &ask.Load, func(k *work) (any, error) { return struct{}{}, a.end(k) })
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given := sha256.Sum256([]byte(strings.TrimPrefix(r.Header.Get("Authorization"), bearer)))
		if subtle.ConstantTimeCompare(given[:], a.token[:]) != 1 {
			a.log.Warn("an agent was asked with a wrong token", "from", r.RemoteAddr)
			a.write(w, http.StatusUnauthorized, failureOf(&fault.Error{Kind: fault.Script, Message: "the token is wrong",
				Hint: "give the coordinator the token that the agent was started with"}))
			return
		}
		mux.ServeHTTP(w, r)
	})
}

const bearer = "Bearer "

// prepare begins a load, unless there is one.
func (a *agent) prepare(w http.ResponseWriter, r *http.Request) {
	var ask prepareAsk
	if !a.read(w, r, &ask) {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.work != nil {
		select {
		case <-a.work.ended:
		default:
			a.answer(w, nil, &fault.Error{Kind: fault.Environment, Message: "it has another load at work",
				Hint: "wait until that has ended"})
			return
		}
	}
	if ask.Version != a.does.Version {
		a.answer(w, nil, &fault.Error{Kind: fault.Script, Hint: "start the same program on all machines",
			Message: fmt.Sprintf("it is of version %s, and the coordinator of %s", a.does.Version, ask.Version)})
		return
	}
	if n := ask.Share.Plan.Clients; ask.Load == "" || n < 1 || n > load.ClientsMax {
		a.answer(w, nil, fault.New(fault.Script, "the load has no name, or not 1 to %d clients", load.ClientsMax))
		return
	}
	a.log.Info("a load begins", "load", ask.Load, "from", r.RemoteAddr, "clients", ask.Share.Plan.Clients)
	a.work = begin(a.ctx, a.does, ask, a.lease)
	a.answer(w, struct{}{}, nil)
}

// of answers a question about the load that it names.
func (a *agent) of(w http.ResponseWriter, r *http.Request, ask any, name *string, what func(*work) (any, error)) {
	if !a.read(w, r, ask) {
		return
	}
	a.mu.Lock()
	k := a.work
	a.mu.Unlock()
	if k == nil || k.name != *name {
		a.answer(w, nil, fault.New(fault.Environment,
			"it knows nothing of this load: it has begun anew, or another coordinator has asked"))
		return
	}
	k.lease.Reset(a.lease)
	out, err := what(k)
	a.answer(w, out, err)
}

// status says how far a load is, at once if it has ended, and otherwise after a while.
func (a *agent) status(ctx context.Context, k *work) statusAnswer {
	timer := time.NewTimer(statusWait)
	defer timer.Stop()
	var news <-chan struct{}
	switch k.status().State {
	case preparing:
		news = k.opened
	case ready, begun:
		news = k.ended
	default:
		return k.status()
	}
	select {
	case <-news:
	case <-ctx.Done():
	case <-timer.C:
	}
	return k.status()
}

// end ends a load, and forgets it.
func (a *agent) end(k *work) error {
	k.cancel(errors.New("the coordinator has ended it"))
	timer := time.NewTimer(closeTime)
	defer timer.Stop()
	select {
	case <-k.ended:
	case <-timer.C:
		return fault.New(fault.Environment, "the load did not end in %v", closeTime)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.work == k {
		a.work = nil
	}
	return nil
}

// close ends the load that there is.
func (a *agent) close() error {
	a.mu.Lock()
	k := a.work
	a.mu.Unlock()
	if k == nil {
		return nil
	}
	return a.end(k)
}

func (a *agent) read(w http.ResponseWriter, r *http.Request, to any) bool {
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, askBytesMax)).Decode(to)
	if err != nil {
		a.write(w, http.StatusBadRequest, failureOf(fmt.Errorf("the question cannot be read: %w", err)))
	}
	return err == nil
}

func (a *agent) answer(w http.ResponseWriter, what any, err error) {
	if err != nil {
		a.write(w, http.StatusConflict, failureOf(err))
		return
	}
	a.write(w, http.StatusOK, what)
}

func (a *agent) write(w http.ResponseWriter, status int, what any) {
	text, err := json.Marshal(what)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if _, err := w.Write(text); err != nil {
		a.log.Debug("an answer was not taken", "error", err)
	}
}
