package sandbox

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"thalweg/internal/io/inputcache"

	"thalweg/internal/base/budget"
	"thalweg/internal/run/job"
	"thalweg/internal/store/state"
)

// Copier makes copies of remote files; see inputcache.Store.
type Copier interface {
	EnsureAll(ctx context.Context, wants []inputcache.Want) ([]inputcache.Copy, error)
}

// What parent and child say beside what is lent.
type (
	// hello is the first message to a child.
	hello struct {
		Protocol int             `json:"protocol"`
		Slot     int             `json:"slot"`
		WorkDir  string          `json:"work_dir"`
		Settings json.RawMessage `json:"settings,omitempty"`
		Budget   budget.Budget   `json:"budget"`
		Level    slog.Level      `json:"level"`      // of what is logged
		Beat     time.Duration   `json:"beat_every"` // see Config.Silence
		Bare     bool            `json:"bare,omitempty"`
	}
	helloAnswer struct {
		Protocol  int      `json:"protocol"`
		HeldBytes int64    `json:"held_bytes"`      // resident
		Notes     []string `json:"notes,omitempty"` // see Noting
	}
	// executeArgs is a batch to be executed. Opening tells when a run was opened
	// anew by the parent: then the child does so, too.
	executeArgs struct {
		Opening int64       `json:"opening"`
		Claim   state.Claim `json:"claim"`
		Threads job.Threads `json:"threads"`
	}
	executeAnswer struct {
		Outcome      state.Outcome       `json:"outcome"`
		Publications []state.Publication `json:"publications,omitempty"`
		Publish      bool                `json:"publish,omitempty"` // there is something to publish
		Discard      bool                `json:"discard,omitempty"` // there is something to discard
		HeldBytes    int64               `json:"held_bytes"`
		Collector    time.Duration       `json:"collector"` // processor time that it has taken since the child began
	}
	copiesArgs struct {
		Run   state.RunKey      `json:"run"`
		Wants []inputcache.Want `json:"wants"`
	}
	// logged is a log record of a child.
	logged struct {
		Level   slog.Level  `json:"level"`
		Message string      `json:"message"`
		Attrs   [][2]string `json:"attrs,omitempty"`
	}
)

// farLog is a slog.Handler whose records the other side logs.
type farLog struct {
	peer   *peer
	level  slog.Level
	prefix string // of the names of attributes
	attrs  [][2]string
}

var _ slog.Handler = (*farLog)(nil)

// Enabled implements slog.Handler.
func (l *farLog) Enabled(_ context.Context, level slog.Level) bool { return level >= l.level }

// Handle implements slog.Handler.
func (l *farLog) Handle(_ context.Context, r slog.Record) error {
	said := logged{Level: r.Level, Message: r.Message, Attrs: l.attrs[:len(l.attrs):len(l.attrs)]}
	r.Attrs(func(a slog.Attr) bool {
		said.Attrs = append(said.Attrs, l.texts(a)...)
		return true
	})
	l.peer.tell("log", said)
	return nil
}

// texts are an attribute's name and value, or those of all in a group.
func (l *farLog) texts(a slog.Attr) (out [][2]string) {
	value := a.Value.Resolve()
	if value.Kind() != slog.KindGroup {
		return [][2]string{{l.prefix + a.Key, value.String()}}
	}
	inner := *l
	if a.Key != "" {
		inner.prefix += a.Key + "."
	}
	for _, member := range value.Group() {
		out = append(out, inner.texts(member)...)
	}
	return out
}

// WithAttrs implements slog.Handler.
func (l *farLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	out := *l
	out.attrs = l.attrs[:len(l.attrs):len(l.attrs)]
	for _, a := range attrs {
		out.attrs = append(out.attrs, l.texts(a)...)
	}
	return &out
}

// WithGroup implements slog.Handler.
func (l *farLog) WithGroup(name string) slog.Handler {
	out := *l
	if name != "" {
		out.prefix += name + "."
	}
	return &out
}

// lowest is the least level that a logger logs.
func lowest(l *slog.Logger) slog.Level {
	for _, level := range []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn} {
		if l.Enabled(context.Background(), level) {
			return level
		}
	}
	return slog.LevelError
}
