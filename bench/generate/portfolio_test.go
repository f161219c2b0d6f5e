package generate

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	_ "github.com/duckdb/duckdb-go/v2"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"thalweg/internal/base/fault"
	"thalweg/internal/base/sqltext"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func generated(t *testing.T, o Options) Summary {
	t.Helper()
	sum, err := Portfolio(t.Context(), o)
	require.NoError(t, err)
	return sum
}

// digests maps each file of dir to a hash of its bytes.
func digests(t *testing.T, dir string) map[string][sha256.Size]byte {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	out := map[string][sha256.Size]byte{}
	for _, e := range entries {
		if !e.IsDir() {
			text, err := os.ReadFile(filepath.Join(dir, e.Name()))
			require.NoError(t, err)
			out[e.Name()] = sha256.Sum256(text)
		}
	}
	return out
}

// open loads the data set into tables accounts, txns, holdings, prices and
// companies, and returns a function that queries one column as text.
func open(t *testing.T, p Params) func(q string) []string {
	t.Helper()
	db, err := sql.Open("duckdb", "")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	db.SetMaxOpenConns(1)
	for name, urls := range map[string][]string{
		"accounts": p.AccountsURLs, "txns": p.TxnsURLs, "holdings": p.HoldingsURLs,
		"prices": {p.PricesFile}, "companies": {p.CompaniesFile},
	} {
		read := "read_csv"
		if filepath.Ext(urls[0]) == ".parquet" {
			read = "read_parquet"
		}
		_, err := db.Exec("CREATE TABLE " + name + " AS SELECT * FROM " + read + "(" + sqltext.Strings(urls) + ")")
		require.NoError(t, err)
	}
	return func(q string) []string { return column(t, db, q) }
}

func column(t *testing.T, db *sql.DB, q string) []string {
	t.Helper()
	rows, err := db.Query("SELECT CAST(v AS VARCHAR) FROM (" + q + ") AS q(v)")
	require.NoError(t, err)
	defer func() { require.NoError(t, rows.Close()) }()
	var out []string
	for rows.Next() {
		var v sql.NullString
		require.NoError(t, rows.Scan(&v))
		out = append(out, v.String)
	}
	require.NoError(t, rows.Err())
	return out
}

func readParams(t *testing.T, sum Summary) Params {
	t.Helper()
	text, err := os.ReadFile(sum.Params)
	require.NoError(t, err)
	var p Params
	require.NoError(t, json.Unmarshal(text, &p))
	return p
}

