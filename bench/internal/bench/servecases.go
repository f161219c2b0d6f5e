package bench

// serveCases are those of a server: see bench/cmd/thalweg-serve, of whose cases they have their names.
func serveCases() []Case {
	page := func(step string, seconds float64) check {
		return check{name: step, figure: stepFigure + step, side: "serve", bar: noMore(seconds, "s")}
	}
	shown := func(name, unit string) check {
		figure := countFigure + name
		if unit == "s" {
			figure = stepFigure + name
		}
		return check{name: name, figure: figure, side: "serve"}
	}
	const (
		news, rows, runs, node = 0.3, 0.2, 0.15, 0.3 // s
		clusterNews            = 1.5                 // s
		clusterRows            = 1.5                 // s
		idle, most             = 80, 250             // MB
	)
	memory := func(name string, limit float64) check {
		return check{name: name, figure: countFigure + name, side: "serve", bar: noMore(limit, "MB")}
	}
	sides := func(of string, flags ...string) []side {
		return []side{{name: "serve", program: "serve", file: rowsScript, flags: append(flags, "--case", of)}}
	}
	fleet := func(of string, flags ...string) []side {
		return []side{{name: "serve", program: "serve a fleet", file: rowsScript, flags: append(flags, "--case", of)}}
	}
	return []Case{
		{
			Name:  "serve-news",
			What:  "200 streams of a run of 100 files: from a commit to the last of the streams, 95th hundredth",
			input: inputNone, size: 5_000_000, runs: 1, sides: sides("news", "--size", "{rows}"),
			checks: []check{page("line, one core", news), page("line, all cores", news),
				shown("line, one core, median", "s"), shown("line, all cores, median", "s"), memory("server MB", most)},
		},
		{
			Name: "serve-rows", What: "pages of 100 rows of 10 M: 95th of 50, and the first of a server", input: inputNone,
			size: 10_000_000, runs: 1, sides: sides("rows", "--size", "{rows}"),
			checks: []check{page("row 1", rows), page("row 9,000,000", rows), shown("row 1, cold", "s"),
				shown("row 9,000,000, cold", "s")},
		},
		{
			Name: "serve-cluster-news", What: "200 streams of a run of 100 files by a worker over Cassandra and RabbitMQ: from a " +
				"commit to the last of the streams, 95th hundredth", input: inputNone, size: 5_000_000, runs: 1,
			sides: fleet("news", "--size", "{rows}"),
			checks: []check{page("line, fleet", clusterNews), shown("line, fleet, median", "s"),
				memory("server MB", most)},
		},
		{
			Name: "serve-cluster-rows", What: "pages of 100 rows of 10 M in Cassandra: the first of a server, and the 95th of 50",
			input: inputNone, size: 10_000_000, runs: 1, sides: fleet("rows", "--size", "{rows}"),
			checks: []check{page("row 1, cold", clusterRows), page("row 9,000,000, cold", clusterRows), shown("row 1", "s"),
				shown("row 9,000,000", "s")},
		},
		{
			Name: "serve-runs", What: "pages of 100 of 100,000 runs: 95th of 50", input: inputNone, size: 100_000,
			runs: 1, sides: sides("runs", "--size", "{rows}"),
			checks: []check{page("first", runs), page("middle", runs), page("status", runs), page("script", runs),
				page("text", runs), page("until", runs), page("since", runs), page("matrix", runs), memory("server MB", most)},
		},
		{
			Name: "serve-node", What: "what is shown of a node of 32,000 batches: 95th of 50", input: inputNone, size: 32_000,
			runs: 1, sides: sides("node", "--size", "{rows}"),
			checks: []check{page("node", node), page("run", node), page("batches", node), page("batches, the last", node),
				page("failed batches", node), page("batch", node), page("timeline", node),
				page("why", node), page("events", node), shown("all batches", "s"), memory("server MB", most)},
		},
		{
			Name: "serve-cost", What: "generated portfolio in ten rounds: without a server, and with one, 200 streams and a " +
				"reader who turns two pages a second", input: inputPortfolio, size: 400, runs: 1, sides: sides("cost"),
			checks: []check{
				{name: "read over alone", figure: countFigure + "read over alone", side: "serve", bar: noMore(1.02, times)},
				memory("idle MB", idle), memory("most MB", most), shown("alone", "s"), shown("read", "s"),
				shown("read over alone, median of rounds", ""), shown("read over alone, least", ""),
				shown("read over alone, most", ""), shown("left MB", ""),
				shown("CPU s of the server a run", ""), shown("CPU s of the server and its children a run", ""),
				shown("CPU s of the readers a run", ""), shown("lines that the streams got a run", ""),
				shown("pages that the reader got a run", ""), shown("a page meanwhile", "s"),
			},
		},
		{
			Name: "serve-children", What: "a query that eats memory, one that spins, one that crashes; runs of 5 M rows beside " +
				"them", input: inputNone, size: 5_000_000, runs: 1, sides: sides("children", "--size", "{rows}"),
			checks: []check{memory("server MB", most), shown("run alone", "s"), shown("run while it eats memory", "s"),
				shown("run while it spins", "s"), shown("run while it crashes", "s"),
				page("an answer while it eats memory", node), page("an answer while it spins", node),
				page("an answer while it crashes", node)},
		},
	}
}
