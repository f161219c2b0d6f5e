package main

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/test/effort"
)

// standstill is the time for which processes are stopped, and standstillLimit the time limit of a
// row.
const (
	standstill      = 5 * time.Second
	standstillLimit = 3 * time.Second
)

// TestChaosStandstill stops processes for longer than a row may take: that is no mistake of its formula.
func TestChaosStandstill(t *testing.T) {
	if !effort.All() {
		t.Skip("it waits for the clock: make chaos")
	}
	const script = "nodes:\n  read:\n    type: file_table\n    r: {urls: [in.csv], types: {a: int}}\n    w: {name: " +
		"t, fields: {a: {expression: 'coalesce(r.a, 0)', type: int}}}\n" +
		"  heavy:\n    type: table_custom_tfm_table\n    custom_proc_type: py_calc\n    r: t\n    p:\n      " +
		"python_code_urls: [f.py]\n" +
		"      calculated_fields: {x: {expression: 'f(r.a)', type: int}}\n    w: {name: heavy, fields: {x: " +
		"{expression: p.x, type: int}}}\n"
	const begin = "import os, time\ndef f(a):\n    if a == 7:\n        with open('pid.new', 'w') as f: " +
		"f.write(str(os.getpid()))\n        os.rename('pid.new', 'pid')\n"
	for name, body := range map[string]string{
		"asleep": "        for _ in range(10): time.sleep(0.1)\n",
		"busy":   "        while time.process_time() < 1.5: pass\n",
	} {
		for who, stopped := range map[string]func(run, interpreter int) int{
			"all":             func(run, _ int) int { return -run },
			"the run":         func(run, _ int) int { return run },
			"the interpreter": func(_, interpreter int) int { return interpreter },
		} {
			t.Run(name+", "+who, func(t *testing.T) {
				dir := heavyDir(t, script, begin+body+"    return a\n")
				ctx, cancel := context.WithTimeout(t.Context(), runsWait)
				defer cancel()
				run := thalweg(ctx, dir, "run", "script.yaml", "--memory", "1GB", "--cores", "1", "--row-timeout",
					standstillLimit.String())
				run.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
				var output strings.Builder
				run.Stdout, run.Stderr = &output, &output
				require.NoError(t, run.Start())
				interpreter := awaitNumber(ctx, t, filepath.Join(dir, "pid"))
				target := stopped(run.Process.Pid, interpreter)
				require.NoError(t, syscall.Kill(target, syscall.SIGSTOP))
				if target < 0 { // interpreters have groups of their own
					require.NoError(t, syscall.Kill(interpreter, syscall.SIGSTOP))
				}
				pause := time.NewTimer(standstill)
				<-pause.C
				require.NoError(t, syscall.Kill(interpreter, syscall.SIGCONT))
				require.NoError(t, syscall.Kill(target, syscall.SIGCONT))
				require.NoError(t, run.Wait(), output.String())
			})
		}
	}
}

// awaitNumber waits for a file with a number.
func awaitNumber(ctx context.Context, t *testing.T, path string) int {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if text, err := os.ReadFile(path); err == nil {
			n, err := strconv.Atoi(string(text))
			require.NoError(t, err)
			return n
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal("nothing writes " + path)
		}
	}
}
