package sheet

import (
	"os"
	"path/filepath"
	"runtime/metrics"
	"strings"
	"time"

	"thalweg/internal/base/budget"
)

// MachineMax is the longest name of a type of machine, in bytes.
const MachineMax = 64

// firmware has what the machine says of itself.
const firmware = "sys/devices/virtual/dmi/id"

// Machine returns the type of this machine as its firmware names it, on EC2; "": it is not known.
func Machine() string { return machineOf("/") }

func machineOf(root string) string {
	read := func(name string) string {
		text, _ := os.ReadFile(filepath.Join(root, firmware, name)) // none where there is no such firmware
		return strings.TrimSpace(string(text))
	}
	name := read("product_name")
	if read("sys_vendor") != "Amazon EC2" || len(name) > MachineMax {
		return ""
	}
	return name
}

// collector is the processor time of Go's garbage collector, as the runtime estimates it.
const collector = "/cpu/classes/gc/total:cpu-seconds"

// UsageOf returns what asks for the usage of this process.
func UsageOf() func() (Usage, bool) {
	var processes budget.Processes
	return func() (u Usage, ok bool) {
		self, children, ok := processes.Use()
		gc := []metrics.Sample{{Name: collector}}
		metrics.Read(gc)
		if gc[0].Value.Kind() == metrics.KindFloat64 {
			u.GC = time.Duration(gc[0].Value.Float64() * float64(time.Second))
		}
		u.CPU, u.Children, u.Resident = self.CPU, children.CPU, self.Resident+children.Resident
		return u, ok
	}
}
