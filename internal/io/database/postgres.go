package database

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"

	"thalweg/internal/base/address"
	"thalweg/internal/base/fault"
	"thalweg/internal/base/sqltext"
)

// cancelWait is the time that a server has to end a cancelled query before the connection is cut.
const cancelWait = 5 * time.Second

// endTimeout bounds saying goodbye.
const endTimeout = 2 * time.Second

// settings make texts that mean the same everywhere, and an order of rows that does not
// depend on other sessions. A machine that is gone frees what its session holds.
var settings = "SET lock_timeout = '" + strconv.Itoa(lockSeconds) +
	"s'; SET datestyle = 'ISO, YMD'; SET timezone = 'UTC'; SET intervalstyle = 'iso_8601'; SET bytea_output = 'hex'; " +
	"SET extra_float_digits = 1; SET synchronize_seqscans = off; SET max_parallel_workers_per_gather = 0; SET " +
	"statement_timeout = 0; " +
	"SET idle_in_transaction_session_timeout = 0; SET tcp_keepalives_idle = 30; SET tcp_keepalives_interval = 10; " +
	"SET tcp_keepalives_count = 3"

// postgres is a session with PostgreSQL.
type postgres struct {
	conn  *pgconn.PgConn
	login func(context.Context) (*postgres, error) // for another one like it

	begun    bool   // something has been read
	snapshot string // by which others see the same; "": they cannot
	server   string // which one it is, if snapshot is given
	version  int
	other    *postgres // sees the same
	alone    bool      // there can be no other
}

// beginReading begins a transaction that sees one moment.
const beginReading = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"

// postgres logs in. The password and certificates are found where psql finds them.
func (c Client) postgres(ctx context.Context, loc address.Location) (session, error) {
	p, err := c.login(ctx, loc)
	if err != nil {
		return nil, err
	}
	if err := p.exec(ctx, beginReading); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

func (c Client) login(ctx context.Context, loc address.Location) (*postgres, error) {
	u, err := url.Parse(loc.URL)
	if err != nil {
		return nil, fault.New(fault.Script, "the address cannot be read")
	}
	u.Scheme, u.Fragment = "postgres", ""
	query := u.Query()
	host := u.Hostname()
	if query.Has("host") {
		host = query.Get("host")
	}
	if !query.Has("sslmode") && os.Getenv("PGSSLMODE") == "" {
		mode := "verify-full"
		if local(host) {
			mode = "prefer"
		}
		query.Set("sslmode", mode)
	}
	u.RawQuery = query.Encode()
	cfg, err := pgconn.ParseConfig(u.String())
	if err != nil {
		return nil, &fault.Error{Kind: fault.Script, Message: "the address cannot be used",
			Err:  errors.New(loc.Hidden(err.Error())),
			Hint: "write postgres://user@host:5432/database, with ?sslmode=… behind it if need be"}
	}
	if err := c.trust(cfg.TLSConfig); err != nil {
		return nil, err
	}
	for _, other := range cfg.Fallbacks {
		if err := c.trust(other.TLSConfig); err != nil {
			return nil, err
		}
	}
	cfg.ConnectTimeout = connectTimeout
	if c.Policy != nil {
		cfg.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
			return c.Policy.Dialer(connectTimeout, u.Host).DialContext(ctx, network, addr)
		}
	}
	cfg.RuntimeParams["client_encoding"] = "UTF8"
	if cfg.RuntimeParams["application_name"] == "" {
		cfg.RuntimeParams["application_name"] = "thalweg"
	}
	cfg.BuildContextWatcherHandler = func(conn *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.CancelRequestContextWatcherHandler{Conn: conn, DeadlineDelay: cancelWait}
	}
	conn, err := pgconn.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, postgresFault(err)
	}
	p := &postgres{conn: conn, login: func(ctx context.Context) (*postgres, error) { return c.login(ctx, loc) }}
	if err := p.exec(ctx, settings); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// trust adds the authorities to what a connection verifies by.
