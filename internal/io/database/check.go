package database

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"thalweg/internal/base/fault"
)

// CheckSource finds out whether a source could be read: the login, the table or query, the
// rights, and the columns that are wanted of it. No row is read.
func (c Client) CheckSource(ctx context.Context, src Source, wanted []string) error {
	s, err := c.open(ctx, src.URL)
	if err != nil {
		return err
	}
	defer s.Close()
	columns, err := s.columns(ctx, src)
	if p, ok := s.(*postgres); ok && err == nil {
		// what describes a query asks for no rights
		err = p.exec(ctx, "SELECT FROM (\n"+p.selectOf(src)+"\n) AS q LIMIT 0")
	}
	if err == nil {
		err = lacking(columns, wanted)
	}
	if err != nil {
		return c.placed(ctx, src.URL, err)
	}
	return nil
}

// lacking names the first column that is wanted and not there.
func lacking(columns []Column, wanted []string) error {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.Name
	}
	for _, w := range wanted {
		if !slices.Contains(names, w) {
			return &fault.Error{Kind: fault.Script, Message: fmt.Sprintf("there is no column %q", w), Hint: "it has " +
				strings.Join(names[:min(len(names), namesShown)], ", ")}
		}
	}
	return nil
}

// namesShown bounds how many columns a message lists.
const namesShown = 10

// CheckTarget finds out whether rows could be written to a table: the login, the table's
// columns and key, and in PostgreSQL the rights. Nothing is made, changed or locked.
func (c Client) CheckTarget(ctx context.Context, t Target) error {
	if err := c.checkTarget(ctx, t); err != nil {
		return c.placed(ctx, t.URL, err)
	}
	return nil
}

func (c Client) checkTarget(ctx context.Context, t Target) error {
	if Kind(t.URL) == Redis {
		return c.checkRedisTarget(ctx, t)
	}
	if Kind(t.URL) == SQLite {
		loc, err := c.may(t.URL)
		if err != nil {
			return err
		}
		if there, err := writableFile(c.sqliteFile(loc)); err != nil || !there {
			return err
		}
	}
	w, err := c.writer(ctx, t.URL)
	if err != nil {
		return err
	}
	defer w.Close()
	have, err := w.table(ctx, t.Table)
	if err != nil {
		return err
	}
	s := &staged{c: c, w: w, t: t}
	if len(have) > 0 {
		err = s.check(ctx, have)
	} else {
		_, err = s.definition()
	}
	if p, ok := w.(*postgresWriter); ok && err == nil {
		err = p.allowed(ctx, t, len(have) > 0)
	}
	return err
}

// TableThere reports whether a database has a table.
func (c Client) TableThere(ctx context.Context, at, table string) (bool, error) {
	if Kind(at) == SQLite { // whoever writes would make the file
		loc, err := c.may(at)
		if err != nil {
			return false, err
		}
		if _, err := os.Stat(c.sqliteFile(loc)); errors.Is(err, os.ErrNotExist) {
			return false, nil
		}
	}
	if Kind(at) == Redis {
		there, err := c.redisThere(ctx, at, table)
		if err != nil {
			return false, c.placed(ctx, at, err)
		}
		return there, nil
	}
	w, err := c.writer(ctx, at)
	if err != nil {
		return false, c.placed(ctx, at, err)
	}
	defer w.Close()
	have, err := w.table(ctx, table)
	if err != nil {
		return false, c.placed(ctx, at, err)
	}
	return len(have) > 0, nil
}

// homeless refuses a file that cannot be one: its directory is not there, or it is a directory.
func homeless(path string) error {
	dir := filepath.Dir(path)
	st, err := os.Stat(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return &fault.Error{Kind: fault.UserData, Message: fmt.Sprintf("the directory %s is not there", dir),
			Hint: "make it, or name a file elsewhere"}
	case err == nil && !st.IsDir():
		return &fault.Error{Kind: fault.UserData, Message: dir + " is a file and no directory",
			Hint: "name a file elsewhere"}
	}
	if st, err := os.Stat(path); err == nil && st.IsDir() {
		return &fault.Error{Kind: fault.UserData, Message: path + " is a directory", Hint: "name a file in it"}
	}
	return nil
}

// writableFile reports whether a file is there that can be written; one that is not there
// has to have a directory in which it can be made.
func writableFile(path string) (there bool, err error) {
	if err := homeless(path); err != nil {
		return false, err
	}
	_, err = os.Stat(path)
	there = !errors.Is(err, os.ErrNotExist)
	if !there {
		path = filepath.Dir(path)
	}
	if err := unix.Access(path, unix.W_OK); err != nil {
		return there, &fault.Error{Kind: fault.Environment, Message: path + " cannot be written", Err: err,
			Hint: "check that it is there, and its permissions"}
	}
	return there, nil
}

// allowed names the right that is wanted and not there.
func (w *postgresWriter) allowed(ctx context.Context, t Target, there bool) error {
	schema := ""
	if i := strings.LastIndexByte(t.Table, '.'); i >= 0 {
		schema = t.Table[:i+1]
	}
	records := w.path(schema + RecordsTable)
	wanted := map[string]string{Append: "INSERT", Replace: "SELECT, INSERT, TRUNCATE",
		Merge: "SELECT, INSERT, UPDATE"}[t.Mode]
	kept, err := w.table(ctx, schema+RecordsTable)
	if err == nil && there {
		err = w.rights(ctx, w.path(t.Table), wanted)
	}
	switch {
	case err != nil:
		return err
	case len(kept) > 0:
		if err := w.rights(ctx, records, "SELECT, INSERT, DELETE"); err != nil || there {
			return err
		}
	}
	name := strings.TrimSuffix(schema, ".")
	got, err := w.rows(ctx, "SELECT coalesce(nullif($1, ''), current_schema(), ''), "+
		"coalesce(has_schema_privilege(to_regnamespace(coalesce(nullif($2, ''), quote_ident(current_schema()))), "+
		"'CREATE'), false)::text",
		name, w.schema(name))
	if err != nil || got[0][1] == "true" {
		return err
	}
	what := w.path(t.Table)
	if there {
		what = records
	}
	return &fault.Error{Kind: fault.Script,
		Message: fmt.Sprintf("the table %s is not there, and the user may not make it in the schema %q",
			what, got[0][0]),
		Hint: fmt.Sprintf("GRANT CREATE ON SCHEMA %s, or let somebody else make the table",
			w.ident(cmp.Or(got[0][0], "public")))}
}

// schema is a schema's name as SQL has it.
func (w *postgresWriter) schema(name string) string {
	if name == "" {
		return ""
	}
	return w.path(name)
}

// rights looks for those that the user has to have.
func (w *postgresWriter) rights(ctx context.Context, table, wanted string) error {
	for right := range strings.SplitSeq(wanted, ", ") {
		ask := "has_any_column_privilege(to_regclass($1), $2)"
		if right == "TRUNCATE" || right == "DELETE" { // columns have none
			ask = "has_table_privilege(to_regclass($1), $2)"
		}
		enough := right
		if right == "TRUNCATE" { // rows are removed one by one then
			enough = "TRUNCATE, DELETE"
		}
		got, err := w.rows(ctx, "SELECT ("+ask+")::text", table, enough)
		if err != nil {
			return err
		}
		if got[0][0] != "true" {
			return &fault.Error{Kind: fault.Script, Message: fmt.Sprintf("the user may not %s in %s", right, table),
				Hint: fmt.Sprintf("GRANT %s ON %s", wanted, table)}
		}
	}
	return nil
}
