package generate

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"

	duckdb "github.com/duckdb/duckdb-go/v2"

	"thalweg/internal/base/fault"
	"thalweg/internal/base/sqltext"
)

// Limits of the engine that clones the templates.
const (
	engineMemoryMB   = 600
	maxSpillGB       = 20 // only one huge file needs to spill while it is sorted
	maxWriters       = 4
	parquetGroupRows = 122_880
)

// cloner holds the templates in an embedded engine and writes files from them.
type cloner struct {
	db      *sql.DB
	options Options
	writers int
}

// newCloner starts an engine that spills into spillDir.
func newCloner(ctx context.Context, o Options, spillDir string) (*cloner, error) {
	connector, err := duckdb.NewConnector("", nil)
	if err != nil {
		return nil, &fault.Error{Kind: fault.Environment, Message: "starting the engine", Err: err}
	}
	c := &cloner{db: sql.OpenDB(connector), options: o, writers: min(maxWriters, runtime.GOMAXPROCS(0))}
	for _, s := range []string{
		// One thread a query makes a file's bytes independent of the machine;
		// several files are written at a time instead.
		"SET threads = 1",
		fmt.Sprintf("SET memory_limit = %s", sqltext.String(fmt.Sprintf("%dMB", engineMemoryMB))),
		fmt.Sprintf("SET temp_directory = %s", sqltext.String(spillDir)),
		fmt.Sprintf("SET max_temp_directory_size = %s", sqltext.String(fmt.Sprintf("%dGB", maxSpillGB))),
		"SET autoinstall_known_extensions = false",
		"SET autoload_known_extensions = false",
		"CREATE TABLE account (account_id VARCHAR, fund INTEGER, ordinal BIGINT, scale BIGINT)",
		"CREATE TABLE trade (day DATE, ticker VARCHAR, qty BIGINT, cents BIGINT, " + placeColumns() + ")",
		"CREATE TABLE holding (day DATE, ticker VARCHAR, qty BIGINT, " + placeColumns() + ")",
		"CREATE TABLE price (ticker VARCHAR, day DATE, cents BIGINT)",
		"CREATE TABLE company (ticker VARCHAR, sector VARCHAR)",
	} {
		if err := c.exec(ctx, s); err != nil {
			return nil, errors.Join(err, c.close())
		}
	}
	return c, nil
}

func (c *cloner) close() error { return c.db.Close() }

func (c *cloner) exec(ctx context.Context, query string) error {
	if _, err := c.db.ExecContext(ctx, query); err != nil {
		if ctx.Err() != nil {
			return stopped(ctx)
		}
		return &fault.Error{Kind: fault.Environment, Message: "writing generated data", Detail: query, Err: err}
	}
	return nil
}

func stopped(ctx context.Context) error {
	return &fault.Error{Kind: fault.Canceled, Message: "generating was stopped", Err: context.Cause(ctx)}
}

// fill appends n rows to a table of the engine.
func (c *cloner) fill(ctx context.Context, table string, n int, row func(i int) []driver.Value) error {
	conn, err := c.db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("connecting to the engine: %w", err)
	}
	err = conn.Raw(func(dc any) error {
		a, err := duckdb.NewAppenderFromConn(dc.(driver.Conn), "", table)
		if err != nil {
			return err
		}
		for i := range n {
			if err := a.AppendRow(row(i)...); err != nil {
				return errors.Join(err, a.Close())
			}
		}
		return a.Close()
	})
	if err := errors.Join(err, conn.Close()); err != nil {
		return fmt.Errorf("filling the table of %s templates: %w", table, err)
	}
	return nil
}

// load puts templates and accounts into the engine. It returns how many
// transactions and holdings all files together will have.
func (c *cloner) load(ctx context.Context, m market, b book, accounts []account) (txns, holdings int64, err error) {
	tradePlaces, txns := placed(len(b.trades), accounts, func(i int) (int, day) {
		return b.trades[i].fund,
			b.trades[i].day
	})
	holdingPlaces, holdings := placed(len(b.holdings), accounts, func(i int) (int, day) {
		return b.holdings[i].fund,
			b.holdings[i].day
	})
	price := c.prices(m)
	err = errors.Join(
		c.fill(ctx, "account", len(accounts), func(i int) []driver.Value {
			a := accounts[i]
			return []driver.Value{a.id, int32(a.fund), int64(i), a.scale}
		}),
		c.fill(ctx, "trade", len(b.trades), func(i int) []driver.Value {
			t := b.trades[i]
			return append([]driver.Value{t.day.time(), t.ticker, t.qty, t.cents}, tradePlaces[i].values()...)
		}),
		c.fill(ctx, "holding", len(b.holdings), func(i int) []driver.Value {
			h := b.holdings[i]
			return append([]driver.Value{h.day.time(), h.ticker, h.qty}, holdingPlaces[i].values()...)
		}),
		c.fill(ctx, "price", len(price), func(i int) []driver.Value { return price[i] }),
		c.fill(ctx, "company", len(m.companies), func(i int) []driver.Value {
			return []driver.Value{m.companies[i].ticker, m.companies[i].sector}
		}),
	)
	return txns, holdings, err
}

