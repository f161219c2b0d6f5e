package lineage

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"thalweg/internal/base/address"
	"thalweg/internal/base/fault"
	"thalweg/internal/base/similar"
	"thalweg/internal/lang/expr"
	"thalweg/internal/lang/script"
)

// Column is a column of a table, or of files.
type Column struct {
	Of   string `json:"of"` // table; of files their address, without secrets
	Name string `json:"column"`
}

func (c Column) String() string { return c.Of + "." + c.Name }

// How a column has a part in another one.
const (
	ByExpression = "expression"
	ByFunction   = "function" // of Python: any of its inputs may be in any of its results
	ByQuery      = "query"
	ByFilter     = "filter"
	ByJoin       = "join"
	ByGroup      = "group"
	ByKey        = "key" // of a distinct table
	ByTag        = "tag"
	ByOrder      = "order"
)

// Link is a part that one column has in another. An indirect one decides which
// rows there are, and not what they have.
type Link struct {
	From     Column `json:"from"`
	To       Column `json:"to"`
	Node     string `json:"node"`
	How      string `json:"how"`
	Indirect bool   `json:"indirect,omitempty"`
	Text     string `json:"text,omitempty"` // expression as written
}

// Columns are the columns of a script with their links, in the order of the nodes.
type Columns struct {
	All   []Column
	Links []Link
	seen  map[Column]bool
	files map[string][]string // names and patterns, by what the files of a node are called together
}

// ColumnsOf finds the links of a script's columns, from the script alone.
func ColumnsOf(s *script.Script) *Columns {
	c := &Columns{seen: map[Column]bool{}, files: map[string][]string{}}
	for _, n := range s.Topological() {
		b := columnBuilder{c: c, n: n}
		b.build()
		switch {
		case n.Out != nil:
			c.files[outputs(n.Out)] = append(c.files[outputs(n.Out)], builtins("*").Replace(address.Redact(n.Out.URL)))
		case n.Files != nil:
			for _, u := range n.Files.URLs {
				c.files[Files(n.Files)] = append(c.files[Files(n.Files)], address.Redact(u.URL))
			}
		}
	}
	return c
}

// Files names the files that a reader reads.
func Files(r *script.FileReader) string {
	if len(r.URLs) == 0 {
		return "no files"
	}
	name := address.Redact(r.URLs[0].URL)
	if more := len(r.URLs) - 1; more > 0 {
		name += fmt.Sprintf(" and %d more", more)
	}
	return name
}

// outputs names the files that a writer writes, as people write it in a script.
func outputs(w *script.FileWriter) string { return address.Redact(builtins("").Replace(w.URL)) }

// builtins replaces what differs from file to file in a writer's address; "": by its short form.
func builtins(by string) *strings.Replacer {
	var pairs []string
	for _, name := range []string{"batch_idx", "run_id"} {
		pairs = append(pairs, "{"+name+"|string}", cmp.Or(by, "{"+name+"}"))
	}
	return strings.NewReplacer(pairs...)
}

// columnBuilder links the columns of one node.
type columnBuilder struct {
	c *Columns
	n *script.Node
}

func (c *Columns) add(column Column) {
	if !c.seen[column] {
		c.seen[column] = true
		c.All = append(c.All, column)
	}
}

func (c *Columns) link(l Link) {
	c.add(l.From)
	c.add(l.To)
	if !slices.Contains(c.Links, l) {
		c.Links = append(c.Links, l)
	}
}

// target is a column that the node writes.
func (b columnBuilder) target(name string) Column {
	if b.n.Out == nil {
		return Column{b.n.Table.Name, name}
	}
	for _, col := range b.n.Out.Columns {
		if col.Name == name {
			name = cmp.Or(col.Parquet, col.Header, col.Name)
		}
	}
	return Column{outputs(b.n.Out), name}
}

func (b columnBuilder) build() {
	if b.n.Query != nil {
		b.query()
		return
	}
	values := b.n.Written()
	for _, v := range values {
		to := b.target(v.Name)
		b.c.add(to)
		for _, ref := range v.Expr.Refs() {
			for _, from := range b.sources(ref) {
				from.To, from.Node = to, b.n.Name
				from.Text = cmp.Or(from.Text, v.Expr.Source())
				b.c.link(from)
			}
		}
	}
	for _, l := range b.decisions() {
		for _, v := range values {
			l.To, l.Node, l.Indirect = b.target(v.Name), b.n.Name, true
			b.c.link(l)
		}
	}
}

