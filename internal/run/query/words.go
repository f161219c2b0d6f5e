package query

import (
	"slices"
	"strings"

	"thalweg/internal/base/similar"
	"thalweg/internal/run/engine"
)

// keywords of a query that people write wrong.
var keywords = []string{"select", "distinct", "from", "where", "group", "having", "order", "limit", "offset", "union",
	"except", "intersect",
	"join", "inner", "left", "right", "full", "outer", "cross", "using", "between", "like", "values", "qualify", "when",
	"then", "else", "over", "partition"}

// Syntax says in our words why a text is no SQL.
type Syntax struct {
	At         int // byte
	What, Hint string
	Table      string // a word of SQL that stands where a table is named; "": that is not it
}

// SyntaxWords says why a text is no SQL. position and message are DuckDB's, whose place is where its parser
// gave up: what is wrong stands before that in most cases.
func SyntaxWords(text string, position int, message string) Syntax {
	what, hint := engine.QueryWords(message)
	if hint != "" || !engine.ParserLost(message) {
		return Syntax{At: position, What: what, Hint: hint}
	}
	src := newSource(text)
	if len(src.tokens) == 0 {
		return Syntax{What: "there is no query", Hint: "write one SELECT, WITH, FROM or VALUES"}
	}
	ends := engine.ParserEnded(message) || position >= len(text)
	i := src.at(min(position, len(text)-1))
	if ends {
		i = len(src.tokens)
	}
	for _, j := range []int{i - 1, i} {
		if j >= 0 && j < len(src.tokens) && src.tokens[j].Word {
			if table, hint := reservedName(src, j); hint != "" {
				return Syntax{src.tokens[j].Start, quote(src.tokenText(j)) + " is a word of SQL, and no name", hint,
					table}
			}
			if hint := keywordHint(src, j); hint != "" {
				return Syntax{At: src.tokens[j].Start, What: "the query is not understood at " +
					quote(src.tokenText(j)), Hint: hint}
			}
		}
	}
	if open := src.open(i); open >= 0 && (ends || src.is(i, keywords...)) {
		return Syntax{At: src.tokens[open].Start, What: "this bracket is not closed",
			Hint: "close it where what belongs to it ends"}
	}
	if ends {
		last := src.tokens[len(src.tokens)-1]
		return Syntax{At: last.Start, What: "the query ends too early, behind " +
			quote(src.tokenText(len(src.tokens)-1)), Hint: "write what belongs behind it"}
	}
	hint = "the query is SQL as DuckDB understands it: see what stands before that, too"
	if src.is(i, ")", "]", "}") {
		hint = "see whether it has a bracket that it closes, and whether something is missing before it"
	}
	if src.is(i, "`") {
		hint = "names with other characters stand between \"…\""
	}
	return Syntax{At: max(position, 0), What: "the query is not understood at " + quote(src.tokenText(i)), Hint: hint}
}

// reserved are words of SQL that people take for names of columns and tables.
var reserved = []string{"all", "analyze", "asc", "case", "check", "collate", "column", "constraint", "create", "cross",
	"default", "desc", "describe",
	"do", "end", "fetch", "for", "foreign", "full", "group", "having", "in", "inner", "into", "join", "left", "like",
	"limit", "natural", "not",
	"offset", "on", "only", "order", "outer", "pivot", "primary", "qualify", "references", "returning",
	"right", "select", "show", "some",
	"table", "then", "to", "trailing", "union", "unique", "unpivot", "using", "when", "where", "window", "with"}

// reservedName is for a word of SQL that stands where a name belongs, of a table or of a column.
func reservedName(src *source, i int) (table, hint string) {
	word := src.tokenText(i)
	if !slices.Contains(reserved, strings.ToLower(word)) || src.is(i+1, "by") {
		return "", ""
	}
	switch {
	case src.is(i-1, "from", "join", "describe", "summarize") || src.is(i-1, ",") && src.listsTables(i):
		return word, "a table of that name is written in double quotes, " + quote(word)
	case src.is(i-1, "select", "distinct", "where", "and", "or", "on", "by", "having", ",", "(", ".",
		"=", "<", ">", "<=", ">=", "<>", "+", "-", "/", "||"):
		return "", "a column of that name is written in double quotes, " + quote(word)
	}
	return "", ""
}

