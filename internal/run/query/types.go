package query

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"thalweg/internal/lang/expr"
	"thalweg/internal/lang/script"
)

// decimalSpan matches DECIMAL(width,scale).
func decimalScale(sqlType string) (scale int, ok bool) {
	m := regexp.MustCompile(`^DECIMAL\(\d+, ?(\d+)\)$`).FindStringSubmatch(sqlType)
	if m == nil {
		return 0, false
	}
	scale, err := strconv.Atoi(m[1])
	return scale, err == nil
}

// fits lists the types of fields that hold all values of a DuckDB type; where
// only their range is smaller, each value is checked when the query runs.
func fits(sqlType string) []expr.Type {
	switch sqlType {
	case "VARCHAR", "UUID":
		return []expr.Type{expr.String}
	case "BOOLEAN":
		return []expr.Type{expr.Bool}
	case "TINYINT", "SMALLINT", "INTEGER", "UTINYINT", "USMALLINT", "UINTEGER":
		return []expr.Type{expr.Int, expr.Decimal, expr.Float}
	case "BIGINT", "UBIGINT", "HUGEINT", "UHUGEINT":
		return []expr.Type{expr.Int, expr.Decimal}
	case "FLOAT", "DOUBLE":
		return []expr.Type{expr.Float}
	case "DATE":
		return []expr.Type{expr.Date, expr.DateTime}
	case "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS":
		return []expr.Type{expr.DateTime}
	case "TIMESTAMP WITH TIME ZONE":
		return []expr.Type{expr.Instant}
	}
	if strings.HasPrefix(sqlType, "ENUM(") {
		return []expr.Type{expr.String}
	}
	if t := nestedType(sqlType); t != expr.Invalid {
		return []expr.Type{t}
	}
	switch scale, ok := decimalScale(sqlType); {
	case ok && scale == 0:
		return []expr.Type{expr.Decimal, expr.Int}
	case ok && scale <= 2:
		return []expr.Type{expr.Decimal}
	case ok:
		digits, _ := strconv.Atoi(strings.TrimPrefix(strings.Split(sqlType, ",")[0], "DECIMAL("))
		if t, known := expr.ParseType(expr.DecimalOf(max(digits, scale+1), scale).String()); known {
			return []expr.Type{t}
		}
	}
	return nil
}

// advice says what to write for a type that no field has.
func advice(name, sqlType string) string {
	to := "CAST(… AS VARCHAR)"
	switch _, isDecimal := decimalScale(sqlType); {
	case isDecimal:
		to = "CAST(round(…, 2) AS DECIMAL(18,2)) or CAST(… AS DOUBLE)"
	case strings.HasPrefix(sqlType, "TIMESTAMP"):
		to = "date_trunc('millisecond', CAST(… AS TIMESTAMP))"
	case strings.HasSuffix(sqlType, "[]"):
		to = "array_to_string(…, ',') or CAST(… AS VARCHAR)"
	case strings.HasPrefix(sqlType, "STRUCT"):
		to = "a column for each of its members, or CAST(… AS VARCHAR)"
	}
	return fmt.Sprintf("write %s AS %s", to, name)
}

func column(name, sqlType string) script.QueryColumn {
	c := script.QueryColumn{Name: name, SQLType: sqlType, Fits: fits(sqlType)}
	if len(c.Fits) == 0 {
		c.Advice = advice(name, sqlType)
	}
	return c
}
