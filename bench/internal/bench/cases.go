package bench

import "slices"

// Scripts of more than one case, below the repository.
const (
	rowsScript  = "examples/portfolio/script.yaml"
	csvScript   = "examples/portfolio/script_csv.yaml"
	numpyScript = "examples/portfolio_numpy/script.yaml"
)

// smallRuns is the number of runs of a side that takes a second at most.
const smallRuns = 15

// Cases lists all cases, those that take seconds first.
func Cases() []Case {
	numpy := []string{"--python", "{env:duckdb}/bin/python3"}
	return append(slices.Concat(serveCases(), forecastCases(), sweepCases()), []Case{
		{
			Name: "small", What: "a script of three nodes over a small file, a new state directory each time",
			input: "small", size: 1000, runs: smallRuns,
			sides:  []side{{name: "thalweg", program: "thalweg", file: "bench/steps/small/script.yaml"}},
			checks: []check{{name: "whole", figure: "wall", side: "thalweg", bar: noMore(0.15, "s")}},
		},
		{
			Name: "coldstart",
			What: "what a start costs: thalweg version, and a script of three nodes over a small file " +
				"beside duckdb -c of the same work",
			input: "small", size: 1000, runs: smallRuns,
			sides: []side{
				{name: "version", program: "version"},
				{name: "three nodes", program: "thalweg", file: "bench/steps/small/script.yaml"},
				{name: "duckdb -c", program: "duckdb -c"},
			},
			checks: []check{
				{name: "thalweg version", figure: "wall", side: "version", bar: noMore(0.03, "s")},
				{name: "three nodes", figure: "wall", side: "three nodes", bar: noMore(0.15, "s")},
				{name: "duckdb -c", figure: "wall", side: "duckdb -c"},
				{name: "three nodes, against duckdb -c", figure: "wall", side: "three nodes", over: "duckdb -c"},
			},
		},
		{
			Name: "six", What: "generated portfolio of six accounts, a new state directory each time",
			input: inputPortfolio, size: 6, runs: smallRuns,
			sides: []side{
				{name: "rows", program: "thalweg", file: rowsScript},
				{name: "duckdb", program: "duckdb"},
			},
			checks: []check{
				{name: "whole", figure: "wall", side: "rows", bar: noMore(0.6, "s")},
				{name: "whole, against by hand", figure: "wall", side: "rows", over: "duckdb"},
				{name: "overhead, start and exit included", figure: "overhead", side: "rows"},
			},
		},
		// A node of few batches and one of many over the same rows, on one core: what
		// a batch more takes. Its instance of DuckDB, which reads and writes ten rows,
		// is a part of that; committing the batch and publishing its file are the rest.
		{
			Name: "batches", What: "20 and 420 batches of next to nothing on one core", input: "batches",
			size: 4200, runs: 5, sides: []side{
				{name: "few", program: "thalweg", file: "bench/steps/batches/script.yaml",
					flags: []string{"--cores", "1"}, params: map[string]any{"batches": 20}, unlike: true},
				{name: "many", program: "thalweg", file: "bench/steps/batches/script.yaml",
					flags: []string{"--cores", "1"}, params: map[string]any{"batches": 420}, unlike: true},
			},
			checks: []check{
				{name: "DuckDB's time in a batch", figure: engineFigure + "write", side: "many", less: "few", per: 400,
					bar: noMore(0.005, "s")},
				{name: "time of a batch, its commit and its file included", figure: nodeFigure + "write", side: "many",
					less: "few", per: 400},
			},
		},
		// The state of a run: batches are claimed and committed, and do nothing.
		{
			Name: "supervision", What: "claims and commits of 100,000 batches of a run", input: inputNone, size: 100_000,
			runs: 1, sides: []side{{name: "state", program: "state"}},
			checks: []check{
				{name: "claim and commit of a batch, the first 1,000", figure: loadFigure + "first", side: "state",
					bar: noMore(0.002, "s")},
				{name: "claim and commit of a batch, the last 1,000", figure: loadFigure + "last", side: "state",
					bar: noMore(0.002, "s")},
			},
		},
		{
			Name: "portfolio", What: "generated portfolio: Thalweg row-wise and with numpy, and by hand with DuckDB",
			input: inputPortfolio, size: 1000,
			sides: []side{
				{name: "rows", program: "thalweg", file: rowsScript},
				{name: "duckdb", program: "duckdb"},
				{name: "numpy", program: "thalweg", file: numpyScript, flags: numpy},
				{name: "rows ephemeral", program: "thalweg", file: rowsScript, flags: []string{"--ephemeral"}},
			},
			checks: []check{
				{name: "load and join", figure: "load_join", side: "rows", over: "duckdb", bar: atMost(1.2)},
				{name: "whole, row-wise", figure: "wall", side: "rows", over: "duckdb", bar: atMost(1)},
				{name: "whole, numpy", figure: "wall", side: "numpy", over: "duckdb", bar: atMost(0.35)},
				{name: "whole, ephemeral", figure: "wall", side: "rows ephemeral", over: "duckdb"},
				{name: "peak memory, row-wise", figure: "peak", side: "rows", bar: noMore(2, "GB"),
					note: "no limit given"},
				{name: "peak memory, numpy", figure: "peak", side: "numpy", bar: noMore(2, "GB"),
					note: "no limit given"},
				{name: "peak memory, against by hand", figure: "peak", side: "rows", over: "duckdb"},
				{name: "cores busy during Python nodes", figure: "python_cpu", side: "rows",
					bar: bar{limit: 95, unit: "%", atLeast: true}},
			},
		},
		{
			Name: "rerun",
			What: "generated portfolio, run in a new state directory; then with a formula of the last Python " +
				"node touched, or nothing", input: inputPortfolio, size: 1000,
			sides: []side{
				{name: "whole", program: "thalweg", file: rowsScript},
				{name: "touched", program: "thalweg touched", file: rowsScript},
				{name: "nothing", program: "thalweg again", file: rowsScript},
			},
			checks: []check{
				{name: "a formula of the last Python node touched, against the whole", figure: "wall", side: "touched",
					over: "whole", bar: atMost(0.15)},
				{name: "nothing changed", figure: "wall", side: "nothing", bar: noMore(1, "s")},
			},
		},
		storedOrNot("lookup", "10 M rows looked up in 10 M rows", 10_000_000, 2.0, 1.2, true),
		storedOrNot("sorting", "20 M rows into one sorted CSV file", 20_000_000, 1.5, 1.1, false),
		// buckets has four loads of the same rows under each of two limits: the plan
		// makes 32 buckets of them with the larger one, 512 with the smaller.
		// Loads of the same rows under two limits: of 3 GB of them the plan makes
		// 32 buckets with the larger one and 512 with the smaller.
		{
			Name: "buckets", What: "22 M rows loaded into a plain table and into one in buckets, shuffled and " +
				"clustered by key", input: "buckets", size: 22_000_000,
			sides: []side{
				bucketSide("plain 32", "plain", "shuffled", "2GB"), bucketSide("shuffled 32", "bucketed",
					"shuffled", "2GB"),
				bucketSide("plain clustered 32", "plain", "clustered", "2GB"), bucketSide("clustered 32", "bucketed",
					"clustered", "2GB"),
				bucketSide("plain 512", "plain", "shuffled", "256MB"), bucketSide("shuffled 512", "bucketed",
					"shuffled", "256MB"),
				bucketSide("plain clustered 512", "plain", "clustered", "256MB"),
				bucketSide("clustered 512", "bucketed",
					"clustered", "256MB"),
			},
			checks: []check{
				{name: "shuffled rows, 32 buckets", figure: nodeFigure + "read", side: "shuffled 32", over: "plain 32",
					bar: atMost(1.8)},
				{name: "shuffled rows, 512 buckets", figure: nodeFigure + "read", side: "shuffled 512",
					over: "plain 512", bar: atMost(1.8)},
				{name: "clustered rows, 32 buckets", figure: nodeFigure + "read", side: "clustered 32",
					over: "plain clustered 32", bar: atMost(1.1)},
				{name: "clustered rows, 512 buckets", figure: nodeFigure + "read", side: "clustered 512",
					over: "plain clustered 512", bar: atMost(1.1)},
			},
		},
		{
			Name: "peers",
			What: "generated portfolio, as users of other tools would write it; memory limit where the tool " +
				"has one", input: inputPortfolio, size: 1000,
			sides: []side{
				{name: "rows", program: "thalweg", file: rowsScript, memory: "4GB"},
				{name: "dbt-duckdb", program: "dbt", memory: "4GB"},
				{name: "polars", program: "polars"},
				{name: "pyspark", program: "pyspark", memory: "4GB"},
			},
			checks: []check{
				{name: "whole, against dbt-duckdb", figure: "wall", side: "rows", over: "dbt-duckdb", bar: atMost(1)},
				{name: "whole, against Polars", figure: "wall", side: "rows", over: "polars", bar: atMost(1)},
				{name: "whole, against PySpark", figure: "wall", side: "rows", over: "pyspark", bar: atMost(1)},
				{name: "peak memory, against dbt-duckdb", figure: "peak", side: "rows", over: "dbt-duckdb",
					bar: atMost(1)},
				{name: "peak memory, against Polars", figure: "peak", side: "rows", over: "polars", bar: atMost(1),
					note: "Polars has no limit"},
				{name: "peak memory, against PySpark", figure: "peak", side: "rows", over: "pyspark", bar: atMost(1),
					note: "PySpark's limit is that of the JVM's heap"},
			},
		},
		{
			Name:  "processes",
			What:  "generated portfolio in one process and in two on one state directory, a core each",
			input: inputPortfolio, size: 1000,
			sides: []side{
				{name: "one process", program: "one core", file: rowsScript, memory: "4GB"},
				{name: "two processes", program: "a process a core", file: rowsScript, memory: "4GB"},
			},
			checks: []check{{name: "speed-up", figure: "wall", side: "one process", over: "two processes",
				bar: bar{limit: 1.8, atLeast: true}}},
		},
		{
			Name: "size", What: "generated portfolio, a tenth of the accounts and all", input: inputPortfolio,
			size: 10_000, runs: 1,
			sides: []side{
				{name: "rows, a tenth", program: "thalweg", file: rowsScript, memory: "4GB", part: 10},
				{name: "rows", program: "thalweg", file: rowsScript, memory: "4GB"},
				{name: "numpy, a tenth", program: "thalweg", file: numpyScript, flags: numpy, memory: "4GB", part: 10},
				{name: "numpy", program: "thalweg", file: numpyScript, flags: numpy, memory: "4GB"},
			},
			checks: []check{
				{name: "row-wise, ten times the accounts", figure: "wall", side: "rows", over: "rows, a tenth",
					bar: atMost(10.5)},
				{name: "numpy, ten times the accounts", figure: "wall", side: "numpy", over: "numpy, a tenth",
					bar: atMost(10.5)},
				{name: "peak memory, row-wise", figure: "peak", side: "rows"},
				{name: "peak memory, numpy", figure: "peak", side: "numpy"},
			},
		},
		{
			Name: "memory", What: "generated portfolio with little memory", input: inputPortfolio,
			size: 10_000, runs: 1,
			sides: []side{{name: "rows", program: "thalweg", file: rowsScript, memory: "1GB"}},
			checks: []check{
				{name: "peak memory of the process tree", figure: "peak", side: "rows", bar: noMore(1.3, "GB")},
				{name: "whole", figure: "wall", side: "rows"},
			},
		},
		{
			Name: "postgres",
			What: "10 M rows of seven columns out of PostgreSQL into a table, and back, against psql's COPY " +
				"to and from a file", input: inputNone, size: 10_000_000, runs: 2,
			sides: []side{{name: "thalweg", program: "thalweg postgres"}, {name: "psql", program: "psql"}},
			checks: []check{
				{name: "reading a table", figure: stepFigure + "in", side: "thalweg", over: "psql", bar: atMost(2)},
				{name: "appending to a table", figure: stepFigure + "out", side: "thalweg", over: "psql",
					bar: atMost(2)},
				{name: "replacing the rows of a table", figure: stepFigure + "replace", side: "thalweg", over: "psql",
					note: "psql empties the table first, and lets readers wait for all of it"},
			},
		},
		{
			Name: "tagging", What: "1 M rows, 250 tags of one regular expression each", input: "tagging",
			size: 1_000_000, anyOrder: true,
			sides: []side{
				{name: "stored", program: "thalweg", file: "bench/steps/tagging/script.yaml"},
				{name: "duckdb", program: "sql", file: "bench/steps/tagging/peer.sql"},
			},
			checks: []check{{name: "whole", figure: "wall", side: "stored", over: "duckdb", bar: atMost(2)}},
		},
		// The tables are loaded first, which is not measured. The file by hand has the
		// rows of the two runs, in the order of the tables.
		{
			Name: "diff", What: "two tables of 10 M rows, one with rows that were added, removed and changed",
			input: "diff", size: 10_000_000,
			sides: []side{
				{name: "by key", program: "diff", file: "bench/steps/diff/script.yaml", memory: "1GB",
					flags: []string{"--key", "id"}, unlike: true},
				{name: "by rows", program: "diff", file: "bench/steps/diff/script.yaml", memory: "1GB",
					flags: []string{"--by-rows"}, unlike: true},
				{name: "duckdb", program: "sql", file: "bench/steps/diff/peer.sql", memory: "1GB", unlike: true},
			},
			checks: []check{
				{name: "by key", figure: "wall", side: "by key", over: "duckdb"},
				{name: "by rows", figure: "wall", side: "by rows", over: "duckdb", note: "by hand it is by key"},
				{name: "peak memory, by key", figure: "peak", side: "by key", bar: noMore(1.3, "GB")},
				{name: "peak memory, by rows", figure: "peak", side: "by rows", bar: noMore(1.3, "GB")},
				{name: "peak memory, by hand", figure: "peak", side: "duckdb"},
			},
		},
		{
			Name: "cluster", What: "generated portfolio: two workers over Cassandra and RabbitMQ on this machine, " +
				"and without them", input: inputPortfolio, size: 1000, sides: []side{
				{name: "local", program: "thalweg", file: rowsScript},
				{name: "two workers", program: "fleet", file: rowsScript},
			},
			checks: []check{
				{name: "the run, against a local one", figure: elapsedFigure, side: "two workers", over: "local",
					bar: atMost(1.5), note: "from the run's begin to its end"},
				{name: "rows a statement in Cassandra", figure: countFigure + "rows a statement", side: "two workers",
					bar: bar{limit: 5000, unit: "rows", atLeast: true}},
				{name: "conditional writes of workers a batch", figure: countFigure + "conditional writes a batch",
					side: "two workers", bar: noMore(4, "writes")},
				{name: "useless deliveries", figure: countFigure + "useless deliveries", side: "two workers",
					bar: noMore(0, "deliveries")},
				{name: "last commit to dependents' first claim, waiting for slots that are busy included, median",
					figure: stepFigure + "dependents and slots, median", side: "two workers"},
				{name: "the same, p99", figure: stepFigure + "dependents and slots, p99", side: "two workers"},
				{name: "last commit to dependents' first claim, median", figure: stepFigure + "dependents, median",
					side: "two workers", bar: noMore(0.05, "s")},
				{name: "last commit to dependents' first claim, p99", figure: stepFigure + "dependents, p99",
					side: "two workers", bar: noMore(0.25, "s")},
				{name: "bytes of parts read, against the inputs of batches", figure: countFigure + "read over least",
					side: "two workers", bar: atMost(1.1)},
				{name: "bytes of parts written, against the results of batches",
					figure: countFigure + "written over least", side: "two workers", bar: atMost(1.1)},
			},
		},
		{
			Name: "cluster-scaling", What: "generated portfolio: four workers of half a core each, and one",
			input: inputPortfolio, size: 1000,
			sides: []side{
				{name: "one", program: "fleet", file: rowsScript, flags: []string{"--workers", "1", "--held", "0.5"}},
				{name: "four", program: "fleet", file: rowsScript, flags: []string{"--workers", "4", "--held", "0.5"}},
			},
			checks: []check{
				{name: "Python node, one against four", figure: nodeFigure + "4_calc_account_period_perf", side: "one",
					over: "four", bar: bar{limit: 3.4, atLeast: true}},
				{name: "whole, one against four", figure: stepFigure + "run", side: "one", over: "four",
					bar: bar{limit: 3, atLeast: true}},
			},
		},
		{
			Name: "cluster-lookup", What: "10 M rows looked up in 10 M rows by three workers of 1 GB each, in a " +
				"directory and over Cassandra", input: "lookup", size: 10_000_000, runs: 1,
			sides: []side{
				{name: "directory", program: "fleet in a directory", file: "bench/steps/lookup/script.yaml",
					flags: threeWorkers()},
				{name: "cassandra", program: "fleet", file: "bench/steps/lookup/script.yaml", flags: threeWorkers()},
			},
			checks: []check{
				{name: "peak memory of the largest worker, its slots included, directory", figure: countFigure +
					"peak GB of a worker", side: "directory", bar: noMore(1.3, "GB")},
				{name: "peak memory of the largest worker, its slots included, Cassandra", figure: countFigure +
					"peak GB of a worker", side: "cassandra", bar: noMore(1.3, "GB")},
				{name: "bytes of parts read, against the inputs of batches", figure: countFigure + "read over least",
					side: "cassandra", bar: atMost(1.1)},
				{name: "bytes of parts written, against the results of batches",
					figure: countFigure + "written over least", side: "cassandra", bar: atMost(1.1)},
			},
		},
		{
			Name: "validate", What: "thalweg validate on a script of 200 nodes", input: "wide", size: 200, runs: 5,
			sides:  []side{{name: "thalweg", program: "validate"}},
			checks: []check{{name: "whole", figure: "wall", side: "thalweg", bar: noMore(0.3, "s")}},
		},
		{
			Name: "ark", What: "six real funds", input: inputArk, runs: 3,
			sides: []side{
				{name: "rows", program: "thalweg", file: csvScript},
				{name: "duckdb", program: "duckdb"},
			},
			checks: []check{
				{name: "whole", figure: "wall", side: "rows", bar: noMore(0.6, "s")},
				{name: "whole, against by hand", figure: "wall", side: "rows", over: "duckdb"},
				{name: "overhead, start and exit included", figure: "overhead", side: "rows", bar: noMore(0.5, "s")},
			},
		},
	}...)
}

