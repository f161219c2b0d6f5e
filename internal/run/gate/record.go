package gate

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"thalweg/internal/base/fault"
	"thalweg/internal/store/state"
)

// Gates are the nodes of kind Kind whose name begins with Prefix. The texts are stored.
const (
	Kind   = state.KindGate
	Prefix = "approval:"
)

// Is reports whether a node is a gate.
func Is(n state.NodeSpec) bool { return n.Kind == Kind && strings.HasPrefix(n.Name, Prefix) }

// NameOf returns the name of a gate for people: that of its node without Prefix.
func NameOf(node string) string { return strings.TrimPrefix(node, Prefix) }

// version is the version of the format in which records are written.
const version = 1

// Record is the question at a gate. It is stored: fields are only added.
type Record struct {
	Version int      `json:"version"`
	Gate    string   `json:"gate"`
	Table   string   `json:"table,omitempty"` // the gate follows this table; "": it precedes a node
	Guards  []string `json:"guards,omitempty"`
	By      []string `json:"by,omitempty"` // who may decide; none: anybody
	// Verified: only callers count whose roles somebody else has verified. FourEyes: not who began the run.
	Verified bool       `json:"verified,omitempty"`
	FourEyes bool       `json:"four_eyes,omitempty"`
	Message  string     `json:"message,omitempty"`
	Shows    []Shown    `json:"shows,omitempty"`
	Failed   []Check    `json:"failed,omitempty"` // failed checks because of which it asks
	Answers  []Question `json:"answers,omitempty"`
	// MoreFailed counts the failed checks that are not in Failed.
	MoreFailed int       `json:"more_failed,omitempty"`
	Timeout    string    `json:"timeout,omitempty"`
	Since      time.Time `json:"since,omitzero"`
	Until      time.Time `json:"until,omitzero"` // zero: no deadline
	Passed     string    `json:"passed,omitempty"`
	Digest     string    `json:"digest"`
}

// Shown is a table that people look at before they decide.
type Shown struct {
	Table  string `json:"table"`
	Node   string `json:"node"` // that has written it
	Run    int64  `json:"run"`
	Rows   int64  `json:"rows"`
	Bytes  int64  `json:"bytes"`
	Digest string `json:"digest"`
}

// Check is a failed check because of which the gate asks.
type Check struct {
	Name    string `json:"check"`
	Failed  int64  `json:"failed"`
	Kept    int64  `json:"kept"`
	Table   string `json:"table"` // table that keeps the failed rows
	Message string `json:"message,omitempty"`
}

// Question asks for a value that people may give when they approve.
type Question struct {
	Name    string   `json:"name"`
	Type    string   `json:"type"`
	Default string   `json:"default"`
	Message string   `json:"message,omitempty"`
	Min     string   `json:"min,omitempty"`
	Max     string   `json:"max,omitempty"`
	OneOf   []string `json:"one_of,omitempty"`
}

// Wants says in short which answer is accepted: its name and kind.
func (q Question) Wants() string { return q.Name + ", " + q.Kind() }

// Kind says in short which values are accepted: the type and its limits.
func (q Question) Kind() string {
	text := q.Type
	switch {
	case len(q.OneOf) > 0:
		text += ": one of " + strings.Join(q.OneOf, ", ")
	case q.Min != "" && q.Max != "":
		text += " from " + q.Min + " to " + q.Max
	case q.Min != "":
		text += " of at least " + q.Min
	case q.Max != "":
		text += " of at most " + q.Max
	}
	return text
}

// SetDigest sets the record's version and digest. The digest covers what people are
// shown and asked, not when they are asked or who may decide.
func (r *Record) SetDigest() {
	h := newHash("thalweg gate 1")
	h.text(r.Gate)
	for _, s := range r.Shows {
		h.text("table", s.Table, s.Digest)
		h.number(s.Rows)
	}
	for _, c := range r.Failed {
		h.text("check", c.Name)
		h.number(c.Failed)
	}
	for _, q := range r.Answers {
		h.text("answer", q.Name, q.Type, q.Min, q.Max)
		h.text(q.OneOf...)
	}
	r.Version, r.Digest = version, h.sum()
}

// Begin returns the record of a gate that waits from now on, with Since and Until set.
func (r Record) Begin(now time.Time) Record {
	r.Since = now.UTC()
	if d, err := time.ParseDuration(r.Timeout); err == nil && d > 0 {
		r.Until = r.Since.Add(d)
	}
	return r
}

// Over reports whether the deadline (Until) has passed.
func (r Record) Over(now time.Time) bool { return !r.Until.IsZero() && !now.Before(r.Until) }

