package script

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"thalweg/internal/base/document"
	"thalweg/internal/base/fault"
	"thalweg/internal/lang/expr"
)

// GatePrefix begins the names of gates in a run; no node's name begins so.
const GatePrefix = "approval:"

// Gate is a place at which a run waits until somebody has decided: in front of
// a node, or behind the node that writes a table, for all who read that.
type Gate struct {
	Name   string // of the node or table that names it
	Pos    document.Pos
	Front  *Node // it is in front of that node; nil: it is a table's
	Writer *Node // it is behind the node that writes a table; nil: it is in front of a node
	Always bool  // it asks whatever checks have found; else only if one of SeverityApproval failed
	By     []string
	// Verified is true if only callers count whose roles somebody else has verified; FourEyes if who began the run
	// may not decide.
	Verified, FourEyes bool

	Message string
	Show    []*Node // the nodes whose tables are shown
	Timeout time.Duration
	Answers []*Answer
	Guards  []*Node // the nodes that wait for it, in the order of the script
}

// Key is the gate's name among the nodes of a run.
func (g *Gate) Key() string { return GatePrefix + g.Name }

// Inputs lists the nodes that have to be done before anybody is asked.
func (g *Gate) Inputs() []*Node {
	var out []*Node
	before := []*Node{g.Writer}
	if g.Front != nil {
		before = sources(g.Front)
	}
	for _, n := range append(before, g.Show...) {
		if !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}

// Answer is a value that people give when they approve: a parameter of the
// nodes behind the gate.
type Answer struct {
	Name    string       `json:"name"`
	Type    string       `json:"type"`    // see expr.ParseType
	Default string       `json:"default"` // as it counts when nobody says otherwise
	Message string       `json:"message,omitempty"`
	Min     string       `json:"min,omitempty"`
	Max     string       `json:"max,omitempty"`
	OneOf   []string     `json:"one_of,omitempty"`
	Pos     document.Pos `json:"-"`
}

// answerTextMax bounds an answer, in bytes.
const answerTextMax = 1000

// Value checks what somebody answers, and gives it as it is put into the
// script: the same for all ways to write one value. Its error says what would do.
func (a Answer) Value(text string) (string, error) {
	value, err := a.read(text)
	switch {
	case err != nil:
		return "", err
	case a.Min != "" && a.compare(value, a.Min) < 0:
		return "", fmt.Errorf("%s is below %s, the least that is allowed", value, a.Min)
	case a.Max != "" && a.compare(value, a.Max) > 0:
		return "", fmt.Errorf("%s is above %s, the most that is allowed", value, a.Max)
	case len(a.OneOf) > 0 && !slices.ContainsFunc(a.OneOf, func(one string) bool { return a.compare(value, one) == 0 }):
		return "", fmt.Errorf("%s is none of %s", document.Quote(value), strings.Join(a.OneOf, ", "))
	}
	return value, nil
}

// read reads a value of the answer's type.
func (a Answer) read(text string) (string, error) {
	t, _ := expr.ParseType(a.Type)
	trimmed := strings.TrimSpace(text)
	wrong := fmt.Errorf("%s is not %s", document.Quote(document.Shorten(text, document.MaxShownTextChars)), article(t))
	switch t {
	case expr.Int:
		n, err := strconv.ParseInt(trimmed, 10, 64)
		if err != nil {
			return "", wrong
		}
		return strconv.FormatInt(n, 10), nil
	case expr.Float:
		return floatText(trimmed, wrong)
	case expr.Decimal:
		return decimalText(trimmed, wrong)
	case expr.Bool:
		switch lower := strings.ToLower(trimmed); lower {
		case "true", "false":
			return lower, nil
		}
		return "", fmt.Errorf("%w: write true or false", wrong)
	case expr.DateTime:
		t, ok := parseMoment(trimmed)
		if !ok {
			return "", fmt.Errorf("%w: write 2024-12-31 or 2024-12-31 23:59:59; it is UTC", wrong)
		}
		return momentText(t), nil
	}
	return answerText(text)
}

// floatText writes a number so that a script takes it for a float: with a point
// or an exponent.
func floatText(text string, wrong error) (string, error) {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsInf(f, 0) || math.IsNaN(f) || strings.ContainsAny(text, "xX_") {
		return "", fmt.Errorf("%w: write a number such as 12.5", wrong)
	}
	const plainMin, plainMax = 1e-6, 1e15
	form := byte('g')
	if size := math.Abs(f); f == 0 || size >= plainMin && size < plainMax {
		form = 'f'
	}
	out := strconv.FormatFloat(f, form, -1, 64)
	if !strings.ContainsAny(out, ".e") {
		out += ".0"
	}
	return out, nil
}

// decimalText writes a number with its two digits.
func decimalText(text string, wrong error) (string, error) {
	const digitsMax = 15
	sign, digits := "", strings.TrimPrefix(text, "+")
	if rest, negative := strings.CutPrefix(text, "-"); negative {
		sign, digits = "-", rest
	}
	whole, fraction, point := strings.Cut(digits, ".")
	plain := func(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }
	if !plain(whole) || point && !plain(fraction) {
		return "", fmt.Errorf("%w: write a number such as 12.50", wrong)
	}
	if tooFine(digits) {
		return "", fmt.Errorf("%w: it has more than the two digits of a decimal2 behind the point", wrong)
	}
	if whole = strings.TrimLeft(whole, "0"); whole == "" {
		whole = "0"
	}
	if len(whole) > digitsMax {
		return "", wrong
	}
	fraction = (fraction + "00")[:2]
	if whole == "0" && fraction == "00" {
		sign = ""
	}
	return sign + whole + "." + fraction, nil
}

// answerText checks a text: it stands in the script's own text, where it must not
// end what it is part of.
func answerText(text string) (string, error) {
	const ends = "\"'`\\{}"
	switch {
	case len(text) > answerTextMax:
		return "", fmt.Errorf("it is longer than %d bytes", answerTextMax)
	case !utf8.ValidString(text):
		return "", fmt.Errorf("%s is not UTF-8", document.Quote(text))
	case strings.ContainsAny(text, ends), strings.ContainsFunc(text, breaks):
		return "", fmt.Errorf("%s has a quote, a backslash, a brace or a line break in it, which could end what it "+
			"is put into", document.Quote(text))
	case strings.TrimSpace(text) != text, strings.Contains(text, ": "), strings.Contains(text, " #"),
		strings.HasSuffix(text, ":"):
		return "",
			fmt.Errorf("%s begins or ends with a blank, or has a colon or # in it that a script's text could end at",
				document.Quote(text))
	}
	return text, nil
}

// breaks reports whether a character is none that people see, or one at which
// YAML ends a line.
func breaks(r rune) bool {
	const byteOrderMark = '\uFEFF'
	return unicode.IsControl(r) || unicode.In(r, unicode.Zl, unicode.Zp) || r == byteOrderMark
}

// compare orders two values that read has given.
func (a Answer) compare(x, y string) int {
	switch t, _ := expr.ParseType(a.Type); t {
	case expr.Int:
		m, _ := strconv.ParseInt(x, 10, 64)
		n, _ := strconv.ParseInt(y, 10, 64)
		return cmp.Compare(m, n)
	case expr.Float:
		f, _ := strconv.ParseFloat(x, 64)
		g, _ := strconv.ParseFloat(y, 64)
		return cmp.Compare(f, g)
	case expr.Decimal:
		m, _ := strconv.ParseInt(strings.Replace(x, ".", "", 1), 10, 64)
		n, _ := strconv.ParseInt(strings.Replace(y, ".", "", 1), 10, 64)
		return cmp.Compare(m, n)
	case expr.DateTime:
		m, _ := parseMoment(x)
		n, _ := parseMoment(y)
		return m.Compare(n)
	}
	return cmp.Compare(x, y)
}

// parseMoment reads a datetime as checks and answers write it.
func parseMoment(text string) (time.Time, bool) {
	for _, layout := range timeLayouts() {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UTC(), true
		}
	}
	return time.Time{}, false
}

