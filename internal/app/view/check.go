package view

import (
	"encoding/json"

	"thalweg/internal/lang/script"
	"thalweg/internal/store/state"
)

// Checked is the JSON form of what the checks found.
type Checked struct {
	Run       int64        `json:"run"`
	Workspace string       `json:"workspace"`
	Counts    CheckCounts  `json:"counts"`
	Checks    []CheckedRow `json:"checks"`
}

type CheckedRow struct {
	Check
	InRun string            `json:"in_run,omitempty"` // what the check of this name found in the run; "": it had none
	Rows  []json.RawMessage `json:"rows,omitempty"`   // failing ones
}

// Check is the JSON form of a check's result.
type Check struct {
	Node     string `json:"node"`
	Name     string `json:"check"`
	Kind     string `json:"kind"`
	Severity string `json:"severity"`
	Status   string `json:"status"` // passed, warned, failed
	Checked  int64  `json:"checked"`
	Failed   int64  `json:"failed"`
	Kept     int64  `json:"kept"`
	Message  string `json:"message,omitempty"`
}

// CheckCounts counts a node's checks by their status.
type CheckCounts struct {
	Passed int `json:"passed"`
	Warned int `json:"warned"`
	Failed int `json:"failed"`
}

// The statuses of checks.
const (
	CheckPassed = "passed"
	CheckWarned = "warned"
	CheckFailed = "failed"
)

// ChecksOf returns results as they are shown; node is that of results that name none.
func ChecksOf(node string, results []state.CheckResult) []Check {
	rows := make([]Check, len(results))
	for i, r := range results {
		if r.Node != "" {
			node = r.Node
		}
		rows[i] = Check{Node: node, Name: r.Name, Kind: r.Kind, Severity: r.Severity, Status: CheckStatus(r),
			Checked: r.Checked, Failed: r.Failed, Kept: r.Kept, Message: r.Message}
	}
	return rows
}

// CheckStatus returns the status of a result.
func CheckStatus(r state.CheckResult) string {
	switch {
	case r.Passed:
		return CheckPassed
	case r.Severity == script.SeverityWarn:
		return CheckWarned
	}
	return CheckFailed
}

// CountChecks counts the results of a node by their statuses.
func CountChecks(results []state.CheckResult, node string) (c CheckCounts) {
	for _, r := range results {
		if r.Node != node {
			continue
		}
		switch CheckStatus(r) {
		case CheckPassed:
			c.Passed++
		case CheckWarned:
			c.Warned++
		default:
			c.Failed++
		}
	}
	return c
}
