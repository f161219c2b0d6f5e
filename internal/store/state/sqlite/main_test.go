package sqlite

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"go.uber.org/goleak"

	"thalweg/internal/store/state"
)

// childVariable makes the test binary a second process of a test; its value
// says which.
const childVariable = "THALWEG_TEST_CHILD"

func TestMain(m *testing.M) {
	if part := os.Getenv(childVariable); part != "" {
		if err := playChild(part, os.Getenv(childVariable+"_PATH")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func playChild(part, path string) error {
	ctx := context.Background()
	if part == "crowd" {
		return childCrowd(ctx, path)
	}
	s, err := Open(ctx, path)
	if err != nil {
		return err
	}
	switch part {
	case "work":
		return errors.Join(childWork(ctx, s), s.Close())
	case "commit for ever":
		return childCommits(ctx, s)
	}
	return fmt.Errorf("no such part: %s", part)
}

// childKey is the node that the processes share.
func childKey() state.NodeKey {
	return state.NodeKey{RunKey: state.RunKey{Workspace: "w", Run: 1}, Node: "n"}
}

// bidFor asks for a batch of the child's node, which nobody has tried before.
func bidFor(batch int, owner string) state.ClaimRequest {
	now := time.Now()
	return state.ClaimRequest{Offer: state.Offer{BatchKey: state.BatchKey{NodeKey: childKey(), Batch: batch}},
		Owner: owner,
		Now:   now, Lease: now.Add(time.Hour)}
}

// planBatches plans a node of no orders.
func planBatches(ctx context.Context, s state.Store, key state.NodeKey, record []byte, specs []state.BatchSpec) error {
	_, err := state.PlanNode(ctx, s, key, 0, state.Plan{Record: record, Batches: specs}, "planner", time.Now())
	return err
}

const childBatches = 40

// childWork creates runs and claims every batch it can get. It prints what it got.
func childWork(ctx context.Context, s *Store) error {
	for batch := range childBatches {
		now := time.Now()
		c, err := s.Claim(ctx, bidFor(batch, fmt.Sprint(os.Getpid())))
		if errors.Is(err, state.ErrNotClaimable) {
			continue
		}
		if err != nil {
			return err
		}
		if err := s.Commit(ctx, c, state.Outcome{Stats: state.Stats{RowsOut: 1}}, now); err != nil {
			return err
		}
		fmt.Println("batch", batch)
		run, err := s.CreateRun(ctx, state.Run{RunKey: state.RunKey{Workspace: "shared"}}, nil)
		if err != nil {
			return err
		}
		fmt.Println("run", run.Run)
	}
	return nil
}

// childCommits commits batch after batch and prints each one only once the
// store has said that it is committed.
func childCommits(ctx context.Context, s *Store) error {
	for batch := 0; ; batch++ {
		now := time.Now()
		c, err := s.Claim(ctx, bidFor(batch, "child"))
		if err != nil {
			return err
		}
		out := state.Outcome{
			Parts: []state.Part{{Key: fmt.Sprint("a", batch), Seq: 0}, {Key: fmt.Sprint("b", batch), Seq: 1}},
			Stats: state.Stats{RowsOut: 2},
		}
		if err := s.Commit(ctx, c, out, now); err != nil {
			return err
		}
		fmt.Println("batch", batch)
	}
}

// startChild starts the test binary again as another process on the file.
func startChild(t *testing.T, part, path string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"="+part, childVariable+"_PATH="+path)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, bufio.NewScanner(out)
}
