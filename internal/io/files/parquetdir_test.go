package files

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/fault"
	"thalweg/internal/lang/expr"
	"thalweg/internal/lang/script"
)

// TestParquetDirectory reads each column of the Parquet files of the directory
// THALWEG_PARQUET_DIR, by a file_table and by a query: it is read, or the file
// is refused as the user's.
func TestParquetDirectory(t *testing.T) {
	t.Parallel()
	dir := os.Getenv("THALWEG_PARQUET_DIR")
	if dir == "" {
		t.Skip("THALWEG_PARQUET_DIR names no directory of Parquet files")
	}
	paths, err := filepath.Glob(filepath.Join(dir, "*.parquet"))
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	db := openDB(t, 2)
	for _, path := range paths {
		columns, err := parquetColumns(Input{Path: path, URL: path})
		if err != nil {
			require.Equal(t, fault.UserData, fault.Of(err).Kind, "%s: %v", path, err)
			t.Logf("%s: refused: %v", filepath.Base(path), err)
			continue
		}
		read, refused := 0, 0
		for _, c := range columns {
			if c.Type == expr.Invalid {
				refused++
				continue
			}
			rows, err := readCorpusColumns(t.Context(), t, db, path, []script.FileColumn{c}, false)
			if err != nil {
				require.Equal(t, fault.UserData, fault.Of(err).Kind, "%s, column %q: %v", path, c.Name, err)
				t.Logf("%s: column %q: %v", filepath.Base(path), c.Name, err)
				refused++
				continue
			}
			read++
			if queried, err := queryCorpusColumn(t, db, path, c); err == nil && c.Type != expr.Decimal &&
				c.Type != expr.Float {
				require.Len(t, queried, len(rows), path)
				for i := range rows {
					require.Equal(t, rows[i][0], queried[i][0], "%s, column %q, row %d", path, c.Name, i)
				}
			}
		}
		t.Logf("%s: %d columns read, %d refused", filepath.Base(path), read, refused)
	}
}
