package around

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"thalweg/internal/base/fault"
	"thalweg/internal/base/keeper"
)

// events are what perf counts. Its names are those of the manual of perf-stat.
var events = []string{"task-clock", "context-switches", "page-faults", "cycles", "instructions",
	"stalled-cycles-frontend", "stalled-cycles-backend", "cache-references", "cache-misses", "branches", "branch-misses"}

// pidsMost bounds the processes that are counted: each has a perf of its own.
const pidsMost = 16

// Counted is what the processors have counted of a process.
type Counted struct {
	PID     int                `json:"pid"`
	Program string             `json:"program,omitempty"`
	Counts  map[string]float64 `json:"counts,omitempty"` // by event; task-clock is in milliseconds
	// Events that this kernel or processor does not count, and those that did not happen to be counted.
	Unsupported []string `json:"not_supported,omitempty"`
	Uncounted   []string `json:"not_counted,omitempty"`
	Part        float64  `json:"least_part_of_time" doc:"Of the window, for the event that was counted the least: 0 to 1."`
	Note        string   `json:"note,omitempty"` // why there is nothing
}

// Ratio divides one event by another; false: one of them was not counted.
func (c Counted) Ratio(of, by string) (float64, bool) {
	a, okA := c.Counts[of]
	b, okB := c.Counts[by]
	return a / b, okA && okB && b > 0
}

// Derived are the ratios that people compare, by name. What was not counted is not there.
func (c Counted) Derived() map[string]float64 {
	out := map[string]float64{}
	for name, of := range map[string][2]string{"instructions a cycle": {"instructions", "cycles"},
		"cycles stalled, front end": {"stalled-cycles-frontend", "cycles"},
		"cycles stalled, back end":  {"stalled-cycles-backend", "cycles"},
		"cache misses":              {"cache-misses", "cache-references"},
		"branch misses":             {"branch-misses", "branches"}} {
		if v, ok := c.Ratio(of[0], of[1]); ok {
			out[name] = v
		}
	}
	return out
}

// Counting is what counts while a load runs.
type Counting struct {
	stops []func() Counted
}

// StartCounting begins to count processes. A process that cannot be counted is in the answer with why: a load is
// worth something without. What happens in the first while, the warm-up, is not counted.
func StartCounting(self string, pids []int, warmUp time.Duration) (*Counting, error) {
	if len(pids) > pidsMost {
		return nil, fault.New(fault.Script, "%d processes are to be counted; the most are %d", len(pids), pidsMost)
	}
	c := &Counting{}
	for i, pid := range pids {
		if pid < 1 || slices.Contains(pids[:i], pid) {
			c.Stop()
			return nil, fault.New(fault.Script, "%d is no process, or named twice", pid)
		}
		c.stops = append(c.stops, count(self, pid, warmUp))
	}
	return c, nil
}

// Stop ends the counting, and returns what was counted by process. A second call returns nothing.
func (c *Counting) Stop() (out []Counted) {
	for _, stop := range c.stops {
		out = append(out, stop())
	}
	c.stops = nil
	return out
}

// perfPatience is how long perf may take to say what it has counted.
const perfPatience = 10 * time.Second

const perfMissing = "perf is not installed here (Debian: linux-perf, Fedora: perf), so nothing is counted"

