package local

import (
	"context"
	"errors"
	"os"

	"thalweg/internal/address"
	"thalweg/internal/database"
	"thalweg/internal/remote"
	"thalweg/internal/script"
)

// DatabaseColumns asks a database how many columns what a script reads of it has: that takes
// the login, and that it may be read.
func DatabaseColumns(ctx context.Context, client *remote.Client, s *script.Script, url string, r *script.FileReader) (int, error) {
	columns, err := Databases(client, "", s).Columns(ctx, database.Source{URL: s.Reveal(url), Table: r.Table, Query: r.Query})
	return len(columns), err
}

// DatabaseAnswers logs in where a script's node writes, and out again.
func DatabaseAnswers(ctx context.Context, client *remote.Client, s *script.Script, url string) error {
	return Databases(client, "", s).Check(ctx, s.Reveal(url))
}

// NewDatabaseFile is the file of SQLite that writing would make; "": the file is there, or it is another database.
func NewDatabaseFile(url string) string {
	loc, err := address.Parse(url)
	if err != nil || database.Kind(url) != database.SQLite {
		return ""
	}
	if _, err := os.Stat(loc.Path); !errors.Is(err, os.ErrNotExist) {
		return ""
	}
	return loc.Path
}
