package script

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"thalweg/internal/base/allow"
	"thalweg/internal/base/allowance"

	"thalweg/internal/base/action"

	"thalweg/internal/base/address"
	"thalweg/internal/base/calendar"
	"thalweg/internal/base/document"
	"thalweg/internal/base/fault"
	"thalweg/internal/base/message"
)

// Serving holds the settings of a script's runs that do not change what they compute: schedules, watches,
// deadline and notices. None of it is in the fingerprint: two scripts that differ only in it do the same.
type Serving struct {
	Notify    []Hook
	Deadline  string // as calendar.ParseDeadline reads it; "": none
	Schedules []Schedule
	Watches   []Watch
}

// Hook sends notices of some events to a webhook or a command. It is stored with a run: its texts do not
// change. Secrets are in it as references {env.NAME}.
type Hook struct {
	On       []message.Kind    `json:"on"`
	URL      string            `json:"url,omitempty"`     // of a webhook
	Command  []string          `json:"command,omitempty"` // instead of it
	Template string            `json:"template,omitempty"`
	Headers  map[string]string `json:"headers,omitempty"`
	Secret   string            `json:"secret,omitempty"` // that a webhook is signed with
	Timeout  time.Duration     `json:"timeout,omitempty"`
	// Environment names variables of the process that a command may see.
	Environment []string `json:"environment,omitempty"`
	// Policy is that of the run that has the hook; nil: whoever runs the process has the hook.
	Policy *allow.Policy `json:"policy,omitempty"`
}

// What a schedule does about moments at which nobody was there, and about runs
// that are not over at the next moment.
const (
	CatchUpNone = "none"
	CatchUpLast = "last"
	CatchUpAll  = "all"

	OverlapSkip  = "skip"
	OverlapQueue = "queue"

	ExistingRun    = "run"
	ExistingIgnore = "ignore"
)

// Schedule begins runs by the clock.
type Schedule struct {
	Name    string // unique in the script
	Pos     document.Pos
	Times   *calendar.Times
	CatchUp string
	Overlap string
	Params  map[string]string
	Most    Most
}

// Most is what a run may take that a schedule or watch begins, as allowance has it; "": nothing is said.
type Most struct{ Elapsed, Cost string }

// Watch begins a run for each new file.
type Watch struct {
	Name      string // unique in the script
	Pos       document.Pos
	Files     string        // pattern: of paths of this machine, or see address.ParsePattern
	Every     time.Duration // how often a server is asked for its files
	StableFor time.Duration
	Marker    string // name of the file that says that {file} is complete; "": StableFor decides
	Existing  string // what of files that are there when it is first looked at
	Params    map[string]string
	Most      Most
}

// Parameters that schedules and watches give to the runs that they begin.
const (
	ParamScheduledTime = "scheduled_time" // 2006-01-02T15:04:05+01:00, in the schedule's zone
	ParamScheduledDate = "scheduled_date" // 2006-01-02
	ParamWatchedFile   = "watched_file"   // as the pattern names it
)

// offeredParams lists them.
func offeredParams() []string {
	return []string{ParamScheduledTime, ParamScheduledDate, ParamWatchedFile}
}

// Limits of what serves a script.
const (
	MaxHooksCount      = 20
	MaxSchedulesCount  = 100
	MaxHeadersCount    = 20
	MaxHookTextBytes   = 8 << 10
	MaxArgumentsCount  = 100
	DefaultHookTimeout = 10 * time.Second
	maxHookTimeout     = 10 * time.Minute
	DefaultStableFor   = 30 * time.Second
	maxStableFor       = 24 * time.Hour
	DefaultEvery       = 30 * time.Second
	minEvery           = 5 * time.Second
	maxEvery           = 24 * time.Hour
	// ServedNameChars bounds the names of schedules and watches.
	ServedNameChars = 200
)

// servingKeys are the keys of the root that are no part of what a script does.
func servingKeys() []string { return []string{"notify", "deadline", "schedule", "watch"} }

