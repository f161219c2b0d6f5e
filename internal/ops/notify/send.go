package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"thalweg/internal/base/address"
	"thalweg/internal/base/awake"
	"thalweg/internal/base/calendar"
	"thalweg/internal/base/fault"
	"thalweg/internal/base/keeper"
	"thalweg/internal/base/message"
	"thalweg/internal/base/secret"
	"thalweg/internal/io/remote"
	"thalweg/internal/lang/script"
)

// Poster sends requests: a *remote.Client, which knows proxies and authorities.
type Poster interface {
	Post(ctx context.Context, p remote.Post) (remote.Answer, error)
}

// Sender sends one message to one hook, once.
type Sender struct {
	Post        Poster
	Keeper      string                           // see keeper.Start
	Environment func(name string) (string, bool) // values of secrets
	Known       *secret.Known                    // is told them; may be nil
	Clock       calendar.Clock
	Logger      *slog.Logger
}

// sendError explains why a message could not be sent.
type sendError struct {
	err   error
	final bool          // another try would end the same
	after time.Duration // that the other side asks to be left alone for
}

func (e *sendError) Error() string { return e.err.Error() }
func (e *sendError) Unwrap() error { return e.err }

// Send sends a message; dir is where commands are started.
func (s *Sender) Send(ctx context.Context, h script.Hook, m message.Message, dir string) error {
	timeout := h.Timeout
	if timeout == 0 {
		timeout = script.DefaultHookTimeout
	}
	ctx, cancel := awake.WithTimeout(ctx, timeout)
	defer cancel()
	if len(h.Command) > 0 {
		if err := h.Policy.Command(); err != nil {
			return &sendError{err: err, final: true}
		}
		return s.command(ctx, h, m, dir)
	}
	return s.webhook(ctx, h, m)
}

func (s *Sender) webhook(ctx context.Context, h script.Hook, m message.Message) error {
	v := values{environment: h.Policy.Environ(s.Environment), known: s.Known}
	if v.known == nil {
		v.known = secret.New()
	}
	form, err := message.ParseForm(h.Template)
	if err != nil {
		return &sendError{err: fmt.Errorf("the template: %w", err), final: true}
	}
	body, media, err := form.Render(m)
	if err != nil {
		return &sendError{err: fmt.Errorf("the template: %w", err), final: true}
	}
	at := s.Clock.Now()
	p := remote.Post{URL: address.Fill(h.URL, v.value), Header: http.Header{"Content-Type": {media}, HeaderID: {m.ID},
		HeaderTimestamp: {timestamp(at)}}, Body: body, Hide: v.known.Text,
		Policy: h.Policy}
	for name, text := range h.Headers {
		p.Header.Set(name, v.reveal(text))
	}
	if h.Secret != "" {
		signature, err := Signature(v.reveal(h.Secret), m.ID, at, body)
		if err != nil && v.missing == "" {
			return &sendError{err: &fault.Error{Kind: fault.Environment, Message: "the value of " + h.Secret +
				", which requests are signed with, " + err.Error(), Hint: "set it where the command runs"}}
		}
		p.Header.Set(HeaderSignature, signature)
	}
	if v.missing != "" {
		return &sendError{err: &fault.Error{Kind: fault.Environment, Message: "the environment variable " + v.missing +
			", which a hook refers to, is not set in this process", Hint: "set it where the command runs"}}
	}
	answer, err := s.Post.Post(ctx, p)
	switch code := answer.Status; {
	case err != nil:
		return &sendError{err: fmt.Errorf("%s: %w", v.known.Text(shownURL(h)), err)}
	case code >= 200 && code < 300:
		return nil
	default:
		passes := code == http.StatusRequestTimeout || code == http.StatusTooManyRequests || code >= 500 &&
			code != http.StatusNotImplemented
		return &sendError{err: fmt.Errorf("%s answered %d %s", shownURL(h), code,
			strings.ToLower(http.StatusText(code))),
			final: !passes, after: answer.RetryAfter}
	}
}

// shownURL names a webhook for people: what follows the host may be a secret.
func shownURL(h script.Hook) string {
	scheme, rest, ok := strings.Cut(h.URL, "://")
	if !ok {
		return h.URL // a reference
	}
	host, _, more := strings.Cut(rest, "/")
	if i := strings.LastIndexByte(host, '@'); i >= 0 {
		host = host[i+1:]
	}
	if host, _, _ = strings.Cut(host, "?"); more {
		host += "/…"
	}
	return scheme + "://" + host
}

