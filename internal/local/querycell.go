package local

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"
	"time"

	duckdb "github.com/duckdb/duckdb-go/v2"
)

// Nested is a list, struct or map as JSON.
type Nested string

// MarshalJSON gives what it holds.
func (n Nested) MarshalJSON() ([]byte, error) { return []byte(n), nil }

// typedCell is a cell whose text depends on more than the driver's value: on
// the column's type, or on values within it.
func typedCell(v any, typ string) (any, error) {
	k := moments{clock: timesOfDay(typ), zoned: instants(typ)}
	switch v.(type) {
	case []any, map[string]any, duckdb.OrderedMap, duckdb.Union:
		text, err := jsonText(within(v, k))
		return Nested(text), err
	}
	if raw, ok := v.([]byte); ok && typ == "UUID" && len(raw) == 16 {
		return fmt.Sprintf("%x-%x-%x-%x-%x", raw[:4], raw[4:6], raw[6:8], raw[8:10], raw[10:]), nil
	}
	return simpleCell(v, k), nil
}

// timesOfDay reports whether a type is, or is made of, times of day, which the
// driver gives as times of the first day of the year 1.
func timesOfDay(typ string) bool {
	typ = strings.ReplaceAll(typ, "TIMESTAMP WITH TIME ZONE", "")
	return strings.Contains(strings.ReplaceAll(typ, "TIMESTAMP", ""), "TIME")
}

// instants reports whether all that a type has of days and times are instants.
func instants(typ string) bool {
	rest := strings.NewReplacer("TIMESTAMP WITH TIME ZONE", "", "TIMESTAMPTZ", "").Replace(typ)
	return rest != typ && !strings.Contains(rest, "TIME") && !strings.Contains(rest, "DATE")
}

// moments say what the times of the driver are, which it gives alike.
type moments struct {
	clock bool // some are times of day
	zoned bool // all are instants
}

func simpleCell(v any, k moments) any {
	t, ok := v.(time.Time)
	if ok && k.zoned && infinity(t) == "" {
		return t.UTC().Format("2006-01-02 15:04:05.999999999+00")
	}
	if !ok || !k.clock || t.Year() != 1 || t.YearDay() != 1 {
		return plainCell(v)
	}
	if t.Location() != time.UTC {
		return t.Format("15:04:05.999999-07:00:00")
	}
	return t.Format("15:04:05.999999")
}

// within is a value inside a nested one.
func within(v any, k moments) any {
	switch v := v.(type) {
	case []any:
		list := make([]any, len(v))
		for i, e := range v {
			list[i] = within(e, k)
		}
		return list
	case map[string]any:
		fields := make(map[string]any, len(v))
		for name, e := range v {
			fields[name] = within(e, k)
		}
		return fields
	case duckdb.OrderedMap:
		var m orderedJSON
		for i, key := range v.Keys() {
			m.keys, m.values = append(m.keys, fmt.Sprint(within(key, k))), append(m.values, within(v.Values()[i], k))
		}
		return m
	case duckdb.Union:
		return within(v.Value, k)
	}
	v = simpleCell(v, k)
	if f, ok := v.(float64); ok && (math.IsNaN(f) || math.IsInf(f, 0)) {
		return JSONFloat(f)
	}
	return v
}

// jsonText is a value as JSON, with <, > and & as they are.
func jsonText(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
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

// JSONFloat is the text that stands in JSON for a float that it has no number for.
func JSONFloat(f float64) string {
	switch {
	case f > 0:
		return "Infinity"
	case f < 0:
		return "-Infinity"
	}
	return "NaN"
}

// orderedJSON is a map as a JSON object, its keys in their order.
type orderedJSON struct {
	keys   []string
	values []any
}

// MarshalJSON writes it.
func (m orderedJSON) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i := range m.keys {
		key, err := jsonText(m.keys[i])
		if err != nil {
			return nil, err
		}
		value, err := jsonText(m.values[i])
		if err != nil {
			return nil, err
		}
		b.Write(slices.Concat([]byte(map[bool]string{true: ","}[i > 0]), key, []byte(":"), value))
	}
	b.WriteByte('}')
	return b.Bytes(), nil
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
