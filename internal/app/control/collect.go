package control

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"thalweg/internal/app/instance"
	"thalweg/internal/app/runtime"
	"thalweg/internal/app/view"
	"thalweg/internal/base/address"
	"thalweg/internal/base/fault"
	"thalweg/internal/io/remote"
	"thalweg/internal/ops/gc"
	"thalweg/internal/run/job"
	"thalweg/internal/run/pipeline"
	"thalweg/internal/store/state"
	"thalweg/internal/store/state/retrying"
)

// CollectOptions say what a collection removes.
type CollectOptions struct {
	runtime.Process
	Workspace string
	Limits    gc.Limits
	DryRun    bool
	By        state.Mark // recorded with the runs that are dropped because of Limits
}

// Collect removes the data of a workspace that nobody needs any more. Only one process
// at a time collects. Two would do no harm, but both would count the same removals.
func Collect(ctx context.Context, home *instance.Instance, opts CollectOptions) (out view.Collection, err error) {
	if err := instance.CheckWorkspace(opts.Workspace); err != nil {
		return out, err
	}
	if !opts.DryRun {
		done, failed := collectAlone(ctx, home, opts.Workspace)
		if failed != nil {
			return out, failed
		}
		defer func() { err = errors.Join(err, done()) }()
	}
	out.OnDisk = home.Parts.Properties().Local
	store := retrying.New(home.State, retrying.Config{})
	out.Report, err = gc.Collect(ctx, gc.Config{
		Store: store, Parts: home.Parts, Leavings: pipeline.Leavings{Store: store, Remote: opts.Remote},
		Workspace: opts.Workspace,
		Limits:    opts.Limits, Script: home.IdentityOf, Given: func(ctx context.Context, run state.Run) (string,
			error) {
			return GivenTo(ctx, home, run)
		}, There: outputThere(home, opts.Remote),
		Alone:  func(key state.RunKey) (func(), bool, error) { return onlyOne(home, key) },
		DryRun: opts.DryRun, By: opts.By, Checkpoint: opts.Checkpoint,
	})
	if err != nil {
		return out, err
	}
	return out, collectCopies(ctx, home, opts, &out.Copies)
}

// GivenTo returns a digest that separates a run from others of its script. It covers the run's parameters,
// the values that its environment offered, and the environment values that it took.
func GivenTo(ctx context.Context, h *instance.Instance, run state.Run) (string, error) {
	set, err := runtime.SettingsOf(ctx, h.State, run)
	if err != nil {
		return "", err
	}
	var said []string
	for _, pin := range run.Pins {
		if pin.Kind == state.PinParams {
			said = append(said, pin.Digest)
		}
	}
	if set != nil {
		for _, name := range slices.Sorted(maps.Keys(set.Offered)) {
			said = append(said, name, set.Offered[name])
		}
		said = append(said, set.Given)
	}
	text, err := json.Marshal(said)
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), err
}

// lookTimeout limits one request to a server whether an output exists.
const lookTimeout = 10 * time.Second

// outputThere returns a function that reports whether an output exists. It reports true for outputs that it cannot
// check. These are tables of databases, files of servers that do not answer, and paths on other machines of a cluster.
func outputThere(h *instance.Instance, client *remote.Client) func(ctx context.Context, url string) bool {
	away := client == nil
	return func(ctx context.Context, url string) bool {
		if at, _, _ := strings.Cut(url, "#"); address.Database(at) {
			return true
		}
		if !address.Remote(url) {
			_, err := os.Stat(url)
			if errors.Is(err, fs.ErrNotExist) && h.ClusterConfig != nil {
				_, beside := os.Stat(filepath.Dir(url))
				return beside != nil
			}
			return !errors.Is(err, fs.ErrNotExist)
		}
		if away {
			return true
		}
		ctx, cancel := context.WithTimeout(ctx, lookTimeout)
		defer cancel()
		found, err := client.Look(ctx, url, nil)
		away = err != nil // after one failure, no server is asked again
		return away || found != nil
	}
}

// collectAlone keeps other processes from collecting until done is called.
func collectAlone(ctx context.Context, h *instance.Instance, workspace string) (done func() error, err error) {
	if h.ClusterConfig != nil {
		return collectRole(ctx, h, workspace)
	}
	lock, err := collectLock(h)
	return func() error { return instance.Release(lock) }, err
}

// roleCollect is the name of a role of a workspace's first run. Roles belong to runs, and
// the record of the first run stays while the workspace has any.
const roleCollect = "gc"

