package history

import "thalweg/internal/store/state"

// Cost is what work has cost, in milliseconds of workers: see state.Spent.
type Cost struct {
	Worked int64 `json:"worked_ms"` // by attempts that succeeded
	Lost   int64 `json:"lost_ms"`   // by attempts that failed, were given back, or were lost with their worker
}

// CostOf returns it in that form.
func CostOf(s state.Spent) Cost {
	return Cost{Worked: s.Worked.Milliseconds(), Lost: s.Lost.Milliseconds()}
}