// sources are the columns that a reference stands for.
func (b columnBuilder) sources(ref expr.Ref) (out []Link) {
	n := b.n
	switch {
	case ref.Alias == "r" && n.Files != nil:
		return []Link{{From: Column{Files(n.Files), inputName(n.Files, ref.Field)}, How: ByExpression}}
	case ref.Alias == "r":
		for _, creator := range n.Reader.Creators {
			if creator.Table.Field(ref.Field) != nil {
				out = append(out, Link{From: Column{creator.Table.Name, ref.Field}, How: ByExpression})
			}
		}
	case ref.Alias == "l":
		return []Link{{From: Column{n.Lookup.Index.Node.Table.Name, ref.Field}, How: ByExpression}}
	case ref.Alias == "p" && n.PyCalc != nil:
		for _, f := range n.PyCalc.Fields {
			if f.Name != ref.Field {
				continue
			}
			for _, inner := range f.Refs {
				for _, l := range b.sources(inner) {
					l.How, l.Text = ByFunction, cmp.Or(l.Text, f.Expr)
					out = append(out, l)
				}
			}
		}
	case ref.Alias == "p" && n.PyTable != nil:
		for _, name := range n.PyTable.Columns {
			out = append(out, b.marked(b.sources(expr.Ref{Alias: "r", Field: name}), ByFunction, n.PyTable.Function)...)
		}
	case ref.Alias == "p" && n.Tag != nil:
		for _, criterion := range n.Tag.Criteria {
			for _, inner := range criterion.Expr.Refs() {
				out = append(out, b.marked(b.sources(inner), ByTag, criterion.Expr.Source())...)
			}
		}
	}
	return out
}

func (b columnBuilder) marked(links []Link, how, text string) []Link {
	for i := range links {
		links[i].How, links[i].Text = how, text
	}
	return links
}

// inputName is a column of a file as the file has it.
func inputName(r *script.FileReader, field string) string {
	for _, c := range r.Columns {
		if c.Name == field {
			return cmp.Or(c.Parquet, c.Header, c.Name)
		}
	}
	return field
}

// decisions are the columns that decide which rows a node writes.
func (b columnBuilder) decisions() (out []Link) {
	n := b.n
	refs := func(how, text string, refs ...expr.Ref) {
		for _, ref := range refs {
			if ref.Alias != "w" {
				out = append(out, b.marked(b.sources(ref), how, text)...)
				continue
			}
			for _, v := range n.Written() { // what is written, before it is
				if v.Name != ref.Field {
					continue
				}
				for _, inner := range v.Expr.Refs() {
					out = append(out, b.marked(b.sources(inner), how, text)...)
				}
			}
		}
	}
	if h := n.Having(); h != nil {
		refs(ByFilter, h.Source(), h.Refs()...)
	}
	if l := n.Lookup; l != nil {
		for i, k := range l.Index.Key {
			refs(ByJoin, l.JoinOn[i]+" = "+k.Field, expr.Ref{Alias: "r", Field: l.JoinOn[i]},
				expr.Ref{Alias: "l", Field: k.Field})
		}
		if l.Filter != nil {
			refs(ByFilter, l.Filter.Source(), l.Filter.Refs()...)
		}
	}
	if n.Tag != nil {
		for _, c := range n.Tag.Criteria {
			refs(ByTag, c.Expr.Source(), c.Expr.Refs()...)
		}
	}
	if n.PyTable != nil {
		for _, name := range n.PyTable.GroupBy {
			refs(ByGroup, "group_by "+name, expr.Ref{Alias: "r", Field: name})
		}
	}
	if n.Type == script.Distinct {
		for _, ix := range n.Table.Indexes {
			for _, k := range ix.Key {
				if ix.Unique {
					refs(ByKey, "unique("+k.Field+")", expr.Ref{Alias: "w", Field: k.Field})
				}
			}
		}
	}
	if n.Out != nil {
		for _, o := range n.Out.Order {
			refs(ByOrder, o.Field, expr.Ref{Alias: "w", Field: o.Field})
		}
	}
	return out
}