var (
	hookShape = &shape{name: "hook", doc: "Who is told what happens to runs.", keys: []key{
		{name: "on", form: either(text(kindWords()...), listOf(text(kindWords()...))),
			doc: "What is told: waiting, failed, done, late, stopped; default: waiting, failed, late."},
		{name: "url", form: text(), doc: "Address that a message is posted to."},
		{name: "command", form: listOf(text()),
			doc: "Instead of url: a program and its arguments; it reads the message as JSON from its standard input."},
		{name: "template", form: text(),
			doc: "What is posted: json (default), text, slack, teams, or a template of Go's text/template."},
		{name: "headers", form: namesOf(text()),
			doc: "Headers of the request; values of the environment may be in them."},
		{name: "secret", form: text(), doc: "What the request is signed with: an environment value, {env.NAME}."},
		{name: "environment", form: either(text(), listOf(text())),
			doc: "Names of variables that a command sees beside PATH, HOME, USER, LOGNAME, SHELL, LANG, LC_ALL, TZ " +
				"and TMPDIR."},
		{name: "timeout", form: text(), doc: "Longest that one attempt may take; default 10s, at most 10m."},
	}}

	maxElapsedKey = key{name: "max_elapsed", form: text(),
		doc: "A run of it is paused when it has taken so long: 2h, 90m; none: no limit."}
	maxCostKey = key{name: "max_cost", form: text(),
		doc: "A run of it is paused when it has cost so much, in US dollars: 12.50; none: no limit."}

	scheduleShape = &shape{name: "schedule", doc: "Begins runs by the clock, where a scheduler serves the script.",
		keys: []key{
			{name: "name", form: text(),
				doc: "What it is known by; default: the cron expression. Under another name it is another schedule."},
			{name: "cron", form: text(), need: true,
				doc: "minute hour day-of-month month day-of-week, or @daily and the like."},
			{name: "timezone", form: text(), doc: "Zone of the list of time zones, e.g. Europe/Berlin; default: UTC."},
			{name: "catch_up", form: text(CatchUpNone, CatchUpLast, CatchUpAll),
				doc: "Of the moments at which no scheduler was there, which are made up for: none, the last " +
					"(default), or all."},
			{name: "overlap", form: text(OverlapSkip, OverlapQueue),
				doc: "If the run before is not over: skip the moment, or queue (default)."},
			{name: "params", form: namesOf(text()),
				doc: "Parameters of its runs, beside {scheduled_time} and {scheduled_date}."},
			maxElapsedKey, maxCostKey,
		}}

	watchShape = &shape{name: "watch", doc: "Begins a run for each new file, where a scheduler serves the script.",
		keys: []key{
			{name: "name", form: text(),
				doc: "What it is known by; default: the pattern. Under another name it is another watch."},
			{name: "files", form: text(), need: true,
				doc: "Pattern of files, with * and ?: a path, s3://bucket/in/*.csv or sftp://user@host/in/*.csv."},
			{name: "every", form: text(), doc: "How often a server is asked for its files; default 30s, at least 5s."},
			{name: "stable_for", form: text(),
				doc: "A file is complete when its size and time have not changed for so long; default 30s."},
			{name: "marker", form: text(),
				doc: "Instead: a file is complete when there is a file of this name, e.g. {file}.done."},
			{name: "existing", form: text(ExistingRun, ExistingIgnore),
				doc: "Files that are there when the watch is first served: run (default), or ignore."},
			{name: "params", form: namesOf(text()), doc: "Parameters of its runs, beside {watched_file}."},
			maxElapsedKey, maxCostKey,
		}}
)

func kindWords() []string {
	var out []string
	for _, k := range message.Kinds() {
		out = append(out, string(k))
	}
	return out
}

