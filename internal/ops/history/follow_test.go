package history_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/ops/history"
	"thalweg/internal/store/state"
	"thalweg/internal/test/effort"
)

// errKilled ends a reader in the middle.
var errKilled = errors.New("killed")

// quick follows the run of a play, with news at once.
func quick(p *play) history.FollowOptions {
	return history.FollowOptions{Every: time.Millisecond, Listen: news(p.store, p.key)}
}

// news looks for news at once.
func news(store state.Store, key state.RunKey) func(context.Context, int64) (history.News, error) {
	return func(_ context.Context, after int64) (history.News, error) {
		return streamNews{history.NewStream(store, key, after)}, nil
	}
}

type streamNews struct{ *history.Stream }

// Next implements history.News.
func (n streamNews) Next(ctx context.Context) ([]history.Line, error) {
	for tick := time.NewTicker(time.Millisecond); ; {
		if lines, err := n.Stream.Next(ctx, 3); err != nil || len(lines) > 0 {
			return lines, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-tick.C:
		}
	}
}

func (n streamNews) Close() {}

// A reader that is killed again and again and goes on behind what it has printed
// has printed, when the run is over, what one who reads later does.
func TestFollowGoesOnWhereAReaderWasKilled(t *testing.T) {
	t.Parallel()
	p := newPlay(t, 7)
	over := make(chan struct{})
	var got []string
	ended := make(chan error, 1)
	go func() { // follows while it happens
		for {
			err := followFor(t.Context(), p, &got)
			switch {
			case errors.Is(err, errKilled):
				continue
			case err == nil:
				select {
				case <-over:
				default:
					continue // it was stopped, and may go on
				}
			}
			ended <- err
			return
		}
	}()
	for range 60 {
		p.step()
	}
	_ = state.Direct(t.Context(), p.store, p.key, state.Command{Kind: state.CommandStop, Token: "end",
		Mark: state.Mark{Actor: "eva", Time: p.clock()}})
	close(over)
	require.NoError(t, <-ended)
	later := &reader{Stream: history.NewStream(p.store, p.key, 0)}
	later.readAll(t)
	require.Equal(t, later.text, got)
}

// followFor follows behind what there is, for a few lines.
func followFor(ctx context.Context, p *play, got *[]string) error {
	lives := 5
	return history.Follow(ctx, history.NewStream(p.store, p.key, int64(len(*got))),
		history.FollowOptions{Every: time.Millisecond, Stay: true, Listen: news(p.store, p.key)}, func(lines []history.Line) error {
			for _, l := range lines {
				if lives--; lives < 0 {
					return errKilled
				}
				text, err := json.Marshal(l)
				if err != nil {
					return err
				}
				*got = append(*got, string(text))
			}
			return nil
		})
}

// Following ends where a run waits for people, unless it is told to stay.
func TestFollowEndsWhereARunWaits(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	for name, wait := range map[string]func(p *play){
		"at a gate": func(p *play) {
			key := state.NodeKey{RunKey: p.key, Node: "a"}
			require.NoError(t, p.store.MoveNode(ctx, key, state.Move{From: state.Pending, To: state.Waiting,
				Gate: []byte("{}"), GateDigest: "d", Now: noon}))
			for _, node := range []string{"b"} { // nothing else can be done
				key.Node = node
				_, err := state.PlanNode(ctx, p.store, key, 0, state.Plan{Record: []byte("x")}, "w", noon)
				require.NoError(t, err)
				require.NoError(t, p.store.MoveNode(ctx, key, state.Move{From: state.Running,
					To: state.Succeeded, Now: noon}))
			}
		},
		"while it is paused": func(p *play) {
			require.NoError(t, state.Direct(ctx, p.store, p.key, state.Command{Kind: state.CommandPause, Token: "p",
				Mark: state.Mark{Actor: "eva", Time: noon}}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t, 1)
			wait(p)
			none := func([]history.Line) error { return nil }
			require.NoError(t, history.Follow(ctx, history.NewStream(p.store, p.key, 0), quick(p), none))

			stay, cancel := context.WithCancel(ctx)
			looks := 0
			err := history.Follow(stay, history.NewStream(p.store, p.key, 0),
				history.FollowOptions{Every: time.Millisecond,
					Stay:      true,
					Listen:    news(p.store, p.key),
					Abandoned: func(state.Run) bool { looks++; return true }}, func([]history.Line) error {
					time.AfterFunc(20*time.Millisecond, cancel)
					return nil
				})
			require.ErrorIs(t, err, context.Canceled)
			require.Zero(t, looks)
		})
	}
	t.Run("where nobody works on it", func(t *testing.T) {
		p, looks := newPlay(t, 1), 0
		require.NoError(t, history.Follow(ctx, history.NewStream(p.store, p.key, 0),
			history.FollowOptions{Every: time.Millisecond, Listen: news(p.store, p.key), Abandoned: func(state.Run) bool {
				looks++
				return looks != 3 // it changes hands
			}}, func([]history.Line) error { return nil }))
		require.Greater(t, looks, 10)
	})
}

