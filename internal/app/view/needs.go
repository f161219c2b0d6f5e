package view

import (
	"time"

	"thalweg/internal/ops/history"
	"thalweg/internal/run/gate"
	"thalweg/internal/store/state"
)

// Kinds of needs.
const (
	NeedGate     = "gate"     // somebody has to decide
	NeedFailure  = "failure"  // a run has failed, and was not made good
	NeedLate     = "late"     // a run is behind its deadline, or expected to be
	NeedSchedule = "schedule" // a schedule or watch does not do what it should
)

// Needs is what needs people in a workspace.
type Needs struct {
	Needs     []Need     `json:"needs"`          // the most urgent first, failures that somebody has taken last
	More      bool       `json:"more,omitempty"` // there are more, or runs that were not looked at
	Deadlines []Deadline `json:"deadlines"`      // of runs that are under way, have failed, or are about to begin
	At        time.Time  `json:"at"`             // when this was looked up
	LookedTo  time.Time  `json:"looked_back_to"` // runs that began before were not looked at
}

// Need is one thing that needs people. Of Gate, Failure, Expectation and Schedule, that of its kind is there.
type Need struct {
	Kind   string     `json:"kind"`
	Run    int64      `json:"run,omitempty"`
	Script string     `json:"script"`
	Note   string     `json:"note,omitempty"` // that the run was begun with
	Since  time.Time  `json:"since"`
	Until  *time.Time `json:"until,omitempty"` // when it is too late
	Text   string     `json:"text"`            // a sentence

	Gate        *gate.Record         `json:"asks,omitempty"`
	May         bool                 `json:"may,omitempty"` // you may decide
	Failure     *state.Failure       `json:"failure,omitempty"`
	Taken       *state.Mark          `json:"taken,omitempty"` // who looks after the failure
	Expectation *history.Expectation `json:"expectation,omitempty"`
	Schedule    *Schedule            `json:"schedule,omitempty"`
}

// Deadline is when a run is to be over.
type Deadline struct {
	Run         int64               `json:"run,omitempty"`      // none: it is about to begin
	Schedule    string              `json:"schedule,omitempty"` // that begins it
	Script      string              `json:"script"`
	Status      state.Status        `json:"status"` // pending: it is about to begin
	Begins      time.Time           `json:"begins"` // or has begun
	Deadline    time.Time           `json:"deadline"`
	Late        bool                `json:"late,omitempty"` // it is, or is expected to be
	Expectation history.Expectation `json:"expectation"`
}
