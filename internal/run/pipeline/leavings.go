package pipeline

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"thalweg/internal/base/address"
	"thalweg/internal/base/fault"
	"thalweg/internal/io/remote"
	"thalweg/internal/store/state"
)

// Leavings sees to what attempts announced and did not commit: temporary files
// and unfinished uploads. Any process may, and several at once: what is gone is fine.
type Leavings struct {
	Store  state.Store
	Remote *remote.Client
	// Dead says that nobody works on the run: no attempt is at work, whatever
	// its state says.
	Dead bool

	mine int // the attempt that asks; 0: none
}

func (x *attempt) leavings() Leavings {
	return Leavings{Store: x.p.cfg.Store, Remote: x.p.cfg.Remote, mine: x.claim.Attempt}
}

// clearEarlier removes what earlier attempts at the batch left.
func (x *attempt) clearEarlier(ctx context.Context) error {
	if x.claim.Attempt == 1 {
		return nil
	}
	some, _, err := x.p.cfg.Store.Publications(ctx, x.claim.NodeKey, state.Page{From: int64(x.claim.Batch), Limit: 1})
	if err != nil {
		return fmt.Errorf("look for what earlier attempts left: %w", err)
	}
	some = slices.DeleteFunc(some, func(p state.Publication) bool { return p.Batch != x.claim.Batch })
	return x.leavings().clear(ctx, some)
}

// Clear removes what attempts at a node's batches left that cannot commit any
// more, and forgets it. What cannot be removed stays announced.
func (l Leavings) Clear(ctx context.Context, key state.NodeKey) error {
	all, err := state.All(ctx, l.Store.Publications, key)
	if err != nil {
		return fmt.Errorf("look for what dead attempts left: %w", err)
	}
	return l.clear(ctx, all)
}

// Left lists what Clear would remove now, and how many bytes of it lie on this machine.
func (l Leavings) Left(ctx context.Context, key state.NodeKey) (left []state.Publication, bytes int64, err error) {
	all, err := state.All(ctx, l.Store.Publications, key)
	if err != nil {
		return nil, 0, fmt.Errorf("look for what dead attempts left: %w", err)
	}
	for _, p := range all {
		live, err := l.live(ctx, p.BatchKey)
		if err != nil {
			return nil, 0, err
		}
		if live == p.Attempt {
			continue
		}
		left = append(left, p)
		if p.Temp == "" || address.Remote(p.Address) {
			continue
		}
		if info, err := os.Stat(filepath.Join(filepath.Dir(p.Address), p.Temp)); err == nil {
			bytes += info.Size()
		}
	}
	return left, bytes, nil
}

// clear takes publications in their order, attempt by attempt.
func (l Leavings) clear(ctx context.Context, all []state.Publication) error {
	var errs []error
	for len(all) > 0 {
		first := all[0]
		end := slices.IndexFunc(all, func(p state.Publication) bool {
			return p.Batch != first.Batch ||
				p.Attempt != first.Attempt
		})
		if end < 0 {
			end = len(all)
		}
		if err := l.clearAttempt(ctx, first.BatchKey, first.Attempt, all[:end]); err != nil {
			errs = append(errs, err)
		}
		all = all[end:]
	}
	return errors.Join(errs...)
}

func (l Leavings) clearAttempt(ctx context.Context, key state.BatchKey, attempt int, said []state.Publication) error {
	live, err := l.live(ctx, key)
	if err != nil || live == attempt {
		return err
	}
	err = l.remove(ctx, key, said)
	if errors.Is(err, errAtWork) { // it has seen to this one before it began, or will
		return nil
	}
	if err != nil {
		return err
	}
	if err := l.Store.Forget(ctx, key, attempt); err != nil {
		return fmt.Errorf("forget what attempt %d at batch %d of node %s left: %w", attempt, key.Batch, key.Node, err)
	}
	return nil
}

// errAtWork says that what lies at an address may be another attempt's.
var errAtWork = errors.New("another attempt at the batch is at work")

// live is the attempt at the batch that can still commit, 0 if none can. One
// that is over does not come back, and what it left is nobody's.
func (l Leavings) live(ctx context.Context, key state.BatchKey) (int, error) {
	if l.Dead {
		return 0, nil
	}
	node, err := l.Store.Node(ctx, key.NodeKey)
	if err != nil {
		return 0, fmt.Errorf("read node %s: %w", key.Node, err)
	}
	attempts, _, err := l.Store.Attempts(ctx, key.NodeKey, state.Page{From: int64(key.Batch), Limit: 1})
	if err != nil {
		return 0, fmt.Errorf("read the attempts at batch %d of node %s: %w", key.Batch, key.Node, err)
	}
	for _, a := range attempts {
		if a.Batch == key.Batch && a.Status == state.Claimed && node.Holds(a.Epoch) {
			return a.Attempt, nil
		}
	}
	return 0, nil
}

// alone says whether nobody but the attempt that asks may be sending the batch's file.
func (l Leavings) alone(key state.BatchKey) remote.Alone {
	return func(ctx context.Context) error {
		live, err := l.live(ctx, key)
		if err == nil && live != 0 && live != l.mine {
			err = errAtWork
		}
		return err
	}
}

// remove removes what an attempt said that it would make.
func (l Leavings) remove(ctx context.Context, key state.BatchKey, said []state.Publication) error {
	left := remote.Leftover{Begun: said[0].Begun, Alone: l.alone(key)}
	for _, p := range said {
		if p.Temp != "" {
			left.Temp = p.Temp
		}
		if p.Upload != "" {
			left.Upload = p.Upload
		}
		if p.Temp != "" && (filepath.Base(p.Temp) != p.Temp || !strings.Contains(p.Temp, tempMark)) {
			return fmt.Errorf("node %s batch %d: %q is no name of a temporary file", key.Node, key.Batch, p.Temp)
		}
	}
	if address.Database(said[0].Address) {
		return nil // the server has taken the rows back when the connection ended
	}
	if !address.Remote(said[0].Address) {
		return removeLocal(said)
	}
	return l.Remote.Abandon(ctx, said[0].Address, left)
}

// removeLocal removes what lies under temporary names on this machine: files, and directories of them.
func removeLocal(said []state.Publication) error {
	for _, p := range said {
		if p.Temp == "" {
			continue
		}
		if err := os.RemoveAll(filepath.Join(filepath.Dir(p.Address), p.Temp)); err != nil {
			return &fault.Error{Kind: fault.Environment, Retryable: fault.Passes(err),
				Message: "remove what an earlier attempt left", Err: err,
				Hint: "check the permissions of its directory"}
		}
	}
	return nil
}
