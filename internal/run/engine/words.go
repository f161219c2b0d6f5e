package engine

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// ParserEnded reports whether DuckDB's parser came to the end of a text and wanted more.
func ParserEnded(message string) bool { return strings.HasSuffix(message, "at end of input") }

// ParserLost reports whether DuckDB's parser says only where it gave up.
func ParserLost(message string) bool { return strings.HasPrefix(message, "syntax error") }

// QueryWords says in our words what DuckDB says of a query, and what can be done
// about it. What it does not know stays as it is, and has no hint.
func QueryWords(message string) (what, hint string) {
	message = strings.TrimSpace(message)
	if m := overload.FindStringSubmatch(message); m != nil {
		return overloadWords(m[1], splitTypes(m[2]), message)
	}
	line := firstLine(message)
	for _, p := range phrases {
		m := p.said.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		args := make([]string, 0, len(m))
		for i, text := range m[1:] {
			if p.said.SubexpNames()[i+1] == "type" {
				text = typeWord(text)
			}
			args = append(args, text)
		}
		return fill(p.what, args), fill(p.hint, args)
	}
	return line, ""
}

// verb is a place in a phrase for a group.
var verb = regexp.MustCompile(`%(?:\[(\d+)\])?([sq])`)

// fill puts the groups of a phrase into a text.
func fill(text string, groups []string) string {
	next := 0
	return verb.ReplaceAllStringFunc(text, func(v string) string {
		m := verb.FindStringSubmatch(v)
		if n, err := strconv.Atoi(m[1]); err == nil {
			next = n - 1
		}
		group := groups[next]
		if next++; m[2] == "q" {
			return strconv.Quote(group)
		}
		return group
	})
}

// phrase maps a line of DuckDB's to our text. Groups of the pattern are filled into the text; those called
// type become names of our types.
type phrase struct {
	said *regexp.Regexp
	what string
	hint string
}

const (
	hintTry      = "TRY_CAST gives NULL where a value cannot be converted; or keep such rows out with WHERE"
	hintWider    = "convert to a type that holds it before: CAST(… AS HUGEINT), DECIMAL(38,0) or DOUBLE"
	hintGroup    = "add it to GROUP BY, or say which of its values is wanted: min(…), max(…), any_value(…)"
	hintSubquery = "keep one row of it with LIMIT 1 or an aggregate, or ask whether it is among them with IN"
	hintParts    = "known: year, quarter, month, week, day, hour, minute, second and others"
	hintDate     = "dates are written 2024-12-31; strptime(text, '%d.%m.%Y') reads other forms, try_strptime gives " +
		"NULL where it cannot"
	hintTime = "times are written 2024-12-31 23:59:59; strptime(text, '%d.%m.%Y %H:%M') reads other forms, " +
		"try_strptime gives NULL where it cannot"
)

