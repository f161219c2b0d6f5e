package query

import (
	"fmt"
	"slices"
	"strings"

	"thalweg/internal/base/document"
	"thalweg/internal/base/similar"
	"thalweg/internal/lang/script"
)

// problemsMax bounds what is reported of one query.
const problemsMax = 50

// scanFile is the table function that reads a file.
const scanFile = "scan_file"

// rowFunctions are table functions that read nothing.
func rowFunctions() []string {
	return []string{"unnest", "range", "generate_series", "json_each", "json_tree"}
}

// environmentFunctions give what the arguments do not determine, although
// DuckDB calls them consistent or they are macros.
func environmentFunctions() []string {
	return []string{"ago", "current_localtime", "current_localtimestamp", "current_setting", "current_catalog",
		"current_role", "current_user",
		"getvariable", "session_user", "user", "version", "pg_conf_load_time", "pg_postmaster_start_time",
		"inet_client_addr",
		"inet_client_port", "inet_server_addr", "inet_server_port", "get_block_size", "reservoir_quantile"}
}

// valueKeywords are functions of SQL that are written without parentheses.
func valueKeywords() []string {
	return []string{"current_date", "current_time", "current_timestamp", "localtime", "localtimestamp", "current_user",
		"session_user",
		"user", "current_role", "current_catalog", "current_schema"}
}

// topMark marks the outermost query in its tree.
const topMark = "__top"

// checker goes over the parse tree of a query: it reports what the query may
// not do and notes what the order of its rows could change.
type checker struct {
	src      *source
	ask      script.QueryText
	tables   map[string]string // lower-case name -> name
	ctes     map[string]bool   // lower-case names
	volatile map[string]bool   // functions whose results differ from call to call
	catalog  map[string]bool   // DuckDB's own views
	choosers map[string]bool   // aggregates that may give one of their values
	used     map[string]bool   // lower-case names of tables
	calls    []*fileCall
	problems []script.QueryProblem

	sorted    bool
	items     []int // bytes of the select list's items; nil: not known
	edits     []edit
	oneThread bool
	sums      bool   // windows add up values, exactly if these are no floats
	chosen    []part // arguments of choosers
	unread    bool   // a chooser whose arguments are not known
}

// selection is the scope of the expressions of a SELECT.
type selection struct {
	rows    []string // names of the tables in FROM, as SQL
	grouped bool
}

func newChecker(src *source, ask script.QueryText, d *describer) *checker {
	c := &checker{src: src, ask: ask, tables: map[string]string{}, ctes: map[string]bool{}, volatile: d.volatile,
		catalog: d.catalog, choosers: d.choosers, used: map[string]bool{}}
	for _, t := range ask.Tables {
		c.tables[strings.ToLower(t.Name)] = t.Name
	}
	return c
}

func (c *checker) problem(offset int, hint, format string, args ...any) {
	if len(c.problems) >= problemsMax {
		return
	}
	start, end := c.src.span(max(offset, 0))
	c.problems = append(c.problems, script.QueryProblem{Severity: document.Error, Start: start, End: end,
		Message: fmt.Sprintf(format, args...), Hint: hint})
}

// check goes over a whole query.
func (c *checker) check(root node) {
	root[topMark] = true
	each(map[string]any(root), func(n node) {
		for _, e := range n.child("cte_map").list("map") {
			c.ctes[strings.ToLower(e.text("key"))] = true
		}
		if name := n.lower("cte_name"); name != "" {
			c.ctes[name] = true
		}
	})
	c.visit(map[string]any(root), selection{})
	for root.text("type") == "SET_OPERATION_NODE" {
		root = root.child("left")
	}
	for _, item := range root.list("select_list") {
		if item.text("class") == "STAR" {
			c.items = nil
			return
		}
		c.items = append(c.items, item.first())
	}
}

