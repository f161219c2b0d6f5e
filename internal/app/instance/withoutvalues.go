package instance

import (
	"context"
	"encoding/json"
	"reflect"

	"thalweg/internal/base/fault"
	"thalweg/internal/run/gate"
	"thalweg/internal/store/state"
)

// WithoutValues returns a store whose answers tell of failures without values of the data: for people who
// may see that something failed and where, and not what it read. Failures of the environment and ours name no
// values. What checks, warnings and hints say may quote some, so that they are left out.
func WithoutValues(s state.Store) state.Store {
	return state.Around(s, func(ctx context.Context, op state.Op, call func(context.Context) error) error {
		err := call(ctx)
		if op.Kind == state.Reads {
			for _, result := range op.Results {
				withoutValues(reflect.ValueOf(result))
			}
		}
		return err
	})
}

// valuesLeftOut stands where a text could quote values.
const valuesLeftOut = "what it says may quote data, which you may not read"

// FailureWithoutValues returns a failure without values of the data; nil for nil.
func FailureWithoutValues(f *state.Failure) *state.Failure {
	if f == nil {
		return nil
	}
	out := *f
	out.Detail = ""
	out.Place = placeWithoutValues(f.Place)
	if f.Kind == fault.UserData || f.Kind == fault.Script {
		out.Message, out.Hint = valuesLeftOut, ""
	}
	return &out
}

func placeWithoutValues(p fault.Place) fault.Place {
	p.Value, p.Raw = "", ""
	if p.Origin != nil {
		origin := placeWithoutValues(*p.Origin)
		p.Origin = &origin
	}
	return p
}

// withoutValues changes what v, an answer of a store, points to.
func withoutValues(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			withoutValues(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			withoutValues(v.Index(i))
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			held := reflect.New(v.Type().Elem()).Elem()
			held.Set(v.MapIndex(key))
			withoutValues(held)
			v.SetMapIndex(key, held)
		}
	case reflect.Struct:
		if v.CanSet() {
			structWithoutValues(v)
		}
	}
}

func structWithoutValues(v reflect.Value) {
	switch held := v.Addr().Interface().(type) {
	case *state.Failure:
		*held = *FailureWithoutValues(held)
		return
	case *state.CheckResult:
		held.Message = ""
	case *state.Warning:
		held.Text = valuesLeftOut
	case *state.Repeat:
		held.First = ""
	case *state.Node:
		held.Gate = gateWithoutValues(held.Gate)
	case *state.Stats:
		for i := range held.Warnings {
			held.Warnings[i] = valuesLeftOut
		}
	}
	for i := range v.NumField() {
		if v.Type().Field(i).IsExported() {
			withoutValues(v.Field(i))
		}
	}
}

// gateWithoutValues changes what a gate asks. What cannot be read is left out.
func gateWithoutValues(asks []byte) []byte {
	if asks == nil {
		return nil
	}
	r, err := gate.Decode(asks)
	if err != nil {
		return nil
	}
	out, err := json.Marshal(r.WithoutValues())
	if err != nil {
		return nil
	}
	return out
}
