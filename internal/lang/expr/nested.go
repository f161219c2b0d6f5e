package expr

import (
	"fmt"
	"regexp"
	"strings"

	"thalweg/internal/base/sqltext"
)

// Member is a value within a struct.
type Member struct {
	Name string
	Type Type
}

// Limits of nested types, so that a name of one stays readable and its SQL small.
const (
	maxNestedDepth    = 8
	maxNestedNameChar = 10_000
)

// ListOf is the type of lists of t.
func ListOf(t Type) Type { return "list(" + t + ")" }

// StructOf is the type of structs with these members, in this order.
func StructOf(members []Member) Type {
	parts := make([]string, len(members))
	for i, m := range members {
		parts[i] = memberName(m.Name) + " " + m.Type.String()
	}
	return Type("struct(" + strings.Join(parts, ", ") + ")")
}

var plainMember = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func memberName(name string) string {
	if plainMember.MatchString(name) {
		return name
	}
	return sqltext.Ident(name)
}

// keyHint is the way out where a list or struct cannot be a key.
const keyHint = "take what is meant out of it in a sql node: SELECT items[1].id AS id, …"

// KeyProblem says why values of t cannot be compared as keys; "" if they can.
func (t Type) KeyProblem() (problem, hint string) {
	if !t.Nested() {
		return "", ""
	}
	return "is " + t.phrase() + ": lists and structs are no keys and have no order", keyHint
}

// Nested reports lists and structs.
func (t Type) Nested() bool { return t.list() || t.structure() }

func (t Type) list() bool      { return strings.HasPrefix(string(t), "list(") }
func (t Type) structure() bool { return strings.HasPrefix(string(t), "struct(") }

// Element returns the type of a list's elements; ok is false for other types.
func (t Type) Element() (inner Type, ok bool) {
	if !t.list() {
		return Invalid, false
	}
	return t[len("list(") : len(t)-1], true
}

// Members are those of a struct; nil for other types.
func (t Type) Members() []Member {
	if !t.structure() {
		return nil
	}
	p := nestedParser{rest: string(t[len("struct("):])}
	return p.members(0)
}

// nestedParser reads the names of nested types, its own or those that people
// write. A problem is kept, and ends it.
type nestedParser struct {
	rest    string
	scalar  func(word string) (Type, string) // nil: canonical names
	problem string
}

func (p *nestedParser) fail(format string, args ...any) Type {
	if p.problem == "" {
		p.problem = fmt.Sprintf(format, args...)
	}
	p.rest = ""
	return Invalid
}

func (p *nestedParser) blanks() { p.rest = strings.TrimLeft(p.rest, " \t") }

func (p *nestedParser) take(prefix string) bool {
	p.blanks()
	rest, ok := strings.CutPrefix(p.rest, prefix)
	if ok {
		p.rest = rest
	}
	return ok
}

var nestedHead = regexp.MustCompile(`^(list|struct|map)\s*\(`)

func (p *nestedParser) parse(depth int) Type {
	p.blanks()
	head := nestedHead.FindStringSubmatch(p.rest)
	if head == nil {
		return p.word()
	}
	if depth >= maxNestedDepth {
		return p.fail("lists and structs are in one another at most %d deep", maxNestedDepth)
	}
	p.rest = p.rest[len(head[0]):]
	switch head[1] {
	case "list":
		inner := p.parse(depth + 1)
		if p.problem == "" && !p.take(")") {
			return p.fail("a list is of one type: list(int)")
		}
		return ListOf(inner)
	case "struct":
		return StructOf(p.members(depth + 1))
	}
	return p.fail("maps are no types: make a list of structs of one in a sql node, map_entries(…)")
}

// members reads up to the end of a struct.
func (p *nestedParser) members(depth int) (out []Member) {
	seen := map[string]bool{}
	for p.problem == "" {
		name := p.name()
		if low := strings.ToLower(name); p.problem == "" && seen[low] {
			p.fail("a struct has two members %s", sqltext.Ident(name))
		} else {
			seen[low] = true
		}
		out = append(out, Member{name, p.parse(depth)})
		switch {
		case p.take(","):
		case p.take(")"):
			return out
		default:
			p.fail("a struct has members with their types: struct(id int, name string)")
		}
	}
	return nil
}

// name reads a member's name, in double quotes if it is not a word.
func (p *nestedParser) name() string {
	p.blanks()
	if strings.HasPrefix(p.rest, `"`) {
		for at := 1; at < len(p.rest); at++ {
			switch {
			case p.rest[at] != '"':
			case strings.HasPrefix(p.rest[at:], `""`):
				at++
			default:
				name := strings.ReplaceAll(p.rest[1:at], `""`, `"`)
				p.rest = p.rest[at+1:]
				if name == "" {
					p.fail("a member of a struct has a name")
				}
				return name
			}
		}
		p.fail("the name of a struct's member has no end")
		return ""
	}
	end := strings.IndexAny(p.rest, " \t,()")
	if end <= 0 || !plainMember.MatchString(p.rest[:end]) {
		p.fail(`a struct has members with their types: struct(id int, "other name" string)`)
		return ""
	}
	name := p.rest[:end]
	p.rest = p.rest[end:]
	return name
}

