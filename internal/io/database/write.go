package database

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"thalweg/internal/base/address"
	"thalweg/internal/base/fault"
)

// What becomes of the rows that a table has already.
const (
	Append  = "append"  // they stay
	Replace = "replace" // they go
	Merge   = "merge"   // those with a key that comes take its other values
)

// RecordsTable keeps what was committed, in the database and schema of the tables.
const RecordsTable = "thalweg_commits"

// keepDays is the time after which the record of a committed attempt may be removed.
const keepDays = 400

// Target is a table that is written.
type Target struct {
	URL     string // with its secrets, if there are some
	Table   string // may have a schema before a point
	Mode    string
	Key     []string // of Merge, and in Redis: columns
	Columns []TargetColumn
}

// TargetColumn is a column of the rows that come.
type TargetColumn struct {
	Name     string
	Type     string // the name of a script's type
	Nullable bool

	made  bool   // see tableColumn
	limit *limit // of the column there; nil: the server refuses what does not fit
}

// Attempt identifies one attempt at writing the rows of a batch.
type Attempt struct {
	Run     string // which no other has, in whatever state it is recorded
	Node    string
	Batch   int
	Attempt int64     // later ones are higher
	Digest  string    // of the rows
	Begun   time.Time // when the run did
	Rows    int64
}

// Staged are rows that lie in a transaction of the database.
type Staged interface {
	// Publish commits them, with a record of who did. It may be repeated.
	Publish(ctx context.Context) error
	// Discard takes them back. After Publish it does nothing.
	Discard(ctx context.Context) error
}

// Stage brings the rows of a file into a transaction: CSV without a header, in which NULL is
// nothing and texts have quotes. Nobody sees them before Publish, and if this process or its
// connection ends before, the server takes them back by itself; in Redis the next publication
// removes them.
//
// Rows that a dead attempt at the batch has committed, unknown to the run's state, are not
// written again.
func (c Client) Stage(ctx context.Context, t Target, a Attempt, path string) (Staged, error) {
	if Kind(t.URL) == Redis {
		s, err := c.stageRedis(ctx, t, a, path)
		if err != nil {
			return nil, c.placed(ctx, t.URL, err)
		}
		return s, nil
	}
	w, err := c.writer(ctx, t.URL)
	if err != nil {
		return nil, c.placed(ctx, t.URL, err)
	}
	s := &staged{c: c, w: w, t: t, a: a}
	if err := s.stage(ctx, path); err != nil {
		w.Close()
		return nil, c.placed(ctx, t.URL, err)
	}
	return s, nil
}

// writer is a session that writes, in one dialect of SQL.
type writer interface {
	Close()
	exec(ctx context.Context, sql string) error
	rows(ctx context.Context, sql string, args ...string) ([][]string, error)
	// count is exec, and tells how many rows the server says that it has put there.
	count(ctx context.Context, sql string) (int64, error)
	// load puts the rows of a file into a table, and tells how many the server has put there.
	load(ctx context.Context, table string, columns []TargetColumn, path string) (int64, error)
	ident(name string) string
	path(name string) string
	// typeOf returns the type that a column is created with; "": no type holds its values.
	typeOf(c TargetColumn, key bool) string
	// fits reports whether a column that is there holds the values of one that comes, exactly.
	fits(c TargetColumn, kind string) bool
	// limit returns the limit of texts of an existing column.
	limit(kind string) *limit
	// table describes a table; none: it is not there.
	table(ctx context.Context, name string) ([]tableColumn, error)
	// unique reports whether columns are a key of a table.
	unique(ctx context.Context, table string, key []string) (bool, error)
	records() recordsSQL
	// alone lets no other attempt replace or merge the rows of a table until the session
	// ends, where transactions do not see to that.
	alone(ctx context.Context, table string) error
	// transaction begins one. In MySQL it has to be after all statements that make tables.
	transaction(ctx context.Context, mode string) error
	// empty reports whether a table has no rows, and will have none but ours until the transaction ends.
	empty(ctx context.Context, table string) (bool, error)
	// direct reports whether rows can be loaded into a table as they come.
	direct(ctx context.Context, table string) (bool, error)
	// alike renders the columns of a key so that those are equal which the table's key takes for equal.
	alike(ctx context.Context, table string, key []string) ([]string, error)
	// merge puts the rows of one table, so many, into another by key, and tells how many are there then.
	merge(ctx context.Context, from string, t Target, rows int64) (int64, error)
	// clear removes all rows of a table.
	clear(ctx context.Context, table string) error
	traits() traits
}

