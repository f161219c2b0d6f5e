package outfile

import (
	"archive/zip"
	"bytes"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/xuri/excelize/v2"
)

// TestTheEmptyWorkbookIsTheLibrarys makes the workbook again that rows are put into.
func TestTheEmptyWorkbookIsTheLibrarys(t *testing.T) {
	t.Parallel()
	file := excelize.NewFile()
	for i, format := range sheetStyles() {
		at, err := file.NewStyle(&excelize.Style{CustomNumFmt: &format})
		require.NoError(t, err)
		require.Equal(t, i+1, at, format)
	}
	var made bytes.Buffer
	require.NoError(t, file.Write(&made))
	if os.Getenv("UPDATE_GOLDEN") != "" {
		require.NoError(t, os.WriteFile("empty.xlsx", made.Bytes(), 0o644))
		emptySheet = made.Bytes()
	}
	require.Equal(t, zipped(t, made.Bytes()), zipped(t, emptySheet))
	require.Contains(t, zipped(t, emptySheet)[workbookPath], emptySheetTag)
	require.Contains(t, zipped(t, emptySheet), sheetPath)
}

func zipped(t *testing.T, data []byte) map[string]string {
	t.Helper()
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	require.NoError(t, err)
	parts := map[string]string{}
	for _, f := range z.File {
		r, err := f.Open()
		require.NoError(t, err)
		text, err := io.ReadAll(r)
		require.NoError(t, err)
		require.NoError(t, r.Close())
		parts[f.Name] = string(text)
	}
	return parts
}

// TestColumnsHaveTheLibrarysNames compares them all.
func TestColumnsHaveTheLibrarysNames(t *testing.T) {
	t.Parallel()
	for i := range 16_384 {
		want, err := excelize.ColumnNumberToName(i + 1)
		require.NoError(t, err)
		require.Equal(t, want, columnLetters(i))
	}
}
