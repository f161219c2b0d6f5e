package expr

import (
	"strings"

	"thalweg/internal/base/sqltext"
)

// raisedMarker starts the text of every error that SQL of ours raises itself.
// DuckDB puts the class of its exception before it ("Invalid Input Error: ").
const (
	raisedMarker = "thalweg:expr: "
	raisedEnd    = "␟" // behind Kind and behind Subject
)

// RaisedIn is the kind of errors of which Subject is the expression that cannot
// be computed, as messages quote it.
const RaisedIn = "in"

// Raised is an error that SQL of ours raises about a value. It goes through
// DuckDB as a text, of which Kind and Subject are for programs.
type Raised struct {
	Kind    string // what Subject is: RaisedIn, or a word of whoever writes the SQL; "": nothing
	Subject string
	Message string
}

// head is the text in front of the message.
func (r Raised) head() string {
	return raisedMarker + r.Kind + raisedEnd + strings.ReplaceAll(r.Subject, raisedEnd, " ") + raisedEnd
}

// SQL raises the error. The SQL of texts, if there are any, is put behind the message.
func (r Raised) SQL(texts ...string) string {
	text := sqltext.String(r.head() + r.Message)
	if len(texts) > 0 {
		text = "concat(" + text + ", " + strings.Join(texts, ", ") + ")"
	}
	return "error(" + text + ")"
}

// ParseRaised finds such an error in the text that DuckDB gives of it.
func ParseRaised(text string) (Raised, bool) {
	_, text, ok := strings.Cut(text, raisedMarker)
	if !ok {
		return Raised{}, false
	}
	var r Raised
	r.Kind, text, _ = strings.Cut(text, raisedEnd)
	r.Subject, text, ok = strings.Cut(text, raisedEnd)
	r.Message, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	return r, ok
}

// Text is the error for people.
func (r Raised) Text() string {
	if r.Kind == RaisedIn {
		return r.Message + " in `" + r.Subject + "`"
	}
	return r.Message
}

// raised is an error of the expression n.
func raised(n *node, message string) Raised {
	return Raised{Kind: RaisedIn, Subject: shorten(n.text), Message: message}
}

// shown is the SQL of as much of a value as messages show.
func shown(value string) string { return "left(CAST(" + value + " AS VARCHAR), 80)" }