// someIndexOf reports whether one of several indexes is of just the columns of a key. Each
// row has an index and one of its columns, none for what is no column.
func someIndexOf(rows [][]string, key []string) bool {
	indexes := map[string][]string{}
	for _, r := range rows {
		indexes[r[0]] = append(indexes[r[0]], r[1])
	}
	want := slices.Sorted(slices.Values(key))
	for _, columns := range indexes {
		if slices.Equal(slices.Sorted(slices.Values(columns)), want) {
			return true
		}
	}
	return false
}

// traits describes the peculiarities of a database system.
type traits struct {
	name         string
	created      string // behind the columns of a table that is made
	tablesCommit bool   // making a table ends a transaction
	// replacing goes by a second table, so that readers wait no longer than for a copy inside the database
	swift bool
}

// recordsSQL has the statements about records that differ.
type recordsSQL struct {
	create string // with the table's name as %s
	old    string // condition of what is removed
	lock   string // behind a SELECT that is followed by a change
}

// tableColumn is a column of a table that is there.
type tableColumn struct {
	name     string
	kind     string
	required bool // takes no NULL, and has no default
	made     bool // the database makes a value up where NULL comes
}

// staged is a transaction that is open, unless done.
type staged struct {
	c       Client
	w       writer
	t       Target
	a       Attempt
	records string // the table's name, quoted
	done    bool
}

func (s *staged) stage(ctx context.Context, path string) error {
	s.records = s.w.path(s.recordsName())
	if err := s.ensureRecords(ctx, s.recordsName()); err != nil {
		return err
	}
	there, err := s.committed(ctx, "")
	if err != nil {
		return err
	}
	if there {
		s.done = true
		s.w.Close()
		return nil
	}
	commits := s.w.traits().tablesCommit
	if s.t.Mode != Append {
		if err := s.w.alone(ctx, s.t.Table); err != nil {
			return err
		}
	}
	if !commits {
		if err := s.w.transaction(ctx, s.t.Mode); err != nil {
			return err
		}
	}
	have, err := s.w.table(ctx, s.t.Table)
	if err != nil {
		return err
	}
	created := len(have) == 0
	if created {
		err = s.create(ctx)
	} else {
		err = s.check(ctx, have)
	}
	if err == nil && commits {
		if s.t.Mode == Merge && !created {
			err = s.shadow(ctx)
		}
		if err == nil {
			err = s.w.transaction(ctx, s.t.Mode)
		}
	}
	if err != nil {
		return err
	}
	n, err := s.fill(ctx, path, created)
	if err == nil && n != s.a.Rows {
		err = lostFault(s.t.Table, n, s.a.Rows)
	}
	return err
}

// recordsName is the table of records in the schema of the table.
func (s *staged) recordsName() string {
	return s.t.Table[:strings.LastIndexByte(s.t.Table, '.')+1] + RecordsTable
}

// fill brings the rows in, and tells how many the server has put there.
func (s *staged) fill(ctx context.Context, path string, created bool) (int64, error) {
	table := s.w.path(s.t.Table)
	if created {
		return s.w.load(ctx, table, s.t.Columns, path)
	}
	empty, direct := false, true
	var err error
	if s.t.Mode != Merge {
		direct, err = s.w.direct(ctx, s.t.Table)
	}
	if err == nil && s.t.Mode == Replace {
		empty, err = s.w.empty(ctx, s.t.Table)
	}
	switch {
	case err != nil:
		return 0, err
	case s.t.Mode == Append && direct, empty && direct:
		return s.w.load(ctx, table, s.t.Columns, path)
	case s.t.Mode == Replace && !s.w.traits().swift:
		if err := s.w.clear(ctx, s.t.Table); err != nil {
			return 0, err
		}
		return s.w.load(ctx, table, s.t.Columns, path)
	}
	if !s.w.traits().tablesCommit {
		if err := s.shadow(ctx); err != nil {
			return 0, err
		}
	}
	if _, err := s.w.load(ctx, s.w.ident(shadowTable), s.t.Columns, path); err != nil {
		return 0, err
	}
	switch s.t.Mode {
	case Merge:
		return s.merge(ctx)
	case Replace:
		if err := s.w.clear(ctx, s.t.Table); err != nil {
			return 0, err
		}
	}
	names := s.names(s.t.Columns)
	return s.w.count(ctx, "INSERT INTO "+table+" ("+names+") SELECT "+names+" FROM "+s.w.ident(shadowTable))
}