// serving reads how the script is served, and takes it out of the document: a
// script that is served otherwise does what it did.
func (l *loader) serving(root *object) {
	s := &l.script.Serving
	if l.hooksOnly {
		for _, e := range root.v.Entries {
			if e.Name != "notify" && e.Name != "environment" {
				l.ErrorAt(e.Key, "", "a file of hooks has the keys notify and environment only")
			}
		}
	}
	s.Notify = l.hooks(root)
	if v := root.text("deadline"); v != nil {
		s.Deadline = l.deadline(v)
	}
	names := map[string]*document.Value{}
	for i, o := range l.served(root, "schedule", "cron", scheduleShape) {
		if sc, ok := l.schedule(o); ok && l.servedName(o, &sc.Name, sc.Times.String(), names) {
			s.Schedules = append(s.Schedules, sc)
		}
		if i == MaxSchedulesCount {
			break
		}
	}
	for i, o := range l.served(root, "watch", "files", watchShape) {
		if w, ok := l.watch(o); ok && l.servedName(o, &w.Name, w.Files, names) {
			s.Watches = append(s.Watches, w)
		}
		if i == MaxSchedulesCount {
			break
		}
	}
	without := &document.Value{Src: root.v.Src, Kind: document.Map, Off: root.v.Off, End: root.v.End,
		Entries: append([]*document.Entry(nil), root.v.Entries...), Weight: root.v.Weight}
	for _, key := range servingKeys() {
		if e := root.keys[key]; e != nil {
			l.misplacedSecrets(e.Value, key, map[*document.Value]bool{})
		}
	}
	root.v = without
	for _, key := range servingKeys() {
		root.drop(key)
	}
}

// includedServing warns of what included files say of being served.
func (l *loader) includedServing(main *object, key string) {
	for _, f := range l.files {
		if e := f.root.keys[key]; e != nil && f.root != main {
			l.WarnAt(e.Key, key, "%s has no effect in an included file", key)
		}
	}
}

// ownBraces lists where braces that are no references have a meaning: templates
// of messages, and the {file} of a marker.
func ownBraces(src *document.Source, doc *document.Value) []document.Span {
	var spans []document.Span
	under := func(v *document.Value, key string, visit func(*document.Value)) {
		if v == nil {
			return
		}
		items := []*document.Value{v}
		if v.Kind == document.List {
			items = v.Items
		}
		for _, item := range items {
			for _, e := range item.Entries {
				if strings.EqualFold(e.Name, key) && e.Value != nil {
					visit(e.Value)
				}
			}
		}
	}
	add := func(v *document.Value) {
		if v.Scalar() && v.Src == src {
			start, end := v.Span()
			spans = append(spans, document.Span{Start: start, End: end})
		}
	}
	under(doc, "notify", func(v *document.Value) { under(v, "template", add) })
	under(doc, "watch", func(v *document.Value) {
		under(v, "marker", func(v *document.Value) {
			if strings.Contains(v.Text, FileRef) {
				add(v)
			}
		})
	})
	slices.SortFunc(spans, func(a, b document.Span) int { return a.Start - b.Start })
	return spans
}

// served lists what is under a key: a map, a list of maps, or a text that
// stands for a map with one key.
func (l *loader) served(root *object, key, short string, s *shape) (out []*object) {
	v := root.get(key)
	if v == nil {
		return nil
	}
	items := []*document.Value{v}
	if v.Kind == document.List {
		items = v.Items
	}
	if len(items) > MaxSchedulesCount {
		l.ErrorAt(v, key, "there are more than %d", MaxSchedulesCount)
		return nil
	}
	for _, item := range items {
		if short != "" && isText(item) && item.Kind != document.Map {
			made := &document.Entry{Name: short, Key: item, Value: item}
			item = &document.Value{Src: item.Src, Kind: document.Map, Off: item.Off, End: item.End,
				Entries: []*document.Entry{made}, Weight: 1}
		}
		if o := l.object(item, key, s); o != nil {
			out = append(out, o)
		}
	}
	return out
}

// servedName settles the name of a schedule or watch.
func (l *loader) servedName(o *object, name *string, otherwise string, taken map[string]*document.Value) bool {
	at := o.where()
	*name = otherwise
	if v := o.text("name"); v != nil {
		at, *name = v, v.Text
	}
	switch other := taken[*name]; {
	case *name == "" || len(*name) > ServedNameChars ||
		strings.ContainsFunc(*name, func(r rune) bool { return r < ' ' }):
		l.ErrorAt(at, o.keyPath("name"), "a name has 1 to %d characters", ServedNameChars)
		return false
	case other != nil:
		d := l.ErrorAt(at, o.keyPath("name"), "there are two schedules or watches %s", document.Quote(*name))
		d.Hint = "give one of them a name"
		d.Related = append(d.Related, l.pos(other))
		return false
	}
	taken[*name] = at
	return true
}