// word reads the name of a type that is not nested.
func (p *nestedParser) word() Type {
	end := strings.IndexAny(p.rest, ",()")
	if end < 0 {
		end = len(p.rest)
	}
	if strings.HasPrefix(p.rest[end:], "(") { // digits of a decimal
		close := strings.IndexByte(p.rest, ')')
		if close < 0 {
			return p.fail("a parenthesis has no end")
		}
		end = close + 1
	}
	word := strings.TrimSpace(p.rest[:end])
	p.rest = p.rest[end:]
	if p.scalar == nil {
		return Type(word)
	}
	t, problem := p.scalar(word)
	if problem != "" {
		return p.fail("%s", problem)
	}
	return t
}

// parseNestedType reads a name that begins as that of a nested type.
func parseNestedType(name string) (t Type, problem string) {
	if !nestedHead.MatchString(strings.TrimSpace(name)) {
		return Invalid, ""
	}
	if len(name) > maxNestedNameChar {
		return Invalid, fmt.Sprintf("the name of a type has at most %d characters", maxNestedNameChar)
	}
	p := nestedParser{rest: name, scalar: func(word string) (Type, string) {
		if t, ok := ParseType(word); ok {
			return t, ""
		}
		if problem := TypeProblem(word); problem != "" {
			return Invalid, problem
		}
		return Invalid, fmt.Sprintf("there is no type %q within lists and structs", word)
	}}
	t = p.parse(0)
	if p.blanks(); p.problem == "" && p.rest != "" {
		p.fail("nothing comes behind the last parenthesis")
	}
	if p.problem != "" {
		return Invalid, p.problem
	}
	return t, ""
}

// nestedSQL is DuckDB's type of a nested one.
func (t Type) nestedSQL(leaf func(Type) string) string {
	if inner, ok := t.Element(); ok {
		return inner.nestedSQL(leaf) + "[]"
	}
	if !t.structure() {
		return leaf(t)
	}
	members := t.Members()
	parts := make([]string, len(members))
	for i, m := range members {
		parts[i] = sqltext.Ident(m.Name) + " " + m.Type.nestedSQL(leaf)
	}
	return "STRUCT(" + strings.Join(parts, ", ") + ")"
}

// TextsSQL is DuckDB's type of the same lists and structs with texts for all
// values: so they travel where each type has a text of its own.
func (t Type) TextsSQL() string {
	return t.nestedSQL(func(Type) string { return Type.SQL(String) })
}

// EachSQL makes a value of type t of one with the same lists and structs:
// convert gives the SQL of each value within that is neither.
func (t Type) EachSQL(value string, convert func(t Type, value string) string) string {
	return t.eachSQL(value, 0, convert)
}

func (t Type) eachSQL(value string, depth int, convert func(Type, string) string) string {
	if inner, ok := t.Element(); ok {
		one := fmt.Sprintf("e%d", depth)
		return fmt.Sprintf("list_transform(%s, lambda %s: %s)", value, one, inner.eachSQL(one, depth+1, convert))
	}
	if !t.structure() {
		return convert(t, value)
	}
	made := map[string]string{}
	for _, m := range t.Members() {
		made[m.Name] = m.Type.eachSQL(MemberSQL(value, m.Name), depth, convert)
	}
	return PackSQL(value, t.Members(), made)
}

// MemberSQL is a member of a struct.
func MemberSQL(value, name string) string {
	return fmt.Sprintf("struct_extract(%s, %s)", value, sqltext.String(name))
}

// PackSQL is a struct of the SQL of its members by their names; NULL where value is.
func PackSQL(value string, members []Member, made map[string]string) string {
	parts := make([]string, len(members))
	for i, m := range members {
		parts[i] = sqltext.Ident(m.Name) + " := " + made[m.Name]
	}
	return fmt.Sprintf("CASE WHEN %s IS NOT NULL THEN struct_pack(%s) END", value, strings.Join(parts, ", "))
}

// UnsignedSQL is a float without the sign of its zero, and with one NaN: within
// lists and structs nothing keeps apart what DuckDB takes for equal.
func UnsignedSQL(float string) string { return "thalweg_unsigned(" + float + ")" }

// Leaves lists the types of the values within a nested type that are not nested themselves.
func (t Type) Leaves() []Type {
	if inner, ok := t.Element(); ok {
		return inner.Leaves()
	}
	if !t.structure() {
		return []Type{t}
	}
	var out []Type
	for _, m := range t.Members() {
		out = append(out, m.Type.Leaves()...)
	}
	return out
}
