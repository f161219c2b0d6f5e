package files

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"

	"thalweg/internal/expr"
	"thalweg/internal/script"
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
	r := &script.FileReader{Parquet: true, Columns: []*script.InputColumn{{Name: "tags", Parquet: "tags", Type: expr.ListOf(expr.String), Nullable: true, Short: true}}}
	for version := 1; version <= 2; version++ {
		path := filepath.Join(t.TempDir(), fmt.Sprintf("v%d.parquet", version))
		require.NoError(t, parquet.WriteFile(path, rows, parquet.Compression(&parquet.Uncompressed), parquet.DataPageVersion(version)))
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

func (s *parquetSlice) verifyFile(t *testing.T) error {
	t.Helper()
	f, err := os.Open(s.Path)
	require.NoError(t, err)
	defer f.Close()
	_, err = s.verify(t.Context(), f)
	return err
}