// May reports whether somebody in a role may decide.
func (r Record) May(role string) bool { return len(r.By) == 0 || slices.Contains(r.By, role) }

// Refuses says why somebody may not decide whatever their role; nil: they may. begun is who began the run.
func (r Record) Refuses(actor string, verified bool, begun string) error {
	switch {
	case r.Verified && !verified:
		return &fault.Error{Kind: fault.Script, Code: fault.Forbidden,
			Message: fmt.Sprintf("gate %s is decided by people who have signed in to a server", r.Gate),
			Hint:    "a decision through {{do serve}} counts, in a role that was given there"}
	case r.FourEyes && samePerson(actor, begun):
		return &fault.Error{Kind: fault.Script, Code: fault.Forbidden,
			Message: fmt.Sprintf("gate %s is not decided by %s, who began the run", r.Gate, begun),
			Hint:    "somebody else has to look"}
	}
	return nil
}

// samePerson reports whether two names can be of one person: the account ann of a machine, ann@host, is taken for
// the user ann of a server.
func samePerson(a, b string) bool {
	account := func(name string) string {
		name, _, _ = strings.Cut(strings.ToLower(strings.TrimSpace(name)), "@")
		return name
	}
	return account(a) == account(b)
}

// People see, and name, only the first digits of a digest.
const (
	digestKind   = "sha256:"
	shortDigits  = 12
	digitsNeeded = 8
)

// Short returns the first digits of the record's digest, as people name it.
func (r Record) Short() string {
	digits := strings.TrimPrefix(r.Digest, digestKind)
	return digits[:min(shortDigits, len(digits))]
}

// Named reports whether digits are the first of the record's digest; ok is false
// if they are too few, or no digits.
func (r Record) Named(digits string) (same, ok bool) {
	digits = strings.TrimPrefix(strings.ToLower(strings.TrimSpace(digits)), digestKind)
	if len(digits) < digitsNeeded || strings.Trim(digits, "0123456789abcdef") != "" {
		return false, false
	}
	return strings.HasPrefix(strings.TrimPrefix(r.Digest, digestKind), digits), true
}

// Reads lists the nodes whose tables the gate shows; run is the gate's run.
func (r Record) Reads(run state.RunKey) []state.NodeKey {
	out := make([]state.NodeKey, len(r.Shows))
	for i, s := range r.Shows {
		out[i] = state.NodeKey{RunKey: state.RunKey{Workspace: run.Workspace, Run: s.Run}, Node: s.Node}
	}
	return out
}

// Encode writes the record for state.
func (r Record) Encode() ([]byte, error) {
	data, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("write what gate %s asks: %w", r.Gate, err)
	}
	return data, nil
}

// Decode reads a record.
func Decode(data []byte) (Record, error) {
	var r Record
	if err := json.Unmarshal(data, &r); err != nil {
		return r, fmt.Errorf("read what a gate asks: %w", err)
	}
	if r.Version != version {
		return r, fault.OtherForm(fmt.Sprintf("what gate %s asks", r.Gate), r.Version, version)
	}
	return r, nil
}

// WithoutValues returns what a gate asks without texts that may quote values of the data.
func (r Record) WithoutValues() Record {
	r.Failed = slices.Clone(r.Failed)
	for i := range r.Failed {
		r.Failed[i].Message = ""
	}
	return r
}

// TableDigest returns a digest of a table's parts, and their rows and bytes in sum. It
// covers places, schemas, checksums and sizes of the parts in their order, not who
// wrote them. Rows that were computed again may be cut into other parts, and then
// the digest differs.
func TableDigest(parts []state.Part) (digest string, rows, bytes int64) {
	h := newHash("thalweg table 1")
	for _, p := range parts {
		h.number(int64(p.Batch), int64(p.Seq), int64(p.Bucket), p.Rows, p.Bytes)
		h.text(p.Schema, p.Checksum)
		rows += p.Rows
		bytes += p.Bytes
	}
	return h.sum(), rows, bytes
}

// hash collects fields with their lengths, so that different lists never give the same bytes.
type hash struct{ data []byte }

func newHash(kind string) *hash {
	h := &hash{}
	h.text(kind)
	return h
}

func (h *hash) number(values ...int64) {
	for _, n := range values {
		h.data = binary.BigEndian.AppendUint64(h.data, uint64(n))
	}
}

func (h *hash) text(texts ...string) {
	h.number(int64(len(texts)))
	for _, s := range texts {
		h.number(int64(len(s)))
		h.data = append(h.data, s...)
	}
}

func (h *hash) sum() string {
	sum := sha256.Sum256(h.data)
	return digestKind + hex.EncodeToString(sum[:])
}
