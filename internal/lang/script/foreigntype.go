package script

import "strings"

// foreignType returns a script's name for a type of SQL, Python or Parquet, "" if there is none.
func foreignType(name string) string {
	name = strings.ToLower(strings.TrimSpace(name))
	base, digits, _ := strings.Cut(name, "(")
	switch strings.TrimSpace(base) {
	case "integer", "bigint", "smallint", "tinyint", "int2", "int4", "int8", "int16", "int32", "int64",
		"long", "number":
		return "int"
	case "double", "real", "float4", "float8", "float32", "float64", "double precision":
		return "float"
	case "varchar", "char", "text", "str", "nvarchar", "nchar", "character", "character varying", "utf8",
		"object", "uuid":
		return "string"
	case "boolean", "bit":
		return "bool"
	case "timestamp", "datetime64", "datetime2", "smalldatetime", "timestamp without time zone":
		return `datetime, with the layout of its texts: datetime 2006-01-02 15:04:05`
	case "timestamp with time zone", "timestamp_tz", "datetimeoffset":
		return "timestamptz"
	case "numeric", "dec", "money", "currency":
		if digits != "" {
			return "decimal(" + digits
		}
		return "decimal(18,4), or decimal2 for two digits behind the point"
	}
	return ""
}
