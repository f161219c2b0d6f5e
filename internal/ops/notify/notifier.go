package notify

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"thalweg/internal/base/calendar"
	"thalweg/internal/base/message"
	"thalweg/internal/lang/script"
	"thalweg/internal/run/gate"
	"thalweg/internal/run/job"
	"thalweg/internal/store/state"
)

// Config configures a Notifier.
type Config struct {
	Store  Store
	Box    Registry
	Sender *Sender
	// Hooks gives those of a recorded run, in an order that never changes, and the
	// directory that it was begun in.
	Hooks func(ctx context.Context, run state.Run) (hooks []script.Hook, dir string, err error)
	Name  func(run state.Run) string // of its script, for people
	Owner string                     // see worker.Owner
	Clock calendar.Clock
	Told  func(text string) string // a text whose commands are typed where messages are read; nil: as it is
	// Logger hears of what cannot be told.
	Logger     *slog.Logger
	Checkpoint func(job.CrashPoint) // for tests that die there; may be nil
}

// When things are done again.
const (
	lookEvery    = time.Second     // at the records
	idleEvery    = 5 * time.Second // while there is none
	roleLease    = 30 * time.Second
	retryMin     = time.Second
	retryMax     = 5 * time.Minute
	askedMax     = time.Hour // that a server can ask to be left alone for
	GiveUpAfter  = 24 * time.Hour
	commandTries = 5  // a command that fails fails again
	sendsAtOnce  = 4  // of one run
	tendsAtOnce  = 32 // runs
	// recordTimeout bounds writing down what was sent, for a process that is to end.
	recordTimeout = 2 * time.Second
	// FlushTime is the time for which a process stays for its last messages.
	FlushTime = 5 * time.Second
)

// roleTell is of who tells of a run.
const roleTell = "tell"

// Notifier tells what happens to runs.
type Notifier struct {
	cfg Config

	mu    sync.Mutex
	mine  map[state.RunKey][]byte // runs that this process follows, and their records as it wrote them
	roles map[state.RunKey]time.Time
	known map[state.RunKey]known
	now   map[state.RunKey]*tending

	tends  sync.WaitGroup
	places chan struct{} // bounds them
	woken  chan struct{} // there is something to look after
}

// tending is the state of the messages of a run.
type tending struct {
	busy bool      // somebody is at it
	owes bool      // something is owed that this process is to send
	next time.Time // when it is due; zero: nothing is
}

// known is the part of a run that does not change.
type known struct {
	hooks []script.Hook
	dir   string
}

// New returns a Notifier. It does nothing by itself.
func New(cfg Config) *Notifier {
	if cfg.Checkpoint == nil {
		cfg.Checkpoint = func(job.CrashPoint) {}
	}
	return &Notifier{cfg: cfg, mine: map[state.RunKey][]byte{}, roles: map[state.RunKey]time.Time{},
		known: map[state.RunKey]known{}, now: map[state.RunKey]*tending{}, places: make(chan struct{}, tendsAtOnce),
		woken: make(chan struct{}, 1)}
}

// Follow sees to it that what happens to a run is told, from now on and whatever
// becomes of this process. Whoever works on a run calls it before.
func (t *Notifier) Follow(ctx context.Context, key state.RunKey) error {
	run, err := t.cfg.Store.Run(ctx, key)
	if err != nil {
		return fmt.Errorf("read run %d: %w", key.Run, err)
	}
	hooks, dir, err := t.cfg.Hooks(ctx, run)
	if err != nil || len(hooks) == 0 {
		return err
	}
	entries, err := t.cfg.Box.List(ctx)
	if err != nil {
		return err
	}
	t.mu.Lock()
	t.known[key] = known{hooks, dir}
	t.mine[key] = nil
	t.mu.Unlock()
	select {
	case t.woken <- struct{}{}:
	default:
	}
	if slices.ContainsFunc(entries, func(e Entry) bool { return e.Run == key }) {
		return nil // others have begun, or not finished
	}
	rec, err := begin(ctx, t.cfg.Store, run)
	if err != nil {
		return err
	}
	return t.put(ctx, key, rec)
}

// Work looks after all records until quit is closed: what is being sent then is
// sent, unless ctx ends.
func (t *Notifier) Work(ctx context.Context, quit <-chan struct{}) {
	defer t.tends.Wait()
	looked := t.cfg.Clock.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-quit:
			return
		case <-t.woken: // it may be due earlier
		case <-t.cfg.Clock.After(looked.Add(t.interval()).Sub(t.cfg.Clock.Now())):
			looked = t.cfg.Clock.Now()
			t.look(ctx) // without waiting: a hook that is slow is of one run
		}
	}
}

// interval is the time until the next look: longer while nothing is known that
// could be told, and what others have left behind is looked for.
func (t *Notifier) interval() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.mine) == 0 && len(t.now) == 0 {
		return idleEvery
	}
	return lookEvery
}

