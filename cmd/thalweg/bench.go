package main

// benchCmd has the commands that measure.
type benchCmd struct {
	Pipeline benchPipelineCmd `cmd:"" help:"Measure what a worker chooses to do at once, beside fixed numbers."`
}