// A run that is stopped so that parts of it can be done again has not ended.
func TestFollowStaysWhileARunIsDoneAgain(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	p := newPlay(t, 1)
	order := func(kind state.CommandKind, reason string) {
		o := state.Command{Kind: kind, Token: string(kind) + reason,
			Mark: state.Mark{Actor: "eva", Time: noon, Reason: reason}}
		require.NoError(t, state.Direct(ctx, p.store, p.key, o))
	}
	order(state.CommandStop, state.ReasonAgain)
	var goesOn sync.WaitGroup
	defer goesOn.Wait()
	var once sync.Once
	require.NoError(t, history.Follow(ctx, history.NewStream(p.store, p.key, 0), quick(p), func([]history.Line) error {
		once.Do(func() {
			goesOn.Go(func() {
				order(state.CommandReopen, "")
				order(state.CommandStop, "it is enough")
			})
		})
		return nil
	}))
	run, err := p.store.Run(ctx, p.key)
	require.NoError(t, err)
	require.Equal(t, "it is enough", run.Command.Reason)
}

// docs/events.md has every kind of event and every member of a line.
func TestEventsAreDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/events.md")
	require.NoError(t, err)
	code, err := os.ReadFile("../../store/state/events.go")
	require.NoError(t, err)
	kinds := regexp.MustCompile(`EventKind = "([a-z_]+)"`).FindAllStringSubmatch(string(code), -1)
	require.NotEmpty(t, kinds)
	for _, kind := range kinds {
		require.Regexp(t, "(?m)^\\| `"+kind[1]+"` \\| (run|node) \\|", string(page))
	}
	require.Len(t, regexp.MustCompile("(?m)^\\| `[a-z_]+` \\| (run|node) \\|").FindAllString(string(page),
		-1), len(kinds),
		"no others")
	for _, member := range members(reflect.TypeFor[history.Line]()) {
		require.Regexp(t, "(?m)^\\| .*`"+member+"`.* \\|", string(page))
	}
}

// members lists the names of a type's members in JSON.
func members(t reflect.Type) (names []string) {
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			names = append(names, members(f.Type)...)
		} else if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			names = append(names, name)
		}
	}
	return names
}

func TestAudit(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	p := newPlay(t, 1)
	gate := state.NodeKey{RunKey: p.key, Node: "a"}
	require.NoError(t, p.store.MoveNode(ctx, gate, state.Move{From: state.Pending, To: state.Waiting, Gate: []byte("{}"),
		GateDigest: "new", Now: noon}))
	say := func(o state.Command) {
		o.Token, o.Actor, o.Time = string(o.Kind)+o.Reason, "eva", noon
		require.NoError(t, state.Direct(ctx, p.store, p.key, o))
	}
	decide := func(reason, digest string) {
		say(state.Command{Kind: state.CommandApprove, Mark: state.Mark{Reason: reason},
			Nodes: []state.CommandNode{{Node: "a", Digest: digest, Role: "finance"}}})
	}
	decide("looks good", "old")
	decide("still does", "new")
	say(state.Command{Kind: state.CommandFail, Cause: &state.Failure{Message: "no"}}) // a coordinator's
	say(state.Command{Kind: state.CommandDrop, Mark: state.Mark{Reason: "gone"}})
	deeds, err := history.Audit(ctx, p.store, p.key)
	require.NoError(t, err)
	deed := func(action, reason string, epoch int64, nodes ...state.CommandNode) history.AuditEntry {
		return history.AuditEntry{Time: noon, Workspace: "main", Run: 1, Actor: "eva", Action: action, Reason: reason,
			Epoch: epoch,
			Nodes: nodes}
	}
	void := deed("approve", "looks good", 1, state.CommandNode{Node: "a", Digest: "old", Role: "finance"})
	void.Void = true
	require.Equal(t, []history.AuditEntry{deed("create", "", 0), void,
		deed("approve", "still does", 2, state.CommandNode{Node: "a", Digest: "new", Role: "finance"}),
		deed("drop", "gone", 4)},
		deeds)

	_, err = p.store.CreateRun(ctx, state.Run{RunKey: state.RunKey{Workspace: "main"}, Actor: "max",
		Created: noon}, nil)
	require.NoError(t, err)
	latest, err := history.AuditAll(ctx, p.store, "main", 2)
	require.NoError(t, err)
	require.Equal(t, "max", latest[0].Actor)
	require.Equal(t, "drop", latest[1].Action)
	all, err := history.AuditAll(ctx, p.store, "main", 0)
	require.NoError(t, err)
	require.Len(t, all, 5)

	for _, minute := range []time.Duration{-1, 1, 2} { // before both runs, and after them
		require.NoError(t, history.RecordScheduleOrder(ctx, p.store, "id", history.AuditEntry{Action: "pause",
			Time: noon.Add(minute * time.Minute), Workspace: "main", Schedule: "watch inbox", Reason: fmt.Sprint(int(minute))}))
	}
	reasons := func(limit int) (out []string) {
		entries, err := history.AuditAll(ctx, p.store, "main", limit)
		require.NoError(t, err)
		for _, e := range entries {
			if out = append(out, e.Action); e.Schedule != "" {
				out[len(out)-1] = e.Reason
			}
		}
		return out
	}
	require.Equal(t, []string{"2", "1", "create", "drop", "approve", "approve", "create", "-1"}, reasons(0))
	require.Equal(t, []string{"2", "1", "create"}, reasons(2))
}

