package state_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/store/state"
)

// Each method says what it is asked and answers with what do leaves. Whether calls arrive as they are, the suite
// of the store says.
func TestAroundTellsEachCall(t *testing.T) {
	t.Parallel()
	failed := errors.New("not made")
	var told state.Op
	store := reflect.ValueOf(state.Around(nil, func(_ context.Context, op state.Op, _ func(context.Context) error) error {
		told = op
		return failed
	}))
	methods := reflect.TypeFor[state.Store]()
	for i := range methods.NumMethod() {
		name, of := methods.Method(i).Name, methods.Method(i).Type
		if name == "Close" {
			continue
		}
		args := []reflect.Value{reflect.ValueOf(t.Context())}
		for p := 1; p < of.NumIn(); p++ {
			args = append(args, reflect.Zero(of.In(p)))
		}
		call := store.MethodByName(name).Call
		if of.IsVariadic() {
			call = store.MethodByName(name).CallSlice
		}
		results := call(args)
		require.Equal(t, state.Method(name), told.Method)
		require.Equal(t, failed, results[len(results)-1].Interface(), name)
		require.Len(t, told.Args, of.NumIn()-1, name)
		for p, arg := range told.Args {
			require.Equal(t, reflect.PointerTo(of.In(p+1)), reflect.TypeOf(arg), name)
		}
		require.Len(t, told.Results, of.NumOut()-1, name)
		for p, result := range told.Results {
			require.Equal(t, reflect.PointerTo(of.Out(p)), reflect.TypeOf(result), name)
		}
	}
}

func TestKindsOfCalls(t *testing.T) {
	t.Parallel()
	var told state.Op
	s := state.Around(nil, func(_ context.Context, op state.Op, _ func(context.Context) error) error {
		told = op
		return nil
	})
	_, _ = s.Node(t.Context(), state.NodeKey{})
	require.Equal(t, state.Reads, told.Kind)
	_, _ = s.Acquire(t.Context(), state.RunKey{}, "", "", time.Time{}, time.Time{})
	require.Equal(t, state.Hints, told.Kind)
	_, _ = s.Claim(t.Context(), state.ClaimRequest{Owner: "somebody"})
	require.Equal(t, state.Changes, told.Kind)
	require.Equal(t, "somebody", state.Pointer[state.ClaimRequest](told.Args).Owner)
	require.Nil(t, state.Pointer[state.Note](told.Args))
}

// What was stored before the methods and types had other names is read.
func TestStoredNamesOfCommands(t *testing.T) {
	t.Parallel()
	run, err := json.Marshal(state.Run{Command: &state.Command{Epoch: 7}})
	require.NoError(t, err)
	require.Contains(t, string(run), `"Order":{"epoch":7,`)
	event, err := json.Marshal(state.Event{Kind: state.OrderBegun, EventData: state.EventData{Command: &state.Command{}}})
	require.NoError(t, err)
	require.Contains(t, string(event), `"kind":"order_begun","order":{`)
}