// Flush sends what is owed of the runs that this process follows, until nothing
// is that can be sent before ctx ends; then it lets others tell. What is left is
// told by the next process.
func (t *Notifier) Flush(ctx context.Context) {
	for ctx.Err() == nil && t.Pass(ctx) && t.dueBefore(ctx) {
		select {
		case <-ctx.Done():
		case <-t.cfg.Clock.After(lookEvery / 10):
		}
	}
	ctx = context.WithoutCancel(ctx)
	t.mu.Lock()
	defer t.mu.Unlock()
	for key := range t.roles {
		if err := t.cfg.Store.Resign(ctx, key, roleTell, t.cfg.Owner); err != nil {
			t.cfg.Logger.Debug("the role of who tells ends by itself", "run", key.Run, "error", err)
		}
	}
	clear(t.roles)
}

// dueBefore reports whether something can be sent before ctx ends.
func (t *Notifier) dueBefore(ctx context.Context) bool {
	end, bounded := ctx.Deadline()
	t.mu.Lock()
	defer t.mu.Unlock()
	var next time.Time
	for _, n := range t.now {
		if !n.next.IsZero() && (next.IsZero() || n.next.Before(next)) {
			next = n.next
		}
	}
	return !bounded || next.IsZero() || t.cfg.Clock.Now().Add(time.Until(end)).After(next)
}

// Pass looks at all records once, and sends what is due. It reports whether
// anything is owed of the runs that this process follows.
func (t *Notifier) Pass(ctx context.Context) (owes bool) {
	if !t.look(ctx) {
		return true
	}
	t.tends.Wait()
	t.mu.Lock()
	defer t.mu.Unlock()
	for key, n := range t.now {
		_, mine := t.mine[key]
		owes = owes || mine && n.owes
	}
	return owes
}

// look begins to look at all records that nobody is at, each by itself. It reports
// whether they can be read.
func (t *Notifier) look(ctx context.Context) bool {
	entries, err := t.cfg.Box.List(ctx)
	if err != nil {
		t.complain(ctx, "what is to be told cannot be read", err)
		return false
	}
	listed := map[state.RunKey]bool{}
	for _, e := range entries {
		listed[e.Run] = true
		if !t.claim(e.Run) {
			continue
		}
		t.tends.Go(func() {
			t.places <- struct{}{}
			defer func() { <-t.places }()
			left, next, err := t.tend(ctx, e)
			if err != nil {
				t.complain(ctx, "what happens to a run cannot be told now", err, "run", e.Run.Run, "workspace",
					e.Run.Workspace)
			}
			t.mu.Lock()
			defer t.mu.Unlock()
			t.now[e.Run] = &tending{owes: left || err != nil, next: next}
		})
	}
	t.mu.Lock()
	for key, n := range t.now {
		if !listed[key] && !n.busy {
			delete(t.now, key)
		}
	}
	t.mu.Unlock()
	t.restore(ctx, listed)
	return true
}

// claim reports whether nobody is at a run.
func (t *Notifier) claim(key state.RunKey) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := t.now[key]; n != nil && n.busy {
		return false
	}
	t.now[key] = &tending{busy: true}
	return true
}

func (t *Notifier) complain(ctx context.Context, what string, err error, args ...any) {
	if ctx.Err() == nil {
		t.cfg.Logger.Warn(what, append(args, "error", err)...)
	}
}

// restore puts back records that others have removed although their runs go on:
// a run may be made to go on while somebody finds it over.
func (t *Notifier) restore(ctx context.Context, listed map[state.RunKey]bool) {
	t.mu.Lock()
	var lost []state.RunKey
	for key := range t.mine {
		if !listed[key] {
			lost = append(lost, key)
		}
	}
	t.mu.Unlock()
	for _, key := range lost {
		run, err := t.cfg.Store.Run(ctx, key)
		if err != nil {
			continue // it is looked at again
		}
		if run.Status.Terminal() {
			t.forget(ctx, key)
			continue
		}
		rec, err := begin(ctx, t.cfg.Store, run)
		if err == nil {
			err = t.put(ctx, key, rec)
		}
		if err != nil {
			t.complain(ctx, "what happens to a run may not be told", err, "run", key.Run)
		}
	}
}

