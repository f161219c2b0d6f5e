package executor_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/fault"
	"thalweg/internal/run/job"
	"thalweg/internal/store/state"
	"thalweg/internal/test/effort"
	"thalweg/internal/test/runtest"
)

// A panic is a batch's failure, with its place, and the end of nothing else.
func TestPanicCostsOneAttempt(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		fake *runtest.Job
		want string
	}{
		"execution": {&runtest.Job{Executes: func(context.Context, state.Claim) (job.Result,
			error) {
			panic("index out of range")
		}}, "executing batch 0 of node a: panic: index out of range"},
		"publication": {&runtest.Job{Executes: func(context.Context, state.Claim) (job.Result, error) {
			return job.Result{Publish: func(context.Context) error { panic("index out of range") }}, nil
		}}, "publishing batch 0 of node a: panic: index out of range"},
		"plan": {&runtest.Job{Plans: func(state.Node) (state.Plan, error) { panic("index out of range") }},
			"planning node a: panic: index out of range"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := runtest.New(t)
			tc.fake.Batches = map[string]int{"a": 1}
			status, err := b.Work(context.Background(), t, tc.fake, nil)
			require.NoError(t, err)
			require.Equal(t, state.Failed, status)
			f := b.Failure(t)
			require.Equal(t, fault.Bug, f.Kind)
			require.Equal(t, tc.want, f.Message)
			require.Contains(t, f.Detail, "faults_test.go", "it says where")
			require.Len(t, b.Attempts(t, "a"), map[bool]int{true: 0, false: 1}[name == "plan"])
		})
	}
}

// What may pass is tried again, a limited number of times, and nothing else is.
func TestOnlyWhatMayPassIsTriedAgain(t *testing.T) {
	effort.Raced(t)
	t.Parallel()
	for name, tc := range map[string]struct {
		fault    fault.Error
		failures int // of the batch, before it succeeds
		tries    int
		want     string
	}{
		"passes": {fault.Error{Kind: fault.Environment, Retryable: true, Message: "the server is away"}, 3, 4, ""},
		"does not pass": {fault.Error{Kind: fault.Environment, Retryable: true, Message: "the server is away"}, 99, 5,
			"the server is away (try 5 of 5)"},
		"cannot pass": {fault.Error{Kind: fault.Environment, Message: "no such file"}, 99, 1, "no such file"},
		"bad data":    {fault.Error{Kind: fault.UserData, Retryable: true, Message: "bad row"}, 99, 1, "bad row"},
		"a mistake of his": {fault.Error{Kind: fault.Script, Retryable: true, Message: "bad script"}, 99,
			1, "bad script"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := runtest.New(t)
			fake := &runtest.Job{Batches: map[string]int{"a": 1}}
			fake.Executes = func(context.Context, state.Claim) (job.Result, error) {
				if fake.Executed("a") > tc.failures {
					return job.Result{}, nil
				}
				return job.Result{}, &tc.fault
			}
			status, err := b.Work(context.Background(), t, fake, runtest.Hurried(time.Minute))
			require.NoError(t, err)
			require.Equal(t, tc.tries, fake.Executed("a"))
			attempts := b.Attempts(t, "a")
			require.Len(t, attempts, tc.tries)
			for i := range attempts {
				if i > 0 && !attempts[i-1].Finished.IsZero() {
					require.Greater(t, attempts[i].Started.Sub(attempts[i-1].Finished), 500*time.Millisecond,
						"it waits before it tries again")
				}
			}
			if tc.want == "" {
				require.Equal(t, state.Complete, status)
				return
			}
			require.Equal(t, state.Failed, status)
			require.Equal(t, tc.want, b.Failure(t).Message)
		})
	}
}

// An attempt that takes too long is ended, and tried again like what may pass.
func TestDeadlineEndsAnAttempt(t *testing.T) {
	t.Parallel()
	b := runtest.New(t)
	fake := &runtest.Job{Batches: map[string]int{"a": 1}}
	fake.Executes = func(ctx context.Context, c state.Claim) (job.Result, error) {
		if c.Attempt == 1 {
			<-ctx.Done()
			return job.Result{}, &fault.Error{Kind: fault.Canceled, Message: "interrupted", Err: ctx.Err()}
		}
		return job.Result{}, nil
	}
	status, err := b.Work(context.Background(), t, fake, func(c *runtest.Worker) {
		runtest.Hurried(time.Minute)(c)
		c.Exec.Deadline = time.Millisecond
	})
	require.NoError(t, err)
	attempts := b.Attempts(t, "a")
	require.Equal(t, state.Failed, attempts[0].Status)
	require.Equal(t, "batch 0 of node a did not end within 1ms", attempts[0].Failure.Message)
	// The machine may be too slow for the second one as well.
	if status == state.Failed {
		require.Contains(t, b.Failure(t).Message, "did not end within 1ms (try 5 of 5)")
	}
}

