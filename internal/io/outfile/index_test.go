package outfile_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"thalweg/internal/base/fault"
	"thalweg/internal/base/sqltext"
	"thalweg/internal/io/outfile"
	"thalweg/internal/io/tableindex"
	"thalweg/internal/lang/expr"
	"thalweg/internal/lang/script"
	"thalweg/internal/run/engine"
)

// indexed is an index of texts by a key of so many columns: a, b and so on, and then v, which may be NULL.
func indexed(keys int) *script.FileWriter {
	w := &script.FileWriter{Form: script.FormIndex}
	for i := range keys {
		name := string(rune('a' + i))
		w.Index = append(w.Index, &script.OutputColumn{Name: name, Header: name, Type: expr.String, Nullable: true})
	}
	w.Columns = append(w.Index[:keys:keys],
		&script.OutputColumn{Name: "v", Header: "the value", Type: expr.String, Nullable: true})
	return w
}

// indexIn opens an engine and the place of an index of a table called rows.
func indexIn(t *testing.T, w *script.FileWriter, made string) (*engine.Instance, outfile.Output) {
	t.Helper()
	dir := t.TempDir()
	in, err := engine.OpenInstance(t.Context(), engine.InstanceConfig{MemoryBytes: 1 << 30, Threads: 2,
		SpillDir: filepath.Join(dir, "spill"), Paths: []string{dir}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, in.Close()) })
	require.NoError(t, in.Exec(t.Context(), "CREATE TABLE rows AS "+made))
	return in, outfile.Output{Writer: w, Rows: "SELECT * FROM rows", Path: filepath.Join(dir, "out"), Scratch: dir,
		Source: "a test"}
}

// hostile are texts that a form with separators, quotes, lines or ends would take for something else.
var hostile = []string{"", ":", "::", `\`, `\:`, `\\`, "a:", ":a", "!0", "$-1\r\n", "1:2:x", "\n", "\r\n", "\x00", "\x00\x00",
	`"`, "'", "ü", "𝄞", "\u2028", "\ufeff", " ", "NULL", "\x7f\x01", strings.Repeat("k", tableindex.MaxKeyBytes),
	strings.Repeat("\n", 70), strings.Repeat("é", 200)}

// TestIndexHoldsWhatIsWritten: each row is found by its key, with its values as they are.
func TestIndexHoldsWhatIsWritten(t *testing.T) {
	t.Parallel()
	var rows []string
	for i, key := range hostile {
		value := "NULL"
		if i%5 != 0 {
			value = sqltext.String(hostile[(i*7)%len(hostile)])
		}
		rows = append(rows, fmt.Sprintf("(%s, %s)", sqltext.String(key), value))
	}
	large := strings.Repeat("0123456789", 1_600_000) // more than is read at once
	rows = append(rows, "('large', repeat('0123456789', 1600000))")
	in, o := indexIn(t, indexed(1), "SELECT * FROM (VALUES "+strings.Join(rows, ", ")+") AS t(a, v)")
	count, size, err := outfile.IndexSize(t.Context(), in, o)
	require.NoError(t, err)
	written, err := outfile.Write(t.Context(), in, o)
	require.NoError(t, err)
	require.Equal(t, []outfile.File{{Path: o.Path, Rows: int64(len(rows))}}, written)
	table, err := tableindex.Open(t.Context(), o.Path)
	require.NoError(t, err)
	defer func() { require.NoError(t, table.Close()) }()
	require.Equal(t, tableindex.Meta{Key: []string{"a"}, Columns: []string{"the value"}, Source: "a test"}, table.Meta)
	require.EqualValues(t, len(rows), table.Rows())
	require.Equal(t, table.Rows(), count)
	require.Equal(t, table.Size(), size, "it is told before")
	find := func(key, want string) {
		t.Helper()
		frames, _, found, err := table.Lookup([]byte(key), nil)
		require.NoError(t, err)
		require.True(t, found, "%.50q", key)
		require.True(t, want == string(frames), "%.50q has %.50q, and not %.50q", key, frames, want)
	}
	for i, key := range hostile {
		want := tableindex.Null
		if i%5 != 0 {
			want = string(tableindex.Frame(nil, []byte(hostile[(i*7)%len(hostile)])))
		}
		find(key, want)
	}
	find("large", string(tableindex.Frame(nil, []byte(large))))
	_, _, found, err := table.Lookup([]byte("none"), nil)
	require.NoError(t, err)
	require.False(t, found)
}