// tend looks at one record, and reports whether something is owed that this
// process is to send, and when.
func (t *Notifier) tend(ctx context.Context, e Entry) (owes bool, next time.Time, err error) {
	rec, err := parseRecord(e.Record)
	if err != nil {
		return false, next, err
	}
	ours, err := t.lead(ctx, e.Run)
	if err != nil || !ours {
		return false, next, err
	}
	run, err := t.cfg.Store.Run(ctx, e.Run)
	if errors.Is(err, state.ErrNotFound) {
		return false, next, t.remove(ctx, e.Run)
	}
	if err != nil {
		return true, next, fmt.Errorf("read run %d: %w", e.Run.Run, err)
	}
	k, err := t.knownOf(ctx, run)
	if err != nil {
		return false, next, err
	}
	changed, err := rec.look(ctx, t.cfg.Store, run, k.hooks, t.cfg.Clock.Now())
	if changed {
		if err := t.put(ctx, e.Run, rec); err != nil { // before anything is sent
			return true, next, err
		}
	}
	if err != nil {
		return true, next, err
	}
	if len(rec.Owed) > 0 {
		t.cfg.Checkpoint(job.Owed)
	}
	sent := t.send(ctx, run, k, rec)
	if rec.tidy(); sent {
		t.cfg.Checkpoint(job.Told)
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(context.WithoutCancel(ctx), recordTimeout) // else it would be told again
		defer stop()
		if err := t.put(ctx, e.Run, rec); err != nil {
			return true, next, err
		}
	}
	if rec.Over && len(rec.Owed) == 0 {
		return false, next, t.remove(ctx, e.Run)
	}
	return len(rec.Owed) > 0, rec.next(), nil
}

func (t *Notifier) knownOf(ctx context.Context, run state.Run) (known, error) {
	t.mu.Lock()
	k, ok := t.known[run.RunKey]
	t.mu.Unlock()
	if ok {
		return k, nil
	}
	hooks, dir, err := t.cfg.Hooks(ctx, run)
	if err != nil {
		return k, err
	}
	k = known{hooks, dir}
	t.mu.Lock()
	t.known[run.RunKey] = k
	t.mu.Unlock()
	return k, nil
}

// lead reports whether this process tells of a run.
func (t *Notifier) lead(ctx context.Context, key state.RunKey) (bool, error) {
	now := t.cfg.Clock.Now()
	t.mu.Lock()
	until := t.roles[key]
	t.mu.Unlock()
	if until.Sub(now) > roleLease/2 && until.Sub(now) <= roleLease {
		return true, nil
	}
	role, err := t.cfg.Store.Acquire(ctx, key, roleTell, t.cfg.Owner, now, now.Add(roleLease))
	if errors.Is(err, state.ErrHeld) && job.Gone(role.Owner) {
		role, err = t.cfg.Store.Acquire(ctx, key, roleTell, t.cfg.Owner, role.Until.Add(time.Millisecond),
			role.Until.Add(roleLease))
	}
	switch {
	case errors.Is(err, state.ErrHeld):
		return false, nil
	case errors.Is(err, state.ErrNotFound):
		return true, nil // the run is looked for next
	case err != nil:
		return false, fmt.Errorf("take the role of who tells of run %d: %w", key.Run, err)
	}
	t.mu.Lock()
	t.roles[key] = now.Add(roleLease)
	t.mu.Unlock()
	return true, nil
}

func (t *Notifier) put(ctx context.Context, key state.RunKey, rec *record) error {
	text, err := rec.encode()
	if err != nil {
		return err
	}
	if err := t.cfg.Box.Put(ctx, key, text); err != nil {
		return fmt.Errorf("write down what is to be told of run %d: %w", key.Run, err)
	}
	return nil
}

func (t *Notifier) remove(ctx context.Context, key state.RunKey) error {
	if err := t.cfg.Box.Remove(ctx, key); err != nil {
		return fmt.Errorf("write down that all of run %d is told: %w", key.Run, err)
	}
	t.forget(ctx, key)
	return nil
}

func (t *Notifier) forget(ctx context.Context, key state.RunKey) {
	t.mu.Lock()
	_, led := t.roles[key]
	delete(t.mine, key)
	delete(t.roles, key)
	delete(t.known, key)
	t.mu.Unlock()
	if led {
		_ = t.cfg.Store.Resign(ctx, key, roleTell, t.cfg.Owner) // it ends by itself
	}
}

// send sends what is due, and reports whether the record has changed.
func (t *Notifier) send(ctx context.Context, run state.Run, k known, rec *record) (changed bool) {
	type outcome struct {
		event, hook int
		err         error
	}
	now := t.cfg.Clock.Now()
	var wg sync.WaitGroup
	outcomes, places := make(chan outcome), make(chan struct{}, sendsAtOnce)
	count := 0
	for i, o := range rec.Owed {
		m := t.message(ctx, run, o)
		for at, tried := range o.Hooks {
			if time.UnixMilli(tried.Next).After(now) && time.UnixMilli(tried.Next).Sub(now) <= askedMax {
				continue // unless the clock was put back
			}
			count++
			wg.Go(func() {
				places <- struct{}{}
				defer func() { <-places }()
				var err error
				if at < len(k.hooks) {
					err = t.cfg.Sender.Send(ctx, k.hooks[at], m, k.dir)
				}
				outcomes <- outcome{i, at, err}
			})
		}
	}
	for range count {
		done := <-outcomes
		if ctx.Err() != nil && done.err != nil {
			continue // it was cut off: that is no try
		}
		changed = true
		t.judge(run, rec, k, done.event, done.hook, done.err)
	}
	wg.Wait()
	return changed
}

