package main

import (
	"bufio"
	"bytes"
	"context"
	_ "embed" // the script
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// workspace is where runs are.
const workspace = "main"

//go:embed scripts/load.yaml
var loadScript []byte

// items writes files with so many rows each, numbered through.
func (o options) items(files, rows int) (urls []string, err error) {
	for f := range files {
		path := filepath.Join(o.Dir, fmt.Sprintf("items%04d.csv", f))
		if err := writeItems(path, f*rows, rows); err != nil {
			return nil, fmt.Errorf("write input: %w", err)
		}
		urls = append(urls, path)
	}
	return urls, nil
}

func writeItems(path string, from, rows int) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := bufio.NewWriter(f)
	line := []byte("id,name,price\n")
	for i := from; i < from+rows; i++ {
		if _, err := w.Write(line); err != nil {
			return err
		}
		line = strconv.AppendInt(line[:0], int64(i), 10)
		line = append(strconv.AppendInt(append(line, ",item number "...), int64(i*7919%1_000_003), 10), ',')
		line = append(strconv.AppendInt(line, int64(i%9973), 10), ".25\n"...)
	}
	if _, err := w.Write(line); err != nil {
		return err
	}
	return w.Flush()
}

// loading returns a run that loads files into a table.
func (o options) loading(ctx context.Context, urls []string) (*exec.Cmd, error) {
	return o.writing(ctx, urls, 1, "--to", "load")
}

// writing returns a run that also writes the table to so many files.
func (o options) writing(ctx context.Context, urls []string, files int, flags ...string) (*exec.Cmd, error) {
	script, params := filepath.Join(o.Dir, "load.yaml"), filepath.Join(o.Dir, "load.json")
	text, err := json.Marshal(map[string]any{"urls": urls, "batches": files, "dir_out": o.Dir})
	if err == nil {
		err = errors.Join(os.WriteFile(script, loadScript, 0o644), os.WriteFile(params, text, 0o644))
	}
	if err != nil {
		return nil, fmt.Errorf("write the script: %w", err)
	}
	return o.command(ctx, script, params, flags...)
}

// command returns a run of a script as a process. It takes nothing over from earlier ones.
func (o options) command(ctx context.Context, script, params string, flags ...string) (*exec.Cmd, error) {
	at, err := o.place("run")
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, o.Thalweg, slices.Concat([]string{"run", script, "--params", params, "--workspace",
		workspace, "--fresh", "--json"}, at, flags)...)
	cmd.Dir = o.Dir
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = stopWithin
	return cmd, nil
}

// work lets a run work and returns how long its process took.
func work(cmd *exec.Cmd) (float64, error) {
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	began := time.Now()
	if err := cmd.Run(); err != nil {
		return 0, fmt.Errorf("run a script: %w: %s", err, stderr.Bytes())
	}
	return time.Since(began).Seconds(), nil
}