// query links the columns of a sql node.
func (b columnBuilder) query() {
	info := b.n.Query.Info
	if info == nil {
		return
	}
	source := func(s script.QuerySource) Column {
		if s.File {
			return Column{address.Redact(s.Of), s.Column}
		}
		for _, in := range b.n.Query.Inputs {
			if in.Name == s.Of {
				return Column{in.Table, s.Column}
			}
		}
		return Column{s.Of, s.Column}
	}
	names := map[string]int{}
	for i, c := range info.Columns {
		names[c.Name] = i
	}
	for _, f := range b.n.Table.Fields {
		to := b.target(f.Name)
		b.c.add(to)
		at, ok := names[f.Name]
		if !ok || at >= len(info.Origins.Columns) {
			continue
		}
		text := ""
		if info.Origins.Lost {
			text = "its columns cannot be told apart"
		}
		for _, s := range info.Origins.Columns[at] {
			b.c.link(Link{From: source(s), To: to, Node: b.n.Name, How: ByQuery, Text: text})
		}
		for _, how := range slices.Sorted(maps.Keys(info.Origins.Beside)) {
			for _, s := range info.Origins.Beside[how] {
				b.c.link(Link{From: source(s), To: to, Node: b.n.Name, How: how, Indirect: true})
			}
		}
	}
}

// Find finds a column by its name as people write it: TABLE.COLUMN or
// FILE.COLUMN, of files also without their directory.
func (c *Columns) Find(name string) (Column, error) {
	var names []string
	var found []Column
	for _, column := range c.All {
		short := path.Base(column.Of) + "." + column.Name
		if column.String() == name || short == name || c.ofFile(column, name) {
			found = append(found, column)
		}
		names = append(names, column.String())
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return Column{}, &fault.Error{Kind: fault.Script,
			Message: fmt.Sprintf("%s is the name of %d columns: %s and %s",
				name, len(found), found[0], found[1]), Hint: "write the whole path"}
	}
	f := &fault.Error{Kind: fault.Script, Code: fault.NotFound, Message: "there is no column " + name,
		Hint: "name it as TABLE.COLUMN, or FILE.COLUMN"}
	if near := similar.Nearest(name, names); near != "" {
		f.Hint = "did you mean " + near + "?"
	}
	return Column{}, f
}

// ofFile reports whether a name is that of a column of one of several files, or of
// one that a pattern stands for.
func (c *Columns) ofFile(column Column, name string) bool {
	file, ok := strings.CutSuffix(name, "."+column.Name)
	return ok && slices.ContainsFunc(c.files[column.Of], func(url string) bool {
		whole, err := path.Match(url, file)
		base, _ := path.Match(path.Base(url), file)
		return url == file || path.Base(url) == file || err == nil && (whole || base)
	})
}

// Upstream lists the links into a column.
func (c *Columns) Upstream(of Column) []Link {
	return c.some(func(l Link) bool { return l.To == of })
}

// Downstream lists the links out of a column.
func (c *Columns) Downstream(of Column) []Link {
	return c.some(func(l Link) bool { return l.From == of })
}

// Parts is a column with what has a part in it, and what it has a part in.
type Parts struct {
	Column string `json:"column"`
	From   []Link `json:"from"`
	To     []Link `json:"to"`
}

// OfNode lists the columns that a node makes, in their order: those of its table, or of the files that it writes.
func (c *Columns) OfNode(n *script.Node) []Parts {
	of := ""
	switch {
	case n.Table != nil:
		of = n.Table.Name
	case n.Out != nil:
		of = outputs(n.Out)
	}
	out, at := []Parts{}, map[string]int{}
	for _, column := range c.All {
		if column.Of == of {
			at[column.Name] = len(out)
			out = append(out, Parts{column.Name, []Link{}, []Link{}})
		}
	}
	for _, l := range c.some(func(l Link) bool { return l.From.Of == of || l.To.Of == of }) {
		if i, is := at[l.To.Name]; is && l.To.Of == of && l.Node == n.Name {
			out[i].From = append(out[i].From, l)
		}
		if i, is := at[l.From.Name]; is && l.From.Of == of {
			out[i].To = append(out[i].To, l)
		}
	}
	return out
}

func (c *Columns) some(wanted func(Link) bool) (out []Link) {
	for _, l := range c.Links {
		if wanted(l) {
			out = append(out, l)
		}
	}
	slices.SortStableFunc(out, func(a, b Link) int {
		return cmp.Or(compareBool(a.Indirect, b.Indirect), strings.Compare(a.How, b.How))
	})
	return out
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// Around lists all links that lead to a column, or from it, over however many steps.
func (c *Columns) Around(of Column) []Link {
	links := []Link{}
	for _, next := range []func(Column) []Link{c.Upstream, c.Downstream} {
		seen := map[Column]bool{of: true}
		for todo := []Column{of}; len(todo) > 0; todo = todo[1:] {
			for _, l := range next(todo[0]) {
				if !slices.Contains(links, l) {
					links = append(links, l)
				}
				other := l.From
				if other == todo[0] {
					other = l.To
				}
				if !seen[other] {
					seen[other] = true
					todo = append(todo, other)
				}
			}
		}
	}
	return links
}
