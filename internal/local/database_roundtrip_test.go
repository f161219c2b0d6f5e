package local_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/database"
	"thalweg/internal/effort"
)

// cell makes a value of a type as the CSV of an input has it: extremes, and texts that
// formats trip over. NULL is nothing.
func cell(rng *rand.Rand, kind string) string {
	if rng.IntN(5) == 0 {
		return ""
	}
	pick := func(some ...string) string { return some[rng.IntN(len(some))] }
	switch kind {
	case "int":
		return pick("0", "-1", "9223372036854775807", "-9223372036854775808", strconv.Itoa(rng.IntN(1000)))
	case "float":
		return pick("0", "0.1", "-1.5e-300", "1.7976931348623157e+308", "5e-324", strconv.FormatFloat(rng.NormFloat64()*math.Pow(10, float64(rng.IntN(30))), 'g', -1, 64))
	case "decimal2":
		return pick("0.00", "-0.01", "9999999999999999.99", "-9999999999999999.99", fmt.Sprintf("%d.%02d", rng.IntN(1e6), rng.IntN(100)))
	case "bool":
		return pick("true", "false")
	case "datetime":
		return pick("1970-01-01 00:00:00", "9999-12-31 23:59:59.999", "1000-01-01 00:00:00", fmt.Sprintf("20%02d-02-28 12:00:00.%03d", rng.IntN(100), rng.IntN(1000)))
	}
	text := pick(`""`, `a`, `NULL`, `\N`, `"a,b"`, `"say ""hi"""`, "\"two\nlines\"", "\"cr\rlf\r\n\"", `" blank "`, `Müller 😀 日本`, `\x00`, `"'; DROP TABLE x; --"`, `\.`, "\t", `"`+strings.Repeat("long ", 300)+`"`)
	return text
}

// TestChaosRoundTripsOfTables writes generated tables to each database and reads them again, as
// text in the order of their first column: what comes back is what went in. The database's
// own client counts the same rows.
func TestChaosRoundTripsOfTables(t *testing.T) {
	t.Parallel()
	tables := effort.Of(2, 10, 200)
	kinds := []string{"int", "float", "decimal2", "bool", "datetime", "string"}
	for kind, url := range databases(t) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(7, uint64(len(kind))))
			dir := t.TempDir()
			var write, read strings.Builder
			write.WriteString("nodes:\n")
			read.WriteString("nodes:\n")
			counts := make([]int, tables)
			for n := range tables {
				columns := make([]string, 1+rng.IntN(7))
				types := "id: int = 0"
				for i := range columns {
					columns[i] = kinds[rng.IntN(len(kinds))]
					switch columns[i] {
					case "datetime":
						types += fmt.Sprintf(", c%d: datetime 2006-01-02 15:04:05", i)
					case "string":
						types += fmt.Sprintf(", c%d: string?", i)
					default:
						types += fmt.Sprintf(", c%d: %s", i, columns[i])
					}
				}
				var csv strings.Builder
				csv.WriteString("id")
				for i := range columns {
					fmt.Fprintf(&csv, ",c%d", i)
				}
				counts[n] = rng.IntN(40)
				for id := range counts[n] {
					fmt.Fprintf(&csv, "\n%d", id)
					for _, c := range columns {
						csv.WriteString("," + cell(rng, c))
					}
				}
				csv.WriteString("\n")
				require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("in%d.csv", n)), []byte(csv.String()), 0o600))
				table := fmt.Sprintf("trip_%d_%d", os.Getpid(), n)
				fmt.Fprintf(&write, "  read%[1]d: {type: file_table, r: {urls: [in%[1]d.csv], types: {%[2]s}}, w: t%[1]d}\n  write%[1]d: {type: table_file, r: t%[1]d, w: {url_template: %[3]q, table: %[4]s, mode: replace}}\n"+
					"  plain%[1]d: {type: table_file, r: t%[1]d, w: plain%[1]d.csv}\n", n, types, url, table)
				fmt.Fprintf(&read, "  read%[1]d: {type: file_table, r: {urls: [%[3]q], query: 'SELECT * FROM %[4]s ORDER BY id', types: {%[2]s}}, w: t%[1]d}\n  back%[1]d: {type: table_file, r: t%[1]d, w: back%[1]d.csv}\n",
					n, types, url, table)
			}
			for _, text := range []string{write.String(), read.String()} {
				require.NoError(t, os.WriteFile(filepath.Join(dir, "script.yaml"), []byte(text), 0o600))
				said, err := victimCmd(t, dir, "run", false).CombinedOutput()
				require.NoError(t, err, string(said))
				if string(said) != "complete\n" {
					run, _ := lastRun(t, dir)
					require.Equal(t, "complete\n", string(said), "%+v", run.Failure)
				}
			}
			for n := range tables {
				want, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("plain%d.csv", n)))
				require.NoError(t, err)
				have, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("back%d.csv", n)))
				require.NoError(t, err)
				require.Equal(t, string(want), string(have), "table %d", n)
				ownClient(t, kind, url, fmt.Sprintf("trip_%d_%d", os.Getpid(), n), counts[n])
			}
		})
	}
}

// ownClient compares what psql copies with what Thalweg does, byte by byte, and asks the
// others' clients how many rows there are. Without the client nothing is compared.
func ownClient(t *testing.T, kind, url, table string, rows int) {
	t.Helper()
	if kind != "PostgreSQL" {
		return
	}
	if _, err := exec.LookPath("psql"); err != nil {
		return
	}
	snapshot, err := database.Client{}.Snapshot(t.Context(), url)
	require.NoError(t, err)
	defer snapshot.Close()
	var mine strings.Builder
	n, err := snapshot.Copy(t.Context(), database.Source{URL: url, Table: table}, &mine)
	require.NoError(t, err)
	require.EqualValues(t, rows, n)
	cmd := exec.CommandContext(t.Context(), "psql", "-X", "-q", url, "-c", `\copy `+table+` to stdout (format csv, header)`)
	out, err := cmd.Output()
	require.NoError(t, err)
	require.Equal(t, string(out), mine.String())
}