// failingNews fails now and then, and gives nothing of what is to come.
type failingNews struct {
	history.News
	count *int
}

// Next implements history.News.
func (n failingNews) Next(ctx context.Context) ([]history.Line, error) {
	if *n.count++; *n.count%3 == 0 {
		return nil, errKilled
	}
	return n.News.Next(ctx)
}

// Where there is no news, or it fails, the state is read: nothing is missed, and nothing told twice.
func TestFollowWithoutNews(t *testing.T) {
	t.Parallel()
	for seed := range uint64(effort.Of(3, 10, 100)) {
		p := newPlay(t, seed)
		fails := 0
		o := quick(p)
		o.Listen = func(ctx context.Context, after int64) (history.News, error) {
			if fails++; fails%4 == 0 {
				return nil, errKilled
			}
			n, err := news(p.store, p.key)(ctx, after)
			return failingNews{n, &fails}, err
		}
		var got []history.Line
		ended := make(chan error, 1)
		go func() {
			ended <- history.Follow(t.Context(), history.NewStream(p.store, p.key, 2), o, func(lines []history.Line) error {
				got = append(got, lines...)
				return nil
			})
		}()
		for range 40 {
			p.step()
		}
		_ = state.Direct(t.Context(), p.store, p.key, state.Command{Kind: state.CommandStop, Token: "end",
			Mark: state.Mark{Actor: "eva", Time: p.clock()}})
		require.NoError(t, <-ended)
		all := &reader{Stream: history.NewStream(p.store, p.key, 2)}
		all.readAll(t)
		require.Equal(t, all.lines[:len(got)], got)
		require.NotEmpty(t, got)
	}
}

// counting counts what a reader asks for.
type counting struct {
	state.Store
	looks, sequences int
	enough           context.CancelFunc
}

// Run implements state.Store.
func (c *counting) Run(ctx context.Context, key state.RunKey) (state.Run, error) {
	if c.looks++; c.looks == 3 {
		c.enough()
	}
	return c.Store.Run(ctx, key)
}

// Sequence implements state.Store.
func (c *counting) Sequence(ctx context.Context, key state.RunKey, page state.Page) ([]state.Span, int64, error) {
	c.sequences++
	return c.Store.Sequence(ctx, key, page)
}

// Who follows a run in which nothing happens reads the run and its nodes now and then, and no events.
func TestFollowReadsLittleWhereNothingHappens(t *testing.T) {
	t.Parallel()
	p := newPlay(t, 3)
	ctx, enough := context.WithCancel(t.Context())
	c := &counting{Store: p.store, enough: enough}
	began := time.Now()
	err := history.Follow(ctx, history.NewStream(c, p.key, 0), history.FollowOptions{Every: time.Millisecond,
		Stay: true, Listen: news(p.store, p.key)}, func([]history.Line) error { return nil })
	require.ErrorIs(t, err, context.Canceled)
	require.GreaterOrEqual(t, time.Since(began), 2*time.Second, "looks are a second apart")
	require.LessOrEqual(t, c.sequences, 3, "once, before there is news")
}