func (c *checker) visit(v any, in selection) {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			c.visit(item, in)
		}
	case map[string]any:
		n := node(v)
		if in = c.look(n, in); n.text("type") == "SHOW_REF" {
			return
		}
		for _, key := range sorted(v) {
			if n.text("type") == "TABLE_FUNCTION" && key == "function" {
				c.visit(n.child(key)["children"], in)
				continue
			}
			c.visit(v[key], in)
		}
	}
}

// look checks one node of the tree, and gives what those below it see.
func (c *checker) look(n node, in selection) selection {
	if n.child("sample") != nil {
		c.problem(n.first(), "", "a sample differs from run to run")
	}
	switch n.text("class") {
	case "":
	case "FUNCTION":
		c.function(n)
		return in
	case "WINDOW":
		c.refuseVolatile(n, n.lower("function_name"))
		c.window(n, in)
		return in
	case "COLLATE":
		c.oneThread = true // of texts that it makes equal one stands for all
		return in
	case "COLUMN_REF":
		c.column(n)
		return in
	case "PARAMETER":
		c.problem(c.src.start("$", "?"), "parameters of a script are written {name} and put in before",
			"a query takes no parameters")
		return in
	default:
		return in
	}
	switch n.text("type") {
	case "SELECT_NODE":
		in = c.selection(n)
		c.modifiers(n, in)
	case "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE":
		c.modifiers(n, selection{grouped: true})
	case "BASE_TABLE":
		c.table(n)
	case "TABLE_FUNCTION":
		c.tableFunction(n)
	case "SHOW_REF":
		c.problem(n.first(), "select from the tables in r.tables", "a query describes nothing: it gives rows")
	case "JOIN":
		switch n.text("ref_type") {
		case "POSITIONAL":
			c.problem(n.location(), "join on a key", "a positional join depends on the order in which rows arrive")
		case "ASOF":
			c.oneThread = true // of equal matches one is taken
		}
	}
	return in
}

// table checks a name in FROM.
func (c *checker) table(n node) {
	name := n.lower("table_name")
	known, listed := c.tables[name]
	switch {
	case n.text("schema_name") != "" || n.text("catalog_name") != "":
		c.problem(n.location(), "name a table of r.tables", "a query reads tables by their names alone")
	case listed:
		c.used[strings.ToLower(known)] = true
	case c.ctes[name] && c.catalog[name]: // out of its scope the name would be that of the catalog
		c.problem(n.location(), "give it another name", "%s is DuckDB's own", quote(n.text("table_name")))
	case c.ctes[name]:
	default:
		c.problem(n.location(), c.tableHint(n.text("table_name")), "there is no table %s here",
			quote(n.text("table_name")))
	}
}

func (c *checker) tableHint(name string) string {
	if slices.ContainsFunc(c.ask.Others, func(s string) bool { return strings.EqualFold(s, name) }) {
		return "add it to r.tables"
	}
	if strings.ContainsAny(name, "./\\") {
		return "read a file with " + scanFile + "('" + name + "')"
	}
	var names []string
	for _, t := range c.ask.Tables {
		names = append(names, t.Name)
	}
	for cte := range c.ctes {
		names = append(names, cte)
	}
	if near := similar.Nearest(name, names); near != "" {
		return "did you mean " + quote(near) + "?"
	}
	if near := similar.Nearest(name, c.ask.Others); near != "" {
		return "did you mean " + quote(near) + "? Add it to r.tables"
	}
	return "list the tables that the query reads in r.tables"
}

func (c *checker) tableFunction(n node) {
	f := n.child("function")
	switch name := f.lower("function_name"); {
	case name == scanFile:
		c.scanCall(f)
	case slices.Contains(rowFunctions(), name):
	default:
		c.problem(f.location(), "files are read with "+scanFile+"('url'); other functions: "+
			strings.Join(rowFunctions(),
				", "), "a query cannot read from %s", quote(name))
	}
}

// function checks a call, and whether its result depends on the order of rows.
func (c *checker) function(n node) {
	name := n.lower("function_name")
	c.refuseVolatile(n, name)
	if name == scanFile {
		c.problem(n.location(), "write it behind FROM", "%s is a table", scanFile)
	}
	c.aggregate(n, name)
}