// Name names a hook for people.
func Name(h script.Hook) string {
	if len(h.Command) > 0 {
		return "command " + h.Command[0]
	}
	return shownURL(h)
}

// values are the secrets of one request.
type values struct {
	environment func(string) (string, bool)
	known       *secret.Known
	missing     string // one that there is not
}

// reveal puts values where a text that is no address has references.
func (v *values) reveal(text string) string {
	var b strings.Builder
	for {
		before, rest, ok := strings.Cut(text, "{env.")
		b.WriteString(before)
		name, behind, closed := strings.Cut(rest, "}")
		if !ok || !closed {
			if ok {
				b.WriteString("{env." + rest)
			}
			return b.String()
		}
		value, _ := v.value(name)
		b.WriteString(value)
		text = behind
	}
}

// value is that of a variable.
func (v *values) value(name string) (value string, set bool) {
	if v.environment != nil {
		value, set = v.environment(name)
	}
	if !set {
		v.missing = name
	}
	v.known.Add(value, "{env."+name+"}")
	return value, true
}

// Limits of commands.
const (
	commandOutputBytesMax = 16 << 10 // that are logged of each
	commandOutputWait     = time.Second
)

// command starts a program that reads the message. It is ended, with all that it
// has started, when its time is over or it has ended.
func (s *Sender) command(ctx context.Context, h script.Hook, m message.Message, dir string) error {
	text, err := json.Marshal(m.Cut())
	if err != nil {
		return &sendError{err: fmt.Errorf("encode a message: %w", err), final: true}
	}
	var out output
	end, err := keeper.Run(ctx, s.Keeper, keeper.Program{Path: h.Command[0], Args: h.Command[1:], Dir: dir,
		Stdin: bytes.NewReader(append(text, '\n')), Stdout: &out, Stderr: &out, WaitDelay: commandOutputWait,
		Env: append(s.commandEnvironment(h), variables(m)...)})
	var missing *keeper.NotThereError
	if err != nil {
		return &sendError{err: fmt.Errorf("start command %s: %w", h.Command[0], err), final: errors.As(err, &missing)}
	}
	s.Logger.Debug("a command hook has ended", "command", h.Command[0], "status", end.String(), "output",
		s.Known.Text(out.String()))
	switch {
	case ctx.Err() != nil:
		return &sendError{err: fmt.Errorf("command %s was ended: %w", h.Command[0], context.Cause(ctx))}
	case end.Err != nil:
		return &sendError{err: fmt.Errorf("start command %s: %w", h.Command[0], end.Err), final: true}
	case end.Status.Exited() && end.Status.ExitStatus() == 0:
		return nil
	}
	return &sendError{err: fmt.Errorf("command %s failed: %s", h.Command[0], end)}
}

// commandEnvironment returns the environment of a command: the variables that programs need to run, and those
// that the hook names.
func (s *Sender) commandEnvironment(h script.Hook) (out []string) {
	out = keeper.Some("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "TZ", "TMPDIR")
	for _, name := range h.Environment {
		if value, ok := h.Policy.Environ(s.Environment)(name); ok {
			s.Known.Add(value, "{env."+name+"}") // it may print it
			out = append(out, name+"="+value)
		}
	}
	return out
}

// variables are a message as a command sees it in its environment.
func variables(m message.Message) []string {
	out := []string{"THALWEG_EVENT=" + string(m.Event), "THALWEG_EVENT_ID=" + m.ID, "THALWEG_WORKSPACE=" + m.Workspace,
		"THALWEG_RUN=" + strconv.FormatInt(m.Run, 10),
		"THALWEG_SCRIPT=" + m.Script, "THALWEG_STATUS=" + m.Status, "THALWEG_TITLE=" + m.Title()}
	if m.Gate != nil {
		out = append(out, "THALWEG_GATE="+m.Gate.Name)
	}
	for i, text := range out {
		out[i] = strings.ReplaceAll(text, "\x00", "")
	}
	return out
}

// output keeps the beginning of what a command prints. It has no other method of a
// buffer than these: who copies would take one that knows no limit.
type output struct{ kept []byte }

func (o *output) Write(p []byte) (int, error) {
	o.kept = append(o.kept, p[:min(len(p), commandOutputBytesMax-len(o.kept))]...)
	return len(p), nil
}

func (o *output) String() string { return string(o.kept) }

// asSendError returns any error of sending as a sendError.
func asSendError(err error) *sendError {
	var e *sendError
	if !errors.As(err, &e) {
		e = &sendError{err: err}
	}
	return e
}
