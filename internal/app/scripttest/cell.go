package scripttest

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"thalweg/internal/base/sqltext"
	"thalweg/internal/lang/expr"
)

// null stands for NULL where cells are compared and shown; no text looks like it, because texts are
// quoted.
const null = "NULL"

// canonical is a cell's value as it is compared and shown: texts in quotes,
// numbers and moments in one way of writing.
func (v *value) canonical(t expr.Type) (string, error) {
	if v.Kind != yaml.ScalarNode {
		return "", v.fault("expected a value")
	}
	if v.Tag == "!!null" {
		return null, nil
	}
	if t.Nested() {
		return "", v.fault("a test has no cells for lists and structs: test what a sql node takes out of them")
	}
	text, ok := canonicalText(t, v.Value)
	if !ok {
		return "", v.fault("%q is not a value of type %s", v.Value, t)
	}
	return text, nil
}

func canonicalText(t expr.Type, s string) (string, bool) {
	switch t {
	case expr.String:
		return strconv.Quote(s), true
	case expr.Int:
		n, err := strconv.ParseInt(s, 10, 64)
		return strconv.FormatInt(n, 10), err == nil
	case expr.Float:
		f, err := strconv.ParseFloat(s, 64)
		return strconv.FormatFloat(f, 'g', -1, 64), err == nil
	case expr.Bool:
		b, err := strconv.ParseBool(s)
		return strconv.FormatBool(b), err == nil
	case expr.DateTime:
		at, ok := parseTime(s)
		return at.Format(timeLayout), ok
	case expr.Date:
		at, err := time.Parse(time.DateOnly, s)
		return at.Format(time.DateOnly), err == nil && at.Year() > 0
	case expr.Instant:
		at, ok := parseTime(s)
		return at.Format(instantLayout), ok && at.Nanosecond()%1000 == 0
	}
	if t.IsDecimal() {
		return canonicalDecimal(t, s)
	}
	return "", false
}

// canonicalDecimal writes the digits behind the point that the type has; more are refused.
func canonicalDecimal(t expr.Type, s string) (string, bool) {
	const digitsMax = 40
	_, digits := t.Digits()
	d, ok := new(big.Rat).SetString(s)
	if !ok || len(s) > digitsMax || strings.ContainsAny(s, "/_xXeEpP") {
		return "", false
	}
	return d.FloatString(digits),
		new(big.Rat).Mul(d, new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(digits)), nil))).
			IsInt()
}

// timeLayout is the layout in which moments are shown, in UTC.
const timeLayout = "2006-01-02 15:04:05.000"

// instantLayout is the layout of moments with microseconds.
const instantLayout = "2006-01-02T15:04:05.000000Z"

func parseTime(s string) (time.Time, bool) {
	for _, layout := range []string{"2006-01-02", "2006-01-02 15:04:05", "2006-01-02T15:04:05", time.RFC3339} {
		if at, err := time.Parse(layout, s); err == nil {
			return at.UTC(), true
		}
	}
	return time.Time{}, false
}

// literal is the value as SQL of the type.
func (v *value) literal(t expr.Type) (string, error) {
	text, err := v.canonical(t)
	if err != nil {
		return "", err
	}
	switch {
	case text == null:
		return "CAST(NULL AS " + t.SQL() + ")", nil
	case t == expr.String:
		text = v.Value
	}
	return "CAST(" + sqltext.String(text) + " AS " + t.SQL() + ")", nil
}

// resultSQL renders a column of a result so that result can read it.
func resultSQL(t expr.Type, column string) string {
	switch t {
	case expr.DateTime:
		return "strftime(" + column + ", '%Y-%m-%d %H:%M:%S.%g')"
	case expr.Instant:
		return "strftime(make_timestamp(epoch_us(" + column + ")), '%Y-%m-%dT%H:%M:%S.%fZ')"
	case expr.Date:
		return "CAST(" + column + " AS VARCHAR)"
	}
	if t.IsDecimal() {
		return "CAST(" + column + " AS VARCHAR)"
	}
	return column
}

// result is the canonical form of a cell that a query gave.
func result(t expr.Type, cell any) string {
	switch c := cell.(type) {
	case nil:
		return null
	case float64:
		if math.IsNaN(c) || math.IsInf(c, 0) {
			return strings.ToLower(fmt.Sprint(c))
		}
		return strconv.FormatFloat(c, 'g', -1, 64)
	case string:
		if t == expr.String {
			return strconv.Quote(c)
		}
		return c
	}
	return fmt.Sprint(cell)
}
