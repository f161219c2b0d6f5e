package infer

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"thalweg/internal/base/address"
	"thalweg/internal/base/fault"
	"thalweg/internal/base/sqltext"
	"thalweg/internal/io/files"
	"thalweg/internal/lang/expr"
	"thalweg/internal/lang/script"
)

// parquetFiles are Parquet files that are read together. Their schemas say the types, and all values are read as a
// run would: what is said of a column holds for the column that a run sees.
type parquetFiles struct {
	*Proposal
	at      map[string]int // the column of a name
	kinds   []string       // of each, the type in the file
	nothing []bool         // of each, whether no file yet says more than that it has nulls
	list    []inputFile    // with the columns that each has
}

// survey implements kind.
func (u *parquetFiles) survey(ctx context.Context, _ Options) ([]inputFile, error) {
	for n, name := range u.Files {
		if !address.Parquet(name) {
			return nil, &fault.Error{Kind: fault.UserData, Place: fault.Place{File: name},
				Message: "it is no Parquet file, and the first one is",
				Hint:    "files of different kinds need nodes of their own"}
		}
		list, err := u.parquetColumns(ctx, name)
		if err != nil {
			return nil, err
		}
		u.add(name, n, list)
	}
	return u.list, nil
}

// choose implements kind.
func (u *parquetFiles) choose() {
	for i := range u.Columns {
		if c := &u.Columns[i]; u.nothing[i] && c.left == "" { // every type reads it
			c.Type = expr.String
		}
	}
}

// read implements kind.
func (u *parquetFiles) read(ctx context.Context, o Options) (again bool, err error) {
	if err = u.parquetFacts(ctx, o, u.kinds); u.leaveOut(err) {
		return true, nil
	}
	return false, err
}

// add takes the columns of one more file.
func (u *parquetFiles) add(name string, number int, list []script.FileColumn) {
	seen, times := map[string]bool{}, map[string]int{}
	file := inputFile{name: name, at: map[int]int{}}
	u.list = append(u.list, file)
	for _, c := range list {
		times[c.Name]++
	}
	for _, c := range list {
		seen[c.Name] = true
		k, known := u.at[c.Name]
		if !known || number == 0 || c.Name == "" {
			k = len(u.Columns)
			u.at[c.Name] = k
			u.addParquet(c, number > 0)
			u.kinds, u.nothing = append(u.kinds, c.Kind), append(u.nothing, c.Nothing)
		}
		file.at[k] = k
		own := &u.Columns[k]
		switch {
		case c.Nothing && !u.nothing[k]:
			own.behind += "; no values in " + name
		case u.nothing[k] && !c.Nothing:
			own.Type, own.left, own.behind = c.Type, "", own.behind+"; no values in "+listed(u.Files[:number], 1)
			u.kinds[k], u.nothing[k] = c.Kind, false
			own.unreadable(c)
		case own.Type != c.Type && own.left == "":
			own.behind += fmt.Sprintf("; %s in %s", c.Kind, name)
			own.share(c.Type)
		}
		if times[c.Name] > 1 && c.Name != "" && own.left == "" {
			own.leaveOut(fmt.Sprintf("the file has %d columns %s", times[c.Name], quoted(c.Name)))
		}
	}
	for i := range u.Columns {
		if c := &u.Columns[i]; !seen[c.Source] {
			c.Optional = true
			c.behind += "; not in " + name
		}
	}
}

// share gives the column a type that holds what it is in the files before and in one more; if there is none,
// the reading says what it misses.
func (c *Column) share(other expr.Type) {
	switch t := bothTypes(c.Type, other); {
	case t == expr.Invalid:
	case t == expr.String:
		c.Type, c.guess = t, "it is text in some files, and none in others: all of its values are read as texts"
	case t == expr.Instant && c.Type != other:
		c.Type, c.guess = t, "its times have a zone in some files, and in others none: those are taken for times of UTC"
	default:
		c.Type = t
	}
}

// bothTypes is the type in which columns of two types can be read; Invalid: there is none.
func bothTypes(a, b expr.Type) expr.Type {
	both := func(is func(t expr.Type) bool) bool { return is(a) && is(b) }
	day := func(t expr.Type) bool { return t == expr.Date || t == expr.DateTime }
	time := func(t expr.Type) bool { return t == expr.DateTime || t == expr.Instant }
	number := func(t expr.Type) bool { return t.IsNumber() }
	plain := func(t expr.Type) bool { return number(t) || t == expr.String || t == expr.Bool || t == expr.Date }
	switch {
	case a == b:
		return a
	case both(number) && (a == expr.Float || b == expr.Float):
		return expr.Float
	case both(number):
		return bothDecimals(a, b)
	case both(day):
		return expr.DateTime
	case both(time):
		return expr.Instant
	case both(plain):
		return expr.String
	}
	return expr.Invalid
}

// bothDecimals is the decimal that holds two decimals, or one and an int.
func bothDecimals(a, b expr.Type) expr.Type {
	const intDigits = 19
	digits := func(t expr.Type) (whole, scale int) {
		if t == expr.Int {
			return intDigits, 0
		}
		p, s := t.Digits()
		return p - s, s
	}
	whole, scale := digits(a)
	w, s := digits(b)
	if scale = max(scale, s); scale <= 2 && (a == expr.Int || b == expr.Int) { // there is a wider one if it has to be
		return expr.Decimal
	}
	return expr.DecimalOf(min(max(whole, w)+scale, expr.MaxDecimalDigits), scale)
}

