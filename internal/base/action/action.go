package action

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Action is something that can be done: a verb such as "retry", and its arguments in their order.
type Action struct {
	Verb string `json:"verb"` // words are joined with "-": cluster-init
	Args []Arg  `json:"args,omitempty"`
}

// Arg is an argument of an action; an empty value stands for a switch that is set.
type Arg struct {
	Name  string `json:"name"`
	Value string `json:"value,omitempty"`
}

// Do makes an action of a verb and names, each followed by its value.
func Do(verb string, args ...any) Action { return Action{Verb: verb}.With(args...) }

// With adds arguments, each a name followed by its value.
func (a Action) With(args ...any) Action {
	out := Action{Verb: a.Verb, Args: append([]Arg(nil), a.Args...)}
	for i := 0; i+1 < len(args); i += 2 {
		out.Args = append(out.Args, Arg{Name: fmt.Sprint(args[i]), Value: fmt.Sprint(args[i+1])})
	}
	return out
}

// Get returns the first value of an argument, and whether there is one.
func (a Action) Get(name string) (string, bool) {
	for _, arg := range a.Args {
		if arg.Name == name {
			return arg.Value, true
		}
	}
	return "", false
}

// String writes the action as a mark.
func (a Action) String() string {
	var b strings.Builder
	b.WriteString("{{do " + a.Verb)
	for _, arg := range a.Args {
		b.WriteString(" " + arg.Name + "=" + escape(arg.Value))
	}
	return b.String() + "}}"
}

// Setting writes the name of an option as a mark, with a value unless that is "".
func Setting(name, value string) string {
	if value == "" {
		return "{{set " + name + "}}"
	}
	return "{{set " + name + "=" + escape(value) + "}}"
}

// plain lists the bytes, beside letters and digits, that values hold as they are.
const plain = "_.,:;/@+-=*"

func escape(value string) string {
	var b strings.Builder
	for i := range len(value) {
		c := value[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte(plain, c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "~%02X", c)
		}
	}
	return b.String()
}

var escaped = regexp.MustCompile(`~[0-9A-F]{2}`)

func unescape(text string) string {
	return escaped.ReplaceAllStringFunc(text, func(e string) string {
		c, _ := strconv.ParseUint(e[1:], 16, 8) // two hexadecimal digits
		return string([]byte{byte(c)})
	})
}

const value = `(?:[A-Za-z0-9_.,:;/@+\-=*]|~[0-9A-F]{2})*`

var marks = regexp.MustCompile(`\{\{(?:do ([a-z][a-z-]*)((?: [a-z][a-z0-9-]*=` + value + `)*)` +
	`|set ([a-z][a-z0-9-]*)(=` + value + `)?)\}\}`)

// Renderer shows marks in the way of an edge.
type Renderer interface {
	// Action shows an action; alone says that it is the whole of a line or of a quoted text.
	Action(a Action, alone bool) string
	// Setting shows an option.
	Setting(s Arg) string
}

// Render replaces the marks of a text by what r shows for them.
func Render(text string, r Renderer) string {
	if !strings.Contains(text, "{{") {
		return text
	}
	var b strings.Builder
	from := 0
	for _, m := range marks.FindAllStringSubmatchIndex(text, -1) {
		b.WriteString(text[from:m[0]])
		if m[2] >= 0 {
			b.WriteString(r.Action(parse(text[m[2]:m[3]], text[m[4]:m[5]]), alone(text[:m[0]], text[m[1]:])))
		} else {
			s := Arg{Name: text[m[6]:m[7]]}
			if m[8] >= 0 {
				s.Value = unescape(text[m[8]+1 : m[9]])
			}
			b.WriteString(r.Setting(s))
		}
		from = m[1]
	}
	return b.String() + text[from:]
}

// alone reports whether nothing but blanks, or the quotes of a JSON text, is around a mark.
func alone(before, behind string) bool {
	before, behind = strings.TrimRight(before, " "), strings.TrimLeft(behind, " ")
	return (before == "" || before[len(before)-1] == '\n' || before[len(before)-1] == '"') &&
		(behind == "" || behind[0] == '\n' || behind[0] == '"')
}

func parse(verb, args string) Action {
	a := Action{Verb: verb}
	for _, arg := range strings.Fields(args) {
		name, value, _ := strings.Cut(arg, "=")
		a.Args = append(a.Args, Arg{Name: name, Value: unescape(value)})
	}
	return a
}

// In lists the actions of a text.
func In(text string) (out []Action) {
	for _, m := range marks.FindAllStringSubmatch(text, -1) {
		if m[1] != "" {
			out = append(out, parse(m[1], m[2]))
		}
	}
	return out
}
