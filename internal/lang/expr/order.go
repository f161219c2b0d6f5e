package expr

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Lengths of string components of a key, in bytes.
const (
	DefaultKeyBytes = 64 // of sort keys, before the exact value decides
	MinKeyBytes     = 16 // shorter lengths are raised to this, as in Capillaries
	MaxKeyBytes     = 1024
	MaxOrderItems   = 100
)

// Order is an order expression: field(mod,…), …
type Order []OrderItem

// OrderItem is one component of a key.
type OrderItem struct {
	Field            string
	Desc, IgnoreCase bool
	NullsFirst       bool // else NULLs come last, whether the order is ascending or descending
	// strings: bytes that count, MinKeyBytes … MaxKeyBytes; 0 if none are given: all in keys, DefaultKeyBytes in sort
	// keys
	Length int
	Offset int // of the field in the source, in bytes
}

// ParseOrder reads an order expression over fields. The error is an *Error.
func ParseOrder(src string, fields map[string]Type) (Order, error) {
	p := &orderParser{src: src, fields: fields}
	order, err := p.list(false)
	if err != nil {
		return nil, err
	}
	return order, nil
}

// ParseIndex parses unique(…) and non_unique(…). The error is an *Error.
func ParseIndex(src string, fields map[string]Type) (unique bool, key Order, err error) {
	p := &orderParser{src: src, fields: fields}
	kind, at := p.word()
	if kind != "unique" && kind != "non_unique" {
		bad := at.errorf("an index is unique(…) or non_unique(…)")
		return false, nil, bad.didYouMean(kind, []string{"unique", "non_unique"})
	}
	if !p.take('(') {
		return false, nil, p.here().errorf("expected ( after %s", kind)
	}
	key, bad := p.list(true)
	if bad != nil {
		return false, nil, bad
	}
	return kind == "unique", key, nil
}

type orderParser struct {
	src    string
	at     int
	fields map[string]Type
}

func (p *orderParser) blanks() {
	for p.at < len(p.src) && strings.IndexByte(" \t\r\n", p.src[p.at]) >= 0 {
		p.at++
	}
}

// here is the place of the next character, for errors.
func (p *orderParser) here() span {
	p.blanks()
	return span{p.at, min(1, len(p.src)-p.at)}
}

func (p *orderParser) take(c byte) bool {
	p.blanks()
	if p.at < len(p.src) && p.src[p.at] == c {
		p.at++
		return true
	}
	return false
}

// word reads a name or a number; "" if there is none.
func (p *orderParser) word() (string, span) {
	p.blanks()
	start := p.at
	for p.at < len(p.src) && wordByte(p.src[p.at]) {
		p.at++
	}
	if p.at == start {
		return "", p.here()
	}
	return p.src[start:p.at], span{start, p.at - start}
}

func wordByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

// list reads items up to the end of the source, or up to ) and then the end.
func (p *orderParser) list(closed bool) (Order, *Error) {
	var out Order
	for {
		item, err := p.item()
		if err != nil {
			return nil, err
		}
		for _, before := range out {
			if before.Field == item.Field {
				return nil, span{item.Offset, len(item.Field)}.errorf("%s is there twice", item.Field)
			}
		}
		if out = append(out, item); len(out) > MaxOrderItems {
			return nil, span{item.Offset, len(item.Field)}.errorf("more than %d fields", MaxOrderItems)
		}
		if !p.take(',') {
			break
		}
	}
	if closed && !p.take(')') {
		return nil, p.here().errorf("expected , or )")
	}
	if p.blanks(); p.at < len(p.src) {
		return nil, p.here().errorf("unexpected %q", p.src[p.at:p.at+1]).hint("an order is field(desc), field, …")
	}
	return out, nil
}

func (p *orderParser) item() (OrderItem, *Error) {
	name, at := p.word()
	if name == "" {
		return OrderItem{}, at.errorf("expected a field").hint("an order is field(desc), field, …")
	}
	t, ok := p.fields[name]
	if !ok {
		return OrderItem{}, at.errorf("there is no field %s", name).nearest(name, slices.Sorted(maps.Keys(p.fields)))
	}
	if t.Nested() {
		return OrderItem{}, at.errorf("field %s is %s: lists and structs are no keys and have no order", name,
			t.phrase()).hint("%s", keyHint)
	}
	item := OrderItem{Field: name, Offset: at.off}
	if !p.take('(') {
		return item, nil
	}
	for !p.take(')') {
		if err := p.modifier(&item, t); err != nil {
			return OrderItem{}, err
		}
		if !p.take(',') {
			if !p.take(')') {
				return OrderItem{}, p.here().errorf("expected , or )")
			}
			break
		}
	}
	return item, nil
}

func (p *orderParser) modifier(item *OrderItem, t Type) *Error {
	word, at := p.word()
	switch word {
	case "asc":
		item.Desc = false
		return nil
	case "desc":
		item.Desc = true
		return nil
	case "nulls_first", "nulls_last":
		item.NullsFirst = word == "nulls_first"
		return nil
	case "case_sensitive", "ignore_case":
		if t != String {
			return at.errorf("%s is for strings, %s is %s", word, item.Field, t)
		}
		item.IgnoreCase = word == "ignore_case"
		return nil
	}
	n, err := strconv.Atoi(word)
	if err != nil {
		return at.errorf("unknown modifier %q", word).
			didYouMean(word, []string{"asc", "desc", "case_sensitive", "ignore_case", "nulls_first", "nulls_last"})
	}
	if t != String {
		return at.errorf("a length is for strings, %s is %s", item.Field, t)
	}
	if n > MaxKeyBytes {
		return at.errorf("length %d is above %d", n, MaxKeyBytes)
	}
	item.Length = max(n, MinKeyBytes)
	return nil
}

