package main

// benchCmd has the commands that measure.
type benchCmd struct {
	Host     benchHostCmd     `cmd:"" help:"Measure this machine: cores, memory, disk, network, what others take of it."`
	Pipeline benchPipelineCmd `cmd:"" help:"Measure what a worker chooses to do at once, beside fixed numbers."`
}
