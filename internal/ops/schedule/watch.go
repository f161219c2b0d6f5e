package schedule

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"thalweg/internal/base/address"
	"thalweg/internal/base/allow"
	"thalweg/internal/lang/script"
	"thalweg/internal/run/job"
	"thalweg/internal/store/state"
)

// Limits of watches.
const (
	// WatchedMax limits the files that a pattern may match.
	WatchedMax = 100_000
	scanEvery  = 2 * time.Second
	tidyEvery  = time.Hour
	// freshFor is the greatest age of a listing by which a run may be begun.
	freshFor = 10 * time.Second
	// tellBlindAfter is the time for which files cannot be looked at before that is told.
	tellBlindAfter = 10 * time.Minute
	pendingShown   = 5
	pathShownMax   = 120
)

// taken records a version of a file that was dealt with. It is stored. It is stored.
type taken struct {
	File    string `json:"file"` // absolute path, or address
	Run     int64  `json:"run,omitempty"`
	Ignored bool   `json:"ignored,omitempty"` // it was there before the watch
}

// watcher is a process's memory of a watch.
type watcher struct {
	box     Registry
	dir     string           // see script.Script
	policy  *allow.Policy    // see Config
	taken   map[string]taken // by version; nil: not read yet
	seen    map[string]sight // by path
	failing map[string]*Failing
	last    int64 // the run that was begun last, as far as is known here
	tended  time.Time
	tidied  time.Time
	view    *view // how its files were when they were looked at last; nil: not known
	tries   int   // that have failed to look at them, since the last that has not

	// Of files of other machines: the listing that is under way, and when the next
	// one begins.
	asked chan view
	next  time.Time
}

// sight is a version of a file, and since when it has been seen.
type sight struct {
	version string
	since   time.Time
}

// found is a file that matches.
type found struct {
	name    string // its path or address, as a parameter
	place   string // by which it is known, from wherever it is seen
	path    string // at its server or on this machine
	version string
	bytes   int64
	changed time.Time
	marker  string    // the name of its marker; "": there needs none be
	marked  time.Time // when its marker was changed; zero: it has none
}

// view holds the files of a watch as they were during one look.
type view struct {
	files, marker string // of the watch
	began, ended  time.Time
	found         []found // in the order in which they are taken
	err           error
}

// watch looks after one watch.
func (s *Service) watch(ctx context.Context, sv Served, w script.Watch, standings map[string]*Standing) error {
	id := recordName(sv, KindWatch, w.Name)
	now := s.cfg.Clock.Now()
	wr := s.watches[id]
	if wr == nil {
		wr = &watcher{box: s.cfg.Files(id), dir: sv.Script.Dir, policy: s.cfg.Policy, seen: map[string]sight{}, failing: map[string]*Failing{}}
		s.watches[id] = wr
	}
	if since := now.Sub(wr.tended); since >= 0 && since < scanEvery {
		return nil
	}
	wr.tended = now
	if err := wr.read(ctx); err != nil {
		return err
	}
	st := standings[id]
	isNew := st == nil
	if isNew {
		st = &Standing{Version: standingVersion, Kind: KindWatch, Unopened: true}
		standings[id] = st
	}
	if st.Last != nil && st.Last.Run != wr.last { // another scheduler was here
		wr.taken, wr.last = nil, st.Last.Run
		if err := wr.read(ctx); err != nil {
			return err
		}
	}
	before := *st
	st.Looked, st.Script, st.Name, st.When = now, shownScript(sv), w.Name, Cut(address.Redact(w.Files))
	if err := s.see(ctx, sv, w, st, wr); err != nil {
		return err
	}
	if wr.view != nil {
		complete := wr.judge(w, st, *wr.view)
		if s.paused[id] != nil {
			complete = nil // the files wait
		}
		if err := s.beginFor(ctx, sv, w, st, wr, complete, standings); err != nil {
			return err
		}
	}
	if isNew || s.differs(&before, st) || now.Sub(s.noted[id]) > noteEvery || now.Before(s.noted[id]) {
		return s.put(ctx, id, st)
	}
	return nil
}

// see looks at the files of a watch, or takes what a listing has brought.
func (s *Service) see(ctx context.Context, sv Served, w script.Watch, st *Standing, wr *watcher) error {
	v := s.look(ctx, w, wr)
	switch {
	case v == nil: // nothing new
		return nil
	case v.err != nil:
		wr.view = nil
		s.blind(ctx, sv, w, st, wr, v.err)
		return nil
	}
	if wr.tries > 0 {
		s.cfg.Logger.Info("the files of a watch can be looked at again", "watch", st.Name, "script", st.Script)
	}
	wr.view, wr.tries, st.Blind = v, 0, nil
	if st.Unopened {
		if w.Existing == script.ExistingIgnore {
			if err := wr.ignore(ctx, v.found); err != nil {
				return err
			}
		}
		st.Unopened = false
	}
	return wr.tidy(ctx, *v, address.Remote(w.Files))
}

