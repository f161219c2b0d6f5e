package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"thalweg/bench/internal/bench"
	"thalweg/bench/internal/cluster"
	"thalweg/internal/app/instance"
	"thalweg/internal/app/registry"
	"thalweg/internal/base/budget"
	"thalweg/internal/ops/forecast"
	"thalweg/internal/store/state"
)

// lookEvery is how long to wait for workers until they are looked for again.
const lookEvery = 200 * time.Millisecond

type fleetCmd struct {
	Params  string          `required:"" type:"path" help:"Parameters of the script."`
	Cluster cluster.Options `embed:""`
}

// deployment is a fleet of workers that are alike.
type deployment struct {
	workers int
	held    float64 // cores that each gets
	slots   int     // of each
}

// one is the fleet from which others are foretold. A worker of 1.6 cores has two slots of 0.8 each: a slot
// uses one core at most. How fast such a slot is, is measured, and said to the simulator as that of another machine.
var (
	one    = deployment{1, 0.4, 1}
	others = []deployment{{2, 0.4, 1}, {3, 0.4, 1}, {4, 0.4, 1}, {1, 1.6, 2}, {2, 0.8, 1}}
)

const (
	workerMemory = "2GB"
	workerBytes  = 2_000_000_000
	shapeCores   = 1.6 // of all workers of those that are held against each other
)

func (d deployment) String() string { return fmt.Sprintf("%d × %g core", d.workers, d.held) }

func (d deployment) isShape() bool {
	const nearly = 1e-9
	off := float64(d.workers)*d.held - shapeCores
	return off > -nearly && off < nearly
}

// Run implements kong's command.
func (c *fleetCmd) Run(ctx context.Context, o *options) error {
	if err := cluster.RemoveOldGroups(); err != nil {
		return err
	}
	var all []bench.Forecast
	for repeat := range o.Repeats {
		some, err := c.foretell(ctx, o, repeat+1)
		if err != nil {
			return err
		}
		all = append(all, some...)
	}
	return o.write(all)
}

// foretell lets a run of one worker foretell those of other fleets, in a cluster of their own.
func (c *fleetCmd) foretell(ctx context.Context, o *options, repeat int) (all []bench.Forecast, err error) {
	dir := filepath.Join(o.Dir, strconv.Itoa(repeat))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make the directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	in, err := c.Cluster.Open(ctx, o.Thalweg, dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, in.Close(ctx)) }()
	config, err := in.Config("cluster")
	if err != nil {
		return nil, err
	}
	first, f, err := c.work(ctx, o, in, config, one, repeat)
	if err != nil {
		return nil, err
	}
	all = append(all, f)
	model, err := learn(ctx, config, first.Run)
	if err != nil {
		return nil, err
	}
	base, err := o.rate(ctx, one)
	if err != nil {
		return nil, err
	}
	for _, d := range others {
		var x bench.Forecast
		if d.held != one.held {
			rate, err := o.rate(ctx, d)
			if err != nil {
				return nil, err
			}
			x.Speed = rate / base
		}
		if err := c.expect(ctx, o, model, config, first.Run, d, &x); err != nil {
			return nil, fmt.Errorf("foretell %v: %w", d, err)
		}
		_, f, err := c.work(ctx, o, in, config, d, repeat)
		if err != nil {
			return nil, err
		}
		x.Name, x.Repeat, x.Measured, x.Batches, x.Shape = f.Name, repeat, f.Measured, f.Batches, d.isShape()
		all = append(all, x)
	}
	return all, nil
}

// work lets a fleet carry out the script.
func (c *fleetCmd) work(ctx context.Context, o *options, in *cluster.Cluster, config string, d deployment, repeat int) (
	r ran, f bench.Forecast, err error) {
	var workers []*cluster.Worker
	defer func() {
		for _, w := range workers {
			err = errors.Join(err, w.Stop())
		}
	}()
	for i := range d.workers {
		w, err := in.Start(ctx, i, cluster.WorkerOptions{Thalweg: o.Thalweg, Python: o.Python, Memory: workerMemory,
			Cores: d.slots, Held: d.held})
		if err != nil {
			return r, f, err
		}
		workers = append(workers, w)
	}
	for _, w := range workers {
		if err := w.Ready(ctx); err != nil {
			return r, f, err
		}
	}
	if err := attended(ctx, config, d.workers); err != nil {
		return r, f, err
	}
	return o.run(ctx, d.String(), repeat, o.Script, "--params", c.Params, "--cluster", config, "--python", o.Python,
		"--memory", workerMemory)
}

