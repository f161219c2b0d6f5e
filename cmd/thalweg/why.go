package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"thalweg/internal/app/runtime"
	"thalweg/internal/base/budget"
	"thalweg/internal/ops/history"
	"thalweg/internal/run/job"
)

type whyCmd struct {
	Which runRef `arg:"" name:"run" optional:"" default:"last" help:"Number of the run, or last."`
	JSON  bool   `name:"json" help:"Print a JSON object."`
	stateFlags
}

// whyAnswer is the JSON form of an answer.
type whyAnswer struct {
	Workspace string           `json:"workspace"`
	Run       int64            `json:"run"`
	Answers   []history.Answer `json:"answers"`
	Workers   []workerPace     `json:"workers,omitempty"` // of a cluster, that work on it
}

// Run implements kong's command.
func (c *whyCmd) Run(ctx context.Context, a *app) error {
	home, run, err := c.Which.open(ctx, a, c.stateFlags)
	if err != nil {
		return err
	}
	defer home.Close()
	waiters, err := budget.Waiters(ctx, filepath.Join(home.Dir, "shares"))
	if err != nil {
		return err
	}
	around := history.Around{Slots: runtime.SlotsOf(ctx, home, run), Memory: waiters.Texts, Gone: job.Gone}
	around.Waits = func(owner string) bool {
		return slices.ContainsFunc(waiters.PIDs, func(pid int) bool { return job.IsProcess(owner, pid) })
	}
	around.Alone, around.Abandoned = a.alone(ctx, home)(run)
	workers, err := workersOn(ctx, home, run)
	if err != nil {
		return err
	}
	around.Notices = noticesOf(workers)
	facts, err := history.Gather(ctx, home.State, run.RunKey, time.Now(), around)
	if err != nil {
		return err
	}
	answers := facts.Why()
	for i, answer := range answers {
		answers[i].Do, answers[i].Then = a.at.text(answer.Do), a.at.text(answer.Then)
	}
	paces := pacesOf(workers)
	if c.JSON {
		return printJSON(a.stdout, whyAnswer{Workspace: run.Workspace, Run: run.Run, Answers: answers, Workers: paces})
	}
	for i, answer := range answers {
		if i > 0 {
			fmt.Fprint(a.stdout, "also: ")
		}
		fmt.Fprintln(a.stdout, plain(answer.Text))
		if answer.Do != "" {
			fmt.Fprintf(a.stdout, "  %s\n", plain(answer.Do))
		}
		if answer.Then != "" {
			fmt.Fprintf(a.stdout, "  and when the cause is gone: %s\n", plain(answer.Then))
		}
	}
	for _, p := range paces {
		p.print(a.stdout)
	}
	return nil
}