// listsTables reports whether a comma before token i is one between tables: the last word
// that begins a clause is FROM.
func (s *source) listsTables(i int) bool {
	for j := i - 1; j >= 0; j-- {
		if s.is(j, "from", "join") {
			return true
		}
		if s.is(j, "select", "where", "by", "on", "having", "(") {
			return false
		}
	}
	return false
}

// keywordHint is for a word that is none of SQL, or of another dialect.
func keywordHint(src *source, i int) string {
	word := strings.ToLower(src.tokenText(i))
	switch {
	case word == "top":
		return "write LIMIT and the number at the end of the query"
	case (word == "order" || word == "group" || word == "partition") && !src.is(i+1, "by"):
		return "write " + strings.ToUpper(word) + " BY"
	case word == "case" || word == "end":
		return ""
	}
	for _, k := range keywords {
		if word == k {
			return ""
		}
	}
	if near := similar.Mistyped(word, keywords); near != "" {
		return "did you mean " + strings.ToUpper(near) + "?"
	}
	return ""
}

// open finds the last bracket before token i that nothing before it closes; -1: there is none.
func (s *source) open(i int) int {
	var stack []int
	for j := range min(i, len(s.tokens)) {
		switch {
		case s.is(j, "(", "[", "{"):
			stack = append(stack, j)
		case s.is(j, ")", "]", "}") && len(stack) > 0:
			stack = stack[:len(stack)-1]
		}
	}
	if len(stack) == 0 {
		return -1
	}
	return stack[len(stack)-1]
}

// foreign are functions of other databases, and how a query says it here.
var foreign = map[string]string{
	"nvl": "coalesce(a, b)", "isnull": "coalesce(a, b), or a IS NULL", "getdate": "now()", "sysdate": "now()",
	"iif":     "if(condition, a, b)",
	"dateadd": "day + INTERVAL 1 DAY", "to_char": "strftime(time, '%d.%m.%Y')",
	"to_date": "strptime(text, '%d.%m.%Y')::DATE", "str_to_date": "strptime(text, '%d.%m.%Y')",
	"date_format": "strftime(time, '%d.%m.%Y')", "charindex": "strpos(text, part)",
	"patindex": "regexp_matches(text, pattern)", "decode": "CASE a WHEN b THEN c END",
	"to_number": "CAST(text AS DECIMAL(18,2))", "convert": "CAST(a AS type)", "stuff": "string_agg(text, ',')",
	"group_concat": "string_agg(text, ',')",
	"try_convert":  "TRY_CAST(a AS type)", "countif": "count(*) FILTER (WHERE condition)",
	"sumif": "sum(a) FILTER (WHERE condition)", "len": "length(text)",
	"addmonths": "day + INTERVAL 1 MONTH", "add_months": "day + INTERVAL 1 MONTH",
	"trunc_date": "date_trunc('month', day)", "datepart": "date_part('year', day)",
}

// FunctionHint says how a function that is not there is called here.
func FunctionHint(name string, candidates []string) string {
	if strings.Contains(name, "`") {
		return "names with other characters stand between \"…\""
	}
	if strings.HasSuffix(name, "__postfix") {
		return "see whether a character is too much there"
	}
	if here := foreign[strings.ToLower(name)]; here != "" {
		return "here it is " + here
	}
	switch strings.ToLower(name) {
	case "row_number", "rank", "dense_rank", "ntile", "lag", "lead", "first_value", "last_value", "percent_rank",
		"cume_dist", "nth_value":
		return "it needs OVER (PARTITION BY … ORDER BY …) behind it"
	}
	if near := similar.Nearest(name, candidates); near != "" {
		return "did you mean " + quote(near) + "?"
	}
	return ""
}
