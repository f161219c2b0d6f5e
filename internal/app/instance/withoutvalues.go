package instance

import (
	"context"
	"encoding/json"
	"reflect"
	"sync"

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

// HasValues reports whether a failure with values of the data is in v, or behind its pointers.
func HasValues(v any) bool { return hasValues(reflect.ValueOf(v)) }

func hasValues(v reflect.Value) bool {
	if !v.IsValid() || !mayFail(v.Type()) {
		return false
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		return !v.IsNil() && hasValues(v.Elem())
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if hasValues(v.Index(i)) {
				return true
			}
		}
	case reflect.Map:
		for entries := v.MapRange(); entries.Next(); {
			if hasValues(entries.Value()) {
				return true
			}
		}
	case reflect.Struct:
		if f, is := v.Interface().(state.Failure); is {
			return !reflect.DeepEqual(&f, FailureWithoutValues(&f))
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() && hasValues(v.Field(i)) {
				return true
			}
		}
	}
	return false
}

// failing says of types whether a failure may be in their values, so that rows are not looked through.
var failing sync.Map

func mayFail(t reflect.Type) bool {
	if known, is := failing.Load(t); is {
		return known.(bool) //nolint:forcetypeassert // there is nothing else in it
	}
	may := holdsFailures(t, map[reflect.Type]bool{})
	failing.Store(t, may)
	return may
}

func holdsFailures(t reflect.Type, seen map[reflect.Type]bool) bool {
	if t == reflect.TypeFor[state.Failure]() || t.Kind() == reflect.Interface {
		return true
	}
	if seen[t] {
		return false
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return holdsFailures(t.Elem(), seen)
	case reflect.Struct:
		for i := range t.NumField() {
			if t.Field(i).IsExported() && holdsFailures(t.Field(i).Type, seen) {
				return true
			}
		}
	}
	return false
}
