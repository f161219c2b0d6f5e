package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSameBytesWhateverTheMachine runs one script under settings that differ from
// machine to machine, and compares what it writes byte for byte.
func TestSameBytesWhateverTheMachine(t *testing.T) {
	t.Parallel()
	blanks := filepath.Join(t.TempDir(), "a b  c")
	require.NoError(t, os.Mkdir(blanks, 0o700))
	settings := []struct {
		name    string
		env     []string // NAME=VALUE; NAME alone: not set
		command []string // before thalweg
	}{
		{"as it is", nil, nil},
		{"far east, Turkish, strict", []string{"TZ=Pacific/Kiritimati", "LC_ALL=tr_TR.UTF-8",
			"LANG=tr_TR.UTF-8", "HOME"},
			[]string{"sh", "-c", `umask 077; exec "$@"`, "sh"}},
		{"half hours, C, open, one core", []string{"TZ=America/St_Johns", "LC_ALL=C", "GOMAXPROCS=1", "LANG"},
			[]string{"sh", "-c", `umask 0; exec "$@"`, "sh"}},
		{"blanks, no time zone", []string{"TMPDIR=" + blanks, "TZ=", "PYTHONHASHSEED=7", "PYPY_GC_NURSERY=1G",
			"PYTHONPATH=/nowhere"}, nil},
	}
	var want map[string]string
	for _, s := range settings {
		got := runUnder(t, s.env, s.command)
		if want == nil {
			want = got
			require.Contains(t, want["out.csv"], "I,2024-03-31 01:30:00,True")
			continue
		}
		require.Equal(t, want, got, s.name)
	}
}

const machineScript = `nodes:
  read: {type: file_table, r: {urls: [in.csv], types: {at: datetime 2006-01-02 15:04:05, ok: bool}}, w: t}
  calc:
    type: table_custom_tfm_table
    custom_proc_type: py_calc
    r: t
    p: {python_code_urls: [f.py], calculated_fields: {seen: {expression: "f(r.id, r.at, r.ok)", type: string}}}
    w: {name: u, fields: [r.*, {seen: p.seen}, {day: 'time.Format(r.at, "2006-01-02 15:04:05")'}]}
  csv: {type: table_file, r: u, w: {url_template: out.csv, order: "id(ignore_case)", columns: [id, day, seen]}}
  parquet: {type: table_file, r: u, w: out.parquet}
`

// runUnder runs the script in a directory of its own and returns the files that it writes.
func runUnder(t *testing.T, env, command []string) map[string]string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"script.yaml": machineScript,
		"in.csv": "id,at,ok\ni,2024-03-31 02:30:00,true\nI,2024-03-31 01:30:00,true\nı,1969-12-31 " +
			"23:59:59,false\nİ,2024-10-27 02:30:00,true\nä,2024-06-30 12:00:00,false\n",
		"f.py": "import time, locale\ndef f(a, at, ok):\n  return '%s %s %s %s %s' % (ok, a.upper(), at, " +
			"time.tzname[0], '{:n}'.format(1234567.5))\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	args := append(append([]string(nil), command...), "thalweg", "run", "script.yaml")
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = dir
	for _, pair := range os.Environ() {
		name, _, _ := strings.Cut(pair, "=")
		kept := true
		for _, set := range env {
			other, _, _ := strings.Cut(set, "=")
			kept = kept && name != other
		}
		if kept {
			cmd.Env = append(cmd.Env, pair)
		}
	}
	for _, set := range env {
		if strings.Contains(set, "=") {
			cmd.Env = append(cmd.Env, set)
		}
	}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	files := map[string]string{}
	for _, name := range []string{"out.csv", "out.parquet"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		files[name] = string(text)
	}
	return files
}
