package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"

	"thalweg/internal/store/state"
)

// statePrefix is before the names of a state.Store's methods in calls.
const statePrefix = "state."

// lendState lets the other side use a state: each method is a call, whose
// arguments and results are JSON arrays.
func lendState(to *peer, from state.Store) {
	methods := reflect.TypeFor[state.Store]()
	value := reflect.ValueOf(from)
	for i := range methods.NumMethod() {
		name := methods.Method(i).Name
		if name == "Close" { // it is the parent's
			continue
		}
		method := value.MethodByName(name)
		to.calls[statePrefix+name] = func(ctx context.Context, body []byte) (any, error) {
			return invoke(ctx, method, body)
		}
	}
}

// invoke calls a method that has a context first and an error last.
func invoke(ctx context.Context, method reflect.Value, body []byte) (any, error) {
	of := method.Type()
	var args []json.RawMessage
	if err := json.Unmarshal(body, &args); err != nil {
		return nil, fmt.Errorf("decode a call: %w", err)
	}
	if len(args) != of.NumIn()-1 {
		return nil, fmt.Errorf("a call has %d arguments, not %d", len(args), of.NumIn()-1)
	}
	in := []reflect.Value{reflect.ValueOf(ctx)}
	for i, text := range args {
		arg := reflect.New(of.In(i + 1))
		if err := json.Unmarshal(text, arg.Interface()); err != nil {
			return nil, fmt.Errorf("decode argument %d of a call: %w", i+1, err)
		}
		in = append(in, arg.Elem())
	}
	call := method.Call
	if of.IsVariadic() {
		call = method.CallSlice
	}
	out := call(in)
	results := make([]any, 0, len(out)-1)
	for _, v := range out[:len(out)-1] {
		results = append(results, v.Interface())
	}
	err, _ := out[len(out)-1].Interface().(error)
	return results, err
}

// storeOf is a state.Store that the other side has.
type storeOf struct{ peer *peer }

var _ state.Store = (*storeOf)(nil)

// do calls a method; results are pointers to where they go.
func (s *storeOf) do(ctx context.Context, method string, args []any, results ...any) error {
	out, err := ask[[]json.RawMessage](ctx, s.peer, statePrefix+method, args)
	for i, text := range out {
		if i >= len(results) {
			return errors.Join(err, fmt.Errorf("%s of the state has answered with too much", method))
		}
		if decodeErr := json.Unmarshal(text, results[i]); decodeErr != nil {
			return errors.Join(err, fmt.Errorf("decode the answer of the state to %s: %w", method, decodeErr))
		}
	}
	return err
}

// Close implements state.Store. The state stays open: it is the other side's.
func (s *storeOf) Close() error { return nil }

// CreateRun implements state.Store.
func (s *storeOf) CreateRun(ctx context.Context, run state.Run, nodes []state.NodeSpec,
	blobs ...state.Blob) (out state.RunKey, err error) {
	err = s.do(ctx, "CreateRun", []any{run, nodes, blobs}, &out)
	return out, err
}

// Run implements state.Store.
func (s *storeOf) Run(ctx context.Context, key state.RunKey) (out state.Run, err error) {
	err = s.do(ctx, "Run", []any{key}, &out)
	return out, err
}

// Runs implements state.Store.
func (s *storeOf) Runs(ctx context.Context, workspace string, page state.Page) (out []state.Run, next int64,
	err error) {
	err = s.do(ctx, "Runs", []any{workspace, page}, &out, &next)
	return out, next, err
}

// Workspaces implements state.Store.
func (s *storeOf) Workspaces(ctx context.Context) (out []string, err error) {
	err = s.do(ctx, "Workspaces", []any{}, &out)
	return out, err
}

// Blob implements state.Store.
func (s *storeOf) Blob(ctx context.Context, digest string) (out []byte, err error) {
	err = s.do(ctx, "Blob", []any{digest}, &out)
	return out, err
}

// PutNote implements state.Store.
func (s *storeOf) PutNote(ctx context.Context, workspace string, n state.Note) error {
	return s.do(ctx, "PutNote", []any{workspace, n})
}

// RemoveNote implements state.Store.
func (s *storeOf) RemoveNote(ctx context.Context, workspace string, n state.Note) error {
	return s.do(ctx, "RemoveNote", []any{workspace, n})
}