// calendarError reports what is wrong with a text, at the place in it.
func (l *loader) calendarError(v *document.Value, path string, err error) {
	var e *calendar.Error
	if !errors.As(err, &e) {
		l.ErrorAt(v, path, "%s", err.Error())
		return
	}
	start, end := v.Part(e.Start, max(e.End, e.Start+1))
	if v.Src.IsPending(v.Span()) {
		return
	}
	l.ErrorSpan(v.Src, start, end, path, "%s", e.Message).Hint = e.Hint
}

func (l *loader) deadline(v *document.Value) string {
	if _, err := calendar.ParseDeadline(v.Text); err != nil {
		l.calendarError(v, "deadline", err)
		return ""
	}
	return v.Text
}

func (l *loader) schedule(o *object) (s Schedule, ok bool) {
	problems := l.Errors()
	s = Schedule{Pos: l.pos(o.where()), Params: l.servedParams(o), Most: l.most(o),
		CatchUp: o.choice("catch_up", CatchUpLast),
		Overlap: o.choice("overlap", OverlapQueue)}
	zone := time.UTC
	if v := o.text("timezone"); v != nil {
		var err error
		if zone, err = calendar.ParseZone(v.Text); err != nil {
			l.calendarError(v, o.keyPath("timezone"), err)
		}
	}
	v := o.one("cron", "write minute hour day-of-month month day-of-week: 30 6 * * 1-5")
	if v == nil || zone == nil {
		return s, false
	}
	var err error
	if s.Times, err = calendar.ParseTimes(v.Text, zone); err != nil {
		l.calendarError(v, o.keyPath("cron"), err)
	}
	return s, s.Times != nil && l.Errors() == problems
}

func (l *loader) watch(o *object) (w Watch, ok bool) {
	problems := l.Errors()
	w = Watch{Pos: l.pos(o.where()), Params: l.servedParams(o), Most: l.most(o),
		Existing:  o.choice("existing", ExistingRun),
		StableFor: l.duration(o, "stable_for", DefaultStableFor, maxStableFor)}
	if v := o.one("files", "write a pattern: in/*.csv"); v != nil {
		l.watchedFiles(o, v, &w)
	}
	if v := o.text("marker"); v != nil {
		w.Marker = v.Text
		switch {
		case !strings.Contains(v.Text, FileRef) || v.Text == FileRef:
			l.ErrorAt(v, o.keyPath("marker"), "a marker has %s in its name, and something else",
				FileRef).Hint = "write " +
				FileRef + ".done"
		case address.Remote(w.Files) && strings.LastIndex(v.Text, FileRef) != 0:
			l.ErrorAt(v, o.keyPath("marker"), "a marker of files of another machine begins with %s",
				FileRef).Hint = "write " +
				FileRef + ".done"
		}
		if o.has("stable_for") {
			o.ignored("the marker says when a file is complete", "stable_for")
		}
	}
	return w, w.Files != "" && l.Errors() == problems
}

// watchedFiles reads which files are watched, and how often a server is asked for them.
func (l *loader) watchedFiles(o *object, v *document.Value, w *Watch) {
	w.Files = v.Text
	if !address.Remote(v.Text) {
		switch why := address.Mistyped(v.Text); {
		case why != "":
			l.ErrorAt(v, o.keyPath("files"), "the pattern %s",
				why).Hint = "write s3://bucket/in/*.csv or sftp://user@host/in/*.csv; ./NAME is a path of this machine"
		case strings.HasPrefix(v.Text, "file:"):
			l.ErrorAt(v, o.keyPath("files"), "a watched pattern is a plain path")
		default:
			if _, err := path.Match(v.Text, ""); err != nil {
				l.ErrorAt(v, o.keyPath("files"), "the pattern cannot be read").Hint =
					"* and ? stand for any characters of a name, [a-z] for one of these"
			}
		}
		o.ignored("files of this machine are looked at every few seconds", "every")
		return
	}
	if _, err := address.ParsePattern(v.Text); err != nil {
		f := fault.Of(err)
		l.ErrorAt(v, o.keyPath("files"), "%s", f.Message).Hint = f.Hint
	}
	if w.Every = l.duration(o, "every", DefaultEvery, maxEvery); w.Every < minEvery {
		l.ErrorAt(o.get("every"), o.keyPath("every"), "a server is asked every %s at most", minEvery)
	}
}

