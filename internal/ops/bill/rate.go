package bill

import "thalweg/internal/ops/price"

// PerHour returns what an hour of so many workers costs, each on a machine of its own, with the services beside them.
// why says what has no price; "": all has one.
func (basis Basis) PerHour(machine string, workers int) (rate price.Money, why string) {
	if machine == "" {
		return 0, "the type of the workers' machines is not known"
	}
	_, perHour := basis.find(machine)
	if perHour == nil {
		return 0, "there is no price for " + machine
	}
	rate = perHour.Times(workers)
	for _, s := range basis.Services {
		_, perHour := basis.find(s.Machine)
		if perHour == nil {
			return 0, "there is no price for " + s.Machine
		}
		rate += perHour.Times(s.Count)
	}
	for _, o := range basis.Others {
		rate += o.PerHour
	}
	return rate, ""
}