func TestPortfolioKeepsItsInvariants(t *testing.T) {
	t.Parallel()
	for _, format := range []string{FormatCSV, FormatParquet} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			sum := generated(t, Options{Accounts: 12, Dir: filepath.Join(t.TempDir(), "d"), Format: format,
				HoldingFiles: 3, Seed: 7})
			p := readParams(t, sum)
			require.Len(t, p.TxnsURLs, 12)
			require.Len(t, p.HoldingsURLs, 3)
			require.Equal(t, Summary{Accounts: 12, Txns: 176_900, TxnsInPeriod: sum.TxnsInPeriod, Holdings: 8_600,
				Prices: priceCount, Companies: companyCount, Files: 3 + 12 + 3, Bytes: sum.Bytes,
				Params: sum.Params}, sum)
			require.InDelta(t, 0.9, float64(sum.TxnsInPeriod)/float64(sum.Txns), 0.05,
				"some transactions lie before the period")

			query := open(t, p)
			for _, c := range []struct{ name, query, want string }{
				{"transactions", "SELECT count(*) FROM txns", "176900"},
				{"in period", "SELECT count(*) FROM txns WHERE ts > DATE '2020-12-31' AND ts <= DATE '2022-12-31'",
					strconv.FormatInt(sum.TxnsInPeriod, 10)},
				{"on the last day", "SELECT count(*) FROM txns WHERE ts = DATE '2022-12-31'", "882"},
				{"first day", "SELECT min(ts) FROM txns", "2020-10-16"},
				{"last day", "SELECT max(ts) FROM txns", "2022-12-31"},
				{"zero quantities", "SELECT count(*) FROM txns WHERE qty = 0", "0"},
				{"prices of at least a cent", "SELECT count(*) FROM txns WHERE price < 0.01", "0"},
				{"one trade a day", "SELECT count(*) FROM (SELECT 1 FROM txns GROUP BY account_id, ticker, ts HAVING " +
					"count(*) > 1)", "0"},
				{"holdings", "SELECT count(*) FROM holdings", "8600"},
				{"negative holdings", "SELECT count(*) FROM holdings WHERE qty < 0", "0"},
				{"some are empty", "SELECT count(*) > 0 FROM holdings WHERE qty = 0", "true"},
				{"most are not", "SELECT avg(CAST(qty > 0 AS INTEGER)) > 0.6 FROM holdings WHERE d > DATE '2020-09-30'",
					"true"},
				{"quarter ends", "SELECT string_agg(d, ' ' ORDER BY d) FROM (SELECT DISTINCT d FROM holdings)",
					"2020-09-30 2020-12-31 2021-03-31 2021-06-30 2021-09-30 2021-12-31 2022-03-31 2022-06-30 " +
						"2022-09-30 2022-12-31"},
				{"holdings are running sums", `SELECT count(*) FROM (
					SELECT h.qty, coalesce(sum(t.qty), 0) AS traded FROM holdings h
					LEFT JOIN txns t ON t.account_id = h.account_id AND t.ticker = h.ticker AND t.ts <= h.d
					GROUP BY h.account_id, h.ticker, h.d, h.qty) WHERE qty <> traded`, "0"},
				{"never sold short", `SELECT count(*) FROM (SELECT sum(qty) OVER (PARTITION BY account_id, ticker ` +
					`ORDER BY ts) AS held FROM txns) WHERE held < 0`, "0"},
				{"an opening for each traded ticker",
					`SELECT count(*) FROM (SELECT DISTINCT account_id, ticker FROM txns EXCEPT SELECT account_id, ticker FROM holdings)`, "0"},
				{"accounts", "SELECT string_agg(DISTINCT earliest_period_start) || count(*) FROM accounts",
					"2020-12-3112"},
				{"accounts trade", "SELECT count(*) FROM (SELECT account_id FROM txns INTERSECT SELECT account_id " +
					"FROM accounts)", "12"},
				{"tickers", "SELECT count(DISTINCT ticker) FROM txns", "250"},
				{"prices", "SELECT count(*) FROM prices", "41857"},
				{"one price a day", "SELECT count(DISTINCT (ticker, d)) FROM prices", "41857"},
				{"clones of a fund differ",
					"SELECT count(DISTINCT s) > 6 FROM (SELECT sum(qty) AS s FROM txns GROUP BY account_id)", "true"},
				{"companies", "SELECT count(DISTINCT ticker) FROM companies", "256"},
				{"sectors", "SELECT count(DISTINCT sector) FROM companies", "8"},
				{"each traded ticker has a company",
					"SELECT count(*) FROM (SELECT ticker FROM txns EXCEPT SELECT ticker FROM companies)", "0"},
				{"prices around all dates",
					`SELECT count(*) FROM (SELECT ticker, min(ts) AS lo, max(ts) AS hi FROM txns GROUP BY ticker) t
					LEFT JOIN (SELECT ticker, min(d) AS lo, max(d) AS hi, count(*) AS n FROM prices GROUP BY ticker) p USING (ticker)
					WHERE coalesce(p.lo > t.lo OR p.hi < t.hi OR p.hi < DATE '2022-12-31' OR n < 2, true)`, "0"},
				{"no packing character in names", "SELECT count(*) FROM companies WHERE regexp_matches(ticker, " +
					"'[|\",\\\\]')", "0"},
			} {
				require.Equal(t, []string{c.want}, query(c.query), c.name)
			}
		})
	}
}

var lineForm = regexp.MustCompile(`^\d{4}-\d\d-\d\d,FUND-\d{6},[A-Z]\d{3}( UX)?,-?\d+,\d+\.\d{1,2}$`)

func TestFilesAreInDateOrderAndEvenlyFilled(t *testing.T) {
	t.Parallel()
	sum := generated(t, Options{Accounts: 6, Dir: t.TempDir(), Format: FormatCSV, TxnFiles: 7})
	var rows []int
	last := ""
	for _, path := range readParams(t, sum).TxnsURLs {
		f, err := os.Open(path)
		require.NoError(t, err)
		records, err := csv.NewReader(f).ReadAll()
		require.NoError(t, err)
		require.NoError(t, f.Close())
		require.Equal(t, []string{"ts", "account_id", "ticker", "qty", "price"}, records[0])
		rows = append(rows, len(records)-1)
		for _, r := range records[1:] {
			if line := strings.Join(r, ","); !lineForm.MatchString(line) || last > r[0] {
				require.Fail(t, "line of a wrong form or out of order", "%s after %s", line, last)
			}
			last = r[0]
		}
	}
	require.LessOrEqual(t, slices.Max(rows)-slices.Min(rows), 1)
}

