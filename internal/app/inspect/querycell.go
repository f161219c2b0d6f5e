package inspect

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/duckdb/duckdb-go/v2"

	"thalweg/internal/app/view"
	"thalweg/internal/base/sqltext"
	"thalweg/internal/run/query"
)

// Nested is a list, struct, map or JSON value as JSON.
type Nested string

// MarshalJSON gives what it holds.
func (n Nested) MarshalJSON() ([]byte, error) { return []byte(n), nil }

// typedCell is a value of the driver as what can be printed, by its type: the driver
// gives times of day, instants and others alike.
func typedCell(v any, t query.SQLType) (any, error) {
	if t.Kind == query.Single && t.Name != "JSON" {
		return simpleCell(v, t.Name), nil
	}
	if v == nil {
		return nil, nil
	}
	text, err := view.JSON(within(v, t))
	return Nested(text), err
}

// simpleCell is a value that has no parts.
func simpleCell(v any, typ string) any {
	switch v := v.(type) {
	case time.Time:
		return timeCell(v, typ)
	case []byte:
		if typ == "UUID" && len(v) == 16 {
			return fmt.Sprintf("%x-%x-%x-%x-%x", v[:4], v[4:6], v[6:8], v[8:10], v[10:])
		}
	}
	return plainCell(v)
}

func timeCell(v time.Time, typ string) any {
	switch {
	case typ == "TIME", typ == "TIME_NS":
		return v.Format("15:04:05.999999999")
	case typ == "TIME WITH TIME ZONE":
		return v.Format("15:04:05.999999-07:00:00")
	case typ == "TIMESTAMP WITH TIME ZONE" && infinity(v) == "":
		return v.UTC().Format("2006-01-02 15:04:05.999999999+00")
	case strings.HasPrefix(typ, "TIMESTAMP") && infinity(v) == "": // midnight, too: a column has one form
		return v.Format("2006-01-02 15:04:05.999999999")
	}
	return plainCell(v)
}

// within is a value as JSON can carry it: of a nested type, or inside of one.
func within(v any, t query.SQLType) any {
	switch v := v.(type) {
	case []any:
		list := make([]any, len(v))
		for i, e := range v {
			list[i] = within(e, t.Members[0].Type)
		}
		return list
	case map[string]any:
		return structJSON(v, t)
	case duckdb.OrderedMap:
		var m view.Object
		for i, key := range v.Keys() {
			m.Names, m.Cells = append(m.Names, keyText(key, t.Members[0].Type)),
				append(m.Cells, within(v.Values()[i], t.Members[1].Type))
		}
		return &m
	case duckdb.Union:
		return within(v.Value, t.Members[max(0,
			slices.IndexFunc(t.Members, func(m query.SQLMember) bool { return m.Name == v.Tag }))].Type)
	case string:
		if t.Name == "JSON" && json.Valid([]byte(v)) { // the engine takes NaN for JSON, too
			return json.RawMessage(v)
		}
		return v
	}
	v = simpleCell(v, t.Name)
	if f, ok := v.(float64); ok && (math.IsNaN(f) || math.IsInf(f, 0)) {
		return view.FloatText(f)
	}
	return v
}

// keyText is a key of a map as the name of an object's member.
func keyText(key any, t query.SQLType) string {
	if text, ok := key.(string); ok {
		return text
	}
	return fmt.Sprint(within(key, t))
}

// structJSON is an object whose fields have the order of the type; an array if they have no names.
func structJSON(v map[string]any, t query.SQLType) any {
	var m view.Object
	for i, member := range t.Members {
		name := fieldName(member, i)
		m.Names, m.Cells = append(m.Names, name), append(m.Cells, within(v[name], member.Type))
	}
	if t.Members[0].Name == "" {
		return m.Cells
	}
	return &m
}

// fieldName is the name of a struct's field; row() gives none.
func fieldName(m query.SQLMember, at int) string {
	if m.Name != "" {
		return m.Name
	}
	return fmt.Sprintf("v%d", at+1)
}

// givable is the type as which the driver gives all that a value has, and whether it is another
// one: the driver reads JSON into floats, and knows neither VARIANT, nor keys of maps
// that have parts, nor structs without names.
func givable(t query.SQLType) (string, bool) {
	if t.Name == "JSON" || t.Name == "VARIANT" {
		return "VARCHAR", true
	}
	other := false
	parts := make([]string, len(t.Members))
	for i, m := range t.Members {
		changed := false
		parts[i], changed = givable(m.Type)
		if t.Kind == query.Struct || t.Kind == query.Union {
			parts[i] = sqltext.Ident(fieldName(m, i)) + " " + parts[i]
			changed = changed || m.Name == ""
		}
		if t.Kind == query.Map && i == 0 && m.Type.Kind != query.Single {
			parts[i], changed = "VARCHAR", true
		}
		other = other || changed
	}
	list := strings.Join(parts, ", ")
	switch t.Kind {
	case query.List:
		return list + t.Name[strings.LastIndexByte(t.Name, '['):], other
	case query.Struct:
		return "STRUCT(" + list + ")", other
	case query.Union:
		return "UNION(" + list + ")", other
	case query.Map:
		return "MAP(" + list + ")", other
	}
	return t.Name, false
}