// look gives a new view of the files of a watch; nil: there is none.
func (s *Service) look(ctx context.Context, w script.Watch, wr *watcher) *view {
	now := s.cfg.Clock.Now()
	if address.Remote(w.Files) {
		return s.ask(ctx, w, wr, now)
	}
	v := &view{files: w.Files, marker: w.Marker, began: now, ended: now}
	v.found, v.err = wr.scan(w)
	return v
}

// blind notes that the files of a watch cannot be looked at, and tells of it once
// if that lasts.
func (s *Service) blind(ctx context.Context, sv Served, w script.Watch, st *Standing, wr *watcher, cause error) {
	if ctx.Err() != nil {
		return
	}
	now := s.cfg.Clock.Now()
	wr.tries++
	wr.next = now.Add(pause(wr.tries))
	f := &Failing{At: now, File: st.When, Since: now}
	if st.Blind != nil {
		*f = *st.Blind
	}
	f.Tries, f.Message, f.Next = wr.tries, Cut(strings.TrimPrefix(cause.Error(), f.File+": ")), wr.next
	level := slog.LevelDebug
	if wr.tries == 1 {
		level = slog.LevelError
	}
	s.cfg.Logger.Log(ctx, level, "the files of a watch cannot be looked at; it is tried again", "watch",
		st.Name, "script", st.Script, "tries", wr.tries, "error", cause)
	if !f.Told && now.Sub(f.Since) >= tellBlindAfter {
		s.tell(ctx, sv, f, Start{Script: sv.Path, Token: TokenPrefix + digest(sv.Identity, KindWatch, w.Name, "blind",
			f.Since.UTC().Format(time.RFC3339Nano)),
			Description: "watch " + w.Name},
			fmt.Errorf("the files of watch %s cannot be looked at since %s: %w", w.Name,
				f.Since.Format(time.RFC3339), cause))
	}
	st.Blind = f
}

func (s *Service) differs(a, b *Standing) bool {
	x, y := *a, *b
	x.Looked, y.Looked = time.Time{}, time.Time{}
	one, err := x.encode()
	two, err2 := y.encode()
	return err != nil || err2 != nil || string(one) != string(two)
}

// read reads which files were seen to, once.
func (w *watcher) read(ctx context.Context) error {
	if w.taken != nil {
		return nil
	}
	entries, err := w.box.List(ctx)
	if err != nil {
		return fmt.Errorf("read which files were seen to: %w", err)
	}
	all := map[string]taken{}
	for _, e := range entries {
		var t taken
		if err := json.Unmarshal(e.Record, &t); err != nil {
			return fmt.Errorf("read which files were seen to: %w", err)
		}
		all[e.Name] = t
	}
	w.taken = all
	return nil
}

// scan lists the files of this machine that match, those of markers left out.
func (w *watcher) scan(watch script.Watch) (out []found, err error) {
	names, err := w.policy.Glob(w.dir, watch.Files)
	if err != nil {
		return nil, fmt.Errorf("look for %s: %w", watch.Files, err)
	}
	names = slices.DeleteFunc(names, func(name string) bool { return hidden(watch.Files, name) })
	if len(names) > WatchedMax {
		return nil, fmt.Errorf("%s matches %d files: the limit is %d", watch.Files, len(names), WatchedMax)
	}
	markers := map[string]bool{}
	if watch.Marker != "" {
		for _, name := range names {
			markers[markerOf(watch, name)] = true
		}
	}
	for _, name := range names {
		if markers[filepath.Clean(name)] {
			continue
		}
		f, ok, err := w.local(watch, name)
		if err != nil {
			return nil, err
		}
		if ok {
			out = append(out, f)
		}
	}
	inOrder(out)
	return out, nil
}

// local looks at a file of this machine. Its marker is looked at before it is:
// then the marker is not of a later version than the one that is found.
func (w *watcher) local(watch script.Watch, name string) (f found, ok bool, err error) {
	full, err := filepath.Abs(address.Seen(w.dir, name))
	if err != nil {
		return f, false, fmt.Errorf("look for %s: %w", watch.Files, err)
	}
	look := func() {
		st, err := w.stat(name)
		if ok = err == nil && st.Mode().IsRegular(); !ok { // it is gone again, or none
			return
		}
		f.name, f.place, f.path, f.bytes, f.changed = name, full, name, st.Size(), st.ModTime()
		f.version = localVersion(full, st)
	}
	look()
	if _, known := w.taken[f.version]; !ok || known || watch.Marker == "" {
		return f, ok, nil
	}
	f.marker = markerOf(watch, name)
	if st, err := w.stat(f.marker); err == nil {
		f.marked = st.ModTime()
	}
	look()
	return f, ok, nil
}