func TestAccountsAreCloseToTheAverageSize(t *testing.T) {
	t.Parallel()
	sizes := make([]float64, 0, len(fundShapes))
	total := 0.0
	for _, f := range fundShapes {
		total += float64(f.txns)
	}
	mean := total / float64(len(fundShapes))
	for _, f := range fundShapes {
		sizes = append(sizes, float64(f.txns))
	}
	require.InEpsilon(t, 14_700, mean, 0.05)
	for _, n := range []int{6, 20, 100, 1000} {
		var sum float64
		for i := range n {
			sum += sizes[i%len(sizes)]
		}
		require.InEpsilon(t, mean, sum/float64(n), 0.05, "%d accounts", n)
	}
}

func TestSameOptionsGiveSameBytes(t *testing.T) {
	t.Parallel()
	for _, format := range []string{FormatCSV, FormatParquet} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			o := Options{Accounts: 7, Dir: filepath.Join(t.TempDir(), "d"), Format: format, TxnFiles: 2, Seed: 3}
			generated(t, o)
			first := digests(t, o.Dir)
			require.Len(t, first, 1+2+1+2+2)
			generated(t, o) // replaces its own output
			require.Equal(t, first, digests(t, o.Dir))

			o.Seed++
			generated(t, o)
			second := digests(t, o.Dir)
			for name := range first {
				if name != paramsName {
					require.NotEqual(t, first[name], second[name], name)
				}
			}
		})
	}
}

func TestDirectoryOfOthersIsLeftAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	theirs := filepath.Join(dir, "thesis.txt")
	require.NoError(t, os.WriteFile(theirs, []byte("precious"), 0o600))
	o := Options{Accounts: 1, Dir: dir}
	_, err := Portfolio(t.Context(), o)
	require.ErrorContains(t, err, "not an earlier output")
	require.Equal(t, fault.Script, fault.Of(err).Kind)

	require.NoError(t, os.Remove(theirs))
	generated(t, o)
	require.NoError(t, os.WriteFile(theirs, []byte("precious"), 0o600))
	_, err = Portfolio(t.Context(), o)
	require.ErrorContains(t, err, "thesis.txt")
	require.FileExists(t, theirs)
	requireNoLeftovers(t, filepath.Dir(dir), filepath.Base(dir))
}

// requireNoLeftovers checks that parent holds nothing but name.
func requireNoLeftovers(t *testing.T, parent, name string) {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(parent, "."+name+".unfinished-*"))
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestCancelledCallLeavesNothing(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dir := filepath.Join(t.TempDir(), "d")
	_, err := Portfolio(ctx, Options{Accounts: 1, Dir: dir})
	require.Equal(t, fault.Canceled, fault.Of(err).Kind)
	require.NoDirExists(t, dir)
	requireNoLeftovers(t, filepath.Dir(dir), "d")
}

func TestOptionsOutOfRange(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]Options{
		"no accounts":       {Dir: "d"},
		"too many accounts": {Accounts: MaxAccounts + 1, Dir: "d"},
		"too many files":    {Accounts: 1, TxnFiles: MaxFiles + 1, Dir: "d"},
		"negative files":    {Accounts: 1, HoldingFiles: -1, Dir: "d"},
		"unknown format":    {Accounts: 1, Format: "xml", Dir: "d"},
		"no directory":      {Accounts: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Portfolio(t.Context(), o)
			require.Equal(t, fault.Script, fault.Of(err).Kind)
			require.NoDirExists(t, "d")
		})
	}
	dir := filepath.Join(t.TempDir(), "d")
	_, err := Portfolio(t.Context(), Options{Accounts: 1, HoldingFiles: 10_000, Dir: dir})
	require.ErrorContains(t, err, "do not fill")
	require.NoDirExists(t, dir)
}

func TestExistingFindsOnlyWhatWouldBeMade(t *testing.T) {
	t.Parallel()
	o := Options{Accounts: 1, Dir: filepath.Join(t.TempDir(), "d"), Format: FormatCSV}
	_, ok, err := Existing(o)
	require.NoError(t, err)
	require.False(t, ok)

	made := generated(t, o)
	found, ok, err := Existing(o)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, made, found)

	o.Accounts++
	_, ok, err = Existing(o)
	require.NoError(t, err)
	require.False(t, ok)
}

func TestApportionIsExactAndBounded(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		total  int64
		w      []int64
		lo, hi int64
	}{
		{10, []int64{1, 1, 1}, 0, 10},
		{100, []int64{1, 1000, 3}, 5, 60},
		{6, []int64{9, 9, 9}, 2, 2},
	} {
		var sum int64
		for _, s := range apportion(c.total, c.w, c.lo, c.hi) {
			require.GreaterOrEqual(t, s, c.lo)
			require.LessOrEqual(t, s, c.hi)
			sum += s
		}
		require.Equal(t, c.total, sum)
	}
}
