package schedule

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"thalweg/internal/base/allow"
	"thalweg/internal/base/calendar"
	"thalweg/internal/base/fault"
	"thalweg/internal/lang/script"
	"thalweg/internal/run/job"
	"thalweg/internal/store/state"
)

// Registry keeps records by name. The last writer counts.
type Registry interface {
	Put(ctx context.Context, name string, record []byte) error
	Remove(ctx context.Context, name string) error
	List(ctx context.Context) ([]Entry, error)
}

// Entry is a record in a box.
type Entry struct {
	Name   string
	Record []byte
}

// Start asks for a run.
type Start struct {
	Script      string // path, as it was given
	Token       string
	Params      map[string]string
	Offered     map[string]string // see script.Sources
	Nominal     time.Time         // the moment that it is begun for; zero: now
	Description string
	Most        script.Most // "": as the scheduler says
}

// Runs begins runs and looks at them.
type Runs interface {
	// Begin begins a run, or gives the one that was begun with the token.
	Begin(ctx context.Context, s Start) (state.RunKey, error)
	// Busy reports whether a run is not over, and whether somebody works on it, or
	// should: not if it waits for people.
	Busy(ctx context.Context, key state.RunKey) (open, working bool, err error)
	// Tell tells those who want to know of failed runs that one could not begin.
	Tell(ctx context.Context, s Start, served Served, cause error) error
}

// Served is a script that is served.
type Served struct {
	Path     string // as it was given
	Identity string // which script it is
	Script   *script.Script
}

// Config configures a Service.
type Config struct {
	Workspace string
	Registry  Registry // of the standings
	Paused    Registry // of what is paused
	// Files gives the box of the files of a watch.
	Files  func(watch string) Registry
	Remote Lister        // nil: there is none
	Policy *allow.Policy // of the files of this machine that watches see; nil: all
	Runs   Runs
	Load   func(ctx context.Context) []Served // the scripts as they are now
	Most   int                                // runs that are worked on at once
	Clock  calendar.Clock
	Logger *slog.Logger

	Checkpoint func(job.CrashPoint) // for tests that die there; may be nil
}

// When things are done again.
const (
	lookEvery     = time.Second
	recordTimeout = 2 * time.Second
	noteEvery     = 20 * time.Second // Looked is written, though nothing has happened: less than OnTime
	retryMin      = 5 * time.Second
	retryMax      = 10 * time.Minute
	giveUpAfter   = 24 * time.Hour // of a moment whose run cannot begin
	tellTimeout   = 10 * time.Second
)

// TokenPrefix begins the tokens of all runs that schedules and watches begin.
const TokenPrefix = "served:"

// Service looks after schedules and watches.
type Service struct {
	cfg     Config
	watches map[string]*watcher
	paused  map[string]*Paused   // in this look
	noted   map[string]time.Time // when Looked was written last, by record

	listings sync.WaitGroup // that are under way

	began, ended time.Time     // this look, the last one
	worked       time.Duration // how long the last one took
	slack        time.Duration // by which moments may be later in this one, which had to wait for it
}

// New returns a Service.
func New(cfg Config) *Service {
	if cfg.Checkpoint == nil {
		cfg.Checkpoint = func(job.CrashPoint) {}
	}
	return &Service{cfg: cfg, watches: map[string]*watcher{}, noted: map[string]time.Time{}}
}

