package state

import "context"

// Op is one call of a method of a store.
type Op struct {
	Method Method
	Name   string // of the method in metrics and logs: create_run
	Kind   Kind
	// Args are pointers to the arguments after the context. Each call uses their values at that moment.
	Args []any
	// Results are pointers to the results before the error. They are valid even if there is an error.
	Results []any
}

// Method is the name of a method of Store: one of the constants OpCreateRun and so on.
type Method string

// Kind says what a call may do to the store.
type Kind int

// The kinds of calls.
const (
	Reads   Kind = iota // changes nothing
	Hints               // changes roles or notes, which decide nothing: see Store.Acquire and Store.PutNote
	Changes             // changes anything else
)

// Around returns a store that passes each call to do, except Close, which goes to s.
// call makes the call on s. do may call it any number of times, but not after it has returned.
func Around(s Store, do func(ctx context.Context, op Op, call func(context.Context) error) error) Store {
	return around{s, do}
}

// around is the store that Around returns.
type around struct {
	Store
	do func(ctx context.Context, op Op, call func(context.Context) error) error
}

// Pointer returns the first pointer to a T among the arguments or the results of a call, or nil.
func Pointer[T any](among []any) *T {
	for _, p := range among {
		if found, ok := p.(*T); ok {
			return found
		}
	}
	return nil
}