// collectRole takes and renews roleCollect, for a process that collects in a cluster. It
// takes nothing in a workspace without runs, where there is nothing to collect.
func collectRole(ctx context.Context, h *instance.Instance, workspace string) (done func() error, err error) {
	first, me := state.RunKey{Workspace: workspace, Run: 1}, job.Owner()+"#"+rand.Text()[:8]
	for tries := 2; ; tries-- {
		now := h.Clock.Now()
		held, err := h.State.Acquire(ctx, first, roleCollect, me, now, now.Add(instance.DoorLease))
		if err == nil {
			break
		}
		owner, _, _ := strings.Cut(held.Owner, "#")
		switch {
		case errors.Is(err, state.ErrNotFound):
			return func() error { return nil }, nil
		case !errors.Is(err, state.ErrHeld):
			return nil, fmt.Errorf("see whether another gc is at work: %w", err)
		case tries == 0 || !job.Gone(owner):
			return nil, &fault.Error{Kind: fault.Environment,
				Message: fmt.Sprintf("another gc is at work in workspace %s: %s",
					workspace, owner), Err: err,
				Hint: "wait until it has ended; {{set dry-run}} works beside it"}
		}
		if err := h.State.Resign(ctx, first, roleCollect, held.Owner); err != nil {
			return nil, fmt.Errorf("end the gc of a process that has died: %w", err)
		}
	}
	keeps, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var loop sync.WaitGroup
	loop.Go(func() {
		instance.Every(keeps, instance.DoorEvery, func(ctx context.Context) {
			now := h.Clock.Now()
			// an error is ignored: the next try comes before the lease ends
			_, _ = h.State.Acquire(ctx, first, roleCollect, me, now, now.Add(instance.DoorLease))
		})
	})
	return func() error {
		cancel()
		loop.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), instance.PresenceTimeout)
		defer cancel()
		return h.State.Resign(ctx, first, roleCollect, me)
	}, nil
}

// collectLock takes the file lock of a process that collects in a state directory.
func collectLock(h *instance.Instance) (*os.File, error) {
	path := filepath.Join(h.Dir, "locks", "gc.lock") // locks of runs have a number as name
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, instance.Fault(h.Dir, "open the lock of gc", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		closeErr := f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, &fault.Error{Kind: fault.Environment, Message: "another gc is at work in " +
				h.Dir, Err: closeErr, Hint: "wait until it has ended; {{set dry-run}} works beside it"}
		}
		return nil, instance.Fault(h.Dir, "lock gc", errors.Join(err, closeErr))
	}
	return f, nil
}

// onlyOne keeps other processes from working on a run until done is called; ok is false if one already does.
func onlyOne(h *instance.Instance, key state.RunKey) (done func(), ok bool, err error) {
	lock, ok, err := h.Liveness.Empty(key, false)
	if err != nil || !ok {
		return nil, false, err
	}
	return func() { _ = lock.Close() }, true, nil
}

// collectCopies removes the copies of remote inputs of runs that nobody works on.
func collectCopies(ctx context.Context, h *instance.Instance, opts CollectOptions, amount *gc.Amount) error {
	entries, err := os.ReadDir(filepath.Join(h.Dir, "remote"))
	if err != nil {
		return instance.Fault(h.Dir, "look for copies of remote files", err)
	}
	for _, e := range entries {
		if key, ok := instance.RemoteKey(e.Name()); ok && key.Workspace == opts.Workspace {
			if err := collectCopiesOf(ctx, h, key, opts, amount); err != nil {
				return err
			}
		}
	}
	return nil
}

func collectCopiesOf(ctx context.Context, h *instance.Instance, key state.RunKey, opts CollectOptions,
	amount *gc.Amount) error {
	done, ok, err := onlyOne(h, key)
	if err != nil || !ok {
		return err
	}
	defer done()
	dir := h.RemoteDir(key)
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) { // a process at work on the run has removed it meanwhile
			return nil
		}
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			amount.Count, amount.Bytes = amount.Count+1, amount.Bytes+info.Size()
		}
		return err
	})
	if err != nil {
		return instance.Fault(h.Dir, "look for copies of remote files", err)
	}
	if opts.DryRun {
		return nil
	}
	if err := runtime.SweepNotes(ctx, h, opts.Remote, key); err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil {
		return instance.Fault(h.Dir, "remove copies of remote files", err)
	}
	return nil
}
