package property

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"thalweg/internal/app/caller"
	"thalweg/internal/app/control"
	"thalweg/internal/app/instance"
	"thalweg/internal/app/runtime"
	"thalweg/internal/io/remote"
	"thalweg/internal/ops/gc"
	"thalweg/internal/store/parts"
	"thalweg/internal/store/state"
	"thalweg/internal/test/statetest"
)

// audit looks at all that a trial has left: state is what its events say, each
// batch is done once and has the parts of that attempt, and when gc has been
// there nothing lies about that nothing names.
func (t *trial) audit(ctx context.Context) (err error) {
	home, err := instance.Open(ctx, filepath.Join(t.dir, "state"), false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, home.Close()) }()
	client := remote.New(remote.Config{})
	defer client.Close()
	limits := gc.Limits{}
	if t.cells == nil { // one run is left, or all are
		limits.Keep = int(t.seed % 2)
	}
	done, err := control.Collect(ctx, home, control.CollectOptions{Workspace: "main", Limits: limits,
		By:      caller.OfProcess(caller.CLI).Mark("old"),
		Process: runtime.Process{Remote: client}})
	if err != nil {
		return fmt.Errorf("collect: %w", err)
	}
	t.tally.add("runs dropped by gc", len(done.Drops))
	t.tally.add("parts removed by gc", int(done.Dead.Count+done.Withdrawn.Count+done.Dropped.Count))
	runs, err := state.All(ctx, home.State.Runs, "main")
	if err != nil {
		return err
	}
	a := auditor{trial: t, home: home, listed: map[string]state.Part{}, complete: map[string]int{}}
	for _, run := range runs {
		if err := a.run(ctx, run); err != nil {
			return fmt.Errorf("run %d: %w", run.Run, err)
		}
	}
	for what, n := range a.complete {
		if t.cells != nil && n != 1 {
			return fmt.Errorf("%d runs of cell %s are complete", n, what)
		}
	}
	if err := errors.Join(a.stored(ctx), t.leftovers()); err != nil {
		return fmt.Errorf("%w (gc says %+v)", err, done)
	}
	return nil
}

// auditor adds up what the runs of a trial name.
type auditor struct {
	*trial
	home     *instance.Instance
	listed   map[string]state.Part
	complete map[string]int // runs, by what they are of
}

func (a *auditor) run(ctx context.Context, run state.Run) error {
	if err := statetest.Audit(ctx, a.home.State, run.RunKey); err != nil {
		return err
	}
	if run.Dropped != nil {
		return nil
	}
	if run.Status == state.Complete {
		a.complete[run.Description]++
	}
	nodes, err := a.home.State.Nodes(ctx, run.RunKey)
	if err != nil {
		return err
	}
	for _, n := range nodes {
		if err := a.node(ctx, n); err != nil {
			return fmt.Errorf("node %s: %w", n.Name, err)
		}
	}
	return nil
}

func (a *auditor) node(ctx context.Context, n state.Node) error {
	key := n.NodeKey
	if n.Decision != nil && n.Decision.Approved {
		a.tally.add("gates passed", 1)
	}
	if n.ReusedFrom != nil && n.Status == state.Succeeded {
		a.tally.add("nodes taken over", 1)
		key = *n.ReusedFrom
		if origin, err := a.home.State.Node(ctx, key); err != nil || origin.Dropped {
			return fmt.Errorf("its rows are those of run %d, which is dropped: %w", key.Run, err)
		}
	}
	listed, err := state.All(ctx, a.home.State.Parts, key)
	if err != nil {
		return err
	}
	for _, p := range listed {
		a.listed[p.Key] = p
	}
	batches, err := state.All(ctx, a.home.State.Batches, n.NodeKey)
	if err != nil {
		return err
	}
	attempts, err := state.All(ctx, a.home.State.Attempts, n.NodeKey)
	if err != nil {
		return err
	}
	counts := map[int]int{} // attempt that counts, by batch
	for _, at := range attempts {
		if at.Attempt > 1 {
			a.tally.add("batches tried again", 1)
		}
		if at.Status == state.Lost {
			a.tally.add("attempts that were lost", 1)
		}
		if at.Withdrawn && at.Status == state.Succeeded {
			a.tally.add("batches done again", 1)
		}
		if at.Status != state.Succeeded || at.Withdrawn {
			continue
		}
		if other := counts[at.Batch]; other != 0 && n.Status == state.Succeeded {
			return fmt.Errorf("batch %d has succeeded in attempts %d and %d", at.Batch, other, at.Attempt)
		}
		counts[at.Batch] = at.Attempt
	}
	if n.Status != state.Succeeded {
		return nil
	}
	for _, b := range batches {
		if b.Status != state.Succeeded || counts[b.BatchKey.Batch] != b.Attempt {
			return fmt.Errorf("batch %d is %s by attempt %d, and attempt %d counts", b.BatchKey.Batch,
				b.Status, b.Attempt, counts[b.BatchKey.Batch])
		}
	}
	if n.ReusedFrom == nil {
		for _, p := range listed {
			if p.Attempt != counts[p.Batch] {
				return fmt.Errorf("part %s is of attempt %d, and attempt %d counts", p.Key, p.Attempt, counts[p.Batch])
			}
		}
	}
	announced, err := state.All(ctx, a.home.State.Publications, n.NodeKey)
	if err == nil && len(announced) > 0 {
		err = fmt.Errorf("%d files are announced: %+v", len(announced), announced[0])
	}
	return err
}

// stored compares the parts that there are with those that are named.
func (a *auditor) stored(ctx context.Context) error {
	there := map[string]bool{}
	for info, err := range a.home.Parts.List(ctx, "", "") {
		if err != nil {
			return err
		}
		there[info.Key] = true
		if _, ok := a.listed[info.Key]; !ok {
			return fmt.Errorf("part %s is dead, and gc has left it", info.Key)
		}
	}
	for key, p := range a.listed {
		if !there[key] {
			return fmt.Errorf("part %s is gone", key)
		}
		body, _, err := a.home.Parts.Open(ctx, key, 0, -1)
		if err != nil {
			return err
		}
		sum, _, err := parts.Checksum(body)
		if err = errors.Join(err, body.Close()); err != nil || sum != p.Checksum {
			return fmt.Errorf("part %s has checksum %s, not %s: %w", key, sum, p.Checksum, err)
		}
	}
	return nil
}

// leftovers looks for files and processes that are nobody's.
func (t *trial) leftovers() error {
	err := filepath.WalkDir(filepath.Join(t.dir, "out"), func(path string, e fs.DirEntry, err error) error {
		if err == nil && strings.HasPrefix(e.Name(), ".") {
			err = fmt.Errorf("%s is left", path)
		}
		return err
	})
	if err != nil {
		return err
	}
	entries, err := os.ReadDir(filepath.Join(t.dir, "state", "tmp"))
	if err != nil || len(entries) != 1 || entries[0].Name() != "guard" {
		return fmt.Errorf("temporary files are left: %v: %w", entries, err)
	}
	environments, err := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range environments {
		if env, err := os.ReadFile(path); err == nil && strings.Contains(string(env), actorSpec+"="+t.dir) {
			stat, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "stat"))
			return fmt.Errorf("a process is left: %s", stat)
		}
	}
	return err
}
