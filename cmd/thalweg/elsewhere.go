package main

// elsewhere says which command does here what a word does in other programs.
var elsewhere = wordsOf(map[string][]string{
	"`thalweg history` lists the latest runs, `thalweg show` shows one, `thalweg why` says what it waits for": {
		"status",
		"stat", "ps", "top", "jobs", "job",
		"list", "ls", "state", "queue", "progress", "describe", "inspect", "info", "get", "view"},
	"`thalweg events` prints what has happened to a run, and `thalweg show` where it failed": {"logs", "log", "journal",
		"console", "output"},
	"`thalweg attach` follows a run; `thalweg scheduler` begins runs when files come": {"watch", "tail", "follow",
		"monitor", "wait"},
	"`thalweg stop` stops a run, `thalweg pause` lets its batches end first": {"cancel", "kill", "abort",
		"terminate", "halt", "interrupt", "end", "quit"},
	"`thalweg drop` drops runs, and `thalweg gc` then removes what they have written": {"delete", "del", "rm",
		"remove", "purge", "destroy", "erase"},
	"`thalweg gc` removes what nobody needs any more": {"clean", "cleanup", "prune",
		"vacuum", "clear", "expire"},
	"`thalweg invalidate` says that no run reads a run's tables any more": {"undo", "rollback",
		"revert", "reset"},
	"`thalweg run SCRIPT` runs a script": {"start", "submit", "execute", "exec", "trigger", "launch", "apply", "build",
		"make", "do", "process", "materialize",
		"transform"},
	"a script is run from its file: `thalweg run SCRIPT`; `thalweg scheduler SCRIPT` begins runs by the clock": {
		"deploy",
		"schedule", "cron", "publish", "push",
		"release", "register"},
	"`thalweg run SCRIPT --matrix NAME=VALUES` runs a script once for each value": {"backfill", "loop", "each"},
	"`thalweg retry` does again what failed, `thalweg resume` goes on with a run": {"restart", "rerun",
		"redo", "recover", "continue", "repair"},
	"`thalweg explain SCRIPT` shows how a run would go, `thalweg validate SCRIPT` lists the problems of a script": {
		"plan",
		"compile", "dry-run", "parse",
		"simulate-run", "analyze", "profile"},
	"`thalweg validate SCRIPT` lists the problems of a script": {"lint", "verify", "check-script", "syntax"},
	"`thalweg graph SCRIPT` draws a script; `thalweg lineage` says what a column is made of": {"docs", "doc", "draw",
		"dag", "catalog", "diagram", "plot",
		"visualize"},
	"`thalweg sql 'FROM TABLE LIMIT 10'` shows rows of a table; `thalweg sql` alone opens a session": {
		"head", "preview",
		"query", "select", "cat", "sample",
		"print", "db", "duckdb", "shell", "repl"},
	"`thalweg sql 'SHOW TABLES'` lists the tables, `thalweg nodes` what each node of a run has written": {"tables",
		"table", "schema-of", "datasets", "data",
		"outputs", "results", "artifacts"},
	"`thalweg serve` has pages for a browser, `thalweg dev SCRIPT` opens that of a script": {"ui", "web",
		"dashboard", "gui", "server",
		"browser", "open", "portal"},
	"`thalweg sql 'FROM TABLE' -o FILE` writes a table to a file": {"export", "dump",
		"download", "save", "unload"},
	"`thalweg infer FILE` proposes a script that loads a file": {"import", "load", "ingest",
		"upload", "copy", "source", "discover", "generate-script"},
	"`thalweg init DIRECTORY` begins a project": {"new", "create", "scaffold",
		"quickstart", "template"},
	"`thalweg fmt FILE` puts a script into its layout": {"format",
		"prettify", "tidy"},
	"`thalweg diff` says how a table differs between two runs": {"compare", "cmp"},
	"`thalweg doctor` looks at this machine": {"debug", "health",
		"healthcheck", "ping", "config", "env", "diagnose"},
	"`thalweg cluster status` lists the workers of a cluster": {"workers", "agents",
		"members", "fleet"},
	"`thalweg worker` takes batches": {"agent", "daemon",
		"executor"},
	"`thalweg approvals` lists what waits for a decision, `thalweg approve` lets a run pass": {"gates",
		"gate", "accept", "confirm", "promote", "pending"},
	"`thalweg capacity study 2024` shows what runs took and cost by deployment, `thalweg capacity plan` chooses machines": {
		"estimate", "sizing", "scale", "study"},
	"`thalweg cost` says what runs cost": {"costs", "price", "prices", "bill", "spend"},
	"`thalweg trace` says what rows are made of": {"provenance", "origin",
		"explain-row"},
})

// wordsOf turns a map from what is said to the words that it is said of around.
func wordsOf(said map[string][]string) map[string]string {
	out := map[string]string{}
	for hint, words := range said {
		for _, word := range words {
			out[word] = hint
		}
	}
	return out
}
