package query

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"thalweg/internal/base/sqltext"
	"thalweg/internal/run/engine"
)

// Traced is a query whose rows say which rows of its tables and files they are
// made of: behind its own columns it has one for each table, a list of the
// rowids, and one for each file, a list of its rows' numbers from 1.
type Traced struct {
	SQL string
	// Sets: rows that the query gives once may be there several times.
	Sets bool
	// Beside lists the tables, and the schemas of files, that have rows which are in
	// no list: of subqueries in expressions, of windows, and of joins that only ask
	// whether there are any.
	Beside []string
}

// errUntold is the cause where rows cannot be told apart.
var errUntold = errors.New("cannot be told")

// Trace makes a query, as QueryInfo.SQL has it, one that says what its rows are
// made of. It is read by DuckDB's parser and written back from the tree. An
// error says what of it cannot be followed. What it gives has to be compared with
// the rows of the query: names are resolved by DuckDB, and not here. schemas are
// those of the files that it reads.
func Trace(ctx context.Context, in *engine.Instance, text string, tables, schemas []string) (*Traced, error) {
	x := exposer{ctx: ctx, in: in, inputs: map[string]int{}, tables: len(tables), count: len(tables) + len(schemas),
		told: map[string]int{}, seen: map[string]int{}, inside: map[string][]string{}, aggregates: map[string]bool{}}
	for i, name := range tables {
		x.inputs[strings.ToLower(name)] = i
	}
	for i, schema := range schemas {
		x.inputs[fileKey(schema)] = len(tables) + i
	}
	d := describer{in: in}
	if err := d.names(ctx, x.aggregates,
		"SELECT DISTINCT lower(function_name) FROM duckdb_functions() WHERE function_type = 'aggregate'"); err != nil {
		return nil, fmt.Errorf("list aggregates: %w", err)
	}
	tree, err := x.tree(text)
	if err != nil {
		return nil, err
	}
	statements, _ := tree["statements"].([]any)
	if len(statements) != 1 {
		return nil, fmt.Errorf("a query of %d statements: %w", len(statements), errUntold)
	}
	top := asNode(statements[0]).child("node")
	x.countTables(top)
	if err := x.query(top, nil, x.newNames()); err != nil {
		return nil, err
	}
	out := &Traced{Sets: x.sets}
	beside := x.beside()
	for _, name := range tables {
		if low := strings.ToLower(name); beside[low] || x.windows && x.seen[low] > 0 {
			out.Beside = append(out.Beside, name)
		}
	}
	for _, schema := range schemas {
		if key := fileKey(schema); beside[key] || x.windows && x.seen[key] > 0 {
			out.Beside = append(out.Beside, schema)
		}
	}
	data, err := json.Marshal(tree)
	if err != nil {
		return nil, err
	}
	out.SQL, err = one(ctx, in, "SELECT json_deserialize_sql(CAST("+sqltext.String(string(data))+" AS JSON))")
	return out, err
}

// exposer goes through a parse tree and adds the lists.
type exposer struct {
	ctx        context.Context
	in         *engine.Instance
	inputs     map[string]int // places of the lists by key
	tables     int            // so many of them are of tables
	count      int            // with those of files
	aggregates map[string]bool
	names      int
	sets       bool
	windows    bool
	// how often a name stands in the query as a table, and how often its rows are in the lists
	seen, told map[string]int
	inside     map[string][]string // the names that stand in a common table expression
}

// scope are the names of the lists that common table expressions have, by their lower-case names.
type scope map[string][]string

// tree parses a text with all that json_deserialize_sql wants.
func (x *exposer) tree(text string) (node, error) {
	out, err := one(x.ctx, x.in, "SELECT CAST(json_serialize_sql("+sqltext.String(text)+") AS VARCHAR)")
	if err != nil {
		return nil, fmt.Errorf("parse the query: %w", err)
	}
	d := json.NewDecoder(strings.NewReader(out))
	d.UseNumber()
	var tree map[string]any
	if err := d.Decode(&tree); err != nil {
		return nil, fmt.Errorf("read the parsed query: %w", err)
	}
	if node(tree).truth("error") {
		return nil, fmt.Errorf("%s: %w", node(tree).text("error_message"), errUntold)
	}
	return tree, nil
}

