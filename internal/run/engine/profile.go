package engine

import (
	"database/sql"
	"fmt"
	"strconv"
	"strings"

	duckdb "github.com/duckdb/duckdb-go/v2"
)

// profileSettings make an instance keep the operator counts of its queries:
// the only way to learn how many records a CSV scan delivered without reading
// the file twice.
var profileSettings = []string{
	"PRAGMA enable_profiling = 'no_output'",
	`PRAGMA custom_profiling_settings = '{"OPERATOR_CARDINALITY": "true", "OPERATOR_NAME": "true"}'`,
}

// csvRows sums the rows that the CSV scans of the connection's last statement delivered.
func csvRows(conn *sql.Conn) (int64, error) {
	info, err := duckdb.GetProfilingInfo(conn)
	if err != nil {
		return 0, fmt.Errorf("read the query's profile: %w", err)
	}
	return scanRows(info), nil
}

func scanRows(info duckdb.ProfilingInfo) int64 {
	var n int64
	if strings.Contains(strings.ToUpper(info.Metrics["OPERATOR_NAME"]), "READ_CSV") {
		if v, err := strconv.ParseInt(info.Metrics["OPERATOR_CARDINALITY"], 10, 64); err == nil {
			n += v
		}
	}
	for _, child := range info.Children {
		n += scanRows(child)
	}
	return n
}