func threeWorkers() []string {
	return []string{"--workers", "3", "--memory", "1GB", "--plan", "1GB", "--cores", "1"}
}

func bucketSide(name, script, rows, memory string) side {
	return side{name: name, program: "thalweg", file: "bench/steps/buckets/" + script + ".yaml", memory: memory,
		params: map[string]any{"rows": rows}}
}

// storedOrNot is a step with its tables stored and with them ephemeral, against its peer.
func storedOrNot(name, what string, rows int64, stored, ephemeral float64, anyOrder bool) Case {
	const limit = "1GB"
	script, peer := "bench/steps/"+name+"/script.yaml", "bench/steps/"+name+"/peer.sql"
	return Case{
		Name: name, What: what, input: name, size: rows, anyOrder: anyOrder,
		sides: []side{
			{name: "stored", program: "thalweg", file: script, memory: limit},
			{name: "duckdb", program: "sql", file: peer, memory: limit},
			{name: "ephemeral", program: "thalweg", file: script, memory: limit, flags: []string{"--ephemeral"}},
		},
		checks: []check{
			{name: "whole, stored", figure: "wall", side: "stored", over: "duckdb", bar: atMost(stored)},
			{name: "whole, ephemeral", figure: "wall", side: "ephemeral", over: "duckdb", bar: atMost(ephemeral)},
			{name: "peak memory, stored", figure: "peak", side: "stored", bar: noMore(1.3, "GB")},
			{name: "peak memory, ephemeral", figure: "peak", side: "ephemeral", bar: noMore(1.3, "GB")},
			{name: "peak memory, by hand", figure: "peak", side: "duckdb"},
		},
	}
}