// stat looks at a file that may be read.
func (w *watcher) stat(name string) (os.FileInfo, error) {
	path := address.Seen(w.dir, name)
	if err := w.policy.MayRead(path); err != nil {
		return nil, err
	}
	return os.Stat(path)
}

func localVersion(full string, st os.FileInfo) string {
	return digest(full, strconv.FormatInt(st.Size(), 10), strconv.FormatInt(st.ModTime().UnixNano(), 10))
}

// inOrder puts files in the order in which they are taken.
func inOrder(files []found) {
	slices.SortFunc(files, func(a, b found) int {
		return cmp.Or(a.changed.Compare(b.changed), strings.Compare(a.name, b.name))
	})
}

// hidden reports whether a part of a name begins with a dot where that of the
// pattern does not: programs write such files that are not to be seen yet.
func hidden(pattern, name string) bool {
	patterns, parts := strings.Split(pattern, "/"), strings.Split(name, "/")
	for i := 1; i <= min(len(patterns), len(parts)); i++ {
		if strings.HasPrefix(parts[len(parts)-i], ".") && !strings.HasPrefix(patterns[len(patterns)-i], ".") {
			return true
		}
	}
	return false
}

// markerOf is the name of the marker of a file.
func markerOf(w script.Watch, file string) string {
	return filepath.Clean(strings.ReplaceAll(w.Marker, script.FileRef, file))
}

// ignore notes that files were there before the watch.
func (w *watcher) ignore(ctx context.Context, files []found) error {
	for _, f := range files {
		if _, known := w.taken[f.version]; known {
			continue
		}
		if err := w.note(ctx, f, taken{Ignored: true}); err != nil {
			return err
		}
	}
	return nil
}

func (w *watcher) note(ctx context.Context, f found, t taken) error {
	t.File = f.place
	text, err := json.Marshal(t)
	if err != nil {
		return fmt.Errorf("encode that a file was seen to: %w", err)
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer stop()
	if err := w.box.Put(ctx, f.version, text); err != nil {
		return fmt.Errorf("write that %s was seen to: %w", f.name, err)
	}
	w.taken[f.version] = t
	return nil
}

// judge lists the files that are complete and not seen to, and notes what the
// others wait for.
func (w *watcher) judge(watch script.Watch, st *Standing, v view) (complete []found) {
	st.Pending, st.Waiting = nil, 0
	there := map[string]bool{}
	for _, f := range v.found {
		there[f.place] = true
		if _, known := w.taken[f.version]; known {
			delete(w.seen, f.place)
			continue
		}
		before := w.seen[f.place]
		if before.version != f.version {
			before = sight{f.version, v.ended}
			w.seen[f.place] = before
		}
		why := incomplete(watch, f, v.began.Sub(before.since))
		if why == unstable(watch) { // it is looked at again when it can be complete
			if at := before.since.Add(watch.StableFor); at.Before(w.next) && w.asked == nil {
				w.next = at
			}
		}
		if why == "" {
			complete = append(complete, f)
			why = "it is complete, and comes behind others"
		}
		if st.Waiting++; len(st.Pending) < pendingShown {
			st.Pending = append(st.Pending, Pending{File: shownPath(f.name), Why: why})
		}
	}
	for place := range w.seen {
		if !there[place] {
			delete(w.seen, place)
		}
	}
	return complete
}

func shownPath(path string) string {
	path = clean(path)
	if len(path) > pathShownMax {
		return "…" + strings.ToValidUTF8(path[len(path)-pathShownMax:], "")
	}
	return path
}

// nameProblem says why a file's name cannot be a parameter: parameters are put
// into the text of a script, which a name must not change, and names of inputs
// may be patterns.
func nameProblem(path string) string {
	bad := strings.IndexFunc(path, func(r rune) bool {
		return r == utf8.RuneError || !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) &&
			!strings.ContainsRune("._-/+=~() ", r)
	})
	switch {
	case bad >= 0:
		r, _ := utf8.DecodeRuneInString(path[bad:])
		return fmt.Sprintf("its name has the character %q, which a parameter cannot have: rename it", r)
	case strings.TrimSpace(path) != path:
		return "its name begins or ends with a blank: rename it"
	}
	return ""
}