var phrases = []phrase{
	{regexp.MustCompile(`Could not convert string ['"](.*)['"] to (?P<type>.+?) when casting from source column (.+)$`),
		"%q is not %s, to which column %s is converted", hintTry},
	{regexp.MustCompile(`Could not convert string ['"](.*)['"] to (?P<type>.+)$`), "%q is not %s",
		hintTry + "; texts are compared with texts"},
	{regexp.MustCompile(`Type (?P<type>\S+) with value (\S+) can't be cast because the value is out of range for the ` +
		`destination type (?P<type>.+?) when casting from source column (.+)$`),
		"%[2]s is more than %[3]s, to which %[4]s is converted, can hold", hintWider},
	{regexp.MustCompile(`Type (?P<type>\S+) with value (\S+) can't be cast because the value is out of range for the ` +
		`destination type (?P<type>.+)$`), "%[2]s is more than %[3]s can hold", hintWider},
	{regexp.MustCompile(`Casting value "(.*)" to type (?P<type>.+) failed: value is out of range`),
		"%s is more than %s can hold", "convert it to a decimal with more digits"},
	{regexp.MustCompile(`Overflow in (\w+) of (?P<type>\w+) \((.*)\)!?`),
		"the result of the %[1]s %[3]s is more than %[2]s can hold", hintWider},
	{regexp.MustCompile(`Overflow in (\w+) of (?P<type>DECIMAL\S*)`), "the result of a %s is more than %s can hold",
		hintWider},
	{regexp.MustCompile(`invalid date field format: "(.*)", expected`), "%q is not a date", hintDate},
	{regexp.MustCompile(`date field value out of range: "(.*)"`), "there is no date %q", hintDate},
	{regexp.MustCompile(`invalid timestamp field format: "(.*)", expected`), "%q is not a datetime", hintTime},
	{regexp.MustCompile(`timestamp field value out of range: "(.*)"`), "there is no datetime %q", hintTime},
	{regexp.MustCompile(`Could not parse string "(.*)" according to format specifier "(.*)"`),
		"the text %q is not written like %q", "try_strptime gives NULL where a text is written otherwise"},
	{regexp.MustCompile(`Date out of range: (\S+)`), "there is no date %s", "keep such values out with WHERE or CASE"},
	{regexp.MustCompile(`extract specifier "(.*)" not recognized`), "a time has no part %q", hintParts},
	{regexp.MustCompile(`^(?:.*Error: )?Division by zero in expression \((.*)\)`), "a division by zero: %s",
		"write nullif(divisor, 0): the result is NULL then"},
	{regexp.MustCompile(`More than one row returned by a subquery`),
		"a query in brackets that stands for one value has several rows", hintSubquery},
	{regexp.MustCompile(`[cC]olumn "?(.*?)"? must appear in the GROUP BY clause`),
		"column %q is neither in GROUP BY nor in an aggregate function", hintGroup},
	{regexp.MustCompile(`Ambiguous reference to column name "(.*)" \(use: ['"](.*?)['"] or ['"](.*?)['"]`),
		"several tables have a column %q", "say of which it is: %[2]s or %[3]s"},
	{regexp.MustCompile(`Referenced table "(.*)" not found`), "FROM names no table %q",
		"a table is called by its alias where it has one"},
	{regexp.MustCompile(`Type with name (\S+) does not exist`), "there is no type %q", ""},
	{regexp.MustCompile(`(WHERE|GROUP BY|HAVING|JOIN|ON) clause cannot contain aggregates`),
		"%s cannot have aggregate functions", "write the condition behind HAVING, which looks at groups"},
	{regexp.MustCompile(`(WHERE|GROUP BY|HAVING) clause cannot contain window functions`),
		"%s cannot have window functions", "write the condition behind QUALIFY"},
	{regexp.MustCompile(`aggregate function calls cannot be nested`), "an aggregate function stands in another one",
		"compute the inner one in a query of its own: FROM (SELECT …)"},
	{regexp.MustCompile(`Set operations can only apply to expressions with the same number of result columns`),
		"the queries beside UNION, EXCEPT or INTERSECT have different numbers of columns",
		"give each the same columns, in the same order; UNION ALL BY NAME puts them together by their names"},
	{regexp.MustCompile(`ORDER term out of range - should be between 1 and (\d+)`),
		"ORDER BY has a number that is no column: there are %s", "order by a column's name"},
	{regexp.MustCompile(`Subquery returns (\d+) columns - expected 1`),
		"a query in brackets that stands for one value has %s columns", "select only one"},
	{regexp.MustCompile(`Column "(.*)" does not exist on (left|right) side of join`),
		"the table to the %[2]s of JOIN has no column %[1]q", "write ON a.x = b.y where the names are different"},
	{regexp.MustCompile(`UNNEST\(\) can only be applied to lists, structs and NULL, not (?P<type>.+)`),
		"unnest takes lists and structs, not %s", ""},
	{regexp.MustCompile(`Could not find key "(.*)" in struct`), "the struct has no field %q", ""},
	{regexp.MustCompile(`unterminated (?:quoted string|string literal)`), "a quote ' is not closed",
		"texts stand between '…'; a ' in them is written twice"},
	{regexp.MustCompile(`unterminated quoted identifier`), `a quote " is not closed`,
		`names stand between "…", texts between '…'`},
	{regexp.MustCompile(`SELECT clause without selection list`), "SELECT has no columns",
		"name them, or write SELECT *"},
	{regexp.MustCompile(`Window functions are not supported here`), "a window function stands without OVER",
		"write OVER (PARTITION BY … ORDER BY …) behind it"},
	{regexp.MustCompile(`Chained comparisons are not supported`), "comparisons stand in a chain",
		"put them together with AND"},
	{regexp.MustCompile(`Value out of range$`), "a function's result is more than its type can hold", hintWider},
}

