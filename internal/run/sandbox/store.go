package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

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
type storeOf struct{ state.Store }

// newStoreOf returns the store that the other side of a connection lends.
func newStoreOf(from *peer) storeOf {
	return storeOf{state.Around(nil, func(ctx context.Context, op state.Op, _ func(context.Context) error) error {
		out, err := ask[[]json.RawMessage](ctx, from, statePrefix+string(op.Method), op.Args)
		for i, text := range out {
			if i >= len(op.Results) {
				return errors.Join(err, fmt.Errorf("%s of the state has answered with too much", op.Method))
			}
			if decodeErr := json.Unmarshal(text, op.Results[i]); decodeErr != nil {
				return errors.Join(err, fmt.Errorf("decode the answer of the state to %s: %w", op.Method, decodeErr))
			}
		}
		return err
	})}
}

// Close implements state.Store. The state stays open: it is the other side's.
func (storeOf) Close() error { return nil }
