package property

import (
	"fmt"
	"math"
	"math/big"
	"strings"
)

// lookup is a table_lookup_table.
type lookup struct {
	*creator
	from, to  string
	left      bool // join_type
	group     bool
	nullsMeet bool
	on        []field  // fields of from
	onAt      []int    // where they are
	key       indexKey // of to
	toFields  []field
	filter    *formula
}

func (n *lookup) id() string      { return "lookup_" + n.name }
func (n *lookup) reads() []string { return []string{n.from, n.to} }
func (n *lookup) indexed() string { return n.to }

func (n *lookup) index() (name, text string) {
	return "idx_" + n.name, "non_unique(" + n.key.text(n.toFields) + ")"
}

func (n *lookup) spec(s *script, _ place) object {
	name, _ := n.index()
	on := make([]string, len(n.on))
	for i, f := range n.on {
		on[i] = "r." + f.name
	}
	l := object{{"index_name", name}, {"join_on", strings.Join(on, ", ")},
		{"join_type", map[bool]string{true: "left", false: "inner"}[n.left]}, {"group", n.group}}
	if n.nullsMeet {
		l = append(l, entry{"nulls", "match"})
	}
	if n.filter != nil {
		l = append(l, entry{"filter", n.filter.src})
	}
	return object{{"type", "table_lookup_table"}, {"r", object{{"table", n.from}}}, {"l", l}, {"w", n.creator.spec(s)}}
}

// matches finds the rows of the right table for keys: in its order, the ones
// that the filter lets through.
func (n *lookup) matches(right [][]any) func(left []any) [][]any {
	found := map[string][][]any{}
	for _, row := range right {
		if !holds(n.filter, &env{l: row}) {
			continue
		}
		key := keyOf(n.key.of(row))
		found[key] = append(found[key], row)
	}
	return func(left []any) [][]any {
		key := make([]any, len(n.onAt))
		for i, at := range n.onAt {
			key[i] = left[at]
			if key[i] == nil && !n.nullsMeet {
				return nil
			}
			if s, ok := key[i].(string); ok && n.key[i].ignoreCase {
				key[i] = strings.ToUpper(s)
			}
		}
		return found[keyOf(key)]
	}
}

func (n *lookup) rows(tables map[string][][]any) [][]any {
	var out [][]any
	add := func(row []any) {
		if holds(n.having, &env{w: row}) {
			out = append(out, row)
		}
	}
	matches, pairs := n.matches(tables[n.to]), 0
	for _, left := range tables[n.from] {
		found := matches(left)
		pairs += len(found)
		switch {
		case len(found) == 0 && !n.left:
		case len(found) == 0:
			add(n.alone(left))
		case n.group:
			add(n.grouped(left, found))
		default:
			for _, right := range found {
				row, _ := n.row(&env{r: left, l: right})
				add(row)
			}
		}
		if len(out) > maxRows || pairs > maxPairs {
			panic(refuse{})
		}
	}
	return out
}

const (
	// maxRows that a node may write.
	maxRows = 20_000
	// maxPairs of rows that a lookup may look at. The lists of a group that needs
	// both sides are in memory: seed 1812 failed for want of more than 800 MiB.
	maxPairs = 4_000_000
)

// alone is the row of a left one without a match.
func (n *lookup) alone(left []any) []any {
	row := make([]any, len(n.fields))
	for i, f := range n.fields {
		switch {
		case f.over == nil && !f.formula.right:
			row[i] = f.formula.eval(&env{r: left})
		case f.fallback != nil:
			row[i] = f.fallback
		case f.over != nil && f.over.counts():
			row[i] = int64(0)
		case f.over != nil && f.null:
			row[i] = nil
		case f.over == nil && (f.null || f.formula.asksNull):
			row[i] = f.formula.eval(&env{r: left})
		default:
			row[i] = zero(f.kind)
		}
	}
	return row
}

func (n *lookup) grouped(left []any, found [][]any) []any {
	row := make([]any, len(n.fields))
	for i, f := range n.fields {
		if f.over == nil {
			row[i] = f.formula.eval(&env{r: left, l: found[len(found)-1]})
			continue
		}
		if row[i] = f.over.of(left, found); row[i] == nil && !f.null {
			row[i] = zero(f.kind)
		}
	}
	return row
}

// aggregate is a function over the rows of a group.
type aggregate struct {
	name string // without _if
	arg  *formula
	cond *formula
	sep  string
}

func (a *aggregate) counts() bool { return a.name == "count" }