// FileRef stands for the watched file's path in a marker's name.
const FileRef = "{file}"

// most reads what a run of a schedule or watch may take.
func (l *loader) most(o *object) (m Most) {
	if v := o.text(maxElapsedKey.name); v != nil {
		if _, err := allowance.Elapsed(v.Text); err != nil {
			l.ErrorAt(v, o.keyPath(maxElapsedKey.name), "%s", err).Hint = allowance.ElapsedHint
		}
		m.Elapsed = v.Text
	}
	if v := o.text(maxCostKey.name); v != nil {
		if _, err := allowance.Cost(v.Text); err != nil {
			l.ErrorAt(v, o.keyPath(maxCostKey.name), "%s", err).Hint = allowance.CostHint
		}
		m.Cost = v.Text
	}
	return m
}

// servedParams reads the parameters that a schedule or watch gives.
func (l *loader) servedParams(o *object) map[string]string {
	out := map[string]string{}
	for _, e := range o.members("params") {
		switch {
		case slices.Contains(offeredParams(), e.Name):
			l.ErrorAt(e.Key, o.keyPath("params"), "parameter %s is given by itself", document.Quote(e.Name))
		case !e.Value.Scalar():
			l.ErrorAt(e.Value, o.keyPath("params"), "a parameter is text, a number or a boolean here")
		default:
			out[e.Name] = e.Value.Text
		}
	}
	return out
}

// duration reads 30s, 5m and the like.
func (l *loader) duration(o *object, key string, otherwise, most time.Duration) time.Duration {
	v := o.text(key)
	if v == nil {
		return otherwise
	}
	d, err := time.ParseDuration(v.Text)
	if err != nil || d <= 0 || d > most {
		l.ErrorAt(v, o.keyPath(key), "%s must be a while of at most %s", key, most).Hint = "write 30s, 5m or 1h"
		return otherwise
	}
	return d
}

// hooks reads who is told.
func (l *loader) hooks(root *object) (out []Hook) {
	for _, o := range l.served(root, "notify", "", hookShape) {
		if len(out) == MaxHooksCount {
			l.ErrorAt(o.where(), "notify", "there are more than %d hooks", MaxHooksCount)
			return out
		}
		if h, ok := l.hook(o); ok {
			out = append(out, h)
		}
	}
	return out
}

func (l *loader) hook(o *object) (h Hook, ok bool) {
	problems := l.Errors()
	h.On = l.hookKinds(o)
	h.Timeout = l.duration(o, "timeout", DefaultHookTimeout, maxHookTimeout)
	url, command := o.has("url"), o.has("command")
	switch {
	case url == command:
		l.ErrorAt(o.where(), "notify", "a hook has either a url or a command")
	case url:
		l.webhook(o, &h)
		o.ignored("a request has none", "environment")
	default:
		for _, n := range o.names("environment") {
			if n.name == "" || len(h.Environment) == MaxArgumentsCount || strings.ContainsAny(n.name, "=\x00") {
				l.ErrorAt(n.at, o.keyPath("environment"), "these are names of variables, %d at most", MaxArgumentsCount)
				break
			}
			h.Environment = append(h.Environment, n.name)
		}
		for _, v := range o.texts("command") {
			h.Command = append(h.Command, v.Text)
		}
		if len(h.Command) == 0 || h.Command[0] == "" || len(h.Command) > MaxArgumentsCount {
			l.ErrorAt(o.get("command"), o.keyPath("command"),
				"a command is a list of a program and at most %d arguments",
				MaxArgumentsCount-1).Hint = `write command: ["notify-send", "done"]`
		}
		o.ignored("a command reads the message as JSON", "template")
		o.ignored("a command has no request", "headers", "secret")
	}
	return h, l.Errors() == problems
}