// TestKeysOfSeveralColumns: no two keys are one, and each is as the documentation says.
func TestKeysOfSeveralColumns(t *testing.T) {
	t.Parallel()
	short := hostile[:len(hostile)-3]
	list := make([]string, len(short))
	for i, text := range short {
		list[i] = "(" + sqltext.String(text) + ")"
	}
	values := "(VALUES " + strings.Join(list, ", ") + ")"
	in, o := indexIn(t, indexed(2), fmt.Sprintf("SELECT a, b, a || '/' || b AS v FROM %s AS t(a), %[1]s AS u(b)", values))
	_, err := outfile.Write(t.Context(), in, o)
	require.NoError(t, err)
	table, err := tableindex.Open(t.Context(), o.Path)
	require.NoError(t, err)
	defer func() { require.NoError(t, table.Close()) }()
	require.EqualValues(t, len(short)*len(short), table.Rows())
	escaped := strings.NewReplacer(`\`, `\\`, ":", `\:`)
	for _, a := range short {
		for _, b := range short {
			frames, _, found, err := table.Lookup([]byte(escaped.Replace(a)+":"+escaped.Replace(b)), nil)
			require.NoError(t, err)
			require.True(t, found, "%q and %q", a, b)
			require.Equal(t, string(tableindex.Frame(nil, []byte(a+"/"+b))), string(frames))
		}
	}
}

// TestIndexRefuses: what no index holds is an error of the data that says which row, and where it is written.
func TestIndexRefuses(t *testing.T) {
	t.Parallel()
	for rows, want := range map[string]string{
		"SELECT 'k' || i % 3 AS a, 'x' AS v FROM range(4) r(i)": `the key "k0" is in two rows: keys of an index are unique`,
		"SELECT CASE i WHEN 2 THEN NULL ELSE 'k' || i END AS a, 'x' AS v FROM range(4) r(i)": "row 3: column a of the key " +
			"is NULL",
		fmt.Sprintf("SELECT repeat('k', %d) AS a, 'x' AS v", tableindex.MaxKeyBytes+1): "the key \"" +
			strings.Repeat("k", 100) + "\"… has 65537 bytes: an index takes 65536",
		fmt.Sprintf("SELECT 'k' AS a, repeat('x', %d) AS v", tableindex.MaxRowBytes): "the row of the key \"k\" has " +
			"67108877 bytes: an index takes 67108864",
	} {
		w := indexed(1)
		w.Pos.File, w.Pos.Line = "script.yaml", 7
		in, o := indexIn(t, w, rows)
		_, err := outfile.Write(t.Context(), in, o)
		var f *fault.Error
		require.ErrorAs(t, err, &f, rows)
		require.Equal(t, want, f.Message)
		require.Equal(t, fault.UserData, f.Kind)
		require.NotEmpty(t, f.Hint)
		require.Equal(t, fault.Place{File: "script.yaml", Line: 7}, f.Place)
		left, err := os.ReadDir(o.Scratch)
		require.NoError(t, err)
		for _, entry := range left {
			require.Contains(t, []string{"out", "spill"}, entry.Name(), "the pipe is gone")
		}
	}
}

// TestIndexIsPublishedWhole: an index replaces another one when it is whole, and where its disk holds it.
func TestIndexIsPublishedWhole(t *testing.T) {
	t.Parallel()
	in, o := indexIn(t, indexed(1), "SELECT 'k' || i AS a, 'x' AS v FROM range(4) r(i)")
	o.Path = filepath.Join(o.Scratch, "of", "rows.twx")
	list := func() (names []string) {
		entries, err := os.ReadDir(filepath.Dir(o.Path))
		require.NoError(t, err)
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names
	}
	var f *fault.Error
	require.ErrorAs(t, outfile.PublishIndex(t.Context(), in, o, 1<<60), &f)
	require.Equal(t, fault.Environment, f.Kind)
	require.Regexp(t, `^the index has 1024\.0 PiB, and the disk of .*/of has .* free$`, f.Message)
	require.Empty(t, list())
	for _, name := range []string{".rows.twx-12", ".rows.twx-13", ".rows.twx-notes", ".rows.twx-", ".rows.twx.gz-14"} {
		require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(o.Path), name), []byte("x"), 0o600))
	}
	written, err := os.Open(filepath.Join(filepath.Dir(o.Path), ".rows.twx-13"))
	require.NoError(t, err)
	defer func() { require.NoError(t, written.Close()) }()
	require.NoError(t, unix.Flock(int(written.Fd()), unix.LOCK_EX))
	require.NoError(t, outfile.PublishIndex(t.Context(), in, o, 5000))
	require.Equal(t, []string{".rows.twx-", ".rows.twx-13", ".rows.twx-notes", ".rows.twx.gz-14", "rows.twx"}, list(),
		"what a killed process has left is removed, and nothing else")
	for _, name := range list() {
		require.NoError(t, os.Remove(filepath.Join(filepath.Dir(o.Path), name)))
	}
	for range 2 {
		require.NoError(t, outfile.PublishIndex(t.Context(), in, o, 5000))
		require.Equal(t, []string{"rows.twx"}, list())
	}
	before, err := os.ReadFile(o.Path)
	require.NoError(t, err)
	o.Rows = "SELECT 'k' AS a, v FROM rows"
	require.ErrorAs(t, outfile.PublishIndex(t.Context(), in, o, 5000), &f)
	require.Equal(t, fault.UserData, f.Kind)
	require.Equal(t, []string{"rows.twx"}, list())
	after, err := os.ReadFile(o.Path)
	require.NoError(t, err)
	require.Equal(t, before, after)
}

// counting plays an engine that has counted so many rows.
type counting struct {
	writer
	rows string
}

func (c *counting) Texts(context.Context, string) ([][]*string, error) {
	return [][]*string{{&c.rows}}, nil
}

// TestIndexMissesRows: less or more than was counted, and a line that is cut, is never a whole index. What the
// engine says of it is told, and not that something is missing.
func TestIndexMissesRows(t *testing.T) {
	t.Parallel()
	failed := errors.New("the query failed")
	for _, c := range []struct {
		lines, rows string
		err         error
		want        string
	}{
		{"1:7:k$1\r\nx\r\n\n", "1", nil, ""},
		{"1:7:k$1\r\nx\r\n\n", "2", nil, "1 rows came of 2"},
		{"1:7:k$1\r\nx\r\n\n1:7:l$1\r\nx\r\n\n", "1", nil, "more rows than were announced"},
		{"1:7:k$1\r\nx", "1", nil, "unexpected EOF"},
		{"1:7:k$1\r\nx", "1", failed, "the query failed"},
		{"", "1", failed, "the query failed"},
		{"1", "1", failed, "the query failed"},
		{"!", "1", failed, "the query failed"},
		{"!1\n", "1", nil, `row 1 of an index: "!1\n"`},
		{"x:6:k$1\r\nx\r\n\n", "1", nil, "row 1 of an index"},
	} {
		dir := t.TempDir()
		_, err := outfile.Write(t.Context(), &counting{writer{[]io.Reader{strings.NewReader(c.lines)}, c.err}, c.rows},
			outfile.Output{Writer: indexed(1), Rows: "SELECT", Path: filepath.Join(dir, "out"), Scratch: dir})
		if c.want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, c.want, "%q", c.lines)
		_, err = tableindex.Open(t.Context(), filepath.Join(dir, "out"))
		require.Error(t, err, "%q", c.lines)
	}
}
