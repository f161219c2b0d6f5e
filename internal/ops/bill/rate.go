package bill

import (
	"fmt"
	"strings"

	"thalweg/internal/ops/price"
)

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
	beside, without := basis.BesidePerHour()
	if len(without) > 0 {
		return 0, "there is no price for " + without[0]
	}
	return perHour.Times(workers) + beside, ""
}

// BesidePerHour returns what an hour of all that runs beside workers costs. without lists the types of machines among it
// that have no price, which is not in it.
func (basis Basis) BesidePerHour() (rate price.Money, without []string) {
	for _, s := range basis.Services {
		_, perHour := basis.find(s.Machine)
		if perHour == nil {
			without = append(without, s.Machine)
			continue
		}
		rate += perHour.Times(s.Count)
	}
	for _, o := range basis.Others {
		rate += o.PerHour
	}
	return rate, without
}

// BesideText names all that runs beside workers: 3 × c7g.large, balancer.
func (basis Basis) BesideText() string {
	var all []string
	for _, s := range basis.Services {
		all = append(all, fmt.Sprintf("%d × %s", s.Count, s.Machine))
	}
	for _, o := range basis.Others {
		all = append(all, o.Name)
	}
	return strings.Join(all, ", ")
}
