package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"thalweg/internal/io/tableindex"
)

// appendKey appends a key as redis-benchmark writes it for key:__rand_int__.
func appendKey(to []byte, i int64) []byte { return appendDigits(append(to, "key:"...), i) }

const digits = 12

func appendDigits(to []byte, i int64) []byte {
	for range digits {
		to = append(to, '0')
	}
	for at := len(to) - 1; i > 0; at, i = at-1, i/10 {
		to[at] += byte(i % 10)
	}
	return to
}

// appendValue appends the row of a key in a version of the table: its number and the version, time and again.
func appendValue(to []byte, i int64, version, n int) []byte {
	from := len(to)
	for len(to)-from < n {
		to = append(appendDigits(to, i), byte('0'+version), '|')
	}
	return to[:from+n]
}

// buildTable has the program write the first version, and returns how many rows of it a second.
func buildTable(ctx context.Context, o options) (rowsPerSecond float64, err error) {
	const script = "nodes:\n" +
		"  read: {type: file_table, r: {urls: [in.csv], types: {key: string, value: string}}, w: items}\n" +
		"  write: {type: table_file, r: {table: items}, w: {url_template: " + tableName +
		", index: {key: key}, columns: [key, value]}}\n"
	if err := os.WriteFile(filepath.Join(o.dir, "script.yaml"), []byte(script), 0o600); err != nil {
		return 0, err
	}
	if err := writeRows(filepath.Join(o.dir, "in.csv"), o); err != nil {
		return 0, err
	}
	if _, err := runProgram(ctx, o, "run", "script.yaml"); err != nil {
		return 0, err
	}
	text, err := runProgram(ctx, o, "nodes", "--json")
	if err != nil {
		return 0, err
	}
	var nodes []struct {
		Node      string  `json:"node"`
		ElapsedMS float64 `json:"elapsed_ms"`
	}
	if err := json.Unmarshal(text, &nodes); err != nil {
		return 0, err
	}
	for _, n := range nodes {
		if n.Node == "write" && n.ElapsedMS > 0 {
			return float64(o.keys) / n.ElapsedMS * 1000, nil
		}
	}
	return 0, fmt.Errorf("no node has written the index: %s", text)
}

func runProgram(ctx context.Context, o options, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, o.program, args...)
	cmd.Dir, cmd.Stderr = o.dir, os.Stderr
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", cmd, err)
	}
	return text, nil
}

// writeRows writes the first version as a CSV file.
func writeRows(path string, o options) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	w := bufio.NewWriterSize(file, 1<<20)
	line := []byte("key,value\n")
	for i := range o.keys {
		if _, err := w.Write(line); err != nil {
			return err
		}
		line = append(appendKey(line[:0], i), ',')
		line = append(appendValue(line, i, 1, o.bytes), '\n')
	}
	if _, err := w.Write(line); err != nil {
		return err
	}
	return w.Flush()
}

// makeTable writes the index of a version.
func makeTable(path string, version int, o options) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	w, err := tableindex.NewWriter(file, o.keys, tableindex.Meta{Key: []string{"key"}, Columns: []string{"value"},
		Source: fmt.Sprint("version ", version)})
	if err != nil {
		return err
	}
	var key, value, frame []byte
	for i := range o.keys {
		key, value = appendKey(key[:0], i), appendValue(value[:0], i, version, o.bytes)
		frame = tableindex.Frame(frame[:0], value)
		if err := w.Add(key, frame); err != nil {
			return err
		}
	}
	return w.Finish()
}