// Work looks after them until ctx ends.
func (s *Service) Work(ctx context.Context) {
	defer s.listings.Wait()
	for {
		if err := s.Look(ctx); err != nil && ctx.Err() == nil {
			s.cfg.Logger.Error("schedules cannot be looked after now", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-s.cfg.Clock.After(lookEvery):
		}
	}
}

// Look begins what is due.
func (s *Service) Look(ctx context.Context) error {
	s.began = s.cfg.Clock.Now()
	if s.slack = 0; s.began.Sub(s.ended) < OnTime {
		s.slack = s.worked
	}
	defer func() {
		s.ended = s.cfg.Clock.Now()
		s.worked = max(0, s.ended.Sub(s.began)) // the time that a machine sleeps is none
	}()
	standings, err := standingsOf(ctx, s.cfg.Registry)
	if err != nil {
		return err
	}
	if s.paused, err = PausedOf(ctx, s.cfg.Paused); err != nil {
		return err // what is not known to go on is not begun
	}
	served := s.cfg.Load(ctx)
	var errs []error
	here := map[string]bool{}
	for _, sv := range served {
		for _, sc := range sv.Script.Schedules {
			here[recordName(sv, KindSchedule, sc.Name)] = true
		}
		for _, w := range sv.Script.Watches {
			here[recordName(sv, KindWatch, w.Name)] = true
		}
	}
	errs = append(errs, s.forget(ctx, standings, here))
	for _, sv := range served {
		for _, sc := range sv.Script.Schedules {
			errs = append(errs, s.schedule(ctx, sv, sc, standings))
		}
		for _, w := range sv.Script.Watches {
			errs = append(errs, s.watch(ctx, sv, w, standings))
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return errors.Join(errs...)
}

// forget removes the records of schedules that nobody has served for so long that
// they would begin anew.
func (s *Service) forget(ctx context.Context, standings map[string]*Standing, here map[string]bool) error {
	for id, st := range standings {
		if here[id] || s.cfg.Clock.Now().Sub(st.Looked) < Horizon {
			continue
		}
		if err := s.cfg.Registry.Remove(ctx, id); err != nil {
			return fmt.Errorf("forget %s %s: %w", st.Kind, st.Name, err)
		}
		delete(standings, id)
	}
	return nil
}

func standingsOf(ctx context.Context, b Registry) (map[string]*Standing, error) {
	entries, err := b.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the records of schedules: %w", err)
	}
	out := map[string]*Standing{}
	for _, e := range entries {
		if out[e.Name], err = parseStanding(e.Record); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Standings lists what is known of all schedules and watches.
func Standings(ctx context.Context, b Registry) ([]*Standing, error) {
	entries, err := b.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the records of schedules: %w", err)
	}
	var out []*Standing
	for _, e := range entries {
		st, err := parseStanding(e.Record)
		if err != nil {
			return nil, err
		}
		st.ID = e.Name
		out = append(out, st)
	}
	return out, nil
}

// recordName names the record of a schedule or watch.
func recordName(sv Served, kind, name string) string { return digest(sv.Identity, kind, name) }

func digest(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:16])
}

// schedule looks after one schedule.
func (s *Service) schedule(ctx context.Context, sv Served, sc script.Schedule, standings map[string]*Standing) error {
	id := recordName(sv, KindSchedule, sc.Name)
	now := s.cfg.Clock.Now()
	st := standings[id]
	changed := st == nil
	if st == nil { // from now on
		st = &Standing{Version: standingVersion, Kind: KindSchedule, Looked: now}
		standings[id] = st
	}
	st.Script, st.Name, st.When, st.Zone = shownScript(sv), sc.Name, Cut(sc.Times.String()), sc.Times.Zone().String()
	if st.advance(sc.Times, sc.CatchUp, now, OnTime+s.slack+max(0, now.Sub(s.began))) {
		changed = true
	}
	if p := s.paused[id]; p != nil && st.skipPaused(p, sc.Times.Zone()) {
		changed = true
	}
	if changed || now.Sub(s.noted[id]) > noteEvery || now.Before(s.noted[id]) {
		if err := s.put(ctx, id, st); err != nil { // before anything is begun
			return err
		}
	}
	for len(st.Queue) > 0 {
		more, err := s.next(ctx, sv, sc, st, standings)
		if err != nil {
			return err
		}
		if err := s.put(ctx, id, st); err != nil {
			return err
		}
		if !more {
			break
		}
	}
	return nil
}

func shownScript(sv Served) string {
	if sv.Script.Name != "" {
		return sv.Script.Name
	}
	return filepath.Base(sv.Path)
}

// put writes a record, also for a process that is told to end: it says what was done.
func (s *Service) put(ctx context.Context, id string, st *Standing) error {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer stop()
	text, err := st.encode()
	if err != nil {
		return err
	}
	if err := s.cfg.Registry.Put(ctx, id, text); err != nil {
		return fmt.Errorf("write the record of %s %s: %w", st.Kind, st.Name, err)
	}
	s.noted[id] = s.cfg.Clock.Now()
	return nil
}

// next deals with the first moment of the queue, and reports whether it is dealt with.
func (s *Service) next(ctx context.Context, sv Served, sc script.Schedule, st *Standing,
	standings map[string]*Standing) (more bool, err error) {
	at := time.Unix(st.Queue[0], 0).In(sc.Times.Zone())
	open, err := s.open(ctx, st)
	if err != nil {
		return false, err
	}
	drop := func(why string) (bool, error) {
		st.skip(at, why)
		st.Queue, st.Failing = st.Queue[1:], nil
		return true, nil
	}
	skips := sc.Overlap == script.OverlapSkip
	now := s.cfg.Clock.Now()
	switch f := st.Failing; {
	case open && skips && st.Last.At.Before(at):
		return drop(fmt.Sprintf("run %d was not over", st.Last.Run))
	case open && st.Last.At.Before(at):
		return false, nil
	case f != nil && f.At.Equal(at) && (skips && len(st.Queue) > 1 || now.Sub(f.Since) > giveUpAfter):
		return drop("it could not begin: " + f.Message)
	case f != nil && f.At.Equal(at) && now.Before(f.Next) && f.Next.Sub(now) <= retryMax:
		return false, nil
	}
	if room, err := s.room(ctx, standings); err != nil || !room {
		if err == nil && skips && len(st.Queue) > 1 {
			return drop(beingWorkedOn(s.cfg.Most))
		}
		return false, err
	}
	start := Start{Script: sv.Path, Token: TokenPrefix + digest(sv.Identity, KindSchedule, sc.Name,
		at.UTC().Format(time.RFC3339)), Params: sc.Params, Most: sc.Most,
		Offered: script.Offers(at), Nominal: at, Description: fmt.Sprintf("schedule %s, for %s", sc.Name,
			at.Format(time.RFC3339))}
	s.cfg.Checkpoint(job.RunDue)
	key, err := s.cfg.Runs.Begin(ctx, start)
	s.cfg.Checkpoint(job.RunBegun)
	if err != nil {
		return false, s.failed(ctx, sv, st, start, "", err)
	}
	if st.Queue, st.Failing = st.Queue[1:], nil; st.Last == nil || st.Last.Run < key.Run {
		st.Last = &Begun{Run: key.Run, At: at} // else it was begun before, by another scheduler
	}
	s.cfg.Logger.Info("a run was begun", "schedule", sc.Name, "script", st.Script, "for", at, "run", key.Run)
	return true, nil
}

// open reports whether the last run of a schedule or watch is not over.
func (s *Service) open(ctx context.Context, st *Standing) (bool, error) {
	if st.Last == nil {
		return false, nil
	}
	open, _, err := s.cfg.Runs.Busy(ctx, state.RunKey{Workspace: s.cfg.Workspace, Run: st.Last.Run})
	return open, err
}

// room reports whether one more run may be worked on.
func (s *Service) room(ctx context.Context, standings map[string]*Standing) (bool, error) {
	busy := 0
	for _, st := range standings {
		if st.Last == nil {
			continue
		}
		_, working, err := s.cfg.Runs.Busy(ctx, state.RunKey{Workspace: s.cfg.Workspace, Run: st.Last.Run})
		if err != nil {
			return false, err
		}
		if working {
			busy++
		}
	}
	return busy < s.cfg.Most, nil
}

// failed notes that a run could not begin, and tells of it once.
func (s *Service) failed(ctx context.Context, sv Served, st *Standing, start Start, file string, cause error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	now := s.cfg.Clock.Now()
	f := &Failing{At: start.Nominal, File: file, Since: now}
	if before := st.Failing; before != nil && before.At.Equal(start.Nominal) && before.File == file {
		*f = *before // others may have the one before
	}
	f.Tries++
	f.Message, f.Next = Cut(cause.Error()), now.Add(pause(f.Tries))
	st.Failing = f
	s.cfg.Logger.Log(ctx, levelOf(f), "a run could not begin; it is tried again", st.Kind, st.Name, "script", st.Script,
		"tries", f.Tries, "error", cause)
	if !f.Told && (fault.Of(cause).Kind != fault.Environment || f.Tries > 1) {
		s.tell(ctx, sv, f, start, cause)
	}
	return nil
}

// tell tells of something that fails, unless it takes too long: then it is told
// when it fails again.
func (s *Service) tell(ctx context.Context, sv Served, f *Failing, start Start, cause error) {
	told, stop := context.WithTimeout(ctx, tellTimeout)
	defer stop()
	err := s.cfg.Runs.Tell(told, start, sv, cause)
	if f.Told = err == nil; err != nil && ctx.Err() == nil {
		s.cfg.Logger.Warn("it could not be told that a schedule or watch fails", "error", err)
	}
}

func levelOf(f *Failing) slog.Level {
	if f.Tries == 1 {
		return slog.LevelWarn
	}
	return slog.LevelDebug
}

// pause returns the time to wait after so many tries.
func pause(tries int) time.Duration {
	d := retryMax
	if tries < 8 {
		d = min(retryMin<<(tries-1), retryMax)
	}
	return d - rand.N(d/4+1)
}

func beingWorkedOn(runs int) string {
	if runs == 1 {
		return "1 run was being worked on"
	}
	return fmt.Sprintf("%d runs were being worked on", runs)
}