// flaky is a store of which every n-th call of each kind breaks before or after
// it takes effect.
type flaky struct {
	state.Store
	every int

	mu    sync.Mutex
	calls map[string]int
}

var errBroken = errors.New("the connection broke")

func (s *flaky) broken(call string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[call]++
	return s.calls[call]%s.every == 0
}

func (s *flaky) Claim(ctx context.Context, b state.ClaimRequest) (state.Claim, error) {
	if s.broken("claim before") {
		return state.Claim{}, errBroken
	}
	c, err := s.Store.Claim(ctx, b)
	if s.broken("claim behind") {
		return state.Claim{}, errBroken
	}
	return c, err
}

func (s *flaky) CompleteRun(ctx context.Context, key state.RunKey, epoch int64, actor string, now time.Time) error {
	err := s.Store.CompleteRun(ctx, key, epoch, actor, now)
	if s.broken("complete") {
		return errBroken
	}
	return err
}

func (s *flaky) Nodes(ctx context.Context, key state.RunKey) ([]state.Node, error) {
	if s.broken("nodes") {
		return nil, errBroken
	}
	return s.Store.Nodes(ctx, key)
}

// A store that breaks now and then ends neither the run nor an attempt.
func TestBrokenCallsAreRepeated(t *testing.T) {
	t.Parallel()
	b := runtest.New(t)
	fake := &runtest.Job{Batches: map[string]int{"a": 7, "b": 5, "c": 3}}
	status, err := b.Work(context.Background(), t, fake, func(c *runtest.Worker) {
		s := runtest.Unhurried(&flaky{Store: b.Store, every: 2, calls: map[string]int{}})
		c.Exec.Store, c.Coor.Store = s, s
	})
	require.NoError(t, err)
	require.Equal(t, state.Complete, status)
	for _, node := range []string{"a", "b", "c"} {
		require.Equal(t, fake.Batches[node], fake.Executed(node))
		for _, a := range b.Attempts(t, node) {
			require.Equal(t, state.Succeeded, a.Status)
			require.Equal(t, 1, a.Attempt)
		}
	}
}

// A store that stays broken ends the work in this process; the run can be resumed.
func TestStoreThatStaysBrokenEndsTheWork(t *testing.T) {
	t.Parallel()
	b := runtest.New(t)
	fake := &runtest.Job{Batches: map[string]int{"a": 1}}
	status, err := b.Work(context.Background(), t, fake, func(c *runtest.Worker) {
		c.Exec.Store = runtest.Unhurried(&flaky{Store: b.Store, every: 1, calls: map[string]int{}})
	})
	require.ErrorIs(t, err, errBroken)
	require.Equal(t, state.Running, status)
	status, err = b.Work(context.Background(), t, &runtest.Job{Batches: fake.Batches}, runtest.Hurried(time.Minute))
	require.NoError(t, err)
	require.Equal(t, state.Complete, status)
}

// Each batch is executed with its own run's content, in one process.
func TestManyRunsInOneProcess(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	b := runtest.New(t)
	jobs := map[state.RunKey]job.Job{}
	var mu sync.Mutex
	wrong := 0
	for i := range 5 {
		key, err := b.Store.CreateRun(ctx, state.Run{RunKey: state.RunKey{Workspace: "w"}, Created: time.Now()},
			[]state.NodeSpec{
				{Name: "a", Ordinal: 0}, {Name: "b", Ordinal: 1, Inputs: []string{"a"}}})
		require.NoError(t, err)
		fake := &runtest.Job{Batches: map[string]int{"a": 3 + i, "b": 2}}
		fake.Executes = func(_ context.Context, c state.Claim) (job.Result, error) {
			mu.Lock()
			defer mu.Unlock()
			if c.RunKey != key {
				wrong++
			}
			if c.Node == "b" && i == 3 {
				return job.Result{}, fault.New(fault.UserData, "bad row")
			}
			return job.Result{}, nil
		}
		jobs[key] = fake
	}
	c := &runtest.Worker{}
	c.Exec.Store, c.Coor.Store, c.Exec.Owner, c.Coor.Owner, c.Exec.Slots = b.Store, b.Store, "w", "w", 2
	out, err := c.Work(ctx, jobs)
	require.NoError(t, err)
	require.Zero(t, wrong)
	failed := 0
	for _, status := range out {
		if status == state.Failed {
			failed++
			continue
		}
		require.Equal(t, state.Complete, status)
	}
	require.Equal(t, 1, failed, "one run's failure is not another's")
}
