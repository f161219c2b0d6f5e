package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/prometheus/procfs"
)

// ours is `thalweg bench store`.
type ours struct{}

func (ours) name() string     { return "thalweg bench store" }
func (ours) keyspace() string { return "bench_ours" }

// report is what is read of its JSON.
type report struct {
	Loads []struct {
		Took time.Duration `json:"took_ns"`
		CPU  time.Duration `json:"cpu_ns"`
		Rows []struct {
			Time   string  `json:"time"`
			Ops    int64   `json:"ops"`
			Failed int64   `json:"failed"`
			P50    float64 `json:"p50_us"`
			P99    float64 `json:"p99_us"`
		} `json:"rows"`
	} `json:"loads"`
}

func (c ours) bench(ctx context.Context, o options, args ...string) (r report, err error) {
	cmd := exec.CommandContext(ctx, o.program, append([]string{"bench", "store", "--target", "cql://" + o.node, "--json",
		"--keep", "--name", c.keyspace(), "--keys", strconv.FormatInt(o.keys, 10), "--clients", strconv.Itoa(o.clients)},
		args...)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(out, &r)
}

func (c ours) fill(ctx context.Context, o options) error {
	_, err := c.bench(ctx, o, "--fill", "--ops", "1") // there is no filling alone
	return err
}

func (c ours) window(ctx context.Context, o options, kind string, fixed int) (w window, err error) {
	w = window{Client: c.name(), Kind: kind, Fixed: fixed}
	mix := map[string]string{"writes": "0/100", "reads": "100/0"}[kind]
	r, err := c.bench(ctx, o, "--no-fill", "--mix", mix, "--for", o.window.String(), "--warm-up", o.warmUp.String(),
		"--rate", strconv.Itoa(fixed))
	if err != nil {
		return w, err
	}
	if len(r.Loads) != 1 || len(r.Loads[0].Rows) == 0 || r.Loads[0].Rows[0].Time != "response" {
		return w, errors.New("its report has other loads than were asked for")
	}
	l, row := r.Loads[0], r.Loads[0].Rows[0]
	if row.Failed > 0 {
		return w, fmt.Errorf("%d operations have failed", row.Failed)
	}
	w.Rate, w.CPU = float64(row.Ops)/l.Took.Seconds(), float64(l.CPU.Microseconds())/float64(row.Ops)
	w.P50, w.P99 = row.P50, row.P99
	return w, nil
}

// theirs is cassandra-stress.
type theirs struct{}

func (theirs) name() string     { return "cassandra-stress" }
func (theirs) keyspace() string { return "bench_theirs" }

// command is that of a load.
func (c theirs) command(ctx context.Context, o options, load ...string) *exec.Cmd {
	host, port, _ := strings.Cut(o.node, ":")
	args := append([]string{"java", "-ea", "-cp", o.classes, "-Dlogback.configurationFile=logback-tools.xml",
		"org.apache.cassandra.stress.Stress"}, load...)
	cmd := exec.CommandContext(ctx, o.java, append(args, "-node", host, "-port", "native="+port, "-schema",
		"keyspace="+c.keyspace(), "-mode", "native", "cql3", "protocolVersion=4", "connectionsPerHost=8")...)
	cmd.Stderr = os.Stderr
	return cmd
}

func (c theirs) fill(ctx context.Context, o options) error {
	n := strconv.FormatInt(o.keys, 10)
	out, err := c.command(ctx, o, "write", "n="+n, "no-warmup", "cl=LOCAL_ONE", "-pop", "seq=1.."+n, "-rate",
		"threads="+strconv.Itoa(o.clients)).Output()
	if err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}

// window measures a load. Its beginning counts for nothing, as of ours: neither its time, nor its operations.
func (c theirs) window(ctx context.Context, o options, kind string, fixed int) (w window, err error) {
	w = window{Client: c.name(), Kind: kind, Fixed: fixed}
	dir, err := os.MkdirTemp("", "thalweg-stress")
	if err != nil {
		return w, err
	}
	defer os.RemoveAll(dir)
	log := filepath.Join(dir, "hdr")
	rate := []string{"-rate", "threads=" + strconv.Itoa(o.clients)}
	if fixed > 0 {
		rate = append(rate, fmt.Sprintf("fixed=%d/s", fixed))
	}
	seconds := int((o.warmUp + o.window).Seconds())
	verb := strings.TrimSuffix(kind, "s")
	cmd := c.command(ctx, o, append([]string{verb, fmt.Sprintf("duration=%ds", seconds), "cl=LOCAL_ONE", "-pop",
		fmt.Sprintf("dist=UNIFORM(1..%d)", o.keys), "-log", "hdrfile=" + log}, rate...)...)
	used, err := watch(cmd, o.warmUp)
	if err != nil {
		return w, err
	}
	tag := strings.ToUpper(verb) + "-st"
	if fixed > 0 {
		tag = strings.ToUpper(verb) + "-rt"
	}
	times, took, err := readLog(log, tag, o.warmUp)
	if err != nil {
		return w, fmt.Errorf("read its histograms: %w", err)
	}
	w.Rate = float64(times.TotalCount()) / took.Seconds()
	w.CPU = used * 1e6 / float64(times.TotalCount())
	const nanosecondsEach = 1000
	w.P50 = float64(times.ValueAtQuantile(50)) / nanosecondsEach
	w.P99 = float64(times.ValueAtQuantile(99)) / nanosecondsEach
	return w, nil
}

// watch runs a load, and returns the processor time in seconds that it takes from its warm-up to its results.
func watch(cmd *exec.Cmd, warmUp time.Duration) (used float64, err error) {
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	defer func() {
		if err != nil {
			_ = cmd.Process.Kill()
		}
		err = errors.Join(err, cmd.Wait())
	}()
	type look struct {
		used float64
		err  error
	}
	begun := make(chan look, 1)
	var timer *time.Timer
	var text strings.Builder
	ended := false
	for lines := bufio.NewScanner(out); lines.Scan(); {
		text.WriteString(lines.Text() + "\n")
		switch {
		case strings.HasPrefix(lines.Text(), "Running "): // its own warm-up is over
			timer = time.AfterFunc(warmUp, func() {
				used, err := processorTime(cmd.Process.Pid)
				begun <- look{used, err}
			})
		case strings.HasPrefix(lines.Text(), "Results:") && timer != nil:
			if timer.Stop() {
				return 0, errors.New("it ended before it was warm")
			}
			if used, err = processorTime(cmd.Process.Pid); err != nil {
				return 0, err
			}
			from := <-begun
			used, ended = used-from.used, true
			if from.err != nil {
				return 0, from.err
			}
		case strings.HasPrefix(lines.Text(), "Total errors") && !strings.Contains(lines.Text(), ":          0 "):
			return 0, errors.New("operations have failed: " + lines.Text())
		}
	}
	if !ended {
		return 0, errors.New("it has no results:\n" + text.String())
	}
	return used, nil
}

func processorTime(pid int) (float64, error) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return 0, err
	}
	stat, err := p.Stat()
	return stat.CPUTime(), err
}

// readLog merges the histograms of a tag that begin behind the warm-up, and returns how long they were collected.
func readLog(path, tag string, warmUp time.Duration) (*hdrhistogram.Histogram, time.Duration, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	all := hdrhistogram.New(1, int64(time.Hour), 3)
	var first, took time.Duration
	r := hdrhistogram.NewHistogramLogReader(f)
	for {
		h, err := r.NextIntervalHistogram()
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, 0, err
		}
		if h == nil {
			break
		}
		if h.Tag() != tag {
			continue
		}
		from := time.Duration(h.StartTimeMs()) * time.Millisecond
		if first == 0 {
			first = from
		}
		if from-first < warmUp {
			continue
		}
		if dropped := all.Merge(h); dropped > 0 {
			return nil, 0, fmt.Errorf("%d times are longer than an hour", dropped)
		}
		took += time.Duration(h.EndTimeMs())*time.Millisecond - from
	}
	if all.TotalCount() == 0 || took <= 0 {
		return nil, 0, fmt.Errorf("it has none of %s behind the warm-up", tag)
	}
	return all, took, nil
}
