package fleet

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"thalweg/internal/app/instance"
	"thalweg/internal/app/runtime"
	"thalweg/internal/app/worker"
	"thalweg/internal/base/settings"
	"thalweg/internal/io/remote"
)

// workerSpec makes this test binary a worker: the JSON text of its spec.
const workerSpec = "THALWEG_FLEET_WORKER"

// spec is the configuration of a worker process.
type spec struct {
	Config  string        // cluster.yaml
	Host    string        // that it believes to be on; "": this one
	Program string        // it becomes this program's worker, with slots in processes of their own; "": it stays itself
	Lease   time.Duration // not of the program, which has its own
	Ahead   time.Duration // of its clock, if the program has one that can be wrong
	Cores   int
	Memory  int64

	Interpreter string // "": python3; not of the program
}

// triesMax: a machine that is slow loses short leases, which is no reason to give up.
const (
	triesMax     = 1000
	programTries = 100 // the most that it takes
)

// serve is a worker process: SIGTERM drains it.
func serve(text string) int {
	var s spec
	err := json.Unmarshal([]byte(text), &s)
	if err == nil && s.Host != "" {
		err = syscall.Sethostname([]byte(s.Host))
	}
	if err == nil && s.Program != "" {
		err = syscall.Exec(s.Program, []string{s.Program, "worker", "--verbose", "--cluster", s.Config, "--cores",
			strconv.Itoa(s.Cores),
			"--memory", strconv.FormatInt(s.Memory>>20, 10) + "MB", "--tries", strconv.Itoa(programTries)},
			append(os.Environ(), fmt.Sprintf("THALWEG_CLOCK_AHEAD_SECONDS=%d", int(s.Ahead.Seconds()))))
	}
	if err == nil {
		err = s.serve(context.Background())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, time.Now().Format(time.TimeOnly), "the worker ends:", err)
		return 1
	}
	return 0
}

func (s spec) serve(ctx context.Context) (err error) {
	cfg, err := instance.LoadCluster(s.Config, settings.Options{Known: nil})
	if err != nil {
		return err
	}
	home, err := instance.OpenCluster(ctx, cfg, instance.ClusterOptions{})
	if err != nil {
		return err
	}
	defer home.Close()
	client := remote.New(remote.Config{})
	defer client.Close()
	term, drain := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(term, syscall.SIGTERM)
	go func() {
		<-term
		close(drain)
	}()
	return worker.Serve(ctx, home, worker.WorkerOptions{Process: runtime.Process{Remote: client, MemoryBytes: s.Memory,
		Cores: s.Cores, Interpreter: cmp.Or(s.Interpreter, "python3"), Lease: s.Lease, Tries: triesMax, Program: "test",
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelInfo}))}, Drain: drain,
		DrainTime: cfg.Worker.Drain})
}
