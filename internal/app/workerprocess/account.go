package workerprocess

import (
	"cmp"
	"strings"

	"thalweg/internal/app/instance"
	"thalweg/internal/base/budget"
	"thalweg/internal/base/fault"
	"thalweg/internal/run/job"
	"thalweg/internal/run/sheet"
	"thalweg/internal/store/state"
)

// Sheets keep the time sheets of a process.
type Sheets = sheet.Keeper

// machineVariable names the type of machine in the environment.
const machineVariable = "THALWEG_MACHINE"

// Means are what a process works with.
type Means struct {
	Getenv func(name string) string
	Cores  int                                 // 0: the machine's
	Slots  int                                 // batches that it computes at once
	Memory int64                               // 0: a share of the machine's
	Held   func() (b budget.Budget, held bool) // of the memory, now
}

// Machine returns the type of machine of this process; "": it is not known.
func Machine(home *instance.Instance, getenv func(name string) string) (string, error) {
	machine := getenv(machineVariable)
	if machine != "" && !sheet.IsMachine(machine) {
		return "", &fault.Error{Kind: fault.Script,
			Message: machineVariable + " does not name a type of machine: " + machine,
			Hint:    "use up to 64 letters, digits, dots, _ and -: c7g.large"}
	}
	if cfg := home.Cluster(); cfg != nil {
		machine = cmp.Or(machine, cfg.Worker.Machine)
	}
	return cmp.Or(machine, sheet.Machine()), nil
}

// Account returns what keeps the time sheets of this process, and the store with its calls counted.
func Account(home *instance.Instance, store state.Store, m Means) (*Sheets, state.Store, error) {
	machine, err := Machine(home, m.Getenv)
	if err != nil {
		return nil, nil, err
	}
	owner := job.Owner()
	host, _, _ := strings.Cut(owner, "/")
	meter := sheet.NewMeter(sheet.Config{Worker: owner, Host: host, Machine: machine,
		Cores: cmp.Or(m.Cores, budget.Cores()), Slots: m.Slots, Memory: cmp.Or(m.Memory, budget.Default()),
		Stamp: home.Clock.Now, Usage: sheet.UsageOf(),
		Budget: func() int64 {
			b, _ := m.Held()
			return b.TotalBytes
		}})
	return sheet.NewKeeper(meter, store), meter.Store(store), nil
}
