package runner_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/io/outfile"
	"thalweg/internal/run/job"
	"thalweg/internal/test/effort"
)

// outputsScript writes several files with a manifest, and a directory of files.
const outputsScript = `
nodes:
  load:
    type: file_table
    r: {urls: [in.csv], types: {n: int}}
    w: t
  files:
    type: table_file
    r: {table: t, expected_batches_total: 2}
    w: {url_template: "out/half_{batch_idx}.csv.gz", manifest: true}
  dir:
    type: table_file
    r: t
    w: {url_template: out/dir.parquet, partition_by: region}
`

// outputsInput has rows of regions that are not the same ones in each run.
func outputsInput(run int) string {
	text := "n,region\n"
	for i := range 12 {
		text += fmt.Sprintf("%d,region %d\n", i*run, run+i%3)
	}
	return text
}

// TestKilledWhileOutputsAreReplaced kills a run at each point each time that it is passed, while it
// replaces what an earlier one wrote: a manifest that is there speaks of the files that are
// there, and the directory is one of both runs, whole. Then the run is resumed.
func TestKilledWhileOutputsAreReplaced(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	for _, point := range slices.Concat(job.CrashPoints(), job.FilePoints()) {
		t.Run(string(point), func(t *testing.T) {
			t.Parallel()
			for n := 1; n <= effort.Of(1, 1, 1000); n++ {
				dir := t.TempDir()
				require.NoError(t, os.WriteFile(filepath.Join(dir, "script.yaml"), []byte(outputsScript), 0o600))
				run := func(nth int, at string) ([]byte, error) {
					require.NoError(t, os.WriteFile(filepath.Join(dir, "in.csv"), []byte(outputsInput(nth)), 0o600))
					return victimCmd(t, dir, at, false).CombinedOutput()
				}
				text, err := run(1, "run")
				require.NoError(t, err, string(text))
				require.Equal(t, [2]int64{1, 1}, requireManifests(t, dir, true))
				text, err = run(2, fmt.Sprintf("%s:%d", point, n))
				if err != nil {
					requireKilled(t, err, text)
					requireManifests(t, dir, false)
					text, err = victimCmd(t, dir, "run", true).CombinedOutput()
				} else if n == 1 {
					t.Fatal("the crash point is never passed")
				} else {
					return
				}
				require.NoError(t, err, string(text))
				require.Equal(t, "complete\n", string(text))
				require.Equal(t, [2]int64{2, 2}, requireManifests(t, dir, true))
				left, err := filepath.Glob(filepath.Join(dir, "out", ".*"))
				require.NoError(t, err)
				require.Empty(t, left)
				requireNothingAnnounced(t, dir)
			}
		})
	}
}

// requireManifests holds manifests against the files beside them, and gives the runs that they are of;
// 0: there is none.
func requireManifests(t *testing.T, dir string, all bool) (runs [2]int64) {
	t.Helper()
	for i, path := range []string{"out/half_all.csv.gz.manifest.json", "out/dir.parquet/_manifest.json"} {
		path = filepath.Join(dir, path)
		text, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) && i == 0 && !all {
			continue
		}
		require.NoError(t, err)
		var m outfile.Manifest
		require.NoError(t, json.Unmarshal(text, &m))
		runs[i] = m.Run
		var listed []string
		for _, f := range m.Files {
			data, err := os.ReadFile(filepath.Join(filepath.Dir(path), f.Name))
			require.NoError(t, err)
			sum := sha256.Sum256(data)
			require.Equal(t, f.SHA256, hex.EncodeToString(sum[:]), f.Name)
			listed = append(listed, f.Name)
		}
		require.EqualValues(t, 12, m.Rows)
		if i == 1 {
			require.Equal(t, listed, dataFilesBelow(t, filepath.Dir(path)))
		}
	}
	return runs
}

// dataFilesBelow lists the files of a directory but its manifest.
func dataFilesBelow(t *testing.T, dir string) (names []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && !strings.HasSuffix(path, "_manifest.json") {
			names = append(names, strings.TrimPrefix(path, dir+"/"))
		}
		return err
	}))
	return names
}
