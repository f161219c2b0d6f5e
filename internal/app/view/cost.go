package view

import (
	"cmp"
	"slices"

	"thalweg/internal/ops/bill"
	"thalweg/internal/ops/price"
)

// Shapes of what runs cost.
type (
	Money    = price.Money
	Bill     = bill.Bill
	BillPart = bill.Part
	CostSum  = bill.Sum
)

// What costs are put together by.
const (
	CostsByRun       = "run"
	CostsByNode      = "node"
	CostsByScript    = "script"
	CostsByDay       = "day"
	CostsByWorkspace = "workspace"
)

// CostsBy lists them.
func CostsBy() []string {
	return []string{CostsByRun, CostsByNode, CostsByScript, CostsByDay, CostsByWorkspace}
}

// CostTwice is part of the times of runs.
type CostTwice struct {
	Machines float64 `json:"machine_s" doc:"Of hosts with workers of several runs."`
	Services float64 `json:"services_s"`
}

// CostName says what runs, or nodes of them, have in common. Which of its fields it has depends on By.
type CostName struct {
	Run       int64  `json:"run,omitempty"`
	Script    string `json:"script,omitempty"`
	Node      string `json:"node,omitempty"`
	Day       string `json:"day,omitempty" doc:"On which the runs began, UTC."`
	Workspace string `json:"workspace,omitempty"`
}

// CostGroup is what several runs cost, or nodes of them.
type CostGroup struct {
	CostName
	CostSum
}

// Costs is what runs cost.
type Costs struct {
	By     string      `json:"by"`
	Groups []CostGroup `json:"groups"`
	Total  CostSum     `json:"total" doc:"Of all of the runs; also what nodes have no part in."`
	Twice  CostTwice   `json:"paid_twice" doc:"Paid whole by several runs with workers of their own."`
}

// SortCosts orders groups: runs and days as they were, others by their time, the most first.
func SortCosts(by string, groups []CostGroup) {
	slices.SortFunc(groups, func(a, b CostGroup) int {
		time := 0
		if by != CostsByRun && by != CostsByDay {
			time = cmp.Compare(b.Seconds(), a.Seconds())
		}
		return cmp.Or(time, cmp.Compare(a.Run, b.Run), cmp.Compare(a.Day, b.Day), cmp.Compare(a.Workspace, b.Workspace),
			cmp.Compare(a.Script, b.Script), cmp.Compare(a.Node, b.Node))
	})
}
