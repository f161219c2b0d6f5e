package message

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"thalweg/internal/base/action"
)

// Version is the version of the form of messages. Fields may be added to it.
const Version = 1

// Kind names an event that is told of. The texts are stored, and written in scripts. The texts are stored,
// and written in scripts.
type Kind string

// The kinds.
const (
	Waiting Kind = "waiting" // a gate was opened, or the run was paused: people have to do something
	Failed  Kind = "failed"
	Done    Kind = "done"
	Late    Kind = "late" // it is not over at its deadline
	Stopped Kind = "stopped"
)

// Kinds lists them, in the order of the manual.
func Kinds() []Kind { return []Kind{Waiting, Failed, Done, Late, Stopped} }

// Message is one event of a run, for those who want to be told.
type Message struct {
	Version int       `json:"version"`
	ID      string    `json:"id"` // the same however often it is sent, for whoever receives it
	Event   Kind      `json:"event"`
	Time    time.Time `json:"time"` // when it happened

	Workspace   string     `json:"workspace"`
	Run         int64      `json:"run"` // 0: it could not begin
	Script      string     `json:"script"`
	Path        string     `json:"path"`
	Status      string     `json:"status"`
	Description string     `json:"description,omitempty"`
	Actor       string     `json:"actor,omitempty"` // who did it, if somebody did
	Reason      string     `json:"reason,omitempty"`
	Created     *time.Time `json:"created,omitempty"`
	Finished    *time.Time `json:"finished,omitempty"`
	Deadline    *time.Time `json:"deadline,omitempty"`

	Failure  *Failure          `json:"failure,omitempty"`
	Gate     *Gate             `json:"gate,omitempty"`
	Commands map[string]string `json:"commands,omitempty"` // what can be done about it
	Test     bool              `json:"test,omitempty"`     // nothing has happened: somebody tries the hook
}

// Failure describes why a run failed.
type Failure struct {
	Kind    string `json:"kind"`
	Message string `json:"message"`
	Place   string `json:"place,omitempty"`
	Hint    string `json:"hint,omitempty"`
	Node    string `json:"node,omitempty"`
}

// Gate describes the gate that a run waits at.
type Gate struct {
	Name    string   `json:"name"`
	Message string   `json:"message,omitempty"`
	By      []string `json:"by,omitempty"` // roles that may decide
}

// textBytesMax is the most that is kept of a text that a run says.
const textBytesMax = 2 << 10

// Cut shortens the texts of a message that can be of any length.
func (m Message) Cut() Message {
	m.Description, m.Reason = cut(m.Description, textBytesMax), cut(m.Reason, textBytesMax)
	if m.Failure != nil {
		f := *m.Failure
		f.Message, f.Hint, f.Place = cut(f.Message, textBytesMax), cut(f.Hint, textBytesMax), cut(f.Place, textBytesMax)
		m.Failure = &f
	}
	if m.Gate != nil {
		g := *m.Gate
		g.Message = cut(g.Message, textBytesMax)
		m.Gate = &g
	}
	return m
}

// cut is the beginning of a text, whole characters.
func cut(text string, limit int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit] + "…"
}

// Title says in a line what happened.
func (m Message) Title() string {
	run := fmt.Sprintf("run %d of %s", m.Run, m.Script)
	if m.Run == 0 {
		run = "a run of " + m.Script
	}
	if m.Workspace != "" && m.Workspace != "main" {
		run += " (workspace " + m.Workspace + ")"
	}
	var text string
	switch {
	case m.Event == Waiting && m.Gate != nil:
		text = run + " waits for a decision at gate " + m.Gate.Name
	case m.Event == Waiting:
		text = run + " is paused"
	case m.Event == Failed && m.Run == 0:
		text = run + " could not begin"
	case m.Event == Failed:
		text = run + " failed"
	case m.Event == Done:
		text = run + " is done"
	case m.Event == Late:
		text = run + " is late"
		if m.Deadline != nil {
			text += ": it was to be over at " + m.Deadline.Format(time.RFC3339)
		}
	case m.Event == Stopped:
		text = run + " was stopped"
	}
	if m.Actor != "" && (m.Event == Stopped || m.Event == Waiting && m.Gate == nil) {
		text += " by " + m.Actor
	}
	if m.Test {
		text = "(test) " + text
	}
	return text
}

// Lines are the title and what is to be known besides.
func (m Message) Lines() []string {
	lines := []string{m.Title()}
	add := func(label, text string) {
		if text = strings.TrimSpace(text); text != "" {
			lines = append(lines, label+text)
		}
	}
	if f := m.Failure; f != nil {
		add("", f.Message)
		add("at ", f.Place)
		add("hint: ", f.Hint)
	}
	if g := m.Gate; g != nil {
		add("", g.Message)
		add("for: ", strings.Join(g.By, ", "))
	}
	add("reason: ", m.Reason)
	for _, name := range []string{"look", "approve", "reject", "resume", "retry", "show"} {
		add(name+": ", m.Commands[name])
	}
	return lines
}

// Say lets the commands of a message, and those of its hint, be as told has them; nil: as they are.
func (m *Message) Say(told func(text string) string) {
	if told == nil {
		return
	}
	for name, line := range m.Commands {
		m.Commands[name] = told(line)
	}
	if m.Failure != nil {
		m.Failure.Message, m.Failure.Hint = told(m.Failure.Message), told(m.Failure.Hint)
	}
}

// fields are the message as templates see it: under the names that it has in JSON.
func (m Message) fields() (map[string]any, error) {
	text, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode a message: %w", err)
	}
	out := map[string]any{}
	if err := json.Unmarshal(text, &out); err != nil {
		return nil, fmt.Errorf("decode a message: %w", err)
	}
	out["run"] = m.Run // not a float
	out["version"] = m.Version
	out["title"] = m.Title()
	out["lines"] = m.Lines()
	return out, nil
}

// Example is a message of a kind with everything in it that such a message may
// have: what templates are tried with.
func Example(kind Kind) Message {
	at := time.Date(2026, time.March, 2, 6, 30, 0, 0, time.UTC)
	begun := at.Add(-time.Hour)
	m := Message{Version: Version, ID: "evt_example", Event: kind, Time: at, Workspace: "main", Run: 7,
		Script: "orders", Path: "orders.yaml", Status: "running",
		Created: &begun, Deadline: &at, Test: true,
		Commands: map[string]string{"show": action.Do("show", "run", 7).String()}}
	switch kind {
	case Waiting:
		m.Gate = &Gate{Name: "review", Message: "look at the totals", By: []string{"finance"}}
		m.Commands["approve"] = action.Do("approve", "run", 7, "gate", "review", "comment", "TEXT").String()
		m.Commands["reject"] = action.Do("reject", "run", 7, "gate", "review", "comment", "TEXT").String()
	case Failed:
		m.Status, m.Finished = "failed", &at
		m.Failure = &Failure{Kind: "user_data", Message: `cannot read "12,x" as a decimal2`,
			Place: "in/orders.csv:12:3", Hint: "correct the file", Node: "read_orders"}
		m.Commands["retry"] = action.Do("retry", "run", 7).String()
	case Done:
		m.Status, m.Finished = "complete", &at
	case Stopped:
		m.Status, m.Finished, m.Actor = "stopped", &at, "operator@host"
	case Late:
	}
	return m
}