func (c *cloner) prices(m market) [][]driver.Value {
	rows := make([][]driver.Value, 0, priceCount)
	for _, ticker := range m.tickers {
		for _, p := range m.prices[ticker] {
			rows = append(rows, []driver.Value{ticker, p.day.time(), p.cents})
		}
	}
	return rows
}

// file is one file to be written: a path and the rows that go into it.
type file struct{ path, query, format string }

// priceColumn reads cents as money. CSV drops the second zero, as the usual
// CSV writers do with floats ("18.2", "18.0").
func priceColumn(cents, format string) string {
	if format == FormatCSV {
		return "CAST(" + cents + " / 100 AS VARCHAR)"
	}
	return "CAST(" + cents + " / 100 AS DECIMAL(18, 2))"
}

// slices cuts the clones of a template table into n files of equal length
// (give or take a row), in the order of [place].
func (c *cloner) slices(kind, columns, template string, rows int64, n int, path func(string) string) []file {
	files := make([]file, n)
	number := rowNumber()
	for i := range files {
		lo := sqltext.Int(rows * int64(i) / int64(n))
		hi := sqltext.Int(rows * int64(i+1) / int64(n))
		files[i] = file{
			path:   path(c.options.partName(kind, i)),
			format: c.options.Format,
			// The first two conditions leave only the days that the file has a part of.
			query: "SELECT " + columns + " FROM " + template + " t JOIN account a ON a.fund = t.fund" +
				" WHERE t.day_first < " + hi + " AND t.day_end > " + lo +
				" AND " + number + " >= " + lo + " AND " + number + " < " + hi +
				" ORDER BY " + number,
		}
	}
	return files
}

// files lists everything that comes out of the engine.
func (c *cloner) files(txns, holdings int64, path func(string) string) []file {
	o := c.options
	files := []file{
		{path(o.accountsName()), "SELECT account_id, CAST(" + sqltext.String(PeriodStart) +
			" AS DATE) AS earliest_period_start FROM account", o.Format},
		{path(pricesName), "SELECT ticker, day AS d, " + priceColumn("cents", FormatCSV) +
			" AS price FROM price ORDER BY ticker, day", FormatCSV},
		{path(companiesName), "SELECT ticker, sector FROM company ORDER BY ticker", FormatCSV},
	}
	files = append(files, c.slices("holdings", "a.account_id, t.day AS d, t.ticker, t.qty * a.scale AS qty",
		"holding", holdings, o.HoldingFiles, path)...)
	return append(files, c.slices("txns", "t.day AS ts, a.account_id, t.ticker, t.qty * a.scale AS qty, "+
		priceColumn("t.cents", o.Format)+" AS price",
		"trade", txns, o.TxnFiles, path)...)
}

// write writes files, a few at a time, and stops all at the first failure.
func (c *cloner) write(parent context.Context, files []file) error {
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	work := make(chan file)
	var workers sync.WaitGroup
	for range c.writers {
		workers.Go(func() {
			for f := range work {
				if err := c.exec(ctx, copyStatement(f)); err != nil {
					cancel(err)
				}
			}
		})
	}
	for _, f := range files {
		if ctx.Err() != nil {
			break
		}
		work <- f
	}
	close(work)
	workers.Wait()
	if parent.Err() != nil {
		return stopped(parent)
	}
	return context.Cause(ctx)
}

func copyStatement(f file) string {
	options := []string{"FORMAT csv", "HEADER true"}
	if f.format == FormatParquet {
		options = []string{"FORMAT parquet", "COMPRESSION snappy", fmt.Sprintf("ROW_GROUP_SIZE %d", parquetGroupRows)}
	}
	return "COPY (" + f.query + ") TO " + sqltext.String(f.path) + " (" + strings.Join(options, ", ") + ")"
}
