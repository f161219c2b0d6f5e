package inspect

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"thalweg/internal/base/fault"
	"thalweg/internal/base/sqltext"
	"thalweg/internal/run/engine"
)

// copyParquet writes all rows of a query to a file.
func copyParquet(ctx context.Context, in *engine.Instance, path, query string) error {
	query, err := exactInParquet(ctx, in, query)
	if err != nil {
		return err
	}
	return in.Exec(ctx, "COPY ("+query+"\n) TO "+sqltext.String(path)+" (FORMAT parquet, COMPRESSION zstd)")
}

// exactInParquet gives a query whose columns Parquet holds as they are. The engine
// writes whole numbers of 128 bits as floats, intervals without what is below a
// millisecond, and times of day without their zone: such numbers become decimals of as many digits as there are, which
// a larger one does not fit into, and what is left is refused.
func exactInParquet(ctx context.Context, in *engine.Instance, query string) (string, error) {
	names, types, err := columnsOf(ctx, in, query)
	if err != nil {
		return "", err
	}
	casts := make([]cast, len(names))
	for i, name := range names {
		if wide.MatchString(types[i]) {
			casts[i] = castTo("DECIMAL(38,0)")
		} else if at := inexact.FindString(quoted.ReplaceAllString(types[i], "")); at != "" {
			return "", &fault.Error{Kind: fault.Script, Place: fault.Place{Field: name},
				Message: fmt.Sprintf("column %q has a value of type %s, which Parquet cannot hold exactly", name, at),
				Hint:    "cast it, e.g. CAST(… AS VARCHAR), or take {{set format=json}}"}
		}
	}
	return recast(query, names, casts, false), nil
}

// cast makes SQL of a column; nil leaves it as it is.
type cast func(column string) string

func castTo(typ string) cast {
	return func(column string) string { return "CAST(" + column + " AS " + typ + ")" }
}

// recast gives a query whose columns are cast where there is a cast. always: also where there is none, so that more
// can be written behind the query.
func recast(query string, names []string, casts []cast, always bool) string {
	inner, outer := make([]string, len(names)), make([]string, len(names))
	changed := always
	for i, name := range names {
		// With its place: names that differ only in case are one name to the engine.
		inner[i] = sqltext.Ident(fmt.Sprintf("%s (column %d)", name, i+1))
		outer[i] = inner[i] + " AS " + sqltext.Ident(name)
		if casts[i] != nil {
			changed = true
			outer[i] = casts[i](inner[i]) + " AS " + sqltext.Ident(name)
		}
	}
	if !changed {
		return query
	}
	return "SELECT " + strings.Join(outer, ", ") + " FROM (" + query + "\n) AS q(" + strings.Join(inner, ", ") + ")"
}

var (
	wide    = regexp.MustCompile(`^U?HUGEINT$`)
	inexact = regexp.MustCompile(`\bU?HUGEINT\b|\bINTERVAL\b|\bTIME WITH TIME ZONE\b`)
	quoted  = regexp.MustCompile(`"(?:[^"]|"")*"|'(?:[^']|'')*'`) // names in types, and the words of enums
)

// columnsOf asks the engine for the columns of a query.
func columnsOf(ctx context.Context, in *engine.Instance, query string) (names, types []string, err error) {
	rows, err := in.Query(ctx, "SELECT column_name, column_type FROM (DESCRIBE "+query+"\n)")
	if err != nil {
		if own, refused := in.Query(ctx, query); refused != nil {
			err = refused // it shows the query as it was written
		} else {
			err = errors.Join(err, own.Close())
		}
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var name, kind string
		if err := rows.Scan(&name, &kind); err != nil {
			return nil, nil, err
		}
		names, types = append(names, name), append(types, kind)
	}
	return names, types, rows.Err()
}
