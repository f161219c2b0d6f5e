package main

import "thalweg/internal/app"

// limitFlags say what a run may take.
type limitFlags struct {
	MaxElapsed string `help:"Pause a run when it has taken so long: 2h, 90m; none: no limit." placeholder:"DURATION"`
	MaxCost    string `help:"Pause a run when it has cost so much, in US dollars: 12.50; none: no limit." placeholder:"USD"`
}

// ask returns what a new run may take.
func (f limitFlags) ask() app.LimitAsk { return app.LimitAsk{Elapsed: f.MaxElapsed, Cost: f.MaxCost} }

// again returns what a run may take that goes on: what an environment says is for new ones.
func (f limitFlags) again(a *console) (out app.LimitAsk) {
	if a.typed["max-elapsed"] {
		out.Elapsed = f.MaxElapsed
	}
	if a.typed["max-cost"] {
		out.Cost = f.MaxCost
	}
	return out
}