// infinity is the text of the times that the driver gives for the infinite
// values of DuckDB's types, "" of all others: the largest number of days, seconds,
// milli-, micro- or nanoseconds, and the opposite. Each of these instants is
// outside of what another type can have.
func infinity(v time.Time) string {
	const day = 24 * 60 * 60
	if y := v.Year(); y > 1700 && y < 2200 { // nearly all
		return ""
	}
	for sign, text := range map[int64]string{1: "infinity", -1: "-infinity"} {
		for _, at := range []time.Time{time.UnixMicro(sign * math.MaxInt64), time.Unix(sign*math.MaxInt32*day, 0),
			time.Unix(0, sign*math.MaxInt64), time.UnixMilli(sign * math.MaxInt64), time.Unix(sign*math.MaxInt64, 0)} {
			if v.Equal(at) {
				return text
			}
		}
	}
	return ""
}

// blobText writes bytes as DuckDB does: those that are no plain character as \xAA.
func blobText(data []byte) string {
	var b strings.Builder
	for _, c := range data {
		if c < ' ' || c > '~' || c == '\\' || c == '\'' || c == '"' {
			fmt.Fprintf(&b, `\x%02X`, c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// intervalText writes the parts of an interval, which DuckDB keeps apart.
func intervalText(v duckdb.Interval) string {
	const second = 1_000_000
	var parts []string
	for _, p := range []struct {
		n    int64
		unit string
	}{{int64(v.Months / 12), "year"}, {int64(v.Months % 12), "month"}, {int64(v.Days), "day"}} {
		if p.n != 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.unit+map[bool]string{true: "s"}[p.n != 1 && p.n != -1]))
		}
	}
	if v.Micros != 0 || len(parts) == 0 {
		sign, rest := "", new(big.Int).Abs(big.NewInt(v.Micros)).Uint64()
		if v.Micros < 0 {
			sign = "-"
		}
		text := fmt.Sprintf("%s%02d:%02d:%02d", sign, rest/(3600*second), rest/(60*second)%60, rest/second%60)
		if f := rest % second; f != 0 {
			text += strings.TrimRight(fmt.Sprintf(".%06d", f), "0")
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, " ")
}

// wholeCell is a number if it fits 64 bits, else its digits.
func wholeCell(v *big.Int) any {
	if v.IsInt64() {
		return v.Int64()
	}
	return v.String()
}

// isText reports whether cells of a type can be any text.
func isText(typ string) bool {
	for _, other := range []string{"BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT",
		"UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT", "FLOAT", "DOUBLE", "DATE"} {
		if typ == other {
			return false
		}
	}
	return !strings.HasPrefix(typ, "DECIMAL") && !strings.HasPrefix(typ, "TIME") || strings.HasSuffix(typ, "]")
}

// Cell turns a value of a script's types, as the driver gives it, into what
// can be printed as text or JSON.
func Cell(v any) any { return plainCell(v) }

// plainCell turns the driver's values into what can be printed as text or JSON.
func plainCell(v any) any {
	switch v := v.(type) {
	case nil, string, bool, int64, float64:
		return v
	case int32:
		return int64(v)
	case int16:
		return int64(v)
	case int8:
		return int64(v)
	case uint32:
		return int64(v)
	case uint16:
		return int64(v)
	case uint8:
		return int64(v)
	case float32: // by its digits, not those that its bits have as a float64
		wide, err := strconv.ParseFloat(strconv.FormatFloat(float64(v), 'g', -1, 32), 64)
		if err != nil {
			return fmt.Sprint(v)
		}
		return wide
	case time.Time:
		if text := infinity(v); text != "" {
			return text
		}
		if v.Hour() == 0 && v.Minute() == 0 && v.Second() == 0 && v.Nanosecond() == 0 {
			return v.Format(time.DateOnly)
		}
		return v.Format("2006-01-02 15:04:05.999999999")
	case duckdb.Decimal:
		return decimalText(v)
	case duckdb.Interval:
		return intervalText(v)
	case []byte:
		return blobText(v)
	case uint64:
		return wholeCell(new(big.Int).SetUint64(v))
	case *big.Int:
		return wholeCell(v)
	case fmt.Stringer:
		return v.String()
	}
	return fmt.Sprint(v)
}

// decimalText writes all digits of the type, as files have them: 40.80.
func decimalText(d duckdb.Decimal) string {
	if d.Value == nil {
		return ""
	}
	digits := new(big.Int).Abs(d.Value).String()
	if missing := int(d.Scale) + 1 - len(digits); missing > 0 {
		digits = strings.Repeat("0", missing) + digits
	}
	if point := len(digits) - int(d.Scale); d.Scale > 0 {
		digits = digits[:point] + "." + digits[point:]
	}
	if d.Value.Sign() < 0 {
		digits = "-" + digits
	}
	return digits
}
