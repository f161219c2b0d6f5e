package outputs

import (
	"context"
	"strings"

	"thalweg/internal/app/sources"
	"thalweg/internal/base/address"
	"thalweg/internal/io/database"
	"thalweg/internal/io/remote"
	"thalweg/internal/lang/script"
	"thalweg/internal/run/pipeline"
)

// CheckSource finds out whether a table or query of a database could be read, and has the
// columns that a script reads of it.
func CheckSource(ctx context.Context, client *remote.Client, s *script.Script, r *script.FileReader, url string) error {
	wanted := make([]string, len(r.Columns))
	for i, c := range r.Columns {
		wanted[i] = c.Header
	}
	return sources.Databases(client, s.Dir, s).CheckSource(ctx, database.Source{URL: databaseOf(s, url), Table: r.Table,
		Query: r.Query}, wanted)
}

// CheckTarget finds out whether a node could write to its table of a database.
func CheckTarget(ctx context.Context, client *remote.Client, s *script.Script, n *script.Node) error {
	return sources.Databases(client, s.Dir, s).CheckTarget(ctx, pipeline.DatabaseTarget(n, databaseOf(s, n.Out.URL)))
}

// tableThere lists the table that a node writes, if it is there.
func tableThere(ctx context.Context, client *remote.Client, s *script.Script, n *script.Node) ([]OutputThere, error) {
	there, err := sources.Databases(client, s.Dir, s).TableThere(ctx, databaseOf(s, n.Out.URL), n.Out.Target.Table)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err == nil && !there {
		return nil, nil
	}
	return []OutputThere{{URL: address.Redact(n.Out.URL), Bytes: -1, Mode: n.Out.Target.Mode, Unsure: err}}, nil
}

// databaseOf is the address of a database, with its secrets, that a table is in.
func databaseOf(s *script.Script, url string) string {
	at, _, _ := strings.Cut(url, "#")
	return s.Reveal(at)
}