// shadowTable is one of the session, where rows lie before they are put into the table.
const shadowTable = "thalweg_rows"

func (s *staged) shadow(ctx context.Context) error {
	return s.w.exec(ctx, "CREATE TEMPORARY TABLE "+s.w.ident(shadowTable)+" AS SELECT "+s.names(s.t.Columns)+" FROM "+
		s.w.path(s.t.Table)+" LIMIT 0")
}

func (s *staged) names(columns []TargetColumn) string {
	out := make([]string, len(columns))
	for i, c := range columns {
		out[i] = s.w.ident(c.Name)
	}
	return strings.Join(out, ", ")
}

// merge refuses rows that would hit each other, and puts the others in.
func (s *staged) merge(ctx context.Context) (int64, error) {
	keys := idents(s.w, s.t.Key)
	list, shadow := strings.Join(keys, ", "), s.w.ident(shadowTable)
	null, err := s.w.rows(ctx, "SELECT count(*) FROM "+shadow+" WHERE "+strings.Join(keys, " IS NULL OR ")+" IS NULL")
	if err != nil {
		return 0, err
	}
	if null[0][0] != "0" {
		return 0, &fault.Error{Kind: fault.UserData,
			Message: fmt.Sprintf("%s of the rows have NULL in the key %s: which row of the table that is "+
				"cannot be said",
				null[0][0], strings.Join(s.t.Key, ", ")), Hint: "leave them out with having, or name another key"}
	}
	alike, err := s.w.alike(ctx, s.t.Table, s.t.Key)
	if err != nil {
		return 0, err
	}
	twice, err := s.w.rows(ctx, "SELECT "+list+", count(*) FROM "+shadow+" GROUP BY "+strings.Join(alike, ", ")+
		" HAVING count(*) > 1 LIMIT 1")
	if err != nil {
		return 0, err
	}
	if len(twice) > 0 {
		return 0, twiceFault(s.t.Key, strings.Join(twice[0][:len(keys)], ", "))
	}
	return s.w.merge(ctx, shadow, s.t, s.a.Rows)
}

func twiceFault(key []string, value string) error {
	return &fault.Error{Kind: fault.UserData,
		Message: fmt.Sprintf("several rows have the key %s = %s: which of them counts cannot be said",
			strings.Join(key, ", "), value),
		Hint: "keep one row a key before, with a distinct_table or a sql node"}
}

// create makes the table.
func (s *staged) create(ctx context.Context) error {
	items, err := s.definition()
	if err != nil {
		return err
	}
	return s.w.exec(ctx, "CREATE TABLE "+s.w.path(s.t.Table)+" ("+strings.Join(items, ", ")+")"+s.w.traits().created)
}

// definition returns the columns and the key of a CREATE TABLE statement.
func (s *staged) definition() ([]string, error) {
	items := make([]string, 0, len(s.t.Columns)+1)
	for _, c := range s.t.Columns {
		key := slices.Contains(s.t.Key, c.Name)
		kind := s.w.typeOf(c, key)
		if kind == "" {
			f := fault.New(fault.Script, "column %s: %s has no type that holds a %s exactly", c.Name,
				s.w.traits().name, c.Type)
			f.Hint = "make a text of it in a sql node before, or leave it out with columns"
			return nil, f
		}
		if !c.Nullable || key {
			kind += " NOT NULL"
		}
		items = append(items, s.w.ident(c.Name)+" "+kind)
	}
	if len(s.t.Key) > 0 {
		items = append(items, "PRIMARY KEY ("+strings.Join(idents(s.w, s.t.Key), ", ")+")")
	}
	return items, nil
}