// Notes implements state.Store.
func (s *storeOf) Notes(ctx context.Context, workspace, topic, after string, limit int) (out []state.Note, err error) {
	err = s.do(ctx, "Notes", []any{workspace, topic, after, limit}, &out)
	return out, err
}

// BeginOrder implements state.Store.
func (s *storeOf) BeginOrder(ctx context.Context, key state.RunKey, o state.Order) error {
	return s.do(ctx, "BeginOrder", []any{key, o})
}

// Hear implements state.Store.
func (s *storeOf) Hear(ctx context.Context, key state.NodeKey, o state.Order) error {
	return s.do(ctx, "Hear", []any{key, o})
}

// EndOrder implements state.Store.
func (s *storeOf) EndOrder(ctx context.Context, key state.RunKey, epoch int64, now time.Time) error {
	return s.do(ctx, "EndOrder", []any{key, epoch, now})
}

// CompleteRun implements state.Store.
func (s *storeOf) CompleteRun(ctx context.Context, key state.RunKey, epoch int64, actor string, now time.Time) error {
	return s.do(ctx, "CompleteRun", []any{key, epoch, actor, now})
}

// Acquire implements state.Store.
func (s *storeOf) Acquire(ctx context.Context, key state.RunKey, role, owner string, now,
	until time.Time) (out state.Role, err error) {
	err = s.do(ctx, "Acquire", []any{key, role, owner, now, until}, &out)
	return out, err
}

// Resign implements state.Store.
func (s *storeOf) Resign(ctx context.Context, key state.RunKey, role, owner string) error {
	return s.do(ctx, "Resign", []any{key, role, owner})
}

// Nodes implements state.Store.
func (s *storeOf) Nodes(ctx context.Context, key state.RunKey) (out []state.Node, err error) {
	err = s.do(ctx, "Nodes", []any{key}, &out)
	return out, err
}

// Node implements state.Store.
func (s *storeOf) Node(ctx context.Context, key state.NodeKey) (out state.Node, err error) {
	err = s.do(ctx, "Node", []any{key}, &out)
	return out, err
}

// StagePlan implements state.Store.
func (s *storeOf) StagePlan(ctx context.Context, key state.NodeKey, digest string, piece state.PlanPiece) error {
	return s.do(ctx, "StagePlan", []any{key, digest, piece})
}

// FlipPlan implements state.Store.
func (s *storeOf) FlipPlan(ctx context.Context, key state.NodeKey, f state.Flip) (out string, err error) {
	err = s.do(ctx, "FlipPlan", []any{key, f}, &out)
	return out, err
}

// MoveNode implements state.Store.
func (s *storeOf) MoveNode(ctx context.Context, key state.NodeKey, m state.Move) error {
	return s.do(ctx, "MoveNode", []any{key, m})
}

// Purge implements state.Store.
func (s *storeOf) Purge(ctx context.Context, key state.NodeKey) error {
	return s.do(ctx, "Purge", []any{key})
}

// Batch implements state.Store.
func (s *storeOf) Batch(ctx context.Context, key state.BatchKey) (batch state.Batch, attempts []state.Attempt,
	err error) {
	err = s.do(ctx, "Batch", []any{key}, &batch, &attempts)
	return batch, attempts, err
}

// Batches implements state.Store.
func (s *storeOf) Batches(ctx context.Context, key state.NodeKey, page state.Page) (out []state.Batch, next int64,
	err error) {
	err = s.do(ctx, "Batches", []any{key, page}, &out, &next)
	return out, next, err
}

// Unsettled implements state.Store.
func (s *storeOf) Unsettled(ctx context.Context, key state.NodeKey, page state.Page) (out []state.Batch, next int64,
	err error) {
	err = s.do(ctx, "Unsettled", []any{key, page}, &out, &next)
	return out, next, err
}

// Specs implements state.Store.
func (s *storeOf) Specs(ctx context.Context, key state.NodeKey, page state.Page) (out []state.BatchSpec, next int64,
	err error) {
	err = s.do(ctx, "Specs", []any{key, page}, &out, &next)
	return out, next, err
}

// Inputs implements state.Store.
func (s *storeOf) Inputs(ctx context.Context, key state.NodeKey, page state.Page) (out []state.Input, next int64,
	err error) {
	err = s.do(ctx, "Inputs", []any{key, page}, &out, &next)
	return out, next, err
}

