// Command thalweg-forecast holds what Thalweg expects of runs against what they take. "fleet" foretells runs of other
// fleets from one worker's; "size" foretells runs of more accounts from those of fewer. Repeats follow each other as
// a whole, each from runs of its own. It removes what it makes, in services as well.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"thalweg/bench/internal/bench"
)

type options struct {
	Thalweg string `required:"" type:"path" help:"Command under test."`
	Script  string `required:"" type:"path" help:"Script to run."`
	Python  string `default:"python3" help:"Interpreter."`
	Dir     string `required:"" type:"path" help:"Directory for configuration, state and scratch space."`
	Figures string `required:"" type:"path" help:"File for the figures."`
	Repeats int    `default:"3" env:"THALWEG_BENCH_REPEATS" help:"How often all of it is done."`

	Fleet fleetCmd `cmd:"" help:"Other fleets, from one worker."`
	Size  sizeCmd  `cmd:"" help:"More accounts, from fewer."`
}

const (
	workspace  = "bench"
	stopWithin = time.Minute
)

func main() {
	var o options
	parsed := kong.Parse(&o, kong.Name("thalweg-forecast"), kong.Description("Hold forecasts against runs."))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	parsed.BindTo(ctx, (*context.Context)(nil))
	err := parsed.Run(&o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "thalweg-forecast:", err)
		os.Exit(1)
	}
}

// write writes forecasts and what they sum up to.
func (o *options) write(all []bench.Forecast) error {
	text, err := json.MarshalIndent(map[string]any{"counts": bench.ScoreForecasts(all), "forecasts": all}, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the figures: %w", err)
	}
	return os.WriteFile(o.Figures, append(text, '\n'), 0o644)
}

// thalweg runs the command under test and returns what it prints.
func (o *options) thalweg(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, o.Thalweg, args...)
	cmd.Stderr = os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = stopWithin
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("thalweg %s: %w", args[0], err)
	}
	return out, nil
}

// event decodes the event of a kind into v, from what a run has printed.
func event(lines []byte, kind string, v any) error {
	scan := bufio.NewScanner(bytes.NewReader(lines))
	scan.Buffer(nil, len(lines)+1)
	for scan.Scan() {
		var e struct {
			Event string `json:"event"`
		}
		if err := json.Unmarshal(scan.Bytes(), &e); err != nil {
			return fmt.Errorf("read an event: %w: %s", err, scan.Bytes())
		}
		if e.Event == kind {
			return json.Unmarshal(scan.Bytes(), v)
		}
	}
	return fmt.Errorf("there is no event %s", kind)
}

// ran is what is known of a run that is complete.
type ran struct {
	Run     int64  `json:"run"`
	Status  string `json:"status"`
	Elapsed int64  `json:"elapsed_ms"`
	Nodes   []struct {
		Batches int `json:"batches"`
	} `json:"nodes"`
}

// run carries out a script.
func (o *options) run(ctx context.Context, name string, repeat int, script string, flags ...string) (
	ran, bench.Forecast, error) {
	f := bench.Forecast{Name: name, Repeat: repeat}
	var r ran
	out, err := o.thalweg(ctx, append([]string{"run", script, "--workspace", workspace, "--fresh", "--json"}, flags...)...)
	if err == nil {
		err = event(out, "run_finished", &r)
	}
	if err == nil && r.Status != "complete" {
		err = fmt.Errorf("the run ended as %s", r.Status)
	}
	if err != nil {
		return r, f, fmt.Errorf("%s, repeat %d: %w", name, repeat, err)
	}
	f.Measured = float64(r.Elapsed) / 1000
	for _, n := range r.Nodes {
		f.Batches += n.Batches
	}
	fmt.Fprintf(os.Stderr, "%s, repeat %d: %.1f s\n", name, repeat, f.Measured)
	return r, f, nil
}
