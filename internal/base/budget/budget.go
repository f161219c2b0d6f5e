package budget

import (
	"fmt"
	"runtime"
)

// Shares of the budget, from the measurements in docs/decisions/0003-memory-budget.md.
const (
	// DefaultShare of the machine's memory is used when nobody says how much.
	DefaultShare = 0.60
	// MemoryBytesMin is the least budget that a run accepts.
	MemoryBytesMin = 256 << 20
	// baseBytes is reserved for the process itself: code, Go's heap and the allocator's slack.
	baseBytes = 96 << 20
	// pythonShare of what is left goes to the interpreters when a script has any.
	pythonShare = 0.25
	// pythonBytesMin is the least an interpreter gets.
	pythonBytesMin = 96 << 20
	// engineShare of a slot is DuckDB's memory_limit: the limit covers its
	// buffers only; list aggregates, Parquet writers and results come on top.
	engineShare = 0.80
	// batchShare of DuckDB's limit is what a batch's input may weigh
	// uncompressed, so that a batch stages, sorts or aggregates mostly in memory.
	batchShare = 0.25
	// batchBytesMax keeps batches small enough to be a unit of retry.
	batchBytesMax = 256 << 20
	batchBytesMin = 4 << 20
	// slotProcessBytes is reserved for the process of a slot, beside its batch:
	// docs/decisions/0048-child-slots.md.
	slotProcessBytes = 64 << 20
	// slotBytesMin is the least that is worth being a slot.
	slotBytesMin = 64 << 20
	// smallBytesMax is an input that is not worth cutting into several batches.
	smallBytesMax = 16 << 20
	// broadcastBytesMax is a right side that every batch of a lookup reads
	// whole; less where DuckDB has little.
	broadcastBytesMax = 64 << 20
)

// Budget holds the limits of a process. All sizes are bytes. All sizes are bytes.
type Budget struct {
	TotalBytes       int64 `json:"total_bytes"`
	Cores            int   `json:"cores"`
	Slots            int   `json:"slots"`             // batches in flight
	SlotEngineBytes  int64 `json:"slot_engine_bytes"` // DuckDB's memory_limit in each slot
	BatchBytes       int64 `json:"batch_bytes"`       // uncompressed input that a batch should have
	SmallBytes       int64 `json:"small_bytes"`       // an input that is one batch
	BroadcastBytes   int64 `json:"broadcast_bytes"`   // a right side that every batch of a lookup reads whole
	Interpreters     int   `json:"interpreters"`      // 0 without Python
	InterpreterBytes int64 `json:"interpreter_bytes"` // what each should stay within: it is recycled above
	GoBytes          int64 `json:"go_bytes"`          // GOMEMLIMIT
	SpillBytes       int64 `json:"spill_bytes"`       // cap of a slot's spill directory, 0: DuckDB's own
	// ProcessBytes is reserved for each slot's process beside its batch; 0: slots are goroutines.
	ProcessBytes int64 `json:"process_bytes,omitempty"`
	// Far: parts travel to whoever reads them, so that reading one twice costs more than writing it in buckets.
	Far bool `json:"far,omitempty"`
}

// Split divides total bytes over cores. Interpreters is the wanted number of
// Python processes, 0 for a script without Python.
func Split(total int64, cores, interpreters int) (Budget, error) {
	if total < MemoryBytesMin {
		return Budget{}, fmt.Errorf("a memory budget of %d MiB is too small: at least %d MiB are needed", total>>20,
			int64(MemoryBytesMin)>>20)
	}
	cores = max(cores, 1)
	b := Budget{TotalBytes: total, Cores: cores, Slots: cores, Interpreters: interpreters, GoBytes: baseBytes}
	left := total - baseBytes
	if interpreters > 0 {
		each := max(int64(float64(left)*pythonShare)/int64(interpreters), pythonBytesMin)
		for b.Interpreters > 1 && each*int64(b.Interpreters) > left/2 {
			b.Interpreters--
		}
		b.InterpreterBytes = each
		left -= each * int64(b.Interpreters)
	}
	for b.Slots > 1 && left/int64(b.Slots) < slotBytesMin {
		b.Slots--
	}
	b.divide(left / int64(b.Slots))
	return b, nil
}