// momentText writes a datetime in UTC: a day that begins, by its date.
func momentText(t time.Time) string {
	if t.Equal(t.Truncate(24 * time.Hour)) {
		return t.Format(time.DateOnly)
	}
	return t.Format("2006-01-02 15:04:05.999999")
}

// Gate finds a gate by its name; nil if there is none.
func (s *Script) Gate(name string) *Gate {
	i := slices.IndexFunc(s.Gates, func(g *Gate) bool { return g.Name == name })
	if i < 0 {
		return nil
	}
	return s.Gates[i]
}

// Answers lists what people are asked for at the gates.
func (s *Script) Answers() []*Answer {
	var out []*Answer
	for _, g := range s.Gates {
		out = append(out, g.Answers...)
	}
	return out
}

// Step is a node or a gate of a run.
type Step struct {
	Node   *Node // nil: a gate
	Gate   *Gate
	Name   string
	Inputs []string // the steps of the same run that have to be done before
}

// Steps lists the nodes of a run with its gates, so that each step comes behind
// its inputs, otherwise in the order of nodes. A gate is part of a run if a node
// that waits for it is, or the one whose table it is about.
func (s *Script) Steps(nodes []*Node) []Step {
	done, rest := s.steps(nodes)
	return append(done, rest...) // rest: a script with a cycle does not load
}