// parquetColumns are the columns of one file.
func (p *Proposal) parquetColumns(ctx context.Context, name string) ([]script.FileColumn, error) {
	look := files.Look{Remote: func(context.Context, string, bool) (string, func(), error) {
		return p.texts[name],
			func() {}, nil
	}}
	list, err := files.Columns(ctx, look, name, script.CSVReader{}, true)
	if err == nil && len(list) > ColumnsMax {
		err = &fault.Error{Kind: fault.UserData, Place: fault.Place{File: name},
			Message: fmt.Sprintf("the file has %d columns; the limit is %d", len(list), ColumnsMax)}
	}
	return list, err
}

func (p *Proposal) addParquet(c script.FileColumn, optional bool) {
	col := Column{Source: c.Name, Index: len(p.Columns), Type: c.Type, Optional: optional}
	col.unreadable(c)
	p.Columns = append(p.Columns, col)
}

// unreadable says why a script cannot have a column of a file.
func (c *Column) unreadable(of script.FileColumn) {
	switch {
	case of.Nothing:
	case of.Type == expr.Invalid:
		c.left = of.Kind + " in the file cannot be read"
	case of.Name == "":
		c.left = "without a name in the file, so it cannot be asked for"
	case strings.ContainsAny(of.Name, "{}"):
		c.left = "its name has braces, in which scripts have parameters"
	}
	if c.left != "" {
		c.Type, c.Evidence = expr.Invalid, c.left
	}
}

// unreadable is a failure that concerns one column: its declaration or a value.
type unreadable struct{ fault *fault.Error }

func (u unreadable) Error() string { return u.fault.Error() }

func (u unreadable) Unwrap() error { return u.fault }

// leaveOut takes the column that could not be read from the script.
func (p *Proposal) leaveOut(err error) bool {
	var u unreadable
	if !errors.As(err, &u) {
		return false
	}
	place, found := u.fault.Place, false
	for i := range p.Columns {
		c := &p.Columns[i]
		if c.Source == place.Field && c.Type != expr.Invalid {
			found = true
			if c.Type = wider(c.Type); c.Type != expr.Invalid {
				continue
			}
			why := u.fault.Message
			if place.Record > 0 {
				why += fmt.Sprintf(" (record %d)", place.Record)
			}
			c.leaveOut(why)
		}
	}
	return found
}

// wider is the type to try for a column that has a value which t does not hold
// exactly; Invalid if there is none.
func wider(t expr.Type) expr.Type {
	switch t {
	case expr.DateTime:
		return expr.Instant
	case expr.Int: // of 64 bits without a sign
		return expr.DecimalOf(20, 0)
	case expr.Decimal:
		return expr.DecimalOf(expr.MaxDecimalDigits, 2)
	}
	return expr.Invalid
}

// parquetFacts reads the columns that have a type, once.
func (p *Proposal) parquetFacts(ctx context.Context, o Options, kinds []string) (err error) {
	if len(p.readable()) == 0 {
		return p.nothingReadable()
	}
	s, err := p.open(ctx, o)
	if err != nil {
		return err
	}
	defer closing(s.Instance, &err)
	const perColumn = 4
	cols := []string{"count(*)"}
	for _, c := range s.columns {
		name := sqltext.Ident(c.Name)
		text := "CAST(%s(" + name + ") AS VARCHAR)"
		example := func(which string) string { return fmt.Sprintf("left("+text+", %d)", which, exampleChars) }
		cols = append(cols, "count("+name+")", example("min"), example("max"), "typeof(min("+name+"))")
	}
	cells, err := s.row(ctx, cols, s.from)
	if err != nil {
		if f := fault.Of(err); f.Place.Record > 0 { // not damage: a value that does not fit
			return unreadable{f}
		}
		return err
	}
	p.Rows = number(cells[0])
	for i, c := range s.columns {
		own := cells[1+perColumn*i:]
		c.describe(kinds[c.Index], p.Rows, p.Rows-number(own[0]), own[1].String, own[2].String)
		if c.Type == expr.Decimal && scaleOf(own[3].String) > 2 {
			c.Evidence += "; stored with 2 digits after the point"
		}
	}
	return nil
}

// nothingReadable: a script needs a column.
func (p *Proposal) nothingReadable() error {
	f := fault.New(fault.UserData, "no column of the file can be read")
	if len(p.Columns) > 0 {
		c := p.Columns[0]
		f.Message += fmt.Sprintf("; the first, %q: %s", c.Source, c.Evidence)
	}
	f.Place.File = p.Files[0]
	f.Hint = "write the file with columns of other types: docs/parquet.md lists those that are read"
	return f
}

func (c *Column) describe(kind string, rows, nulls int64, least, most string) {
	c.Evidence = kind
	switch {
	case rows == nulls:
		c.Evidence += ", no values"
	case c.Type == expr.String:
		c.Evidence += fmt.Sprintf(", %s … %s", quoted(least), quoted(most))
	default:
		c.Evidence += fmt.Sprintf(", %s … %s", shown(c.Type, least), shown(c.Type, most))
	}
	if nulls > 0 {
		c.Nullable = true
		c.Evidence += fmt.Sprintf("; %s NULL", grouped(nulls))
	}
}

// scaleOf is the number of digits behind the point of a type of the engine.
func scaleOf(typ string) int {
	var precision, scale int
	if _, err := fmt.Sscanf(typ, "DECIMAL(%d,%d)", &precision, &scale); err != nil {
		return 0
	}
	return scale
}
