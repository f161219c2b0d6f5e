package remote

import (
	"fmt"
	"io/fs"

	"thalweg/internal/base/fault"
)

// missing is the fault of a file that is not there.
func missing(format string, args ...any) *fault.Error {
	return &fault.Error{Kind: fault.UserData, Message: fmt.Sprintf(format, args...), Err: fs.ErrNotExist,
		Hint: "check the address"}
}

// denied is the fault of a file that we may not touch.
func denied(format string, args ...any) *fault.Error {
	return &fault.Error{Kind: fault.Environment, Message: fmt.Sprintf(format, args...), Err: fs.ErrPermission,
		Hint: "check the credentials and what they allow"}
}

// localFault is the fault of this machine's disk.
func localFault(what string, err error) error {
	return &fault.Error{Kind: fault.Environment, Message: what, Err: err,
		Hint: "check free space and permissions of the state directory"}
}
