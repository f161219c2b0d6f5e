// Command thalweg-drive makes a run of very many batches that do nothing, through a real coordinator and a real state:
// at a rate, so that pages can be looked at meanwhile; or as fast as it goes.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/alecthomas/kong"

	"thalweg/bench/internal/idle"
	"thalweg/internal/app/instance"
	"thalweg/internal/store/state"
	"thalweg/internal/store/state/sqlite"
)

type options struct {
	State     string `required:"" type:"path" help:"State directory."`
	Workspace string `default:"main" help:"Workspace of the run."`
	Batches   int    `default:"10000" help:"Batches of the run."`
	Rate      int    `default:"0" help:"Batches that end in a second; 0: as many as may."`
}

func main() {
	var o options
	kong.Parse(&o, kong.Name("thalweg-drive"), kong.Description("Make a run of very many batches that do nothing."))
	if err := drive(context.Background(), o); err != nil {
		fmt.Fprintln(os.Stderr, "thalweg-drive:", err)
		os.Exit(1)
	}
}

// drive makes the run. At a rate, what is lost by one commit is made up by the next ones.
func drive(ctx context.Context, o options) error {
	home, err := instance.Open(ctx, o.State, true)
	if err == nil {
		err = home.Close()
	}
	if err != nil {
		return err
	}
	open := sqlite.Open
	if o.Rate == 0 {
		open = sqlite.OpenScratch
	}
	store, err := open(ctx, filepath.Join(o.State, "state.db"))
	if err != nil {
		return err
	}
	var begun time.Time
	ended := 0
	paced := state.Around(store, func(ctx context.Context, op state.Op, call func(context.Context) error) error {
		if op.Method == state.OpCommit && o.Rate > 0 {
			if ended++; ended == 1 {
				begun = time.Now()
			}
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(time.Until(begun.Add(time.Duration(ended) * time.Second / time.Duration(o.Rate)))):
			}
			// Its event tells when the commit began, not when the wait for it did.
			*op.Args[len(op.Args)-1].(*time.Time) = time.Now()
		}
		return call(ctx)
	})
	run := state.Run{RunKey: state.RunKey{Workspace: o.Workspace}, Created: time.Now()}
	err = idle.Drive(ctx, paced, run, state.NodeSpec{Name: "n", Kind: "file_table", Table: "n"}, o.Batches)
	if err == nil && o.Rate > 0 {
		fmt.Printf("%.0f\n", float64(ended)/time.Since(begun).Seconds())
	}
	return errors.Join(err, store.Close())
}