func (l *loader) hookKinds(o *object) (on []message.Kind) {
	if !o.has("on") {
		return []message.Kind{message.Waiting, message.Failed, message.Late}
	}
	for _, n := range o.names("on") {
		if !slices.Contains(message.Kinds(), message.Kind(n.name)) {
			l.ErrorAt(n.at, o.keyPath("on"), "there is no event %s",
				document.Quote(n.name)).Hint = document.DidYouMean(n.name,
				kindWords())
			continue
		}
		if !slices.Contains(on, message.Kind(n.name)) {
			on = append(on, message.Kind(n.name))
		}
	}
	return on
}

func (l *loader) webhook(o *object, h *Hook) {
	if v := o.one("url", "write https://…, or {env.NAME} of a declared secret"); v != nil {
		l.secretPlaces[v] = true
		h.URL = v.Text
		if scheme := address.Scheme(v.Text); !v.Secret && scheme != "http" && scheme != "https" {
			l.ErrorAt(v, o.keyPath("url"), "a webhook's address begins with https:// or http://")
		}
	}
	if v := o.text("template"); v != nil {
		h.Template = v.Text
		if _, err := message.ParseForm(v.Text); err != nil && !v.Secret {
			l.ErrorAt(v, o.keyPath("template"), "%s", err.Error()).Hint = "write " +
				strings.Join(message.Forms(), ", ") + ", or a template such as {{.title}}"
		}
	}
	if v := o.text("secret"); v != nil {
		l.secretPlaces[v] = true
		if h.Secret = v.Text; !v.Secret {
			l.ErrorAt(v, o.keyPath("secret"), "what requests are signed with is a secret of the environment").Hint =
				"declare it: environment: {NAME: {secret: true}}, and write {env.NAME}"
		}
	}
	l.headers(o, h)
	if len(h.URL) > MaxHookTextBytes {
		l.ErrorAt(o.get("url"), o.keyPath("url"), "the address is larger than %d KiB", MaxHookTextBytes>>10)
	}
}

func (l *loader) headers(o *object, h *Hook) {
	members := o.members("headers")
	if len(members) > MaxHeadersCount {
		l.ErrorAt(o.get("headers"), o.keyPath("headers"), "there are more than %d headers", MaxHeadersCount)
		return
	}
	for _, e := range members {
		switch {
		case !isHeaderName(e.Name):
			l.ErrorAt(e.Key, o.keyPath("headers"), "%s is not the name of a header", document.Quote(e.Name))
		case slices.Contains([]string{"host", "content-length", "transfer-encoding", "connection"},
			strings.ToLower(e.Name)) || strings.HasPrefix(strings.ToLower(e.Name), "webhook-"):
			l.ErrorAt(e.Key, o.keyPath("headers"), "header %s is set by itself", e.Name)
		case !isText(e.Value):
			l.ErrorAt(e.Value, o.keyPath("headers"), "a header's value is text")
		case len(e.Value.Text) > MaxHookTextBytes || strings.ContainsAny(e.Value.Text, "\r\n\x00"):
			l.ErrorAt(e.Value, o.keyPath("headers"), "a header's value is one line of at most %d KiB",
				MaxHookTextBytes>>10)
		default:
			l.secretPlaces[e.Value] = true
			if h.Headers == nil {
				h.Headers = map[string]string{}
			}
			h.Headers[e.Name] = e.Value.Text
		}
	}
}

// isHeaderName reports whether a text is a token of HTTP.
func isHeaderName(name string) bool {
	for _, c := range name {
		if c >= 0x7f || !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
			strings.ContainsRune("!#$%&'*+-.^_`|~", c)) {
			return false
		}
	}
	return name != ""
}

// Offers are the parameters that a script's schedules give to a run for a moment.
func Offers(at time.Time) map[string]string {
	return map[string]string{ParamScheduledTime: at.Format(time.RFC3339), ParamScheduledDate: at.Format(time.DateOnly)}
}

// givenBy says who gives an offered parameter when a run is not begun by hand.
func givenBy(name string) string {
	switch name {
	case ParamScheduledTime, ParamScheduledDate:
		return "a schedule"
	case ParamWatchedFile:
		return "a watch"
	}
	return ""
}

// byHand is the hint for a parameter that nobody gave although schedules do.
func byHand(name string) string {
	return fmt.Sprintf("%s gives it to the runs that it begins; by hand: %s", givenBy(name),
		action.Setting("param", name+"=VALUE"))
}
