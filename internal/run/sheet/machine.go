package sheet

import (
	"os"
	"path/filepath"
	"regexp"
	"runtime/metrics"
	"strings"
	"time"

	"thalweg/internal/base/budget"
)

// machineName matches the names of types of machines.
var machineName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// IsMachine reports whether a text may name a type of machine.
func IsMachine(name string) bool { return machineName.MatchString(name) }

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
	if read("sys_vendor") != "Amazon EC2" || !IsMachine(name) {
		return ""
	}
	return name
}

// collector is the processor time of Go's garbage collector, as the runtime estimates it.
const collector = "/cpu/classes/gc/total:cpu-seconds"

// Collector returns the processor time of this process's garbage collector so far, as the runtime estimates it.
func Collector() time.Duration {
	gc := []metrics.Sample{{Name: collector}}
	metrics.Read(gc)
	if gc[0].Value.Kind() != metrics.KindFloat64 {
		return 0
	}
	return time.Duration(gc[0].Value.Float64() * float64(time.Second))
}

// UsageOf returns what asks for the usage of this process.
func UsageOf() func() (Usage, bool) {
	var processes budget.Processes
	return func() (u Usage, ok bool) {
		self, children, ok := processes.Use()
		u.GC = Collector()
		u.CPU, u.Children, u.Resident = self.CPU, children.CPU, self.Resident+children.Resident
		return u, ok
	}
}