// attended waits until a number of workers are known, and no others: a run is planned for those.
func attended(ctx context.Context, config string, n int) error {
	return cluster.Within(ctx, config, func(home *instance.Instance) error {
		tick := time.NewTicker(lookEvery)
		defer tick.Stop()
		for {
			workers, err := registry.Workers(ctx, home)
			if err != nil || len(workers) == n {
				return err
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-tick.C:
			}
		}
	})
}

// learn fits a model to one run.
func learn(ctx context.Context, config string, number int64) (m forecast.Model, err error) {
	err = cluster.Within(ctx, config, func(home *instance.Instance) error {
		run, err := home.State.Run(ctx, state.RunKey{Workspace: workspace, Run: number})
		if err != nil {
			return err
		}
		record, err := forecast.Read(ctx, home.State, run)
		if err != nil {
			return err
		}
		m, err = forecast.Fit([]forecast.Record{record})
		return err
	})
	return m, err
}

// expect asks the model and the simulator what a fleet will take.
func (c *fleetCmd) expect(ctx context.Context, o *options, m forecast.Model, config string, run int64, d deployment,
	x *bench.Forecast) error {
	b, err := budget.Split(workerBytes, 1, 1) // all runs are planned with the same, but for their slots
	if err != nil {
		return err
	}
	load := forecast.LoadOf(b, true)
	load.Workers, load.Slots = d.workers, d.slots
	load.Speed, load.Beyond = x.Speed, float64(d.workers)*d.held/(float64(one.workers)*one.held)
	f, err := m.Forecast(ctx, load, forecast.Fleet{Workers: d.workers, Slots: d.slots})
	if err != nil {
		return err
	}
	x.Low, x.Middle, x.High, x.Of = f.Elapsed.Low.Seconds(), f.Elapsed.Middle.Seconds(), f.Elapsed.High.Seconds(), f.Of
	args := []string{"simulate", "--run", strconv.FormatInt(run, 10), "--workers", strconv.Itoa(d.workers), "--slots",
		strconv.Itoa(d.slots), "--json", "--workspace", workspace, "--cluster", config}
	if x.Speed > 0 {
		text, err := json.Marshal(map[string]any{"host": d.String(), "core_speed": x.Speed})
		if err != nil {
			return fmt.Errorf("encode a speed: %w", err)
		}
		path := filepath.Join(filepath.Dir(config), "speed.json")
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return err
		}
		args = append(args, "--machine", path)
	}
	out, err := o.thalweg(ctx, args...)
	if err != nil {
		return err
	}
	var simulated []struct {
		Elapsed float64 `json:"elapsed_s"`
		Batches int     `json:"batches"`
	}
	if err := json.Unmarshal(out, &simulated); err != nil || len(simulated) != 1 {
		return fmt.Errorf("read what was simulated: %w: %s", err, out)
	}
	x.Simulated, x.Expected = simulated[0].Elapsed, simulated[0].Batches
	return nil
}

// spin takes a second of a core, and prints how long it took.
const spin = `import time
began, s = time.perf_counter(), 0
for i in range(20_000_000): s += i * i
print(time.perf_counter() - began)`

// rate returns how fast the slots of a worker are, all at work at once.
func (o *options) rate(ctx context.Context, d deployment) (rate float64, err error) {
	g, err := cluster.NewGroup("speed", d.held)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, g.Remove()) }()
	outs := make([]bytes.Buffer, d.slots)
	var cmds []*exec.Cmd
	for i := range outs {
		cmd := exec.CommandContext(ctx, o.Python, "-c", spin)
		cmd.Stdout, cmd.Stderr = &outs[i], os.Stderr
		if serr := cmd.Start(); serr != nil {
			err = errors.Join(err, fmt.Errorf("start the interpreter: %w", serr))
			break
		}
		cmds = append(cmds, cmd)
		err = errors.Join(err, g.Hold(cmd.Process.Pid))
	}
	sum := 0.0
	for i, cmd := range cmds {
		err = errors.Join(err, cmd.Wait())
		took, perr := strconv.ParseFloat(strings.TrimSpace(outs[i].String()), 64)
		err, sum = errors.Join(err, perr), sum+took
	}
	if err != nil {
		return 0, fmt.Errorf("measure how fast %v is: %w", d, err)
	}
	return float64(d.slots) / sum, nil
}
