package runner_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app/caller"
	"thalweg/internal/app/control"
	"thalweg/internal/app/instance"
	"thalweg/internal/app/runner"
	"thalweg/internal/app/runtime"
	"thalweg/internal/io/remote"
	"thalweg/internal/run/job"
	"thalweg/internal/run/orders"
	"thalweg/internal/store/state"
	"thalweg/internal/test/effort"
	"thalweg/internal/test/jobtest"
)

// orderVictim is a victim that gives run 1 an order and, where that lets it go on,
// drives it: "VERB POINT:N".
func orderVictim(ctx context.Context, home *instance.Instance, client *remote.Client, what string) int {
	verb, point, _ := strings.Cut(what, " ")
	key := state.RunKey{Workspace: "main", Run: 1}
	die := jobtest.DieAt(point)
	home.State = jobtest.Orders(home.State, die)
	var err error
	opts := runner.Options{Workspace: "main", Resume: true, Pinned: true, ResumeRun: 1}
	switch verb {
	case "stop":
		_, err = control.Stop(ctx, home, key, caller.OfProcess(caller.CLI).Mark("enough"))
	case "resume": // below
	case "pause":
		_, _, err = control.Pause(ctx, home, key, caller.OfProcess(caller.CLI).Mark("for now"))
	case "invalidate":
		_, err = control.Invalidate(ctx, home, key, control.InvalidateOptions{Nodes: []string{"items"},
			By: caller.OfProcess(caller.CLI).Mark("wrong")})
	case "retry":
		var r runner.Retry
		r, err = runner.PlanRetry(ctx, home, key,
			runner.RetryOptions{Again: orders.RedoSelection{Nodes: []string{"items"}},
				Process: runtime.Process{Remote: client}})
		opts = r.Options
	}
	if err == nil && (verb == "retry" || verb == "resume") {
		opts.Remote, opts.MemoryBytes, opts.Interpreter, opts.Checkpoint = client, victimBytes, "python3", die
		var sum runner.Summary
		if sum, err = runner.Run(ctx, home, opts); err == nil {
			fmt.Println(sum.Status)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// TestChaosOrdersCutOff kills the process that gives an order at each step of it,
// and at each point of the work behind a retry. The order is given, or the run
// goes on, again: the result is the undisturbed run's.
func TestChaosOrdersCutOff(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	want := undisturbed(t)
	for i, tc := range []struct {
		verb   string
		begun  string // how far the run is then: a crash point, or "run": complete
		points []job.CrashPoint
	}{
		{"retry", "run", append(job.OrderPoints(), job.CrashPoints()...)},
		{"resume", "executed:4", job.OrderPoints()},
		{"stop", "executed:4", job.OrderPoints()},
		{"pause", "executed:4", job.OrderPoints()},
		{"invalidate", "run", job.OrderPoints()},
	} {
		for j, point := range tc.points {
			if (i+j)%effort.Of(5, 2, 1) != 0 {
				continue
			}
			t.Run(tc.verb+" "+string(point), func(t *testing.T) {
				t.Parallel()
				for n := 1; n == 1 || effort.All(); n++ {
					dir := crashInputs(t)
					text, err := victimCmd(t, dir, tc.begun, false).CombinedOutput()
					if tc.begun != "run" {
						requireKilled(t, err, text)
					}
					text, err = victimCmd(t, dir, fmt.Sprintf("order %s %s:%d", tc.verb, point, n), false).
						CombinedOutput()
					if err == nil && n > 1 { // passed fewer than n times
						return
					}
					requireKilled(t, err, text)
					if tc.verb == "invalidate" { // nobody has said that it is done
						again, err := victimCmd(t, dir, "order invalidate run", false).CombinedOutput()
						require.NoError(t, err, string(again))
					}
					for name := range outputs(t, dir) {
						if tc.begun == "run" && slices.Contains(job.OrderPoints(), point) { // nothing is done again yet
							require.NoError(t, os.Remove(filepath.Join(dir, "out", name)))
						}
					}
					text, err = victimCmd(t, dir, "order resume run", false).CombinedOutput()
					require.NoError(t, err, string(text))
					require.Equal(t, "complete\n", string(text))
					require.Equal(t, want, outputs(t, dir), "no file is missing, partial, doubled or left over")
					requireNothingAnnounced(t, dir)
					if tc.verb == "retry" || tc.verb == "invalidate" {
						require.Less(t, 1, attemptsAt(t, dir, "items"), "it was done again")
					}
				}
			})
		}
	}
}

// attemptsAt is the number of the latest attempt at the first batch of a node.
func attemptsAt(t *testing.T, dir, node string) int {
	t.Helper()
	home := openHome(t, dir)
	defer func() { require.NoError(t, home.Close()) }()
	batches, err := state.All(context.Background(), home.State.Batches,
		state.NodeKey{RunKey: state.RunKey{Workspace: "main", Run: 1}, Node: node})
	require.NoError(t, err)
	return batches[0].Attempt
}
