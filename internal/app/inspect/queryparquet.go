package inspect

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"thalweg/internal/app/instance"
	"thalweg/internal/base/fault"
	"thalweg/internal/base/sqltext"
	"thalweg/internal/run/engine"
)

// copyParquet writes all rows of a query to the file of opts.
func copyParquet(ctx context.Context, in *engine.Instance, home *instance.Instance, opts QueryOptions,
	query string) error {
	query, err := exactInParquet(ctx, in, query)
	if err == nil {
		err = in.Exec(ctx, "COPY ("+query+"\n) TO "+sqltext.String(opts.Parquet)+" (FORMAT parquet, COMPRESSION zstd)")
	}
	if err != nil {
		return queryFault(ctx, home, opts, err)
	}
	return nil
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
	casts := make([]string, len(names))
	for i, name := range names {
		if wide.MatchString(types[i]) {
			casts[i] = "DECIMAL(38,0)"
		} else if at := inexact.FindString(quoted.ReplaceAllString(types[i], "")); at != "" {
			return "", &fault.Error{Kind: fault.Script, Place: fault.Place{Field: name},
				Message: fmt.Sprintf("column %q has a value of type %s, which Parquet cannot hold exactly", name, at),
				Hint:    "cast it, e.g. CAST(… AS VARCHAR), or take {{set format=json}}"}
		}
	}
	return recast(query, names, casts), nil
}

// recast gives a query whose columns are cast to other types where there is one.
func recast(query string, names, casts []string) string {
	inner, outer := make([]string, len(names)), make([]string, len(names))
	changed := false
	for i, name := range names {
		// With its place: names that differ only in case are one name to the engine.
		inner[i] = sqltext.Ident(fmt.Sprintf("%s (column %d)", name, i+1))
		outer[i] = inner[i] + " AS " + sqltext.Ident(name)
		if casts[i] != "" {
			changed = true
			outer[i] = "CAST(" + inner[i] + " AS " + casts[i] + ") AS " + sqltext.Ident(name)
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
