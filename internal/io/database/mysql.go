package database

import (
	"context"
	"crypto/tls"
	"database/sql"
	"errors"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/go-sql-driver/mysql"

	"thalweg/internal/base/address"
	"thalweg/internal/base/fault"
	"thalweg/internal/base/sqltext"
)

// mysql begins a transaction whose reads are of one moment, of tables that the server
// keeps in InnoDB.
func (c Client) mysql(ctx context.Context, loc address.Location) (session, error) {
	s, err := c.mysqlLogin(ctx, loc)
	if err != nil {
		return nil, err
	}
	for _, sql := range []string{"SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
		"START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY"} {
		if _, err := s.conn.ExecContext(ctx, sql); err != nil {
			s.Close()
			return nil, mysqlFault(err)
		}
	}
	return s, nil
}

func (c Client) mysqlConfig(loc address.Location) (*mysql.Config, error) {
	u, err := url.Parse(loc.URL)
	if err != nil {
		return nil, fault.New(fault.Script, "the address cannot be read")
	}
	cfg := mysql.NewConfig()
	cfg.User, cfg.DBName, cfg.Timeout = u.User.Username(), strings.Trim(u.Path, "/"), connectTimeout
	cfg.Net, cfg.Addr = "tcp", u.Host
	if u.Port() == "" {
		cfg.Addr = u.Host + ":3306"
	}
	if socket := u.Query().Get("socket"); socket != "" {
		cfg.Net, cfg.Addr = "unix", socket
	}
	if password, ok := u.User.Password(); ok {
		cfg.Passwd = password
	} else {
		cfg.Passwd = os.Getenv("MYSQL_PWD")
	}
	for name := range u.Query() {
		if name != "socket" && name != "ssl-mode" {
			f := fault.New(fault.Script, "?%s=… of the address means nothing", name)
			f.Hint = "there are ?socket=… and ?ssl-mode=…"
			return nil, f
		}
	}
	if c.Policy != nil {
		cfg.DialFunc = c.Policy.Dialer(connectTimeout, u.Host).DialContext
	}
	cfg.Collation = "utf8mb4_bin"
	cfg.Logger = &mysql.NopLogger{}
	cfg.ClientFoundRows = true // an UPDATE counts rows that have the values already
	cfg.Params = map[string]string{"time_zone": "'+00:00'",
		"sql_mode":          "'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION,NO_AUTO_VALUE_ON_ZERO'",
		"lock_wait_timeout": strconv.Itoa(lockSeconds)}
	if err := c.mysqlTLS(cfg, u); err != nil {
		return nil, err
	}
	return cfg, nil
}

// mysqlTLS verifies the server, unless it is on this machine or the address says otherwise.
func (c Client) mysqlTLS(cfg *mysql.Config, u *url.URL) error {
	mode := u.Query().Get("ssl-mode")
	if mode == "" && cfg.Net != "unix" && !local(u.Hostname()) {
		mode = "verify_identity"
	}
	switch strings.ToLower(mode) {
	case "", "disabled":
		return nil
	case "verify_identity":
		cfg.TLS = &tls.Config{ServerName: u.Hostname(), MinVersion: tls.VersionTLS12}
		return c.trust(cfg.TLS)
	}
	f := fault.New(fault.Script, "ssl-mode=%s is not known", mode)
	f.Hint = "verify_identity, which is the default, or disabled"
	return f
}

func (c Client) mysqlLogin(ctx context.Context, loc address.Location) (*sqlSession, error) {
	cfg, err := c.mysqlConfig(loc)
	if err != nil {
		return nil, err
	}
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, &fault.Error{Kind: fault.Script, Message: "the address cannot be used", Err: err,
			Hint: "write mysql://user@host:3306/database"}
	}
	db := sql.OpenDB(connector)
	login, cancel := context.WithTimeout(ctx, connectTimeout) // the driver's own is for the connection alone
	defer cancel()
	conn, err := db.Conn(login)
	if err != nil {
		_ = db.Close()
		return nil, mysqlFault(err)
	}
	s := &sqlSession{kind: MySQL, db: db, conn: conn, describe: mysqlColumn, fault: mysqlFault,
		source: func(src Source) string {
			if src.Table != "" {
				return "SELECT * FROM " + mysqlPath(src.Table)
			}
			text, _ := sqltext.Statement(src.Query, sqltext.MySQL)
			return text
		}}
	var id int64
	if err := conn.QueryRowContext(ctx, "SELECT connection_id()").Scan(&id); err != nil {
		s.Close()
		return nil, mysqlFault(err)
	}
	s.onCancel = func() { killMySQL(cfg, id) }
	return s, nil
}