// refuseVolatile reports a function whose result the arguments do not determine.
func (c *checker) refuseVolatile(n node, name string) {
	children, _ := n["children"].([]any)
	if c.volatile[name] || (name == "age" && len(children) == 1) {
		c.problem(n.location(), volatileHint(name), "%s gives something else in each run, and results must not",
			quote(name))
	}
}

func (c *checker) column(n node) {
	names, _ := n["column_names"].([]any)
	if len(names) != 1 {
		return
	}
	name, _ := names[0].(string)
	if !slices.Contains(valueKeywords(), strings.ToLower(name)) ||
		strings.HasPrefix(c.src.text[max(min(n.location(), len(c.src.text)), 0):], `"`) {
		return
	}
	for _, t := range c.ask.Tables {
		if slices.ContainsFunc(t.Fields, func(f *script.Field) bool { return strings.EqualFold(f.Name, name) }) {
			return
		}
	}
	c.problem(n.location(), volatileHint(name), "%s gives something else in each run, and results must not",
		quote(name))
}

func volatileHint(name string) string {
	name = strings.ToLower(name)
	switch {
	case strings.Contains(name, "time") || strings.Contains(name, "date") || name == "now" || name == "today" ||
		name == "age" || name == "ago":
		return "give the time as a parameter of the script, such as TIMESTAMP '{as_of}'"
	case strings.Contains(name, "uuid"), name == "random", name == "setseed", name == "reservoir_quantile":
		return "compute it from the row, for example with md5 or hash of its key"
	}
	return "give the value as a parameter of the script"
}

// modifiers checks ORDER BY, LIMIT and DISTINCT ON of a query.
func (c *checker) modifiers(n node, in selection) {
	var orders []node
	limit, on := -1, false
	distinct := false
	for _, m := range n.list("modifiers") {
		switch m.text("type") {
		case "ORDER_MODIFIER":
			orders = m.list("orders")
		case "LIMIT_MODIFIER", "LIMIT_PERCENT_MODIFIER":
			limit = max(m.first(), 0)
		case "DISTINCT_MODIFIER":
			distinct = true
			if targets := m.list("distinct_on_targets"); len(targets) > 0 {
				on, limit = true, max(m.first(), 0)
			}
		}
	}
	if limit >= 0 && len(orders) == 0 {
		what := "LIMIT"
		if on {
			what = "DISTINCT ON"
		}
		c.problem(limit, "add ORDER BY", "%s without ORDER BY takes any rows", what)
		return
	}
	switch {
	case len(orders) == 0:
	case n.truth(topMark):
		c.sorted = true
		c.topOrder(orders)
	case limit < 0:
	case in.grouped || (distinct && !on):
		c.oneThread = true
	default:
		c.tieOrder(orders, in)
	}
}

// selection gathers what the expressions of a SELECT see.
func (c *checker) selection(n node) selection {
	groups, _ := n["group_expressions"].([]any)
	out := selection{grouped: len(groups) > 0 || n.text("aggregate_handling") == "FORCE_AGGREGATES"}
	var add func(from node)
	add = func(from node) {
		name := from.text("alias")
		switch from.text("type") {
		case "JOIN":
			add(from.child("left"))
			if kind := from.text("join_type"); kind != "SEMI" && kind != "ANTI" {
				add(from.child("right"))
			}
			return
		case "BASE_TABLE":
			if name == "" {
				name = from.text("table_name")
			}
		case "TABLE_FUNCTION":
			if name == "" {
				name = from.child("function").text("function_name")
			}
		case "SUBQUERY", "EXPRESSION_LIST":
		default:
			return
		}
		if name == "" {
			out.grouped = true // nothing to call its rows by
			return
		}
		out.rows = append(out.rows, ident(name))
	}
	if from := n.child("from_table"); from != nil {
		add(from)
	}
	return out
}