func (c Client) trust(t *tls.Config) error {
	if t == nil || t.RootCAs != nil || c.Roots == nil {
		return nil
	}
	roots, err := c.Roots()
	t.RootCAs = roots
	return err
}

func (p *postgres) Close() {
	if p.other != nil {
		p.other.Close()
	}
	ctx, cancel := context.WithTimeout(context.Background(), endTimeout)
	defer cancel()
	_ = p.conn.Close(ctx) // the server rolls back, whatever becomes of it
}

func (p *postgres) exec(ctx context.Context, sql string) error {
	_, err := p.conn.Exec(ctx, sql).ReadAll()
	if err != nil {
		return postgresFault(err)
	}
	return nil
}

// rows runs a query of few rows.
func (p *postgres) rows(ctx context.Context, sql string, args ...string) ([][]string, error) {
	values := make([][]byte, len(args))
	for i, a := range args {
		values[i] = []byte(a)
	}
	res := p.conn.ExecParams(ctx, sql, values, nil, nil, nil).Read()
	if res.Err != nil {
		return nil, postgresFault(res.Err)
	}
	out := make([][]string, len(res.Rows))
	for i, row := range res.Rows {
		for _, v := range row {
			out[i] = append(out[i], string(v))
		}
	}
	return out, nil
}

// selectOf is the query of a source.
func (p *postgres) selectOf(src Source) string {
	if src.Table != "" {
		return "SELECT * FROM " + sqltext.Path(src.Table)
	}
	text, _ := sqltext.Statement(src.Query, sqltext.Postgres)
	return text
}

// copied renders what is copied of columns, and whether that is anything but all of them as they are.
func copied(columns []Column, millis []string) (items []string, changed bool) {
	for _, c := range columns {
		name := "q." + sqltext.Ident(c.Name)
		if slices.Contains(millis, c.Name) && strings.HasPrefix(c.Kind, "timestamp") {
			name = fmt.Sprintf("CASE WHEN date_trunc('milliseconds', %[1]s) <> %[1]s THEN %[1]s::text || %[2]s ELSE "+
				"%[1]s::text END AS %[3]s",
				name, sqltext.String(finer), sqltext.Ident(c.Name))
			changed = true
		}
		items = append(items, name)
	}
	if len(columns) == 1 { // a row of NULL would be an empty line, which readers of CSV pass over
		return append(items, "0 AS "+sqltext.Ident(padding)), true
	}
	return items, changed
}

// padding is a column that is there for no other reason than not to have one alone.
const padding = "__thalweg"

// columns describes a source without running it.
func (p *postgres) columns(ctx context.Context, src Source) ([]Column, error) {
	if err := one(src, Postgres); err != nil {
		return nil, err
	}
	d, err := p.conn.Prepare(ctx, "", p.selectOf(src), nil)
	if err != nil {
		return nil, postgresFault(err)
	}
	switch {
	case len(d.ParamOIDs) > 0:
		return nil, &fault.Error{Kind: fault.Script, Message: "the query has $1, for which there is no value",
			Hint: "write the value into the query, or a parameter of the script: {name}"}
	case len(d.Fields) == 0:
		return nil, fault.New(fault.Script, "the query gives no columns: it has to be a SELECT")
	case len(d.Fields) > ColumnsMax:
		return nil, tooWide(len(d.Fields))
	}
	out := make([]Column, len(d.Fields))
	var wanted []string
	for i, f := range d.Fields {
		out[i].Name = f.Name
		wanted = append(wanted, fmt.Sprintf("(%d, %d, %d, %d, %d)", i, f.DataTypeOID, f.TypeModifier, f.TableOID,
			f.TableAttributeNumber))
	}
	// A domain is what it is made of. Columns of a table alone tell whether they can be NULL.
	rows, err := p.rows(ctx, `SELECT v.i, format_type(v.typ, v.mod),
			CASE WHEN t.typtype = 'd' THEN format_type(t.typbasetype, t.typtypmod) ELSE format_type(v.typ, v.mod) END,
			coalesce(a.attnotnull AND c.relkind IN ('r', 'p'), false)
		FROM (VALUES `+strings.Join(wanted, ", ")+`) AS v(i, typ, mod, tab, att)
		JOIN pg_type t ON t.oid = v.typ::oid
		LEFT JOIN pg_class c ON c.oid = v.tab::oid
		LEFT JOIN pg_attribute a ON a.attrelid = v.tab::oid AND a.attnum = v.att ORDER BY v.i`)
	if err != nil {
		return nil, err
	}
	for _, r := range rows {
		i, err := strconv.Atoi(r[0])
		if err != nil {
			return nil, fmt.Errorf("describe a query: %w", err)
		}
		out[i].Kind, out[i].Required = r[1], r[3] == "t" && src.Table != ""
		out[i].Type, out[i].Layout = postgresType(r[2])
	}
	return out, nil
}

