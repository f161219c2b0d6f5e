package files

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/fault"
	"thalweg/internal/script"
)

func TestCheckQueryParquet(t *testing.T) {
	t.Parallel()
	dir := unzipCorpus(t)
	for name, reason := range map[string]string{
		"duckdb_gzip_V1.parquet":         "",
		"polars_zstd_one.parquet":        "",
		"x_int64_decimal_2_2.parquet":    "of which DuckDB cuts values",
		"x_fixed20_decimal_40_2.parquet": "of which DuckDB cuts values",
		"x_int_8_in_int64.parquet":       "of which DuckDB cuts values",
		"x_names_shared.parquet":         "two of its columns have the same name",
	} {
		err := checkQuery(t, filepath.Join(dir, name))
		if reason == "" {
			require.NoError(t, err, name)
			continue
		}
		require.ErrorContains(t, err, reason, name)
		require.Equal(t, fault.UserData, fault.Of(err).Kind)
	}
	raw, err := os.ReadFile(filepath.Join(dir, "duckdb_gzip_V1.parquet"))
	require.NoError(t, err)
	raw[60] ^= 4 // inside the first page
	path := filepath.Join(dir, "damaged.parquet")
	require.NoError(t, os.WriteFile(path, raw, 0o600))
	require.ErrorContains(t, checkQuery(t, path), "cannot be decoded")
}

func checkQuery(t *testing.T, path string) error {
	t.Helper()
	plan, err := PlanSlices(t.Context(), &script.FileReader{URLs: urls(path), Parquet: true}, 1<<30, 1)
	require.NoError(t, err)
	return CheckQueryParquet(t.Context(), plan[0])
}
