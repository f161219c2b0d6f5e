package script

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"thalweg/internal/base/document"
)

// What becomes of rows that a node cannot compute.
const (
	BadFail       = "fail"       // the first one fails the node
	BadQuarantine = "quarantine" // they are kept apart, with the reason
	BadNull       = "null"       // py_calc: calculated fields are NULL or zero; the row is recorded as well
)

// Caps of quarantine, as defaults and as the most that can be asked for.
const (
	BadRowsDefault     = 1_000
	BadPercentDefault  = 10
	BadRowsMax         = 100_000
	badPercentMax      = 100
	badRowsWhere       = "file_table, table_table, table_file, py_calc and tag_and_denormalize can quarantine rows"
	badRowsExample     = "write bad_rows: {action: quarantine, max_rows: 1000, max_percent: 1}"
	badRowsInsteadHint = "compute what can fail in a table_table in front of it"
)

// BadRows says what becomes of rows that a node cannot compute, and how many
// there may be before the node fails all the same.
type BadRows struct {
	Pos        document.Pos
	Action     string  // BadQuarantine or BadNull
	MaxRows    int64   // of the node, over all batches; 0 to BadRowsMax
	MaxPercent float64 // of the rows that the node reads; 0 to 100
}

// badRows reads a node's key of that name: a word, or a map with the caps.
func (l *loader) badRows(d *nodeDraft) {
	o, key := d.o, "bad_rows"
	e := o.keys[key]
	if e == nil {
		return
	}
	if !e.Value.Present() {
		l.WarnAt(e.Key, o.path, "bad_rows: null is the same as no bad_rows at all: the first bad row "+
			"fails the node").Hint =
			badRowsExample
		return
	}
	b := &BadRows{Pos: l.pos(e.Key), MaxRows: BadRowsDefault, MaxPercent: BadPercentDefault}
	word, path := e.Value, o.keyPath(key)
	if e.Value.Kind == document.Map {
		m := l.object(e.Value, path, badRowsShape)
		m.at = e.Key
		if word = m.word("action"); word == nil {
			m.missing("action", badRowsExample)
			return
		}
		path = m.keyPath("action")
		b.MaxRows = int64(m.integer("max_rows", BadRowsDefault))
		b.MaxPercent = m.number("max_percent", BadPercentDefault, 0, badPercentMax)
		if word.Text == BadFail {
			m.ignored("with action fail the first bad row fails the node", "max_rows", "max_percent")
		}
	}
	if !l.badAction(d, word, path) || word.Text == BadFail {
		return
	}
	b.Action = word.Text
	d.node.BadRows = b
}

// badAction checks the word and whether the node can do what it says.
func (l *loader) badAction(d *nodeDraft, v *document.Value, path string) bool {
	words := []string{BadFail, BadQuarantine, BadNull}
	if v.Kind != document.String || !slices.Contains(words, v.Text) {
		at := l.ErrorAt(v, path, "bad_rows cannot be %s", describe(v))
		if at.Hint = badRowsExample; v.Kind == document.String {
			at.Message = "there is no action " + document.Quote(v.Text) + " for bad rows"
			at.Hint = document.DidYouMean(v.Text, words)
		}
		return false
	}
	proc := ""
	if p := d.o.get("custom_proc_type"); p != nil {
		proc = p.Text
	}
	switch t := d.node.Type; {
	case v.Text == BadFail, t == "":
	case t == TableFile && d.o.has("checks"):
		l.ErrorAt(v, path, "a %s with checks cannot quarantine rows: files are checked before their rows are computed",
			t).Hint = badRowsInsteadHint
		return false
	case t == FileTable, t == TableTable, t == TableFile, t == CustomTable:
		if v.Text == BadNull && proc != ProcPyCalc {
			l.ErrorAt(v, path, "only a %s can go on with NULL in its calculated fields",
				ProcPyCalc).Hint = "write quarantine"
			return false
		}
	default:
		l.ErrorAt(v, path, "a %s cannot quarantine rows: %s", t, badRowsWhere).Hint = badRowsInsteadHint
		return false
	}
	return true
}

// word is the value of a key in which null is a word like others; nil if it is
// not there. What it returns is text, so that the definition keeps it.
func (o *object) word(key string) *document.Value {
	e := o.keys[key]
	if e == nil {
		return nil
	}
	if e.Value.Kind == document.Null {
		e.Value.Kind, e.Value.Text = document.String, BadNull
	}
	return e.Value
}

// number gives the value of a number between low and high, def if it is
// absent or wrong.
func (o *object) number(key string, def, low, high float64) float64 {
	v := o.get(key)
	if v == nil {
		return def
	}
	f, err := strconv.ParseFloat(strings.ReplaceAll(v.Text, "_", ""), 64)
	if v.Kind != document.Number || err != nil || math.IsNaN(f) {
		o.l.ErrorAt(v, o.keyPath(key), "%s must be a number, found %s", key,
			describe(v)).Hint = o.typedHint(v, "number",
			"write it without quotes")
		return def
	}
	if f < low || f > high {
		o.l.ErrorAt(v, o.keyPath(key), "%s is %s, which is out of range", key, v.Text).Hint =
			"it is between " + strconv.FormatFloat(low, 'g', -1, 64) + " and " + strconv.FormatFloat(high, 'g', -1, 64)
		return def
	}
	return f
}
