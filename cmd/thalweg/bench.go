package main

// benchCmd has the commands that measure.
type benchCmd struct {
	Compare  benchCompareCmd  `cmd:"" help:"Compare two stores or hosts that were measured: ratios, with intervals; or how rates grow with nodes."`
	Host     benchHostCmd     `cmd:"" help:"Measure this machine: cores, memory, disk, network, what others take of it."`
	Pipeline benchPipelineCmd `cmd:"" help:"Measure what a worker chooses to do at once, beside fixed numbers."`
	Store    benchStoreCmd    `cmd:"" help:"Measure a store under load: CQL, Redis, parts, state; rates, times, what they cost."`
}
