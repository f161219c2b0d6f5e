package fault

import (
	"fmt"
	"runtime/debug"
)

// Guard calls fn and turns a panic into a failure that says where: the mistake of one
// batch, plan or request is not the end of a process that works on others.
func Guard(doing string, fn func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &Error{Kind: Bug, Message: fmt.Sprintf("%s: panic: %v", doing, p),
				Detail: string(debug.Stack()),
				Hint:   "this is a mistake in Thalweg: please report it with the lines above"}
		}
	}()
	return fn()
}