// newNames names the lists of one SELECT.
func (x *exposer) newNames() []string {
	x.names++
	out := make([]string, x.count)
	for i := range out {
		out[i] = fmt.Sprintf("#rows %d %d", x.names, i)
	}
	return out
}

// key returns the key of a table, a file or a common table expression.
func key(n node) string {
	if schema := n.text("schema_name"); schema != "" {
		return fileKey(schema)
	}
	return n.lower("table_name")
}

// fileKey is the key of a file: no table is called so.
func fileKey(schema string) string { return strings.ToLower(schema) + "." + scanFile }

// countTables counts where tables and files stand.
func (x *exposer) countTables(tree node) {
	each(map[string]any(tree), func(n node) {
		if n.text("type") == "BASE_TABLE" {
			x.seen[key(n)]++
		}
		x.windows = x.windows || n.text("class") == "WINDOW"
	})
}

// beside are the names of which rows are looked at that are in no list, and
// what stands in common table expressions that are looked at so.
func (x *exposer) beside() map[string]bool {
	found := map[string]bool{}
	var mark func(name string)
	mark = func(name string) {
		if found[name] {
			return
		}
		found[name] = true
		for _, inner := range x.inside[name] {
			mark(inner)
		}
	}
	for name, seen := range x.seen {
		if seen > x.told[name] {
			mark(name)
		}
	}
	return found
}

