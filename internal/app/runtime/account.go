package runtime

import (
	"cmp"
	"strings"

	"thalweg/internal/base/budget"
	"thalweg/internal/base/fault"
	"thalweg/internal/run/job"
	"thalweg/internal/run/sheet"
)

// machineVariable names the type of machine in the environment.
const machineVariable = "THALWEG_MACHINE"

// Account has what this process does for runs kept in their time sheets, from then on. slots is the number of batches
// that it computes at once.
func (t *Runtime) Account(slots int) error {
	machine := t.Process.Getenv(machineVariable)
	if machine != "" && !sheet.IsMachine(machine) {
		return &fault.Error{Kind: fault.Script, Message: machineVariable + " does not name a type of machine: " + machine,
			Hint: "use up to 64 letters, digits, dots, _ and -: c7g.large"}
	}
	if cfg := t.Instance.Cluster(); cfg != nil {
		machine = cmp.Or(machine, cfg.Worker.Machine)
	}
	owner := job.Owner()
	host, _, _ := strings.Cut(owner, "/")
	meter := sheet.NewMeter(sheet.Config{Worker: owner, Host: host, Machine: cmp.Or(machine, sheet.Machine()),
		Cores: cmp.Or(t.Process.Cores, budget.Cores()), Slots: slots,
		Memory: cmp.Or(t.Process.MemoryBytes, budget.Default()), Stamp: t.Instance.Clock.Now, Usage: sheet.UsageOf(),
		Budget: func() int64 {
			b, _ := t.Held()
			return b.TotalBytes
		}})
	t.Sheets = sheet.NewKeeper(meter, t.Store)
	t.Store = meter.Store(t.Store)
	return nil
}