// SplitProcesses divides total bytes over slots that are processes: each has an
// interpreter of its own if python is set, and beside what a slot has what its
// process needs. There are as many as cores, or as there is memory for.
func SplitProcesses(total int64, cores int, python bool) (Budget, error) {
	if total < MemoryBytesMin {
		return Split(total, cores, 0) // which says so
	}
	least := int64(slotBytesMin + slotProcessBytes)
	if python {
		least += pythonBytesMin
	}
	cores = max(cores, 1)
	left := total - baseBytes
	slots := int(min(int64(cores), max(left/least, 1)))
	b := Budget{TotalBytes: total, Cores: cores, Slots: slots, ProcessBytes: slotProcessBytes}
	slot := left/int64(slots) - slotProcessBytes
	if python {
		b.Interpreters, b.InterpreterBytes = slots, max(int64(float64(slot)*pythonShare), pythonBytesMin)
		slot -= b.InterpreterBytes
	}
	b.divide(max(slot, slotBytesMin)) // of the least budgets, one process needs a little more than all
	return b, nil
}

// divide sets the limits that follow from the size of a slot.
func (b *Budget) divide(slot int64) {
	b.SlotEngineBytes = int64(float64(slot) * engineShare)
	b.BatchBytes = min(max(int64(float64(b.SlotEngineBytes)*batchShare), batchBytesMin), batchBytesMax)
	b.SmallBytes = min(smallBytesMax, b.SlotEngineBytes/8)
	b.BroadcastBytes = min(broadcastBytesMax, b.SlotEngineBytes/8)
	b.GoBytes = baseBytes + slot/8*int64(b.Slots)
}

// ProcessGoBytes is GOMEMLIMIT of a slot that is a process.
func (b Budget) ProcessGoBytes() int64 {
	return b.ProcessBytes + int64(float64(b.SlotEngineBytes)/engineShare)/8
}

// resized gives what a process has of so many bytes that would have b whole.
// Each slot and each interpreter stays what it is, as long as one of each can,
// because batches and formulas were cut and tried for them: there are fewer. Of 0
// bytes it has no slot.
func (b Budget) resized(total int64) Budget {
	if total >= b.TotalBytes {
		return b
	}
	whole, slot := b, int64(float64(b.SlotEngineBytes)/engineShare)
	if b.TotalBytes, b.Slots, b.Interpreters = total, 0, 0; total == 0 {
		return b
	}
	left := int64(0)
	for slots := max(whole.Slots, 1); slots > 0 && (b.Slots == 0 || left < slot*int64(b.Slots)); slots-- {
		b.Slots, b.Interpreters = slots, whole.interpretersOf(slots)
		left = max(total-whole.fixed(slots), slotBytesMin)
	}
	b.SlotEngineBytes = int64(float64(min(left/int64(b.Slots), slot)) * engineShare)
	b.GoBytes = baseBytes + int64(float64(b.SlotEngineBytes)/engineShare)/8*int64(b.Slots)
	return b
}

// interpretersOf returns the number of interpreters that belong to the given number of slots.
func (b Budget) interpretersOf(slots int) int {
	return (b.Interpreters*slots + b.Slots - 1) / max(b.Slots, 1)
}

// fixed returns the bytes that are not for slots, if there are so many of them. The processes of all slots
// count, because they stay.
func (b Budget) fixed(slots int) int64 {
	return baseBytes + b.InterpreterBytes*int64(b.interpretersOf(slots)) + b.ProcessBytes*int64(b.Slots)
}

// floor returns the least bytes with which a process that has all of b to itself can do one batch after the
// other.
func (b Budget) floor() int64 {
	return max(MemoryBytesMin, b.fixed(1)+slotBytesMin)
}

// Default gives the budget for this machine when nobody says how much memory.
func Default() int64 { return int64(float64(MachineBytes()) * DefaultShare) }

// Cores returns the number of processors that Go schedules on: it respects the control group's CPU limit.
func Cores() int { return runtime.GOMAXPROCS(0) }