// count has perf count a process until the answer is called. perf counts while a command runs that ends with its
// input: so its end is no signal to a number that might be another process's by then.
func count(self string, pid int, warmUp time.Duration) func() Counted {
	out := Counted{PID: pid, Program: programOf(procRoot, pid)}
	path, err := keeper.Find("perf")
	if err != nil {
		out.Note = perfMissing
		return func() Counted { return out }
	}
	reads, holds, err := os.Pipe()
	if err != nil {
		out.Note = fmt.Sprintf("perf cannot be started: %v", err)
		return func() Counted { return out }
	}
	said, printed := &head{most: outputMost}, &head{most: outputMost}
	g, err := keeper.Start(self, keeper.Program{Path: path, Args: []string{"stat", "-x,", "-D",
		strconv.FormatInt(warmUp.Milliseconds(), 10), "-e", strings.Join(events, ","), "-p", strconv.Itoa(pid), "--", "cat"},
		Env: append(keeper.Some("PATH"), "LC_ALL=C"), Stdin: reads, Stdout: printed, Stderr: said})
	if err = errors.Join(err, reads.Close()); err != nil {
		out.Note = fmt.Sprintf("perf cannot be started: %v", errors.Join(err, holds.Close()))
		return func() Counted { return out }
	}
	return func() Counted {
		_ = holds.Close() // it has no data that could be lost
		last := time.AfterFunc(perfPatience, g.Kill)
		defer last.Stop()
		end := g.Wait()
		if end.Err != nil || end.Status.ExitStatus() != 0 {
			out.Note = fmt.Sprintf("perf counts nothing of process %d: %s: %s", pid, end, firstLine(said.String()))
			return out
		}
		if err := out.read(said); err != nil {
			out.Note = fmt.Sprintf("what perf says of process %d cannot be read: %v", pid, err)
		}
		return out
	}
}

// read reads what perf stat -x, prints: value, unit, event, time that it was counted for, and its part of the window.
func (c *Counted) read(from io.Reader) error {
	lines := csv.NewReader(from)
	lines.FieldsPerRecord, lines.Comment = -1, '#'
	counts, part := map[string]float64{}, 1.0
	for {
		record, err := lines.Read()
		switch {
		case errors.Is(err, io.EOF):
			c.Counts = counts
			if c.Part = part; len(counts) == 0 {
				c.Part = 0
			}
			return nil
		case err != nil:
			return err
		case len(record) == 1 && strings.HasPrefix(record[0], "Events "): // enabled, disabled: of the delay
			continue
		case len(record) < 5:
			return fmt.Errorf("a line has %d fields: %s", len(record), strings.Join(record, ","))
		}
		event, _, _ := strings.Cut(record[2], ":") // :u where the kernel does not count itself
		switch record[0] {
		case "<not supported>":
			c.Unsupported = append(c.Unsupported, event)
			continue
		case "<not counted>":
			c.Uncounted = append(c.Uncounted, event)
			continue
		}
		value, err := strconv.ParseFloat(record[0], 64)
		if err != nil {
			return fmt.Errorf("the count of %s: %w", event, err)
		}
		percent, err := strconv.ParseFloat(record[4], 64)
		if err != nil {
			return fmt.Errorf("the time of %s: %w", event, err)
		}
		counts[event], part = value, min(part, percent/100)
	}
}

// programOf is the name of a process; "": it cannot be seen.
func programOf(root string, pid int) string {
	text, err := os.ReadFile(filepath.Join(root, strconv.Itoa(pid), "comm"))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// Counts counts processes while something runs.
func Counts[T any](ctx context.Context, self string, pids []int, warmUp time.Duration,
	do func(context.Context) (T, error)) (T, []Counted, error) {
	c, err := StartCounting(self, pids, warmUp)
	if err != nil {
		var none T
		return none, nil, err
	}
	out, err := do(ctx)
	return out, c.Stop(), err
}

// outputMost is how much is kept of what a program prints.
const outputMost = 64 << 10

// head keeps the beginning of what is written.
type head struct {
	most int
	kept bytes.Buffer
}

// Write never fails: a program must not end because nobody reads on.
func (h *head) Write(p []byte) (int, error) {
	h.kept.Write(p[:min(len(p), h.most-h.kept.Len())])
	return len(p), nil
}

// Read reads what was kept.
func (h *head) Read(p []byte) (int, error) { return h.kept.Read(p) }

// String is what was kept.
func (h *head) String() string { return h.kept.String() }

func firstLine(text string) string {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			return line
		}
	}
	return "it says nothing"
}
