package view

import (
	"time"

	"thalweg/internal/app/registry"
	"thalweg/internal/ops/doctor"
	"thalweg/internal/ops/history"
	"thalweg/internal/ops/schedule"
	"thalweg/internal/run/concurrency"
)

// ClusterStatus is the JSON form.
type ClusterStatus struct {
	Workers []registry.WorkerEntry `json:"workers"`
	Runs    []OpenRun              `json:"runs"`
	Broker  string                 `json:"broker,omitempty"` // why it cannot be used
}

// OpenRun is a run that is not over.
type OpenRun struct {
	Workspace string `json:"workspace"`
	Run       int64  `json:"run"`
	Script    string `json:"script"`
	Status    string `json:"status"` // as history has it
	Workers   int    `json:"workers"`
	Why       string `json:"why,omitempty"` // what it waits for
	Do        string `json:"do,omitempty"`
}

// Diagnosis is the JSON form.
type Diagnosis struct {
	Verdict doctor.Verdict   `json:"verdict"`
	Checks  []doctor.Finding `json:"checks"`
}

// Schedule is a schedule or watch as it is listed.
type Schedule struct {
	ID string `json:"id"`
	schedule.Standing
	Paused *schedule.Paused `json:"paused,omitempty"` // it begins no runs
	Next   *time.Time       `json:"next,omitempty"`
	Status string           `json:"status,omitempty"` // of the last run, as history has it
	Due    []time.Time      `json:"due,omitempty"`    // moments in the queue
}

// Why is the JSON form of an answer.
type Why struct {
	Workspace string           `json:"workspace"`
	Run       int64            `json:"run"`
	Answers   []history.Answer `json:"answers"`
	Workers   []WorkerPace     `json:"workers,omitempty"` // of a cluster, that work on it
}

// WorkerPace holds the amount of work that a worker does at once, and the reasons.
type WorkerPace struct {
	Host        string                 `json:"host"`
	PID         int                    `json:"pid"`
	Concurrency []concurrency.Setting  `json:"concurrency"`
	Decisions   []concurrency.Decision `json:"decisions"`
}

// ScheduleOrdered says what an order to a schedule or watch has done, or would do.
type ScheduleOrdered struct {
	DryRun   bool        `json:"dry_run"`
	Schedule Schedule    `json:"schedule"`
	Changes  bool        `json:"changes"` // false: it is so already
	Next     []time.Time `json:"next"`    // moments that come next: while it is paused they pass without a run
}