// Layouts of what the session's settings make of times. Fractions of seconds are read
// without being named.
const (
	layoutDay     = "2006-01-02"
	layoutTime    = "2006-01-02 15:04:05"
	layoutInstant = "2006-01-02 15:04:05-07"
)

// postgresType is the type that holds the values of one of PostgreSQL's exactly, and how
// its datetimes are written.
func postgresType(kind string) (name, layout string) {
	base, mod, _ := strings.Cut(kind, "(")
	switch base {
	case "smallint", "integer", "bigint":
		return "int", ""
	case "real", "double precision":
		return "float", ""
	case "boolean":
		return "bool", ""
	case "date":
		return "date", layoutDay
	case "timestamp without time zone", "timestamp":
		if strings.HasSuffix(kind, "with time zone") {
			return "datetime", layoutInstant
		}
		return "datetime", layoutTime
	case "timestamp with time zone":
		return "datetime", layoutInstant
	case "numeric":
		if mod != "" {
			return "decimal(" + mod, ""
		}
	}
	return "string", ""
}

// postgresFault classifies what the server or the connection says.
func postgresFault(err error) error {
	var known *fault.Error
	if errors.As(err, &known) {
		return err
	}
	var said *pgconn.PgError
	if !errors.As(err, &said) {
		return connectFault(err)
	}
	f := &fault.Error{Kind: fault.Environment, Message: "PostgreSQL: " + said.Message, Detail: said.Detail,
		Hint: said.Hint}
	switch class := said.Code[:min(2, len(said.Code))]; {
	case said.Code == "42501": // insufficient_privilege
		f.Hint = "give the user of the address the right to do so"
	case said.Code == "42P07", said.Code == "23505" && said.SchemaName == "pg_catalog":
		// two sessions have made a table at the same moment
		f.Retryable = true
	case said.Code == "42P01", said.Code == "3F000", said.Code == "42703":
		f.Kind = fault.Script
		if f.Hint == "" {
			f.Hint = "check the name, and the schema before it"
		}
	case class == "28" || class == "3D":
		f.Hint = "check user, password and database: passwords are taken from PGPASSWORD, ~/.pgpass, or a secret in " +
			"the address"
	case said.Code == "42601": // syntax_error
		f.Kind, f.Hint = fault.Script, cmp.Or(f.Hint, onlySelect)
	case class == "42" || class == "0A" || said.Code == "25006":
		f.Kind = fault.Script
	case class == "22" || class == "23":
		f.Kind = fault.UserData
		if said.Where != "" {
			f.Message += " (" + strings.SplitN(said.Where, "\n", 2)[0] + ")"
		}
	case said.Code == "55P03": // lock_not_available
		f.Retryable, f.Hint = true,
			cmp.Or(f.Hint, "another session has the table or its rows: SELECT pid, pg_blocking_pids(pid) FROM "+
				"pg_stat_activity tells which")
	case class == "08", class == "40", class == "53", said.Code == "55006", class == "57":
		f.Retryable = true
	}
	return f
}