// killMySQL ends a query at the server, which would go on when its connection is cut.
func killMySQL(cfg *mysql.Config, id int64) {
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	ctx, cancel := context.WithTimeout(context.Background(), cancelWait)
	defer cancel()
	_, _ = db.ExecContext(ctx, "KILL QUERY "+strconv.FormatInt(id, 10)) // it may have ended by itself
}

// mysqlIdent quotes a name as MySQL does.
func mysqlIdent(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }

func mysqlPath(name string) string {
	parts := strings.Split(name, ".")
	for i, p := range parts {
		parts[i] = mysqlIdent(p)
	}
	return strings.Join(parts, ".")
}

func mysqlColumn(t *sql.ColumnType) Column {
	c := Column{Type: "string"}
	nullable, known := t.Nullable()
	c.Required = known && !nullable
	switch name := t.DatabaseTypeName(); name {
	case "TINYINT", "SMALLINT", "MEDIUMINT", "INT", "BIGINT", "YEAR", "UNSIGNED TINYINT", "UNSIGNED SMALLINT",
		"UNSIGNED MEDIUMINT", "UNSIGNED INT":
		c.Type = "int"
	case "UNSIGNED BIGINT":
		c.Type = "decimal(20,0)"
	case "FLOAT", "DOUBLE":
		c.Type = "float"
	case "DECIMAL":
		if precision, scale, ok := t.DecimalSize(); ok {
			c.Type = "decimal(" + strconv.FormatInt(precision, 10) + "," + strconv.FormatInt(scale, 10) + ")"
		}
	case "DATE":
		c.Type, c.Layout = "date", layoutDay
	case "DATETIME", "TIMESTAMP":
		c.Type, c.Layout = "datetime", layoutTime
	}
	return c
}

// Numbers of MySQL's errors.
const (
	mysqlDenied      = 1044
	mysqlLoginDenied = 1045
	mysqlNoDatabase  = 1049
	mysqlThere       = 1050 // a table that is to be made
	mysqlLockTimeout = 1205
	mysqlDeadlock    = 1213
	mysqlSyntax      = 1064
	mysqlPacket      = 1153
)

// mysqlValues are numbers of errors about values whose states do not say so.
var mysqlValues = []uint16{
	1265, // the value is cut
	1364, // there is no value
	1366, // not of the type, or not in the character set
	3819, // a check
}

// mysqlGenerated are numbers of errors about columns that the server computes.
var mysqlGenerated = []uint16{1906, 3105}

func mysqlFault(err error) error {
	var known *fault.Error
	if errors.As(err, &known) {
		return err
	}
	var said *mysql.MySQLError
	if !errors.As(err, &said) {
		return connectFault(err)
	}
	f := &fault.Error{Kind: fault.Environment, Message: "MySQL: " + said.Message}
	switch state := string(said.SQLState[:]); {
	case slices.Contains(mysqlValues, said.Number):
		f.Kind = fault.UserData
	case slices.Contains(mysqlGenerated, said.Number):
		f.Kind, f.Hint = fault.Script, "leave the column out: the database computes it"
	case said.Number == mysqlNoDatabase:
		f.Hint = "check the database in the address, and before a point in the table's name"
	case said.Number == mysqlPacket:
		f.Hint = "let max_allowed_packet of the server be larger than the longest value"
	case said.Number == mysqlThere: // two sessions have made a table at the same moment
		f.Retryable = true
	case said.Number == mysqlDenied || said.Number == mysqlLoginDenied:
		f.Hint = "check user, password and database: passwords are taken from MYSQL_PWD, or a secret in the address"
	case said.Number == mysqlLockTimeout || said.Number == mysqlDeadlock:
		f.Retryable = true
	case strings.HasPrefix(state, "42"):
		f.Kind, f.Hint = fault.Script, "check the names of tables and columns, and the rights of the user"
		if said.Number == mysqlSyntax {
			f.Hint = onlySelect
		}
	case strings.HasPrefix(state, "22") || strings.HasPrefix(state, "23"):
		f.Kind = fault.UserData
	case strings.HasPrefix(state, "08"):
		f.Retryable = true
	}
	return f
}