// Offers implements state.Store.
func (s *storeOf) Offers(ctx context.Context, key state.NodeKey, now time.Time, page state.Page) (out []state.Offer,
	next int64, err error) {
	err = s.do(ctx, "Offers", []any{key, now, page}, &out, &next)
	return out, next, err
}

// Claim implements state.Store.
func (s *storeOf) Claim(ctx context.Context, b state.Bid) (out state.Claim, err error) {
	err = s.do(ctx, "Claim", []any{b}, &out)
	return out, err
}

// Extend implements state.Store.
func (s *storeOf) Extend(ctx context.Context, c state.Claim, lease time.Time) error {
	return s.do(ctx, "Extend", []any{c, lease})
}

// Announce implements state.Store.
func (s *storeOf) Announce(ctx context.Context, c state.Claim, publications []state.Publication,
	lease time.Time) error {
	return s.do(ctx, "Announce", []any{c, publications, lease})
}

// Commit implements state.Store.
func (s *storeOf) Commit(ctx context.Context, c state.Claim, out state.Outcome, now time.Time) error {
	return s.do(ctx, "Commit", []any{c, out, now})
}

// Fail implements state.Store.
func (s *storeOf) Fail(ctx context.Context, c state.Claim, failure state.Failure, out state.Outcome,
	now time.Time) error {
	return s.do(ctx, "Fail", []any{c, failure, out, now})
}

// Retry implements state.Store.
func (s *storeOf) Retry(ctx context.Context, c state.Claim, failure state.Failure, stats state.Stats, notBefore,
	now time.Time) error {
	return s.do(ctx, "Retry", []any{c, failure, stats, notBefore, now})
}

// Release implements state.Store.
func (s *storeOf) Release(ctx context.Context, c state.Claim, now time.Time) error {
	return s.do(ctx, "Release", []any{c, now})
}

// Attempts implements state.Store.
func (s *storeOf) Attempts(ctx context.Context, key state.NodeKey, page state.Page) (out []state.Attempt, next int64,
	err error) {
	err = s.do(ctx, "Attempts", []any{key, page}, &out, &next)
	return out, next, err
}

// Publications implements state.Store.
func (s *storeOf) Publications(ctx context.Context, key state.NodeKey, page state.Page) (out []state.Publication,
	next int64, err error) {
	err = s.do(ctx, "Publications", []any{key, page}, &out, &next)
	return out, next, err
}

// Forget implements state.Store.
func (s *storeOf) Forget(ctx context.Context, key state.BatchKey, attempt int) error {
	return s.do(ctx, "Forget", []any{key, attempt})
}

// Parts implements state.Store.
func (s *storeOf) Parts(ctx context.Context, key state.NodeKey, page state.Page) (out []state.Part, next int64,
	err error) {
	err = s.do(ctx, "Parts", []any{key, page}, &out, &next)
	return out, next, err
}

// Checks implements state.Store.
func (s *storeOf) Checks(ctx context.Context, key state.NodeKey, page state.Page) (out []state.CheckResult, next int64,
	err error) {
	err = s.do(ctx, "Checks", []any{key, page}, &out, &next)
	return out, next, err
}

// Files implements state.Store.
func (s *storeOf) Files(ctx context.Context, key state.NodeKey, page state.Page) (out []state.File, next int64,
	err error) {
	err = s.do(ctx, "Files", []any{key, page}, &out, &next)
	return out, next, err
}

// Tally implements state.Store.
func (s *storeOf) Tally(ctx context.Context, key state.NodeKey) (out state.Tally, err error) {
	err = s.do(ctx, "Tally", []any{key}, &out)
	return out, err
}

// Events implements state.Store.
func (s *storeOf) Events(ctx context.Context, key state.NodeKey, after int64, limit int) (out []state.Event,
	err error) {
	err = s.do(ctx, "Events", []any{key, after, limit}, &out)
	return out, err
}

// Sequence implements state.Store.
func (s *storeOf) Sequence(ctx context.Context, key state.RunKey, page state.Page) (out []state.Span, next int64,
	err error) {
	err = s.do(ctx, "Sequence", []any{key, page}, &out, &next)
	return out, next, err
}

// ExtendSequence implements state.Store.
func (s *storeOf) ExtendSequence(ctx context.Context, key state.RunKey, at int64, spans []state.Span) error {
	return s.do(ctx, "ExtendSequence", []any{key, at, spans})
}
