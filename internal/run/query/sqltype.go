package query

import (
	"regexp"
	"strings"
)

// SQLType is a type as DuckDB names it, taken apart.
type SQLType struct {
	Name    string // all of it
	Kind    SQLKind
	Members []SQLMember // of a list its elements; of a map its keys and its values
}

// SQLMember is a part of a type. Members of a struct that row() makes have no names.
type SQLMember struct {
	Name string
	Type SQLType
}

// SQLKind is the composition of a type.
type SQLKind int

// Kinds of types.
const (
	Single SQLKind = iota // what has no parts
	List                  // of any or of a given length
	Struct
	Map
	Union
)

// ParseSQLType takes the name of a type apart, as DESCRIBE gives it.
func ParseSQLType(name string) SQLType {
	t := SQLType{Name: name}
	if strings.HasSuffix(name, "]") {
		t.Kind = List
		t.Members = []SQLMember{{Type: ParseSQLType(name[:strings.LastIndexByte(name, '[')])}}
		return t
	}
	for prefix, kind := range map[string]SQLKind{"STRUCT(": Struct, "MAP(": Map, "UNION(": Union} {
		inner, ok := strings.CutPrefix(name, prefix)
		if !ok {
			continue
		}
		t.Kind = kind
		for _, part := range splitTypes(strings.TrimSuffix(inner, ")")) {
			m := SQLMember{Type: SQLType{Name: part}}
			if kind != Map && (strings.HasPrefix(part, `"`) || named.MatchString(part) && !wordily.MatchString(part)) {
				m.Name, m.Type.Name = memberOf(part)
			}
			m.Type = ParseSQLType(m.Type.Name)
			t.Members = append(t.Members, m)
		}
	}
	return t
}

var (
	named   = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]* `)      // members that have a name
	wordily = regexp.MustCompile(`^TIME(STAMP)? WITH TIME ZONE$`) // types of several words
)
