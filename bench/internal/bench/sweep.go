package bench

import (
	"thalweg/internal/ops/sweep"
	"thalweg/internal/run/concurrency"
)

// sweepCases hold what a worker chooses to do at once against the best fixed number, by class of node.
func sweepCases() []Case {
	var checks []check
	for _, class := range concurrency.Classes() {
		checks = append(checks, check{name: class + ": of the best fixed number's rate", side: "sweep",
			figure: shareFigure + class, bar: bar{limit: sweep.ShareWanted, atLeast: true}})
	}
	return []Case{
		{
			Name: "sweep", What: "a worker's own choice beside fixed numbers of batches and threads, in a directory",
			input: inputNone, size: 4_000_000, runs: 1, sides: []side{{name: "sweep", program: "sweep"}},
			checks: checks,
		},
		{
			Name: "sweep-cluster", What: "the same over Cassandra and RabbitMQ, and of writers",
			input: inputNone, size: 4_000_000, runs: 1, sides: []side{{name: "sweep", program: "sweep over services"}},
			checks: checks,
		},
	}
}