// incomplete says why a file is not complete; "" if it is.
func incomplete(watch script.Watch, f found, unchanged time.Duration) string {
	if problem := nameProblem(f.path); problem != "" {
		return problem
	}
	switch {
	case watch.Marker != "" && f.marked.IsZero():
		return "there is no " + shownPath(f.marker)
	case watch.Marker != "" && f.marked.Before(f.changed):
		return shownPath(f.marker) + " is older than the file"
	case watch.Marker != "":
		return ""
	case f.bytes == 0:
		return "it is empty"
	case unchanged < watch.StableFor:
		return unstable(watch)
	}
	return ""
}

func unstable(watch script.Watch) string {
	return fmt.Sprintf("it has not been unchanged for %s yet", watch.StableFor)
}

// beginFor begins the run of the first of the complete files, if there is room.
func (s *Service) beginFor(ctx context.Context, sv Served, w script.Watch, st *Standing, wr *watcher, complete []found,
	standings map[string]*Standing) error {
	for _, f := range complete {
		now := s.cfg.Clock.Now()
		if failing := wr.failing[f.version]; failing != nil && now.Before(failing.Next) &&
			failing.Next.Sub(now) <= retryMax {
			continue // the others need not wait for it
		}
		open, err := s.open(ctx, st)
		if err != nil || open {
			return err
		}
		if room, err := s.room(ctx, standings); err != nil || !room {
			return err
		}
		if age := now.Sub(wr.view.ended); age < 0 || age > freshFor { // it may be gone, or another one by now
			if wr.asked == nil {
				wr.next = now
			}
			return nil
		}
		start := Start{Script: sv.Path, Token: TokenPrefix + digest(sv.Identity, KindWatch, w.Name, f.version),
			Params:  w.Params,
			Most:    w.Most,
			Offered: map[string]string{script.ParamWatchedFile: f.name},
			Description: fmt.Sprintf("watch %s, for %s", w.Name,
				shownPath(f.name))}
		s.cfg.Checkpoint(job.RunDue)
		key, err := s.cfg.Runs.Begin(ctx, start)
		s.cfg.Checkpoint(job.RunBegun)
		if err != nil {
			if known := wr.failing[f.version]; known != nil || st.Failing == nil ||
				st.Failing.File != shownPath(f.name) {
				st.Failing = known // else it is what a scheduler before this one met
			}
			if err := s.failed(ctx, sv, st, start, shownPath(f.name), err); err != nil {
				return err
			}
			wr.failing[f.version] = st.Failing
			continue
		}
		if err := s.begun(ctx, st, wr, f, key, now); err != nil {
			return err
		}
	}
	return nil
}

func (s *Service) begun(ctx context.Context, st *Standing, wr *watcher, f found, key state.RunKey,
	now time.Time) error {
	if err := wr.note(ctx, f, taken{Run: key.Run}); err != nil {
		return err
	}
	delete(wr.seen, f.place)
	delete(wr.failing, f.version)
	if st.Failing != nil && st.Failing.File == shownPath(f.name) {
		st.Failing = nil
	}
	if st.Last == nil || st.Last.Run < key.Run {
		st.Last = &Begun{Run: key.Run, At: now, File: shownPath(f.name)}
	}
	wr.last = st.Last.Run
	st.Waiting--
	st.Pending = slices.DeleteFunc(st.Pending, func(p Pending) bool { return p.File == shownPath(f.name) })
	s.cfg.Logger.Info("a run was begun", "watch", st.Name, "script", st.Script, "file", f.name, "run", key.Run)
	return nil
}

// tidy forgets files that are gone, now and then: should one come back, its token
// is still its run's. Those that were ignored have no run, and are remembered.
func (w *watcher) tidy(ctx context.Context, v view, remote bool) error {
	if since := v.ended.Sub(w.tidied); since >= 0 && since < tidyEvery {
		return nil
	}
	w.tidied = v.ended
	there := map[string]bool{}
	for _, f := range v.found {
		there[f.version] = true
	}
	for version, t := range w.taken {
		if t.Ignored || there[version] || !remote && mayBeThere(version, t.File) {
			continue
		}
		if err := w.box.Remove(ctx, version); err != nil {
			return fmt.Errorf("forget %s: %w", t.File, err)
		}
		delete(w.taken, version)
	}
	return nil
}

// mayBeThere reports whether a file of this machine is a version, or cannot be looked at.
func mayBeThere(version, file string) bool {
	st, err := os.Stat(file)
	if err == nil {
		return version == localVersion(file, st)
	}
	return !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENOTDIR)
}
