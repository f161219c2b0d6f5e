package message_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/message"
)

// hostile is a text that a failure may quote from a file.
const hostile = "value \"<!channel> & <https://x|y> **b** [a](b) {{.run}} \x00\xff\nsecond line"

func render(t *testing.T, form string, m message.Message) (string, string) {
	t.Helper()
	f, err := message.ParseForm(form)
	require.NoError(t, err)
	body, media, err := f.Render(m)
	require.NoError(t, err)
	return string(body), media
}

func TestFormsCannotBeBrokenOutOf(t *testing.T) {
	t.Parallel()
	m := message.Example(message.Failed)
	m.Failure.Message = hostile

	slack, media := render(t, "slack", m)
	require.Equal(t, "application/json", media)
	var said struct{ Text string }
	require.NoError(t, json.Unmarshal([]byte(slack), &said))
	require.NotContains(t, said.Text, "<")
	require.Contains(t, said.Text, "&lt;!channel&gt; &amp; ")

	teams, _ := render(t, "teams", m)
	require.True(t, json.Valid([]byte(teams)))
	require.NotContains(t, teams, `"TextBlock"`) // which would read markup

	own, media := render(t, `{"event": {{json .event}}, "text": {{json .failure.message}}, "run": {{.run}}}`, m)
	require.Equal(t, "application/json", media)
	var fields struct {
		Event, Text string
		Run         int64
	}
	require.NoError(t, json.Unmarshal([]byte(own), &fields))
	require.Equal(t, "failed", fields.Event)
	require.Equal(t, int64(7), fields.Run)
	require.Contains(t, fields.Text, "{{.run}}")

	text, media := render(t, "text", m)
	require.Equal(t, "text/plain; charset=utf-8", media)
	require.Contains(t, text, "run 7 of orders failed\n")
	require.Contains(t, text, "retry: {{do retry run=7}}\n")
}

func TestMessagesAreVersionedAndShort(t *testing.T) {
	t.Parallel()
	m := message.Example(message.Failed)
	m.Failure.Message = strings.Repeat("ü", 1<<20)
	body, _ := render(t, "", m)
	require.Less(t, len(body), message.FormBytesMax)
	var back message.Message
	require.NoError(t, json.Unmarshal([]byte(body), &back))
	require.Equal(t, 1, back.Version)
	require.True(t, strings.HasSuffix(back.Failure.Message, "ü…"))
	require.Equal(t, message.Failed, back.Event)
}

func TestTemplatesAreTriedBeforeTheyAreNeeded(t *testing.T) {
	t.Parallel()
	for form, want := range map[string]string{
		"slak":                               "is no form",
		"{{.run":                             "unclosed action",
		"{{nosuch .run}}":                    `function "nosuch" not defined`,
		"{{.run.more}}":                      "for event waiting",
		"{{.failure.message.more}}":          "for event failed",
		"{{range 100000}}{{$.title}}{{end}}": "it gives more than 64 KiB",
		"{{/*" + strings.Repeat("x", 17<<10) + "}}": "larger than 16 KiB",
	} {
		_, err := message.ParseForm(form)
		require.ErrorContains(t, err, want, form)
		require.NotContains(t, err.Error(), "template: template", form)
	}
	_, err := message.ParseForm("{{if .gate}}{{.gate.name}}{{else}}{{.event}}{{end}} {{cut 3 .script}}")
	require.NoError(t, err)
}

func TestTitles(t *testing.T) {
	t.Parallel()
	for kind, want := range map[message.Kind]string{
		message.Waiting: "(test) run 7 of orders waits for a decision at gate review",
		message.Failed:  "(test) run 7 of orders failed",
		message.Done:    "(test) run 7 of orders is done",
		message.Late:    "(test) run 7 of orders is late: it was to be over at 2026-03-02T06:30:00Z",
		message.Stopped: "(test) run 7 of orders was stopped by operator@host",
	} {
		require.Equal(t, want, message.Example(kind).Title())
	}
	m := message.Example(message.Waiting)
	m.Gate, m.Actor, m.Test, m.Workspace = nil, "operator@host", false, "night"
	require.Equal(t, "run 7 of orders (workspace night) is paused by operator@host", m.Title())
	m.Event, m.Run, m.Workspace = message.Failed, 0, "main"
	require.Equal(t, "a run of orders could not begin", m.Title())
}