// check compares the columns that come with those of the table.
func (s *staged) check(ctx context.Context, have []tableColumn) error {
	var wrong []string
	known := map[string]bool{}
	s.t.Columns = slices.Clone(s.t.Columns)
	for n, c := range s.t.Columns {
		known[c.Name] = true
		i := slices.IndexFunc(have, func(h tableColumn) bool { return h.name == c.Name })
		other := slices.IndexFunc(have, func(h tableColumn) bool { return strings.EqualFold(h.name, c.Name) })
		switch {
		case i < 0 && other >= 0: // which SQLite and MySQL take for the same name
			known[have[other].name] = true
			wrong = append(wrong, fmt.Sprintf("column %s is called %s there: write columns: [{%[2]s: r.%[1]s}]", c.Name,
				have[other].name))
		case i < 0:
			wrong = append(wrong, fmt.Sprintf("it has no column %s (%s)", c.Name, cmp.Or(s.w.typeOf(c, false), c.Type)))
		case !s.w.fits(c, have[i].kind):
			wrong = append(wrong, fmt.Sprintf("column %s is %s there, which does not hold every %s; %s does", c.Name,
				have[i].kind, c.Type, cmp.Or(s.w.typeOf(c, false), "nothing")))
		case have[i].made:
			s.t.Columns[n].made = true
		case c.Type == "string":
			s.t.Columns[n].limit = s.w.limit(have[i].kind)
		}
	}
	for _, h := range have {
		if h.required && !known[h.name] {
			wrong = append(wrong, fmt.Sprintf("its column %s must have a value, and none comes", h.name))
		}
	}
	if len(wrong) > 0 {
		return &fault.Error{Kind: fault.Script,
			Message: fmt.Sprintf("table %s does not fit what is written: %s", s.t.Table,
				strings.Join(wrong, "; ")),
			Hint: "change the columns of the node, or the table with ALTER TABLE"}
	}
	if s.t.Mode != Merge {
		return nil
	}
	ok, err := s.w.unique(ctx, s.t.Table, s.t.Key)
	if err == nil && !ok {
		err = &fault.Error{Kind: fault.Script,
			Message: fmt.Sprintf("table %s has no unique index on %s, by which rows are merged", s.t.Table,
				strings.Join(s.t.Key, ", ")),
			Hint: uniqueIndex(s.w, s.t) + ", or name the key that it has"}
	}
	return err
}

// uniqueIndex is the statement that makes the index by which rows are merged.
func uniqueIndex(w writer, t Target) string {
	table := t.Table[strings.LastIndexByte(t.Table, '.')+1:]
	index, on := w.ident(table+"_"+strings.Join(t.Key, "_")), w.path(t.Table)
	if _, ok := w.(*sqliteWriter); ok { // where the schema is said of the index
		index, on = w.path(t.Table[:len(t.Table)-len(table)]+table+"_"+strings.Join(t.Key, "_")), w.ident(table)
	}
	return fmt.Sprintf("CREATE UNIQUE INDEX %s ON %s (%s)", index, on, strings.Join(idents(w, t.Key), ", "))
}

// ensureRecords makes the table of records.
func (s *staged) ensureRecords(ctx context.Context, name string) error {
	have, err := s.w.table(ctx, name)
	if err != nil {
		return err
	}
	if len(have) > 0 {
		return nil
	}
	err = s.w.exec(ctx, fmt.Sprintf(s.w.records().create, s.records))
	if err == nil {
		return nil
	}
	if have, again := s.w.table(ctx, name); again == nil && len(have) > 0 {
		return nil // somebody else has made it at the same moment
	}
	return err
}

const ofBatch = " WHERE run = %s AND node = %s AND batch = %d"

// where finds the batch's record. What it puts into SQL is made here or a node's name.
func (s *staged) where() string {
	return fmt.Sprintf(ofBatch, textSQL(s.a.Run), textSQL(s.nodeAndTable()), s.a.Batch)
}

// nodeAndTable is which output of the run it is.
func (s *staged) nodeAndTable() string {
	_, table, _ := strings.Cut(address.OfTable("", s.t.Table), "#")
	return s.a.Node + " > " + table
}