// judge says what becomes of a message after a try.
func (t *Notifier) judge(run state.Run, rec *record, k known, event, hook int, err error) {
	if err == nil {
		rec.settle(event, hook)
		return
	}
	o, e, now := rec.Owed[event], asSendError(err), t.cfg.Clock.Now()
	tries := o.Hooks[hook]
	tries.Times++
	h := k.hooks[hook]
	final := e.final || now.Sub(time.UnixMilli(o.At)) > GiveUpAfter && tries.Times > 1 || len(h.Command) > 0 &&
		tries.Times >= commandTries
	log := t.cfg.Logger.With("run", run.Run, "workspace", run.Workspace, "event", o.Kind, "hook", Name(h), "tries",
		tries.Times, "error", t.cfg.Sender.Known.Text(err.Error()))
	if final {
		log.Error("a message could not be sent, and is given up")
		rec.settle(event, hook)
		return
	}
	if tries.Times == 1 {
		log.Warn("a message could not be sent; it is tried again")
	} else {
		log.Debug("a message could not be sent; it is tried again")
	}
	tries.Next = now.Add(max(pause(tries.Times), min(e.after, askedMax))).UnixMilli()
	o.Hooks[hook] = tries
}

// pause returns the time to wait after so many tries: longer each time, with a random part.
func pause(tries int) time.Duration {
	d := retryMax
	if tries < 10 {
		d = min(retryMin<<(tries-1), retryMax)
	}
	return d - rand.N(d/4+1)
}

// message makes the message about an event of a run.
func (t *Notifier) message(ctx context.Context, run state.Run, o owed) message.Message {
	m := message.Message{Version: message.Version, ID: eventID(run, o), Event: o.Kind, Time: time.UnixMilli(o.At).UTC(),
		Workspace: run.Workspace, Run: run.Run,
		Script: t.cfg.Name(run), Path: run.ScriptPath, Status: string(run.Status), Description: run.Description,
		Created: timeOf(run.Created), Finished: timeOf(run.Finished),
		Deadline: timeOf(run.Deadline), Commands: map[string]string{"show": run.Do("show").String()}}
	if o.Seq > 0 {
		events, err := t.cfg.Store.Events(ctx, state.NodeKey{RunKey: run.RunKey, Node: o.Node}, o.Seq-1, 1)
		if err == nil && len(events) == 1 && o.Kind != message.Failed && o.Kind != message.Done {
			m.Actor = events[0].Actor
		}
	}
	switch o.Kind {
	case message.Failed:
		m.Status, m.Failure = string(state.Failed), failureOf(run.Failure)
		show, goOn := run.AfterFailure()
		m.Commands["show"], m.Commands[goOn.Verb] = show.String(), goOn.String()
	case message.Stopped:
		m.Status = string(state.Stopped)
		m.Commands["resume"] = run.Do("resume").String()
	case message.Done:
		m.Status = string(state.Complete)
	case message.Waiting:
		t.waiting(ctx, run, o, &m)
	case message.Late:
	}
	m.Say(t.cfg.Told)
	return m
}

// waiting adds what a run waits for.
func (t *Notifier) waiting(ctx context.Context, run state.Run, o owed, m *message.Message) {
	if o.Node == "" {
		m.Commands["resume"] = run.Do("resume").String()
		return
	}
	m.Actor = ""
	node, err := t.cfg.Store.Node(ctx, state.NodeKey{RunKey: run.RunKey, Node: o.Node})
	var asks gate.Record
	if err == nil {
		asks, err = gate.Decode(node.Gate)
	}
	if err != nil { // its name says enough
		asks = gate.Record{Gate: gate.NameOf(o.Node)}
	}
	m.Gate = &message.Gate{Name: asks.Gate, Message: asks.Message, By: asks.By}
	m.Commands["approve"], m.Commands["reject"] = asks.Decide(run.RunKey, "approve").String(),
		asks.Decide(run.RunKey, "reject").String()
	if len(asks.Shows) > 0 {
		first := asks.Shows[0]
		m.Commands["look"] = gate.Look(state.RunKey{Workspace: run.Workspace, Run: first.Run}, first.Table).String()
	}
}

func failureOf(f *state.Failure) *message.Failure {
	if f == nil {
		return nil
	}
	return &message.Failure{Kind: string(f.Kind), Message: f.Message, Place: f.Place.String(),
		Hint: f.Hint, Node: f.Node}
}

func timeOf(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	at = at.UTC()
	return &at
}