// query adds lists of these names to what a query gives.
func (x *exposer) query(n node, outer scope, names []string) error {
	switch n.text("type") {
	case "SELECT_NODE":
		return x.selects(n, outer, names)
	case "SET_OPERATION_NODE":
		if !strings.HasPrefix(n.text("setop_type"), "UNION") {
			return fmt.Errorf("its %s: %w", n.text("setop_type"), errUntold)
		}
		inner, err := x.withs(n, outer)
		if err != nil {
			return err
		}
		if !n.truth("setop_all") {
			n["setop_all"], x.sets = true, true
		}
		sides := n.list("children")
		if len(sides) == 0 {
			sides = []node{n.child("left"), n.child("right")}
		}
		for _, side := range sides {
			if err := x.query(side, inner, names); err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("its %s: %w", n.text("type"), errUntold)
}

// withs adds lists to the common table expressions of a query.
func (x *exposer) withs(n node, outer scope) (scope, error) {
	inner := maps.Clone(outer)
	if inner == nil {
		inner = scope{}
	}
	for _, entry := range n.child("cte_map").list("map") {
		names, name, body := x.newNames(), entry.lower("key"), entry.child("value").child("query").child("node")
		each(map[string]any(body), func(n node) {
			if n.text("type") == "BASE_TABLE" {
				x.inside[name] = append(x.inside[name], key(n))
			}
		})
		if err := x.query(body, inner, names); err != nil {
			return nil, err
		}
		inner[name] = names
	}
	return inner, nil
}

// visible describes a FROM clause for tracing. For each table it has the lists of its rows, as SQL; by alias,
// the names of columns that are lists.
type visible struct {
	lists  [][]string
	hidden map[string][]string
}

func (x *exposer) selects(n node, outer scope, names []string) error {
	inner, err := x.withs(n, outer)
	if err != nil {
		return err
	}
	v := visible{lists: make([][]string, x.count), hidden: map[string][]string{}}
	if err := x.from(n.child("from_table"), inner, &v); err != nil {
		return err
	}
	x.dropDistinct(n)
	aggregated := x.aggregated(n)
	for _, item := range n.list("select_list") {
		v.hide(item)
	}
	exprs := make([]string, x.count)
	for i, lists := range v.lists {
		exprs[i] = "CAST([] AS BIGINT[])"
		if len(lists) > 0 {
			exprs[i] = "list_concat(" + strings.Join(lists, ", ") + ", CAST([] AS BIGINT[]))"
		}
		if aggregated {
			exprs[i] = "coalesce(flatten(list(" + exprs[i] + ")), CAST([] AS BIGINT[]))"
		}
		exprs[i] += " AS " + sqltext.Ident(names[i])
	}
	added, err := x.tree("SELECT " + strings.Join(exprs, ", "))
	if err != nil {
		return err
	}
	more, _ := asNode(added["statements"].([]any)[0]).child("node")["select_list"].([]any)
	list, _ := n["select_list"].([]any)
	n["select_list"] = append(list, more...)
	return nil
}

// dropDistinct gives all rows of which a query would give one. DISTINCT ON takes
// one of several: that stays.
func (x *exposer) dropDistinct(n node) {
	modifiers, _ := n["modifiers"].([]any)
	kept := slices.DeleteFunc(slices.Clone(modifiers), func(m any) bool {
		return asNode(m).text("type") == "DISTINCT_MODIFIER" && len(asNode(m).list("distinct_on_targets")) == 0
	})
	if len(kept) < len(modifiers) {
		n["modifiers"], x.sets = kept, true
	}
}

// aggregated reports whether a SELECT makes groups of rows.
func (x *exposer) aggregated(n node) bool {
	groups, _ := n["group_expressions"].([]any)
	if len(groups) > 0 || n.text("aggregate_handling") != "STANDARD_HANDLING" || n["having"] != nil {
		return true
	}
	found := false
	for _, key := range []string{"select_list", "modifiers", "qualify"} {
		x.aggregates1(n[key], &found)
	}
	return found
}

// aggregates1 looks for an aggregate of this SELECT, and not of one inside.
func (x *exposer) aggregates1(v any, found *bool) {
	switch v := v.(type) {
	case map[string]any:
		switch n := node(v); {
		case n.text("class") == "SUBQUERY":
			return
		case n.text("class") == "FUNCTION" && x.aggregates[n.lower("function_name")]:
			*found = true
			return
		}
		for _, inner := range v {
			x.aggregates1(inner, found)
		}
	case []any:
		for _, inner := range v {
			x.aggregates1(inner, found)
		}
	}
}

// hide takes the lists of what is below out of a star.
func (v *visible) hide(item node) {
	each(map[string]any(item), func(n node) {
		if n.text("class") != "STAR" {
			return
		}
		list, _ := n["exclude_list"].([]any)
		for alias, names := range v.hidden {
			if of := n.lower("relation_name"); of != "" && of != alias {
				continue
			}
			for _, name := range names {
				list = append(list, name)
			}
		}
		n["exclude_list"] = list
	})
}

// from finds the rows that a FROM clause puts together.
func (x *exposer) from(n node, inner scope, v *visible) error {
	switch kind := n.text("type"); kind {
	case "", "EMPTY", "TABLE_FUNCTION", "EXPRESSION_LIST", "COLUMN_DATA":
		return nil
	case "BASE_TABLE":
		x.table(n, inner, v)
		return nil
	case "SUBQUERY":
		if n.text("alias") == "" {
			x.names++
			n["alias"] = fmt.Sprintf("#sub %d", x.names)
		}
		names := x.newNames()
		if err := x.query(n.child("subquery").child("node"), inner, names); err != nil {
			return err
		}
		v.add(n.text("alias"), names)
		return nil
	case "JOIN":
		if err := x.from(n.child("left"), inner, v); err != nil {
			return err
		}
		switch n.text("join_type") {
		case "SEMI", "ANTI":
			return nil // it only asks whether there are any
		case "INNER", "LEFT", "RIGHT", "OUTER", "FULL":
			return x.from(n.child("right"), inner, v)
		}
		return fmt.Errorf("its %s join: %w", n.text("join_type"), errUntold)
	default:
		return fmt.Errorf("its %s: %w", kind, errUntold)
	}
}

func (x *exposer) table(n node, inner scope, v *visible) {
	name := key(n)
	alias := n.text("alias")
	if alias == "" {
		alias = n.text("table_name")
	}
	if names := inner[name]; names != nil {
		x.told[name]++
		v.add(alias, names)
		return
	}
	if i, ok := x.inputs[name]; ok {
		x.told[name]++
		rowid := sqltext.Ident(alias) + ".rowid"
		if i >= x.tables { // numbers from 1
			rowid = "(" + rowid + " + 1)"
		}
		v.lists[i] = append(v.lists[i],
			fmt.Sprintf("CASE WHEN %[1]s IS NULL THEN CAST([] AS BIGINT[]) ELSE [%[1]s] END",
				rowid))
	}
}

// add makes the lists of what is behind an alias visible.
func (v *visible) add(alias string, names []string) {
	for i, name := range names {
		v.lists[i] = append(v.lists[i], sqltext.Ident(alias)+"."+sqltext.Ident(name))
	}
	v.hidden[strings.ToLower(alias)] = names
}
