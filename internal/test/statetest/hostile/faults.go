package hostile

import (
	"context"
	"crypto/rand"
	"errors"
	mathrand "math/rand/v2"
	"reflect"
	"slices"
	"sync"

	"thalweg/internal/store/state"
)

// Faults holds the probability of each fault, as a share of the calls.
type Faults struct {
	Seed   uint64
	Lost   float64 // the call is not done, and its answer is state.ErrUnknown
	Silent float64 // the call is done, and its answer is state.ErrUnknown
	Twice  float64 // the call is done two times in a row
	Late   float64 // the call is done again some calls later
}

// Everything is a mixture of all that can happen.
func Everything(seed uint64) Faults {
	return Faults{Seed: seed, Lost: 0.1, Silent: 0.1, Twice: 0.1, Late: 0.1}
}

// lateMax limits the calls that wait to be done again.
const lateMax = 20

// Wrap makes calls of a store go wrong.
func Wrap(s state.Store, f Faults) state.Store {
	w := &faulty{of: s, faults: f, rng: mathrand.New(mathrand.NewPCG(f.Seed, 1))}
	return state.Around(s, w.call)
}

type faulty struct {
	of     state.Store
	faults Faults
	mu     sync.Mutex
	rng    *mathrand.Rand
	late   []func()
}

func (w *faulty) happens(share float64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rng.Float64() < share
}

func (w *faulty) call(ctx context.Context, op state.Op, do func(context.Context) error) error {
	w.deliver()
	if w.happens(w.faults.Lost) {
		return state.ErrUnknown
	}
	err := do(ctx)
	if op.Kind == state.Reads {
		return err
	}
	if w.happens(w.faults.Twice) {
		err = do(ctx)
	}
	if op.Kind == state.Changes && ctx.Err() == nil && w.happens(w.faults.Late) {
		w.mu.Lock()
		w.late = append(w.late, func() { again(context.WithoutCancel(ctx), w.of, op) })
		w.mu.Unlock()
	}
	if w.happens(w.faults.Silent) {
		return state.ErrUnknown
	}
	return err
}

// deliver does a call that is late, if one comes now.
func (w *faulty) deliver() {
	w.mu.Lock()
	var now func()
	if n := len(w.late); n > 0 && (n > lateMax || w.rng.IntN(4) == 0) {
		i := w.rng.IntN(n)
		now, w.late = w.late[i], slices.Delete(w.late, i, i+1)
	}
	w.mu.Unlock()
	if now != nil {
		now()
	}
}

// again makes a call of a store once more. Nobody hears what it answers.
func again(ctx context.Context, of state.Store, op state.Op) {
	args := []reflect.Value{reflect.ValueOf(ctx)}
	for _, arg := range op.Args {
		args = append(args, reflect.ValueOf(arg).Elem())
	}
	method := reflect.ValueOf(of).MethodByName(string(op.Method))
	if method.Type().IsVariadic() {
		method.CallSlice(args)
		return
	}
	method.Call(args)
}

// Insist repeats what is not known to be done until it is: all that a caller
// of a store may have to do about state.ErrUnknown. A run that has no token gets one.
func Insist(s state.Store) state.Store {
	return state.Around(s, func(ctx context.Context, op state.Op, do func(context.Context) error) error {
		if run := state.Pointer[state.Run](op.Args); run != nil && run.Token == "" {
			run.Token = rand.Text()
		}
		for {
			if err := do(ctx); !errors.Is(err, state.ErrUnknown) {
				return err
			}
		}
	})
}

// Watch is a store that calls passed before each of its calls, and behind it.
func Watch(s state.Store, passed func()) state.Store {
	return state.Around(s, func(ctx context.Context, _ state.Op, do func(context.Context) error) error {
		passed()
		defer passed()
		return do(ctx)
	})
}

// Away is a store whose calls fail with what away gives, as long as it gives something.
func Away(s state.Store, away func() error) state.Store {
	return state.Around(s, func(ctx context.Context, _ state.Op, do func(context.Context) error) error {
		if err := away(); err != nil {
			return err
		}
		return do(ctx)
	})
}