// steps also gives those that wait for each other.
func (s *Script) steps(nodes []*Node) (ordered, stuck []Step) {
	in := map[*Node]bool{}
	for _, n := range nodes {
		in[n] = true
	}
	present := func(of []*Node) (out []string) {
		for _, n := range of {
			if in[n] && !slices.Contains(out, n.Name) {
				out = append(out, n.Name)
			}
		}
		return out
	}
	var all []Step
	waits := map[*Node][]string{}
	for _, g := range s.Gates {
		if !in[g.Writer] && !slices.ContainsFunc(g.Guards, func(n *Node) bool { return in[n] }) {
			continue
		}
		all = append(all, Step{Gate: g, Name: g.Key(), Inputs: present(g.Inputs())})
		for _, n := range g.Guards {
			waits[n] = append(waits[n], g.Key())
		}
	}
	for _, n := range nodes {
		all = append(all, Step{Node: n, Name: n.Name, Inputs: append(present(sources(n)), waits[n]...)})
	}
	return inOrder(all)
}

// inOrder puts each step behind its inputs. Gates come as early as they can.
func inOrder(all []Step) (ordered, stuck []Step) {
	missing, readers := map[string]int{}, map[string][]int{}
	for i, s := range all {
		missing[s.Name] = len(s.Inputs)
		for _, input := range s.Inputs {
			readers[input] = append(readers[input], i)
		}
	}
	ready := make([]int, 0, len(all))
	for i, s := range all {
		if len(s.Inputs) == 0 {
			ready = append(ready, i)
		}
	}
	placed := make([]bool, len(all))
	for len(ready) > 0 {
		i := slices.Min(ready)
		ready = slices.DeleteFunc(ready, func(x int) bool { return x == i })
		placed[i] = true
		ordered = append(ordered, all[i])
		for _, r := range readers[all[i].Name] {
			if missing[all[r].Name]--; missing[all[r].Name] == 0 {
				ready = append(ready, r)
			}
		}
	}
	for i, s := range all {
		if !placed[i] {
			stuck = append(stuck, s)
		}
	}
	return ordered, stuck
}

// Unattended are the steps of a run at whose gates nobody is asked.
func Unattended(steps []Step) []Step {
	var out []Step
	for _, s := range steps {
		if s.Node == nil {
			continue
		}
		s.Inputs = slices.DeleteFunc(slices.Clone(s.Inputs),
			func(name string) bool { return strings.HasPrefix(name, GatePrefix) })
		out = append(out, s)
	}
	return out
}

// Differs refuses a version of the script with answers that is another script
// in more than the nodes that use them.
func (s *Script) Differs(answered *Script) error {
	wrong := func(what string) error {
		return &fault.Error{Kind: fault.Script, Message: "with these answers the script is another one: " + what,
			Hint: "an answer may change values, not what there is: nodes, tables, what is read, and Python files"}
	}
	if len(s.Nodes) != len(answered.Nodes) {
		return wrong("it has other nodes")
	}
	for i, n := range s.Nodes {
		m := answered.Nodes[i]
		switch {
		case n.Name != m.Name || n.Type != m.Type || (n.Table == nil) != (m.Table == nil) || n.Table != nil &&
			n.Table.Name != m.Table.Name:
			return wrong("node " + m.Name + " is another one")
		case !slices.Equal(names(sources(n)), names(sources(m))):
			return wrong("node " + m.Name + " reads other tables")
		case !slices.Equal(n.PythonCode(), m.PythonCode()):
			return wrong("node " + m.Name + " has other Python files, which are looked at before the run begins")
		case len(n.Answers) == 0 && n.Fingerprint != m.Fingerprint:
			return wrong("node " + m.Name +
				" uses none of them and differs: values of the environment, or columns of its inputs, are not " +
				"what they were")
		}
	}
	return nil
}
