package view

import (
	"thalweg/internal/base/action"
	"thalweg/internal/base/document"
	"thalweg/internal/base/fault"
	"thalweg/internal/store/state"
)

// Failed is a failure as JSON: the last line of standard error of a command with --json.
type Failed struct {
	state.Failure
	Code        fault.Code           `json:"code,omitempty"`
	Actions     []action.Action      `json:"actions,omitempty"` // what the hint proposes to do
	ExitCode    int                  `json:"exit_code"`
	Next        string               `json:"next,omitempty"` // what can be done about the run
	Diagnostics document.Diagnostics `json:"diagnostics,omitempty"`
}

// FailedFrom returns the failure of a run, with the command's exit code and what can be done about the run.
func FailedFrom(f Failure, code int, next string) Failed {
	return Failed{Failure: f, Actions: action.In(f.Hint), ExitCode: code, Next: next}
}

// FailedOf returns err as a failure that concerns no batch; code is the command's exit code.
func FailedOf(err error, code int) Failed {
	return Failed{Failure: FailureOf(err), Code: fault.CodeOf(err), Actions: fault.Of(err).Actions(), ExitCode: code}
}