// SortSQL renders the ORDER BY list in Capillaries' key order, and behind it
// the exact values of its strings, which that order may take for equal. NULLs
// come last unless the component says otherwise. One difference: inside a string, a character below
// the blank (tab, newline) sorts after the end of the text, not before a blank.
func (o Order) SortSQL(types map[string]Type, column func(field string) string) string {
	var keys, exact []string
	for _, item := range o {
		c, t := column(item.Field), types[item.Field]
		keys = append(keys, item.keySQL(c, t)+item.direction())
		if t == String {
			exact = append(exact, c+item.direction())
		}
	}
	return strings.Join(append(keys, exact...), ", ")
}

// SortedSQL is the SELECT of query's rows, which have the fields of o as columns,
// in the order of SortSQL, and where that takes them for equal in that of the columns ties: the first
// limit of them, or all if that is 0.
//
// It is made for more rows than memory holds. DuckDB sorts them by one key with
// all values of the ORDER BY list; it makes columns that are in the list anew from
// the key, and carries others beside it. So a string is in the list as its
// component, and once more, in another column, only if that does not say all of it.
func (o Order) SortedSQL(query string, types map[string]Type, column func(field string) string, ties []string,
	limit int) string {
	var components, rests, restNames, strs, keys, exact []string
	for i, item := range o {
		c, t := column(item.Field), types[item.Field]
		if t != String || item.IgnoreCase {
			keys = append(keys, item.keySQL(c, t)+item.direction())
			if t == String {
				exact = append(exact, c+item.direction())
			}
			continue
		}
		rest := `"#s` + strconv.Itoa(i) + `"` // no field has such a name
		components = append(components, item.collationSQL(c)+" AS "+c)
		rests, restNames = append(rests, "CASE WHEN "+item.plainSQL(c)+" THEN NULL ELSE "+c+" END AS "+rest),
			append(restNames, rest)
		strs = append(strs, "coalesce("+rest+", "+c+") AS "+c)
		keys = append(keys, c+item.direction())
		// A text that is its own component is plain ASCII. Others with that component are greater: at
		// the first byte that differs they go on, or have a character that is not ASCII.
		exact = append(exact, rest+map[bool]string{false: " ASC NULLS FIRST", true: " DESC NULLS LAST"}[item.Desc])
	}
	if len(rests) > 0 {
		query = "SELECT * REPLACE (" + strings.Join(components, ", ") + "), " + strings.Join(rests, ", ") + " FROM (" +
			query + ")"
	}
	query = "SELECT * FROM (" + query + ")"
	if list := slices.Concat(keys, exact, ties); len(list) > 0 {
		query += " ORDER BY " + strings.Join(list, ", ")
	}
	if limit > 0 {
		query += " LIMIT " + strconv.Itoa(limit)
	}
	if len(rests) > 0 {
		query = "SELECT * EXCLUDE (" + strings.Join(restNames, ", ") + ") REPLACE (" +
			strings.Join(strs, ", ") + ") FROM (" + query + ")"
	}
	return query
}

// direction returns the words that follow the component in an ORDER BY list.
func (item OrderItem) direction() string {
	return map[bool]string{false: " ASC", true: " DESC"}[item.Desc] +
		map[bool]string{false: " NULLS LAST", true: " NULLS FIRST"}[item.NullsFirst]
}

// keySQL renders the component of a sort key.
func (item OrderItem) keySQL(c string, t Type) string {
	switch t {
	case String:
		return item.collationSQL(c)
	case Float:
		// DuckDB makes the sorted column anew from the keys, in which -0 is 0:
		// with a key of its own the column stays as it is.
		return "(" + c + " + CAST(0 AS DOUBLE))"
	}
	return c
}

// collationSQL renders the string component of a sort key: without diacritics,
// cut to the length, without blanks at the end, upper-cased with ignore_case.
// Short ASCII text, nearly all, is used as it is: 20 ns a row.
func (item OrderItem) collationSQL(c string) string {
	key := "CASE WHEN " + item.plainSQL(c) + " THEN " + c + " ELSE thalweg_key(" + c + ", " + item.length() + ") END"
	if item.IgnoreCase {
		return "upper(" + key + ")"
	}
	return key
}

// plainSQL is the condition under which a string is its component but for the
// case of its letters, and ASCII; not NULL.
func (item OrderItem) plainSQL(c string) string {
	return "strlen(" + c + ") <= " + item.length() + " AND strlen(" + c + ") = length(" + c + ") AND NOT suffix(" +
		c + ", ' ')"
}

// length returns the most bytes of a string that its component keeps, as SQL.
func (item OrderItem) length() string { return strconv.Itoa(cmp.Or(item.Length, DefaultKeyBytes)) }

// KeySQL renders one SQL expression for each component, whose equality is that
// of joins, groups, distinct rows and unique indexes: the column as it is. Strings
// are upper-cased with ignore_case, and cut if a length is given. Equal
// floats are those that DuckDB takes for equal: NaN is equal to itself, 0 to -0.
func (o Order) KeySQL(column func(field string) string) []string {
	out := make([]string, len(o))
	for i, item := range o {
		c := column(item.Field)
		if item.IgnoreCase {
			c = "upper(" + c + ")"
		}
		if item.Length > 0 {
			n := strconv.Itoa(item.Length)
			c = "CASE WHEN strlen(" + c + ") <= " + n + " THEN " + c + " ELSE thalweg_cut(" + c + ", " + n + ") END"
		}
		out[i] = c
	}
	return out
}
