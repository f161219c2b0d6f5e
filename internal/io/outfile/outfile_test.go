package outfile_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"thalweg/internal/base/fault"
	"thalweg/internal/base/sqltext"
	"thalweg/internal/io/outfile"
	"thalweg/internal/io/unpack"
	"thalweg/internal/lang/expr"
	"thalweg/internal/lang/filespec"
	"thalweg/internal/lang/script"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// writer plays the engine: each try writes its text to the COPY's path.
type writer struct {
	tries []io.Reader
	err   error
}

func (w *writer) CopyTo(ctx context.Context, c sqltext.Copy,
	around func(context.Context, func(context.Context) error) error) (rows int64, err error) {
	for _, text := range w.tries {
		err = around(ctx, func(context.Context) error {
			f, err := os.OpenFile(c.Path, os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			_, err = io.Copy(f, text)
			return errors.Join(err, f.Close(), w.err)
		})
	}
	return 1, err
}

func (w *writer) Texts(context.Context, string) ([][]*string, error) { return nil, nil }

var gzipped = script.Packing{Compression: filespec.Gzip}

// written is a file of one column.
func written(p script.Packing) *script.FileWriter {
	return &script.FileWriter{Form: script.FormCSV, Separator: ",", Packing: p,
		Columns: []*script.OutputColumn{{Name: "a", Type: expr.String, Header: "a"}}}
}

// TestBytesFollowFromTheText: neither the speed at which a text comes nor a try before
// it is seen in a file.
func TestBytesFollowFromTheText(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("some text, and more of it\n", 40_000)
	for _, p := range []script.Packing{{Compression: filespec.Gzip}, {Compression: filespec.Gzip, Level: 9},
		{Compression: filespec.Zstd}, {Compression: filespec.Zstd, Level: 22}} {
		var files [][]byte
		for _, tries := range [][]io.Reader{
			{strings.NewReader(text)},
			{strings.NewReader("what was wrong"), iotest.HalfReader(strings.NewReader(text))},
			{iotest.DataErrReader(strings.NewReader(text))},
		} {
			dir := t.TempDir()
			path := filepath.Join(dir, "out")
			_, err := outfile.Write(t.Context(), &writer{tries: tries},
				outfile.Output{Writer: written(p), Rows: "SELECT",
					Path: path, Scratch: dir})
			require.NoError(t, err)
			data, err := os.ReadFile(path)
			require.NoError(t, err)
			files = append(files, data)
			left, err := os.ReadDir(dir)
			require.NoError(t, err)
			require.Len(t, left, 1, "the pipe is gone")
		}
		require.Equal(t, files[0], files[1])
		require.Equal(t, files[0], files[2])
		var plain bytes.Buffer
		_, err := unpack.Text(t.Context(), &plain, bytes.NewReader(files[0]), unpack.Form{Compression: p.Compression})
		require.NoError(t, err)
		require.Equal(t, text, plain.String())
	}
}

// TestDiskFailuresAreTold: who writes is not left behind, and hears of the disk.
func TestDiskFailuresAreTold(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, err := outfile.Write(t.Context(), &writer{tries: []io.Reader{strings.NewReader(strings.Repeat("x", 1<<20))}},
		outfile.Output{Writer: written(gzipped), Rows: "SELECT", Path: filepath.Join(dir, "none", "out"), Scratch: dir})
	var f *fault.Error
	require.ErrorAs(t, err, &f)
	require.Equal(t, fault.Environment, f.Kind)
	failed := errors.New("the query failed")
	_, err = outfile.Write(t.Context(), &writer{tries: []io.Reader{strings.NewReader("x")}, err: failed},
		outfile.Output{Writer: written(gzipped), Rows: "SELECT", Path: filepath.Join(dir, "out"), Scratch: dir})
	require.ErrorIs(t, err, failed)
}