func (a *aggregate) src() string {
	var args []string
	if a.arg != nil {
		args = append(args, a.arg.src)
	}
	if a.name == "string_agg" {
		args = append(args, `"`+a.sep+`"`)
	}
	name := a.name
	if a.cond != nil {
		name += "_if"
		args = append(args, a.cond.src)
	}
	return name + "(" + strings.Join(args, ", ") + ")"
}

// of computes it; nil is over no value.
func (a *aggregate) of(left []any, found [][]any) any {
	var values []any
	for _, right := range found {
		e := &env{r: left, l: right}
		if !holds(a.cond, e) {
			continue
		}
		if a.arg == nil {
			values = append(values, true)
		} else if v := a.arg.eval(e); v != nil {
			values = append(values, v)
		}
	}
	if a.counts() {
		return int64(len(values))
	}
	if len(values) == 0 {
		return nil
	}
	switch a.name {
	case "min", "max":
		return extreme(values, a.name == "max")
	case "string_agg":
		return joined(values, a.sep)
	}
	return total(values, a.name == "avg")
}

func extreme(values []any, largest bool) any {
	best := values[0]
	for _, v := range values {
		if f, ok := v.(float64); ok && math.IsNaN(f) {
			panic(refuse{}) // not settled
		}
		if c := compare(v, best); c < 0 && !largest || c > 0 && largest {
			best = v
		}
	}
	if f, ok := best.(float64); ok {
		return f + 0 // -0 is 0
	}
	return best
}

// joined writes no separator while the text is still empty.
func joined(values []any, sep string) any {
	var b strings.Builder
	for _, v := range values {
		if b.Len() > 0 {
			b.WriteString(sep)
		}
		b.WriteString(v.(string))
		if b.Len() > maxJoined {
			panic(refuse{})
		}
	}
	return b.String()
}

// maxJoined bytes of a text that is gathered from many rows.
const maxJoined = 40_000

// total adds floats in the order of the rows, everything else exactly.
func total(values []any, average bool) any {
	n := int64(len(values))
	switch values[0].(type) {
	case float64:
		sum := 0.0
		for _, v := range values {
			sum += v.(float64)
		}
		if average {
			sum /= float64(n)
		}
		return sum
	case cents:
		sum := int64(0)
		for _, v := range values {
			sum = int64(toCents(big.NewInt(sum + int64(v.(cents)))))
		}
		if average {
			return toCents(half(big.NewRat(sum, 100*n), 2))
		}
		return cents(sum)
	}
	sum := new(big.Int)
	for _, v := range values {
		sum.Add(sum, big.NewInt(v.(int64)))
	}
	if average {
		sum.Div(sum, big.NewInt(n)) // the remainder is never negative: down
	}
	return checkedInt(sum)
}

// aggregate draws one over sc.
func (g gen) aggregate(sc scope) (aggregate, kind) {
	a := aggregate{name: pick(g, "count", "count", "sum", "avg", "min", "max", "string_agg", "string_agg")}
	k := intKind
	switch a.name {
	case "count":
		if g.oneIn(2) {
			f := g.formula(pick(g, kinds()...), sc, g.IntN(2))
			a.arg = &f
		}
	case "string_agg":
		f := g.formula(stringKind, sc, g.IntN(3))
		k, a.arg, a.sep = stringKind, &f, pick(g, ",", ";", " | ", "", "é")
	default:
		k = pick(g, intKind, floatKind, decimalKind)
		if strings.HasPrefix(a.name, "m") && g.oneIn(3) {
			k = stringKind
		}
		f := g.formula(k, sc, g.IntN(3))
		a.arg = &f
	}
	if g.oneIn(3) {
		f := g.condition(sc, 1)
		a.cond = &f
	}
	return a, k
}

// aggregates makes the fields of a grouped lookup: some of the left table, and
// aggregates.
func (g gen) aggregates(left []formula, sc scope) []outField {
	var out []outField
	for _, f := range left {
		if len(out) == 0 || g.oneIn(2) {
			out = append(out, outField{field: field{fmt.Sprintf("%c%d", f.kind.String()[0], len(out)), f.kind, f.null},
				formula: f})
		}
	}
	for range 1 + g.IntN(4) {
		a, k := g.aggregate(sc)
		f := outField{field: field{fmt.Sprintf("a%d", len(out)), k, g.oneIn(2)}, over: &a}
		if !f.null && g.oneIn(3) {
			f.fallback = g.fallback(k, "")
		}
		f.formula = formula{src: a.src(), kind: k}
		out = append(out, f)
	}
	return out
}