// overload is a function without a form for what it is given.
var overload = regexp.MustCompile(
	`(?:No function matches the given name and argument types '|Could not choose a best candidate function for the function call ")([^(]+)\((.*?)\)['"]\.`)

// signature is one of the forms that DuckDB lists.
var signature = regexp.MustCompile(`(?m)^\s+("?[\w+*/%-]+"?\(.*\)) -> `)

func overloadWords(name string, types []string, message string) (what, hint string) {
	for i, t := range types {
		types[i] = typeWord(t)
	}
	given := strings.Join(types, " and ")
	if strings.ContainsAny(name[:1], "+-*/%|<>=&^!~@") {
		hint = "convert one of them: CAST(… AS DOUBLE), DECIMAL(18,2), DATE"
		if name == "+" {
			hint += "; texts are joined with ||"
		}
		return fmt.Sprintf("%s cannot compute with %s", name, given), hint
	}
	if given == "" {
		given = "nothing"
	}
	hint = "convert what it is given with CAST(… AS …)"
	if forms := signature.FindAllStringSubmatch(message, -1); len(forms) > 0 && len(forms) <= 3 {
		var known []string
		for _, f := range forms {
			known = append(known, strings.NewReplacer(`"`, "", ", /", "").Replace(f[1]))
		}
		hint = "it is " + strings.Join(known, ", or ") + "; CAST(… AS …) converts what it is given"
	}
	return fmt.Sprintf("%s does not take %s", name, given), hint
}

// splitTypes takes a list of types apart, which may have commas of their own.
func splitTypes(list string) (out []string) {
	depth, from := 0, 0
	for i, c := range list {
		switch c {
		case '(':
			depth++
		case ')':
			depth--
		case ',':
			if depth == 0 {
				out, from = append(out, strings.TrimSpace(list[from:i])), i+1
			}
		}
	}
	if rest := strings.TrimSpace(list[from:]); rest != "" {
		out = append(out, rest)
	}
	return out
}

var typeWords = map[string]string{
	"VARCHAR": "a text", "STRING_LITERAL": "a text", "BOOL": "a bool", "BOOLEAN": "a bool", "DATE": "a date",
	"TIMESTAMP":                "a datetime",
	"TIMESTAMP WITH TIME ZONE": "a timestamptz", "INTERVAL": "an interval", "DOUBLE": "a float", "FLOAT": "a float",
	"TIME":   "a time of day",
	"BIGINT": "an int", "INT64": "an int", "INTEGER_LITERAL": "an int", "INTEGER": "an INTEGER (32 bits)",
	"INT32": "an INTEGER (32 bits)", "SMALLINT": "a SMALLINT (16 bits)",
	"INT16": "a SMALLINT (16 bits)", "TINYINT": "a TINYINT (8 bits)", "INT8": "a TINYINT (8 bits)",
	"HUGEINT": "a HUGEINT (128 bits)", "INT128": "a HUGEINT (128 bits)",
	"UINT64": "a UBIGINT", "UINT32": "a UINTEGER", "UINT16": "a USMALLINT", "UINT8": "a UTINYINT",
	"UINT128": "a UHUGEINT",
}

// typeWord names a type with its article.
func typeWord(t string) string {
	switch word, ok := typeWords[t]; {
	case ok:
		return word
	case strings.HasPrefix(t, "DECIMAL"):
		return "a " + strings.ToLower(t)
	case strings.HasSuffix(t, "[]"):
		return "a list"
	case strings.HasPrefix(t, "STRUCT("):
		return "a struct"
	}
	return "a " + t
}