// textSQL is a text as all three dialects read it: a backslash, which MySQL takes for more, is none.
func textSQL(s string) string {
	return "'" + strings.NewReplacer("'", "''", `\`, "/").Replace(s) + "'"
}

// committed reports whether the batch's rows are in the table already.
func (s *staged) committed(ctx context.Context, lock string) (bool, error) {
	found, err := s.w.rows(ctx, "SELECT attempt, digest FROM "+s.records+s.where()+lock)
	if err != nil || len(found) == 0 {
		return false, err
	}
	attempt, err := strconv.ParseInt(found[0][0], 10, 64)
	if err != nil {
		return false, fmt.Errorf("read the record of a commit: %w", err)
	}
	switch {
	case s.t.Mode == Append && found[0][1] == s.a.Digest:
		return true, nil
	case attempt > s.a.Attempt:
		return false, fault.New(fault.Environment, "a later attempt has written the rows of the batch")
	case s.t.Mode == Append:
		return false, &fault.Error{Kind: fault.UserData,
			Message: fmt.Sprintf("the run has appended other rows to %s than come now", s.t.Table),
			Hint:    "remove those rows, and the run's row in " + RecordsTable + ", or use mode: merge or replace"}
	}
	return false, nil
}

// Publish implements Staged.
func (s *staged) Publish(ctx context.Context) error {
	if s.done {
		return nil
	}
	if err := s.publish(ctx); err != nil {
		return s.c.placed(ctx, s.t.URL, err)
	}
	s.done = true
	s.w.Close()
	return nil
}

func (s *staged) publish(ctx context.Context) error {
	sql := s.w.records()
	// looking for a record that is not there locks a gap in MySQL, for several at once, in which then none can put
	// its own
	if s.t.Mode == Replace {
		if err := s.w.alone(ctx, s.recordsName()); err != nil {
			return err
		}
	}
	there, err := s.committed(ctx, sql.lock)
	if err != nil {
		return err
	}
	if there { // a dead attempt, while the rows came
		return s.w.exec(ctx, "ROLLBACK")
	}
	if err := s.forget(ctx); err != nil {
		return retried(err, false)
	}
	stmts := []string{
		fmt.Sprintf("INSERT INTO %s (run, node, batch, attempt, rows_written, digest) VALUES (%s, %s, %d, %d, %d, %s)",
			s.records, textSQL(s.a.Run), textSQL(s.nodeAndTable()), s.a.Batch, s.a.Attempt, s.a.Rows,
			textSQL(s.a.Digest)),
		commit,
	}
	if s.t.Mode != Append {
		// An earlier attempt's. One that came since the look above stays, and the key refuses ours.
		stmts = slices.Insert(stmts, 0, "DELETE FROM "+s.records+s.where()+
			fmt.Sprintf(" AND attempt < %d", s.a.Attempt))
	}
	for _, stmt := range stmts {
		if err := s.w.exec(ctx, stmt); err != nil {
			return retried(err, stmt == commit)
		}
	}
	return nil
}

// forget removes records that are old. They are found by a reading that takes no locks, and
// removed by their keys: a DELETE that looks at all rows waits in MySQL for those that other
// batches have just inserted, and these for ours, which is a deadlock.
func (s *staged) forget(ctx context.Context) error {
	const atOnce = 100
	old, err := s.w.rows(ctx, fmt.Sprintf("SELECT run, node, batch FROM %s WHERE %s ORDER BY run, node, batch LIMIT %d",
		s.records, s.w.records().old, atOnce))
	if err != nil {
		return err
	}
	for _, r := range old {
		err := s.w.exec(ctx, fmt.Sprintf("DELETE FROM %s WHERE run = %s AND node = %s AND batch = %s", s.records,
			textSQL(r[0]), textSQL(r[1]), r[2]))
		if err != nil {
			return err
		}
	}
	return nil
}

// commit ends a transaction.
const commit = "COMMIT"

// retried is a failure at the commit: the next attempt finds out what became of it. But rows
// that a server refuses then, because it checks constraints at last, it refuses again.
func retried(err error, committing bool) error {
	var f *fault.Error
	if !errors.As(err, &f) || committing && f.Kind == fault.UserData {
		return err
	}
	again := *f
	again.Kind, again.Retryable = fault.Environment, true
	return &again
}

// Discard implements Staged.
func (s *staged) Discard(context.Context) error {
	if !s.done {
		s.done = true
		s.w.Close() // and the server rolls back
	}
	return nil
}

// writer logs in to write.
func (c Client) writer(ctx context.Context, at string) (writer, error) {
	loc, err := c.may(at)
	if err != nil {
		return nil, err
	}
	switch Kind(at) {
	case Postgres:
		p, err := c.login(ctx, loc)
		if err != nil {
			return nil, err
		}
		return &postgresWriter{p}, nil
	case MySQL:
		return c.mysqlWriter(ctx, loc)
	case SQLite:
		return c.sqliteWriter(ctx, loc)
	}
	return nil, fault.New(fault.Script, "%s cannot be written", address.Scheme(at))
}
