package files

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/stretchr/testify/require"

	"thalweg/internal/lang/expr"
	"thalweg/internal/lang/script"
)

// TestDamageWithinListsIsFound: pages of nested columns are held against their
// checksums, whichever of the two versions they are of.
func TestDamageWithinListsIsFound(t *testing.T) {
	t.Parallel()
	type row struct {
		ID   int64    `parquet:"id"`
		Tags []string `parquet:"tags,list,plain"`
	}
	rows := []row{{1, []string{"aaaa", "bbbb"}}, {2, nil}, {3, []string{"cccc"}}}
	r := &script.FileReader{Parquet: true,
		Columns: []*script.InputColumn{{Name: "tags", Parquet: "tags", Type: expr.ListOf(expr.String), Nullable: true,
			Short: true}}}
	for version := 1; version <= 2; version++ {
		path := filepath.Join(t.TempDir(), fmt.Sprintf("v%d.parquet", version))
		require.NoError(t, parquet.WriteFile(path, rows, parquet.Compression(&parquet.Uncompressed),
			parquet.DataPageVersion(version)))
		read := func() error {
			plan, err := planParquet(r, []Slice{{Path: path, URL: path, Rows: -1}}, t.TempDir(), false)
			require.NoError(t, err)
			require.Empty(t, plan.slices[0].view)
			return plan.slices[0].verifyFile(t)
		}
		require.NoError(t, read())
		raw, err := os.ReadFile(path)
		require.NoError(t, err)
		at := bytes.Index(raw, []byte("bbbb"))
		require.Positive(t, at)
		raw[at] ^= 1
		require.NoError(t, os.WriteFile(path, raw, 0o600))
		require.ErrorContains(t, read(), `column "tags" cannot be decoded: row group 1, page 1: its checksum is`)
	}
}

// TestLeavesThatNeedAView: what DuckDB would cut to what the file declares is read
// exactly within lists and structs, and beside them.
func TestLeavesThatNeedAView(t *testing.T) {
	t.Parallel()
	type instant struct {
		T time.Time `parquet:"t,timestamp(nanosecond)"`
	}
	type row struct {
		Beside int32              `parquet:"beside,decimal(1:2)"`
		Old    deprecated.Int96   `parquet:"old"`
		Olds   []deprecated.Int96 `parquet:"olds,list"`
		Small  []int8             `parquet:"small,list"`
		Nanos  []instant          `parquet:"nanos,list"`
		Within struct {
			Tiny int16  `parquet:"tiny"`
			Name string `parquet:"name"`
		} `parquet:"within"`
	}
	old := func(days uint32, nanos uint64) deprecated.Int96 {
		return deprecated.Int96{uint32(nanos), uint32(nanos >> 32), days}
	}
	rows := []row{{Beside: -15, Old: old(2_440_589, 1_000_000), Small: []int8{-128, 127},
		Olds: []deprecated.Int96{old(2_440_588, 0), old(2_440_587, 86_399_999_000_000),
			old(2_460_370, 3_723_004_000_000), old(1_721_426, 0), old(5_373_484, 128_000_000)},
		Nanos: []instant{{time.Unix(0, -1_000_000).UTC()}, {time.Unix(1, 2_000_000).UTC()}}}}
	rows[0].Within.Tiny, rows[0].Within.Name = -32768, "x"
	path := filepath.Join(t.TempDir(), "a.parquet")
	require.NoError(t, parquet.WriteFile(path, rows))
	for _, c := range []struct {
		column, path string
		typ          expr.Type
		want         string
	}{
		{"beside", "beside", expr.Decimal, "-1.50"},
		{"old", "old", expr.DateTime, "1970-01-02 00:00:00.001"},
		{"olds", "olds", expr.ListOf(expr.DateTime),
			"['1970-01-01 00:00:00', '1969-12-31 23:59:59.999', '2024-02-29 01:02:03.004', '0001-01-01 00:00:00', " +
				"'9999-12-31 00:00:00.128']"},
		{"olds", "olds", expr.ListOf(expr.Instant),
			"['1970-01-01 00:00:00+00', '1969-12-31 23:59:59.999+00', '2024-02-29 01:02:03.004+00', '0001-01-01 " +
				"00:00:00+00', '9999-12-31 00:00:00.128+00']"},
		{"first", "olds[2]", expr.DateTime, "2024-02-29 01:02:03.004"},
		{"small", "small", expr.ListOf(expr.Int), "[-128, 127]"},
		{"one", "small[1]", expr.Int, "127"},
		{"nanos", "nanos", expr.ListOf(expr.StructOf([]expr.Member{{Name: "t", Type: expr.Instant}})),
			"[{'t': '1969-12-31 23:59:59.999+00'}, {'t': '1970-01-01 00:00:01.002+00'}]"},
		{"within", "within", expr.StructOf([]expr.Member{{Name: "name", Type: expr.String}, {Name: "tiny",
			Type: expr.Int}}),
			"{'name': x, 'tiny': -32768}"},
		{"tiny", "within.tiny", expr.Int, "-32768"},
	} {
		columns := []*script.InputColumn{{Name: c.column, Parquet: c.path, Type: c.typ, Nullable: true, Short: true}}
		if c.column != "beside" {
			columns = append(columns, &script.InputColumn{Name: "beside", Parquet: "beside", Type: expr.DecimalOf(2, 1),
				Nullable: true, Short: true})
		}
		db := openDB(t, 1)
		exec(t, db, "SET TimeZone = 'UTC'")
		for _, views := range []bool{false, true} {
			r := &script.FileReader{URLs: urls(path), Parquet: true, Columns: columns}
			slices, err := PlanSlices(t.Context(), r, 1<<30, 1)
			require.NoError(t, err)
			plan, err := planParquet(r, slices[0], t.TempDir(), views)
			require.NoError(t, err, c.path)
			require.NoError(t, plan.prepare(t.Context()))
			sql, err := plan.sql(false)
			require.NoError(t, err)
			got, err := texts(t.Context(), db, "SELECT CAST("+c.column+" AS VARCHAR) FROM ("+sql+")")
			require.NoError(t, err, c.path)
			require.Equal(t, c.want, fmt.Sprint(got[0][0]), "%s as %s, views: %t", c.path, c.typ, views)
		}
	}
}

func (s *parquetSlice) verifyFile(t *testing.T) error {
	t.Helper()
	f, err := os.Open(s.Path)
	require.NoError(t, err)
	defer f.Close()
	_, err = s.verify(t.Context(), f)
	return err
}
