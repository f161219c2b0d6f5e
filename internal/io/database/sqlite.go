package database

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"thalweg/internal/base/address"
	"thalweg/internal/base/fault"
	"thalweg/internal/base/sqltext"
)

// busyMilliseconds limits the wait of SQLite for another process's transaction.
const busyMilliseconds = 60_000

// sqliteFile returns the path of the file of an address.
func (c Client) sqliteFile(loc address.Location) string {
	if c.Dir != "" && !filepath.IsAbs(loc.Path) {
		return filepath.Join(c.Dir, loc.Path)
	}
	return loc.Path
}

// sqlite begins a transaction that reads one state of a file.
func (c Client) sqlite(ctx context.Context, loc address.Location) (session, error) {
	path := c.sqliteFile(loc)
	if st, err := os.Stat(path); err != nil || !st.Mode().IsRegular() {
		f := &fault.Error{Kind: fault.UserData, Message: "there is no such file",
			Hint: "check the path behind sqlite://: sqlite:///absolute/path.db or sqlite://relative/path.db"}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			f.Message, f.Kind, f.Err = "the file cannot be read", fault.Environment, err
		}
		return nil, f
	}
	s, err := openSQLite(ctx, path, "ro")
	if err != nil {
		return nil, err
	}
	// The state that is read is that of the first reading.
	for _, sql := range []string{"BEGIN", "SELECT count(*) FROM sqlite_schema"} {
		if _, err := s.conn.ExecContext(ctx, sql); err != nil {
			s.Close()
			return nil, sqliteFault(err)
		}
	}
	return s, nil
}

func openSQLite(ctx context.Context, path, mode string) (*sqlSession, error) {
	at := url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath()}
	query := url.Values{"mode": {mode}, "_pragma": {"busy_timeout(" + strconv.Itoa(busyMilliseconds) + ")"}}
	at.RawQuery = query.Encode()
	db, err := sql.Open("sqlite", at.String())
	if err != nil {
		return nil, sqliteFault(err)
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		_ = db.Close()
		return nil, sqliteFault(err)
	}
	return &sqlSession{kind: SQLite, db: db, conn: conn, describe: sqliteColumn, fault: sqliteFault, plain: undeclared,
		source: func(src Source) string {
			if src.Table != "" {
				return "SELECT * FROM " + sqltext.Path(src.Table)
			}
			text, _ := sqltext.Statement(src.Query, sqltext.SQLite)
			return text
		}}, nil
}

// undeclared selects the same values without declared types, by which the driver would
// make times of texts.
func undeclared(query string, columns []Column) string {
	items := make([]string, len(columns))
	for i, c := range columns {
		items[i] = "+q." + sqltext.Ident(c.Name)
	}
	return "SELECT " + strings.Join(items, ", ") + " FROM (\n" + query + "\n) AS q"
}

// sqliteColumn goes by the type that a column was declared with. SQLite keeps to it only as
// far as it can: a value that is none of the type is an error when it is read. Times are
// texts or numbers there, and stay so.
func sqliteColumn(t *sql.ColumnType) Column {
	declared := strings.ToUpper(t.DatabaseTypeName())
	base, mod, _ := strings.Cut(declared, "(")
	base = strings.TrimSpace(base)
	c := Column{Type: "string"}
	switch {
	case strings.Contains(base, "INT"):
		c.Type = "int"
	case base == "BOOLEAN" || base == "BOOL":
		c.Type = "bool"
	case strings.Contains(base, "REAL") || strings.Contains(base, "FLOA") || strings.Contains(base, "DOUB"):
		c.Type = "float"
	case (base == "DECIMAL" || base == "NUMERIC" || base == "DECIMAL_TEXT") && strings.Contains(mod, ","):
		c.Type = "decimal(" + strings.ReplaceAll(mod, " ", "")
	}
	return c
}

func sqliteFault(err error) error {
	var known *fault.Error
	if errors.As(err, &known) {
		return err
	}
	f := &fault.Error{Kind: fault.Environment, Message: "SQLite", Err: err}
	var said *sqlite.Error
	if !errors.As(err, &said) {
		return f
	}
	switch said.Code() & 0xff {
	case sqlite3.SQLITE_ERROR:
		f.Kind = fault.Script
		switch text := said.Error(); { // which has one code for all of it
		case strings.Contains(text, "no such"), strings.Contains(text, "unknown database"):
			f.Hint = "check the names of tables and columns"
		case strings.Contains(text, "syntax error"):
			f.Hint = onlySelect
		}
	case sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_TOOBIG:
		f.Kind = fault.UserData
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		f.Retryable, f.Hint = true, "another process writes the file"
	case sqlite3.SQLITE_NOTADB:
		f.Kind, f.Hint = fault.UserData,
			"name a SQLite database, which begins with the text SQLite format 3 if it is not encrypted; files of CSV "+
				"and others are read without sqlite://"
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN:
		f.Hint = "check the file's permissions, and those of its directory"
	}
	return f
}
