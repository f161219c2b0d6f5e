package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"thalweg/bench/internal/bench"
	"thalweg/bench/internal/cluster"
)

// worker is a process of the fleet.
type worker struct {
	cmd   *exec.Cmd
	at    string // its metrics
	group string // that holds it; "": none
	ended chan error

	watched func() (bench.Peaks, error) // its memory, and that of its slots; called once
}

// start starts a worker with a scratch directory of its own.
func (o options) start(ctx context.Context, i int, in *cluster.Cluster) (*worker, error) {
	config, err := in.Config(fmt.Sprintf("worker%d", i))
	if err != nil {
		return nil, err
	}
	at, err := freeAddress(ctx)
	if err != nil {
		return nil, err
	}
	w := &worker{at: at, cmd: exec.Command(o.Thalweg, "worker", "--cluster", config, "--metrics", at,
		"--memory", o.Memory, "--cores", strconv.Itoa(o.Cores), "--python", o.Python)}
	w.cmd.Stdout, w.cmd.Stderr = os.Stderr, os.Stderr
	w.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if o.Half {
		w.group = filepath.Join("/sys/fs/cgroup/cpu", fmt.Sprintf("thalweg-bench-%d-%d", os.Getpid(), i))
		if err := half(w.group); err != nil {
			return nil, err
		}
	}
	if err := w.run(); err != nil {
		return nil, fmt.Errorf("start a worker: %w", err)
	}
	w.watched = watch(w.cmd.Process.Pid)
	if w.group == "" {
		return w, nil
	}
	if err := os.WriteFile(filepath.Join(w.group, "cgroup.procs"), []byte(strconv.Itoa(w.cmd.Process.Pid)),
		0o644); err != nil {
		return nil, errors.Join(fmt.Errorf("hold a worker: %w", err), w.stop())
	}
	return w, nil
}

// run starts the process from a thread that stays: it would die with the thread.
func (w *worker) run() error {
	started := make(chan error)
	w.ended = make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		err := w.cmd.Start()
		if started <- err; err == nil {
			w.ended <- w.cmd.Wait()
		}
	}()
	return <-started
}

// watch follows the memory of a process until it is asked for what it was.
func watch(pid int) func() (bench.Peaks, error) {
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	var peaks bench.Peaks
	var err error
	go func() {
		defer close(done)
		peaks, err = bench.Watch(ctx, pid)
	}()
	return func() (bench.Peaks, error) {
		stop()
		<-done
		return peaks, err
	}
}

// peaks notes the memory of the worker if it is the largest.
func (w *worker) peaks(counts map[string]float64) error {
	peaks, err := w.watched()
	if err != nil {
		return fmt.Errorf("watch a worker's memory: %w", err)
	}
	const gb = 1e9
	counts["peak GB of a worker"] = max(counts["peak GB of a worker"], float64(peaks.RSS)/gb)
	counts["peak GB of a worker, shared pages once"] = max(counts["peak GB of a worker, shared pages once"],
		float64(peaks.PSS)/gb)
	return nil
}

// half makes a group whose processes have half a core together.
func half(group string) error {
	const period, quota = "100000", "50000" // µs
	err := os.Mkdir(group, 0o755)
	for name, value := range map[string]string{"cpu.cfs_period_us": period, "cpu.cfs_quota_us": quota} {
		if err == nil {
			err = os.WriteFile(filepath.Join(group, name), []byte(value), 0o644)
		}
	}
	if err != nil {
		return fmt.Errorf("make a control group (version 1, as root): %w", err)
	}
	return nil
}

func freeAddress(ctx context.Context) (string, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a port: %w", err)
	}
	return l.Addr().String(), l.Close()
}

// stop has the worker drain.
func (w *worker) stop() error {
	err := w.cmd.Process.Signal(syscall.SIGTERM)
	late := time.AfterFunc(stopWithin, func() { _ = w.cmd.Process.Kill() })
	err = errors.Join(err, <-w.ended)
	late.Stop()
	if w.group != "" {
		err = errors.Join(err, os.Remove(w.group))
	}
	return err
}

// ready waits until the worker reaches its state.
func (w *worker) ready(ctx context.Context) error {
	tick := time.NewTicker(tryEvery)
	defer tick.Stop()
	for {
		if body, err := w.get(ctx, "/readyz"); err == nil {
			return body.Body.Close()
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

func (w *worker) get(ctx context.Context, path string) (*http.Response, error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+w.at+path, nil)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(q)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		return nil, errors.Join(fmt.Errorf("%s answers %s", path, answer.Status), answer.Body.Close())
	}
	return answer, nil
}

// family is a metric, as the worker tells it.
type family struct {
	Name    string `json:"name"`
	Samples []struct {
		Labels map[string]string `json:"labels"`
		Value  float64           `json:"value"`
	} `json:"samples"`
}

// count adds what the worker has counted.
func (w *worker) count(ctx context.Context, counts map[string]float64) (err error) {
	answer, err := w.get(ctx, "/metrics.json")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, answer.Body.Close()) }()
	var all []family
	if err := json.NewDecoder(answer.Body).Decode(&all); err != nil {
		return fmt.Errorf("read the metrics: %w", err)
	}
	for _, f := range all {
		for _, s := range f.Samples {
			switch f.Name {
			case "thalweg_state_calls_total":
				counts["state calls"] += s.Value
			case "thalweg_conditional_writes_total":
				counts["conditional writes"] += s.Value
				if s.Labels["outcome"] == "lost" {
					counts["conditional writes lost"] += s.Value
				}
			case "thalweg_queue_deliveries_total":
				if s.Labels["fate"] != "used" {
					counts["useless deliveries"] += s.Value
				}
			case "thalweg_requests_total":
				counts[s.Labels["service"]+" requests"] += s.Value
			case "thalweg_part_copies_total":
				counts["parts "+s.Labels["outcome"]] += s.Value
			case "thalweg_part_copies_bytes_total":
				counts["part bytes "+s.Labels["outcome"]] += s.Value
			case "thalweg_slot_ends_total":
				counts["slot ends"] += s.Value
			case "thalweg_batches_total":
				counts["attempts"] += s.Value
			case "thalweg_rows_total":
				if s.Labels["direction"] == "in" {
					counts["rows"] += s.Value
				}
			case "thalweg_parts_bytes_total":
				counts["part bytes "+s.Labels["operation"]] += s.Value
			case "thalweg_bytes_total":
				counts["batch bytes "+s.Labels["direction"]] += s.Value
			}
		}
	}
	return nil
}
