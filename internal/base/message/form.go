package message

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/template"
)

// Limits of forms.
const (
	TemplateBytesMax = 16 << 10 // of a template of one's own
	FormBytesMax     = 64 << 10 // of what is sent
)

// The forms that have names. Any other text is a template of Go's text/template.
const (
	FormJSON  = "json" // the message itself
	FormText  = "text"
	FormSlack = "slack"
	FormTeams = "teams"
)

// Forms lists them.
func Forms() []string { return []string{FormJSON, FormText, FormSlack, FormTeams} }

// ErrTooLong is the failure of a template that gives more than FormBytesMax.
var ErrTooLong = fmt.Errorf("it gives more than %d KiB", FormBytesMax>>10)

// Form turns messages into what is sent.
type Form struct {
	name string
	own  *template.Template
}

// ParseForm reads the name of a form, or a template; "" is the message as JSON.
func ParseForm(text string) (Form, error) {
	if text == "" {
		text = FormJSON
	}
	if slices.Contains(Forms(), text) {
		return Form{name: text}, nil
	}
	if !strings.Contains(text, "{{") {
		return Form{}, fmt.Errorf("%q is no form, and no template: there is no {{…}} in it", cut(text, 40))
	}
	if len(text) > TemplateBytesMax {
		return Form{}, fmt.Errorf("the template is larger than %d KiB", TemplateBytesMax>>10)
	}
	own, err := template.New("template").Funcs(functions()).Parse(text)
	if err != nil {
		return Form{}, plain(err)
	}
	f := Form{own: own}
	for _, kind := range Kinds() {
		if _, _, err := f.Render(Example(kind)); err != nil {
			return Form{}, fmt.Errorf("for event %s: %w", kind, err)
		}
	}
	return f, nil
}

// Render gives what is sent, and its media type.
func (f Form) Render(m Message) (body []byte, mediaType string, err error) {
	m = m.Cut()
	switch {
	case f.own != nil:
		return f.execute(m)
	case f.name == FormText:
		return []byte(strings.Join(m.Lines(), "\n") + "\n"), "text/plain; charset=utf-8", nil
	case f.name == FormSlack:
		body, err = encode(map[string]string{"text": Slack(strings.Join(m.Lines(), "\n"))})
	case f.name == FormTeams:
		body, err = encode(teams(m))
	default:
		body, err = encode(m)
	}
	return body, "application/json", err
}

func (f Form) execute(m Message) ([]byte, string, error) {
	fields, err := m.fields()
	if err != nil {
		return nil, "", err
	}
	out := limited{left: FormBytesMax}
	if err := f.own.Execute(&out, fields); err != nil {
		if errors.Is(err, ErrTooLong) {
			return nil, "", ErrTooLong
		}
		return nil, "", plain(err)
	}
	if json.Valid(out.text) {
		return out.text, "application/json", nil
	}
	return out.text, "text/plain; charset=utf-8", nil
}

// limited ends a template that says too much. It has no other method of a buffer:
// whatever is written comes through Write.
type limited struct {
	text []byte
	left int
}

func (l *limited) Write(p []byte) (int, error) {
	if l.left -= len(p); l.left < 0 {
		return 0, ErrTooLong
	}
	l.text = append(l.text, p...)
	return len(p), nil
}

var _ io.Writer = (*limited)(nil)

// plain takes the name of the template, which is nobody's, out of an error.
func plain(err error) error {
	return errors.New(strings.ReplaceAll(strings.TrimPrefix(err.Error(), "template: "), "template:", "line "))
}

// functions returns the functions that templates may call besides Go's own.
func functions() template.FuncMap {
	return template.FuncMap{
		"json":  func(v any) (string, error) { b, err := encode(v); return string(b), err },
		"slack": func(v any) string { return Slack(fmt.Sprint(v)) },
		"cut":   func(n int, v any) string { return cut(fmt.Sprint(v), min(max(n, 0), FormBytesMax)) },
		"join":  func(sep string, v []string) string { return strings.Join(v, sep) },
	}
}

func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("encode a message: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// Slack escapes what Slack takes for its own: then nothing is a link or a mention.
func Slack(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(text)
}

// teams is an adaptive card. Its texts are runs, in which Teams looks for no markup.
func teams(m Message) any {
	type object = map[string]any
	var body []any
	for i, line := range m.Lines() {
		run := object{"type": "TextRun", "text": line}
		if i == 0 {
			run["weight"] = "Bolder"
		}
		body = append(body, object{"type": "RichTextBlock", "inlines": []any{run}})
	}
	card := object{"$schema": "http://adaptivecards.io/schemas/adaptive-card.json", "type": "AdaptiveCard",
		"version": "1.2", "body": body}
	return object{"type": "message",
		"attachments": []any{object{"contentType": "application/vnd.microsoft.card.adaptive",
			"content": card}}}
}
