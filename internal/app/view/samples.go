package view

import "time"

// Samples has what the workers of a run used of their machines.
type Samples struct {
	From    time.Time       `json:"from"`
	To      time.Time       `json:"to"`
	Workers []WorkerSamples `json:"workers"`        // by name; those that work on other runs too have that in their figures
	More    int             `json:"more,omitempty"` // workers that are left out
}

// WorkerSamples has a value for each sample of a worker in each list, in order of time. Sizes are bytes.
type WorkerSamples struct {
	Worker string `json:"worker"` // as attempts have it
	// At are milliseconds from From to the end of what a sample is of; Took is how long that was.
	At               []int64 `json:"at_ms"`
	Took             []int64 `json:"took_ms"`
	CPU              []int64 `json:"cpu_ms"` // of the worker itself
	ChildrenCPU      []int64 `json:"children_cpu_ms"`
	Cores            []int64 `json:"cores"` // that it may use
	Resident         []int64 `json:"resident_bytes"`
	ChildrenResident []int64 `json:"children_resident_bytes"`
	MemoryLimit      []int64 `json:"memory_limit_bytes"`
	DiskFree         []int64 `json:"disk_free_bytes"` // of the disk that has its directory
	DiskTotal        []int64 `json:"disk_total_bytes"`
	Read             []int64 `json:"read_bytes"` // from disks
	Written          []int64 `json:"written_bytes"`
}
