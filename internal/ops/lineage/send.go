package lineage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"thalweg/internal/base/fault"
	"thalweg/internal/store/state"
)

// Bounds of sending, so that nobody waits for a server.
const (
	sendTimeout  = 5 * time.Second // of one try
	sendTries    = 3
	sendPause    = 200 * time.Millisecond // before the second try; twice as long before the third
	closeTimeout = 10 * time.Second       // for what is left when the run is over
	defaultPoint = "api/v1/lineage"
	answerMax    = 1 << 10 // bytes of an answer that are read
)

// Destination receives events.
type Destination interface {
	// Send delivers one event, a line of JSON. temporary says that trying again may help.
	Send(ctx context.Context, event []byte) (temporary bool, err error)
	Close() error
}

// Open opens what is named: the address of a server, to which endpoint is
// added where it has no path, or a file that lines are added to.
func Open(name, endpoint, key string) (Destination, error) {
	u, err := url.Parse(name)
	if err == nil && (u.Scheme == "http" || u.Scheme == "https") {
		if u.Host == "" {
			return nil, &fault.Error{Kind: fault.Script, Message: "the address for OpenLineage events has no host"}
		}
		if strings.Trim(u.Path, "/") == "" {
			if endpoint == "" {
				endpoint = defaultPoint
			}
			u.Path = "/" + strings.TrimPrefix(endpoint, "/")
		}
		// It is not redirected: the key and what is told are for the one address.
		stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		return &server{at: u.String(), key: key, client: &http.Client{Timeout: sendTimeout, CheckRedirect: stay}}, nil
	}
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, &fault.Error{Kind: fault.Environment, Message: "open the file for OpenLineage events", Err: err,
			Hint: "name a file that can be written, or the address of a server: https://…"}
	}
	return &file{f}, nil
}

type file struct{ f *os.File }

func (f *file) Send(_ context.Context, event []byte) (bool, error) {
	_, err := f.f.Write(event)
	return false, err
}

func (f *file) Close() error { return f.f.Close() }

type server struct {
	at, key string
	client  *http.Client
}

func (s *server) Send(ctx context.Context, event []byte) (temporary bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.at, bytes.NewReader(event))
	if err != nil {
		return false, err
	}
	req.Header.Set("Content-Type", "application/json")
	if s.key != "" {
		req.Header.Set("Authorization", "Bearer "+s.key)
	}
	res, err := s.client.Do(req)
	if err != nil {
		return true, err
	}
	_, err = io.Copy(io.Discard, io.LimitReader(res.Body, answerMax))
	err = errors.Join(err, res.Body.Close())
	if res.StatusCode/100 != 2 {
		temporary = res.StatusCode >= http.StatusInternalServerError || res.StatusCode == http.StatusTooManyRequests
		return temporary, fmt.Errorf("the server answers %s", res.Status)
	}
	return false, err
}

func (s *server) Close() error {
	s.client.CloseIdleConnections()
	return nil
}

// Live tells a run's events while it is at work. Nothing of it can make the run
// wait or fail: it looks at the state from a goroutine of its own when it is told that
// something has happened. Close waits for it, but not for long.
type Live struct {
	to     Destination
	store  state.Store
	key    state.RunKey
	how    Telling
	logger *slog.Logger

	mu      sync.Mutex
	changed map[string]bool // nodes
	ending  bool
	nudge   chan struct{}
	done    chan struct{}
	cancel  context.CancelFunc

	sent   map[string]bool
	failed int
	gone   bool // the destination has not taken an event in several tries
	first  error
	ended  bool // all was looked at, and sent or given up
}

// Tell begins to tell the events of a run.
func Tell(ctx context.Context, to Destination, store state.Store, key state.RunKey, how Telling,
	logger *slog.Logger) *Live {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	l := &Live{to: to, store: store, key: key, how: how, logger: logger, changed: map[string]bool{},
		nudge: make(chan struct{}, 1), done: make(chan struct{}), cancel: cancel, sent: map[string]bool{}}
	go l.loop(ctx)
	l.Changed("")
	return l
}

// Changed says that something has become of a node, or of the run. It does not wait.
func (l *Live) Changed(node string) {
	if l == nil {
		return
	}
	l.mu.Lock()
	if node != "" {
		l.changed[node] = true
	}
	l.mu.Unlock()
	select {
	case l.nudge <- struct{}{}:
	default: // it will look anyway
	}
}

// Close tells what is left, for a while, and warns of what was not taken. It reports
// whether all was.
func (l *Live) Close() bool {
	if l == nil {
		return true
	}
	l.mu.Lock()
	l.ending = true
	l.mu.Unlock()
	l.Changed("")
	timer := time.AfterFunc(closeTimeout, l.cancel)
	defer timer.Stop()
	<-l.done
	cut := !l.ended
	l.cancel()
	if l.failed > 0 || cut {
		l.logger.Warn("OpenLineage events were not taken; they are sent again later, and {{do lineage openlineage=}} "+
			"makes them", "run", l.key.Run, "events", l.failed, "error", l.first)
	}
	return l.failed == 0 && !cut
}

func (l *Live) loop(ctx context.Context) {
	defer close(l.done)
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.nudge:
		}
		l.mu.Lock()
		nodes, ending := l.changed, l.ending
		l.changed = map[string]bool{}
		l.mu.Unlock()
		events, err := l.look(ctx, nodes, ending)
		if err != nil {
			l.note(fmt.Errorf("look at the run: %w", err))
		}
		for _, e := range events {
			l.send(ctx, e)
		}
		if ending {
			l.ended = ctx.Err() == nil
			return
		}
	}
}

// look makes the events of nodes, or all of them at the end.
func (l *Live) look(ctx context.Context, nodes map[string]bool, ending bool) ([]Event, error) {
	if ending {
		return Events(ctx, l.store, l.key, l.how)
	}
	t, err := newTeller(ctx, l.store, l.key, l.how)
	if err != nil {
		return nil, err
	}
	var read []state.Node
	for name := range nodes {
		n, err := l.store.Node(ctx, state.NodeKey{RunKey: l.key, Node: name})
		if err != nil {
			return nil, err
		}
		read = append(read, n)
	}
	slices.SortFunc(read, func(a, b state.Node) int { return a.Ordinal - b.Ordinal })
	out := []Event{t.runEvent("START", t.run.Created)}
	if running := (Event{EventType: "RUNNING", Run: eventRun{RunID: t.runID()}}).Key(); len(read) > 0 &&
		!l.sent[running] {
		nodes, err := l.store.Nodes(ctx, l.key)
		if err != nil {
			return nil, err
		}
		out = t.begun(nodes)
	}
	for _, n := range read {
		events, err := t.node(ctx, n)
		if err != nil {
			return nil, err
		}
		out = append(out, events...)
	}
	return out, nil
}

func (l *Live) note(err error) {
	l.failed++
	if l.first == nil {
		l.first = err
	}
}

// send delivers an event once. A destination that is gone is tried only once from then on.
func (l *Live) send(ctx context.Context, e Event) {
	if l.sent[e.Key()] {
		return
	}
	l.sent[e.Key()] = true
	data, err := e.Line()
	if err != nil {
		l.note(err)
		return
	}
	pause := sendPause
	for try := 1; ; try++ {
		var temporary bool
		if temporary, err = l.to.Send(ctx, data); err == nil {
			l.gone = false
			return
		}
		if !temporary || l.gone || try == sendTries || ctx.Err() != nil {
			break
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		pause *= 2
	}
	l.gone = true
	l.note(err)
}
