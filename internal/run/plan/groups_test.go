package plan

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/sqltext"
	"thalweg/internal/run/engine"
	"thalweg/internal/store/parts"
	"thalweg/internal/store/state"
)

// bucketedPart is a part whose rows lie in 16 buckets, as tables for lookups do.
func bucketedPart(t *testing.T, rows int) (path string, part state.Part) {
	t.Helper()
	dir := t.TempDir()
	path = filepath.Join(dir, "part")
	task := engine.Task{Name: "part", Paths: []string{dir},
		Query: fmt.Sprintf("SELECT i, md5(i::VARCHAR) AS s FROM range(%d) AS r(i)", rows),
		Output: engine.Output{Part: &engine.PartOutput{Stage: func(context.Context) (string, error) {
			return path, nil
		},
			BucketSQL: "(q.i * 7919) % 16", NumberSQL: "row_number() OVER ()",
			SortedBy: []string{engine.BucketColumn, "__o0"}, RowGroupRows: 4096}}}
	res, err := engine.Execute(t.Context(), engine.InstanceConfig{MemoryBytes: 256 << 20, Threads: 1,
		SpillDir: filepath.Join(dir, "spill")}, nil, task)
	require.NoError(t, err)
	part = state.Part{Key: "part", Rows: int64(rows), Bytes: res.Written[0].Bytes}
	part.Groups, err = GroupsOf(path, part.Bytes, sumOf(t, path))
	require.NoError(t, err)
	return path, part
}

func sumOf(t *testing.T, path string) func(from, length int64) (string, error) {
	return func(from, length int64) (string, error) {
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		require.LessOrEqual(t, from+length, int64(len(content)))
		sum, _, err := parts.Checksum(bytes.NewReader(content[from : from+length]))
		return sum, err
	}
}

// Whoever reads buckets, or a range of rows, needs no more of the file than the
// pieces that are wanted: the rest may be zeros.
func TestOnlyWantedPiecesAreRead(t *testing.T) {
	t.Parallel()
	const rows = 200_000
	path, part := bucketedPart(t, rows)
	groups := ReadGroups(part)
	require.NotNil(t, groups)
	require.Greater(t, len(groups.Pieces), 16)
	rng := rand.New(rand.NewPCG(1, 2))
	saved := false
	for i := range 40 {
		var s PartSlice
		where := ""
		if i%2 == 0 {
			first := rng.IntN(16)
			s.buckets = &bucketSpan{first, min(15, first+rng.IntN(3))}
			where = s.buckets.sql()
		} else {
			s.From = rng.Int64N(rows)
			s.To = s.From + 1 + rng.Int64N(rows-s.From)
			where = fmt.Sprintf("file_row_number >= %d AND file_row_number < %d", s.From, s.To)
		}
		wanted := groups.Wanted([]PartSlice{s})
		copied, bytes := copyPieces(t, path, groups, wanted)
		saved = saved || bytes < part.Bytes/4
		require.Equal(t, digest(t, path, where), digest(t, copied, where), where)
	}
	require.True(t, saved, "at least one of them read less than a quarter")
}

// copyPieces copies the wanted pieces of a file into one with holes.
func copyPieces(t *testing.T, path string, groups *Groups, wanted []bool) (to string, copied int64) {
	t.Helper()
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	at := int64(0)
	for i, p := range groups.Pieces {
		if wanted[i] {
			copied += p.Bytes
		} else {
			clear(content[at : at+p.Bytes])
		}
		at += p.Bytes
	}
	require.EqualValues(t, len(content), at)
	to = filepath.Join(t.TempDir(), "copy")
	require.NoError(t, os.WriteFile(to, content, 0o600))
	return to, copied
}

// digest sums up the rows of a part that a condition leaves.
func digest(t *testing.T, path, where string) (out string) {
	t.Helper()
	db, err := sql.Open("duckdb", "")
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	query := fmt.Sprintf("SELECT concat_ws(' ', count(*), sum(i), bit_xor(md5_number(s))) FROM "+
		"read_parquet(%s) WHERE %s", sqltext.String(path), where)
	require.NoError(t, db.QueryRowContext(t.Context(), query).Scan(&out))
	return out
}

// A hole that is read after all is an error, never rows.
func TestAHoleIsNotRead(t *testing.T) {
	t.Parallel()
	path, part := bucketedPart(t, 100_000)
	groups := ReadGroups(part)
	wanted := groups.Wanted([]PartSlice{{buckets: &bucketSpan{3, 3}}})
	copied, _ := copyPieces(t, path, groups, wanted)
	db, err := sql.Open("duckdb", "")
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	for _, what := range []string{"sum(i)", "max(s)", "max(__b)", "max(__o0)"} {
		var out string
		err := db.QueryRowContext(t.Context(),
			fmt.Sprintf("SELECT concat(%s) FROM read_parquet(%s) WHERE __b < 5 AND i >= 0",
				what, sqltext.String(copied))).Scan(&out)
		require.Error(t, err, "%s gave %s", what, out)
	}
}

// What the manifest keeps of row groups covers the file, and is not believed
// where it does not agree with the part.
func TestGroups(t *testing.T) {
	t.Parallel()
	path, part := bucketedPart(t, 100_000)
	groups := ReadGroups(part)
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	at := int64(0)
	for i, p := range groups.Pieces {
		sum, _, err := parts.Checksum(io.NewSectionReader(f, at, p.Bytes))
		require.NoError(t, err)
		require.Equal(t, sum, p.Sum)
		require.True(t, p.Bytes >= groupBytesMin || i >= len(groups.Pieces)-2, "piece %d has %d bytes", i, p.Bytes)
		at += p.Bytes
	}
	require.Equal(t, part.Bytes, at)
	for name, change := range map[string]func(*state.Part){
		"rows":    func(p *state.Part) { p.Rows++ },
		"bytes":   func(p *state.Part) { p.Bytes-- },
		"nothing": func(p *state.Part) { p.Groups = nil },
		"garbage": func(p *state.Part) { p.Groups = json.RawMessage(`[1]`) },
		"less":    func(p *state.Part) { p.Groups = json.RawMessage(`{"pieces":[{"rows":100000,"bytes":-5}]}`) },
	} {
		other := part
		change(&other)
		require.Nil(t, ReadGroups(other), name)
	}
	small := filepath.Join(t.TempDir(), "small")
	require.NoError(t, os.WriteFile(small, []byte("x"), 0o600))
	none, err := GroupsOf(small, 1, nil)
	require.NoError(t, err)
	require.Nil(t, none)
}
