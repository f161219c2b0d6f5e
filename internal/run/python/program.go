package python

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"

	"thalweg/internal/base/fault"
	"thalweg/internal/lang/expr"
)

// Program is the Python code of one node. It is not changed once used. It is not changed once used.
type Program struct {
	Files  []Source // imported in order, once per process, into one module of this program alone
	Inputs []Column // r.* columns, in the order in which rows carry them
	Fields []Field  // p.* fields, in the order in which they depend on one another
	// how decimal2 inputs appear in Python: Plain is int where it is whole, else float, the nearest to the decimal;
	// Rich is decimal.Decimal
	Decimals Form
	// how datetimes appear in Python, both ways: Plain is text, 2006-01-02T15:04:05.000+00:00; Rich is
	// datetime.datetime in UTC
	Datetimes Form
	Dir       string // working directory of its code; "": that of the last that had one
	// a function over many rows at once, instead of the fields' expressions; the two Forms then have no meaning
	Table *Table
}

// Source is a file of user code.
type Source struct {
	Name string // as tracebacks show it: path or URL
	Text string
}

// Column is an input column, r.Name in expressions.
type Column struct {
	Name     string
	Type     expr.Type // a column type
	Nullable bool      // there may be NULLs: libraries get a type that can hold them, even if there are none
}

// Field is a result, p.Name in the expressions of later fields.
type Field struct {
	Name     string
	Type     expr.Type // a column type
	Expr     string    // a Python expression over r.* and earlier p.*
	Nullable bool      // None is NULL; otherwise None is an error
	// Round says that digits which the type does not keep are rounded off, those of times cut; else they are an error,
	// but in a decimal2 or datetime of a formula, which never says it.
	Round bool
	At    string // where the script has it, for people: "s.yaml:7:9"; "" if that is not known
}

// Form chooses between the two Python types of a column type.
type Form uint8

// Plain is the form that Capillaries' formulas expect.
const (
	Plain Form = iota
	Rich
)

// Cents is a decimal2 value: hundredths.
type Cents int64

// String prints the decimal with two digits after the point.
func (c Cents) String() string {
	sign, n := "", uint64(c)
	if c < 0 {
		sign, n = "-", -n
	}
	return fmt.Sprintf("%s%d.%02d", sign, n/100, n%100)
}

// DatetimeLayout is the text form of datetimes in Python, always in UTC.
const DatetimeLayout = "2006-01-02T15:04:05.000-07:00"

// wireKind is the encoding of a column on the wire; worker.py has the same names.
type wireKind string

const (
	wireString   wireKind = "string"
	wireInt      wireKind = "int"
	wireFloat    wireKind = "float"
	wireBool     wireKind = "bool"
	wireDatetime wireKind = "datetime" // ms since 1970
	wireCents    wireKind = "cents"    // results, and inputs of functions over many rows

	wireDate    wireKind = "date"     // days since 1970
	wireInstant wireKind = "instant"  // microseconds since 1970
	wireDecimal wireKind = "decimal:" // with its digits: text
	wireNested  wireKind = "nested:"  // with its tree: JSON

	wireCentsAsNumber  wireKind = "cents_number" // inputs only
	wireCentsAsDecimal wireKind = "cents_decimal"
)

// text reports whether values travel as texts.
func (k wireKind) text() bool {
	return k == wireString || strings.HasPrefix(string(k), string(wireDecimal)) ||
		strings.HasPrefix(string(k), string(wireNested))
}

func (p *Program) kind(t expr.Type, input bool) wireKind {
	if t.Nested() {
		return nestedKind(t)
	}
	if digits, scale, ok := t.Exact(); ok {
		return wireKind(fmt.Sprintf("%s%d:%d", wireDecimal, digits, scale))
	}
	switch t {
	case expr.Date:
		return wireDate
	case expr.Instant:
		return wireInstant
	case expr.String:
		return wireString
	case expr.Int:
		return wireInt
	case expr.Float:
		return wireFloat
	case expr.Bool:
		return wireBool
	case expr.DateTime:
		if p.Datetimes == Rich || p.Table != nil {
			return wireDatetime
		}
		return wireString // made and read here: the interpreter only moves text
	case expr.Decimal:
		switch {
		case !input, p.Table != nil:
			return wireCents
		case p.Decimals == Rich:
			return wireCentsAsDecimal
		}
		return wireCentsAsNumber
	}
	return ""
}

// program is a Program in the form that is sent, with the identity by which
// processes remember it.
type program struct {
	*Program
	spec []byte
	hash [sha256.Size]byte
}

type programSpec struct {
	Dir     string      `json:"dir"`
	Files   []fileSpec  `json:"files"`
	Inputs  []valueSpec `json:"inputs"`
	Fields  []valueSpec `json:"fields"`
	Collect bool        `json:"collect"`
	Table   *tableSpec  `json:"table"`
}

type fileSpec struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

type valueSpec struct {
	Name     string   `json:"name"`
	Kind     wireKind `json:"kind"`
	Expr     string   `json:"expr"`
	Nullable bool     `json:"nullable"`
	Round    bool     `json:"round"`
}

// prepare checks p and encodes it. collect: rows go on after one has failed.
func prepare(p *Program, collect bool) (*program, error) {
	if len(p.Fields) == 0 {
		return nil, fault.New(fault.Bug, "a Python program without fields")
	}
	// empty lists, not null
	spec := programSpec{Dir: p.Dir, Collect: collect, Files: []fileSpec{}, Inputs: []valueSpec{}}
	for _, f := range p.Files {
		spec.Files = append(spec.Files, fileSpec(f))
	}
	seen := map[string]bool{}
	for _, c := range p.Inputs {
		v := valueSpec{Name: c.Name, Kind: p.kind(c.Type, true), Nullable: c.Nullable}
		if v.Kind == "" || seen["r."+c.Name] {
			return nil, fault.New(fault.Bug, "Python input r.%s of type %s is given twice or has no such type", c.Name,
				c.Type)
		}
		seen["r."+c.Name] = true
		spec.Inputs = append(spec.Inputs, v)
	}
	for _, f := range p.Fields {
		v := valueSpec{Name: f.Name, Kind: p.kind(f.Type, false), Expr: strings.TrimSpace(f.Expr), Nullable: f.Nullable,
			Round: f.Round}
		if v.Kind == "" || seen["p."+f.Name] {
			return nil, fault.New(fault.Bug, "Python field p.%s of type %s is given twice or has no such type", f.Name,
				f.Type)
		}
		seen["p."+f.Name] = true
		spec.Fields = append(spec.Fields, v)
	}
	if p.Table != nil {
		spec.Table = p.Table.spec()
	}
	text, err := json.Marshal(spec)
	if err != nil {
		return nil, fmt.Errorf("encode a Python program: %w", err)
	}
	return &program{Program: p, spec: text, hash: sha256.Sum256(text)}, nil
}

// fieldAtLine returns the field whose expression is at a line of the generated
// function, as worker.py lays it out; nil if none is.
func (p *program) fieldAtLine(line int) *Field {
	if p.Table != nil {
		return nil
	}
	first := 1
	for i := range p.Fields {
		next := first + strings.Count(strings.TrimSpace(p.Fields[i].Expr), "\n") + 1
		if first <= line && line < next {
			return &p.Fields[i]
		}
		first = next
	}
	return nil
}
