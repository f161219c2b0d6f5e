package bench

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"thalweg/internal/base/fault"
)

// program is the command of a side. Its arguments may have these placeholders:
//
//   - {thalweg}: the command under test; {root}: the repository; {file}: the side's file; {params}: its parameters
//   - {in}: the input's directory; {rows}: its size
//   - {out}, {dir}, {work}: the directories of the results, of the run, and of all inputs
//   - {timings}: the file for a peer's own timings
//   - {python}, {cores}: the interpreter and the number of cores
//   - {env:NAME}: the virtual environment with the packages of bench/peers/NAME/requirements.txt
type program struct {
	args   []string
	before [][]string // what is run first and not measured
	limit  []string   // added with a memory limit, {memory}
	dir    string     // where it runs, below the repository; "": {dir}
	ours   bool       // it prints events, and its results are equal byte for byte
	silent bool       // it writes no results
	needs  string     // program that must be there: its name, and how to get it
	// service: it needs a Cassandra node, and a broker.
	service bool
	// postgres: it needs a server of PostgreSQL.
	postgres bool
}

// run is the product's command line for a script.
const runScript = "{thalweg} run {file} --params {params} --workspace bench --json --python {python}"

const (
	buildForecast = "go build -C {root} -o {dir}/thalweg-forecast ./bench/cmd/thalweg-forecast"
	runForecast   = "{dir}/thalweg-forecast --thalweg {thalweg} --script {file} --python {python} --dir {dir}/.thalweg " +
		"--figures {timings}"
)

const (
	runSweep = "{thalweg} bench pipeline --sweep --rows {rows} --python {python} --in {dir} --json"
	// writeCluster configures the services, in a keyspace that is kept for the next time.
	writeCluster = `printf '%s\n' 'version: 1' ` +
		`"state: {cassandra: {hosts: [\"$THALWEG_TEST_CASSANDRA\"], keyspace: thalweg_sweep, replication: 1}}" ` +
		`"queue: {rabbitmq: {url: \"$THALWEG_TEST_RABBITMQ\"}}" > {dir}/cluster.yaml`
)

// smallByHand is the work of bench/steps/small.
const smallByHand = `CREATE TABLE items AS SELECT id, name, price
  FROM read_csv('{in}/items.csv', header = true, columns = {id: 'BIGINT', name: 'VARCHAR', price: 'DECIMAL(18, 2)'});
CREATE TABLE dear AS SELECT id, replace(name, ' ', '-') AS name, price + price AS total FROM items WHERE price + price > 10;
COPY dear TO '{out}/dear.csv' (HEADER);`

var programs = map[string]program{
	"thalweg": {args: strings.Fields(runScript), limit: []string{"--memory", "{memory}"}, ours: true},
	"one core": {args: strings.Fields("taskset -c 0 " + runScript + " --cores 1"),
		limit: []string{"--memory", "{memory}"}, ours: true},
	// The second process looks for work of the first one's run, and ends with it.
	"a process a core": {
		args: []string{"sh", "-c", "taskset -c 1 {thalweg} worker --cores 1 --python {python} \"$@\" >&2 & " +
			"taskset -c 0 " + runScript + " --cores 1 \"$@\"; kill $!; wait", "sh"},
		limit: []string{"--memory", "{memory}"}, ours: true,
	},
	// Behind a run of the same script, and behind one of which a formula of the
	// last Python node is written otherwise since: with parentheses around it.
	"thalweg again": {before: [][]string{strings.Fields(runScript)}, args: strings.Fields(runScript), ours: true},
	"thalweg touched": {
		before: [][]string{
			{"sh", "-c", "cp {file} {dir}/script.yaml && cp $(dirname {file})/*.py {dir}"},
			strings.Fields(strings.Replace(runScript, "{file}", "{dir}/script.yaml", 1)),
			{"sh", "-c", "grep -q \"'twr_pct(.*)'\" {dir}/script.yaml && sed -i \"s/'\\(twr_pct(.*)\\)'/'(\\1)'/\" " +
				"{dir}/script.yaml"},
		},
		args: strings.Fields(strings.Replace(runScript, "{file}", "{dir}/script.yaml", 1)), ours: true,
	},
	// Exit code 1 says that the tables differ, as they are to.
	"diff": {
		before: [][]string{strings.Fields(runScript + " --param file=a"),
			strings.Fields(runScript + " --param file=b")},
		args: []string{"sh", "-c",
			"{thalweg} diff last~1 last rows --workspace bench --json \"$@\" > {out}/diff.json; test $? = 1", "sh"},
		limit: []string{"--memory", "{memory}"},
	},
	// The product's own bench: it removes what it makes. The batches at both ends of a run are measured by themselves.
	"state": {
		args: []string{"sh", "-c", "{thalweg} bench store --target state --in {dir} --mix 0/100 --clients 1 --warm-up 0s " +
			"--keys {rows} --batches {rows} --ops $(({rows} / 100)),$(({rows} / 100 * 98)),$(({rows} / 100)) --json > \"$1\"",
			"sh", "{timings}"}, silent: true,
	},
	// A fleet of this machine: what it makes in services it removes.
	"fleet": {
		before: [][]string{strings.Fields("go build -C {root} -o {dir}/thalweg-fleet ./bench/cmd/thalweg-fleet")},
		args: strings.Fields("{dir}/thalweg-fleet --thalweg {thalweg} --script {file} --params {params} --python " +
			"{python} --dir {dir}/.thalweg --figures {timings}"), ours: true, service: true,
	},
	// The same, of processes alone: state and parts are in a directory.
	"fleet in a directory": {
		before: [][]string{strings.Fields("go build -C {root} -o {dir}/thalweg-fleet ./bench/cmd/thalweg-fleet")},
		args: strings.Fields("{dir}/thalweg-fleet --directory --thalweg {thalweg} --script {file} --params {params} " +
			"--python {python} --dir {dir}/.thalweg --figures {timings}"), ours: true,
	},
	// A server and runs beside it: it measures its own steps.
	"serve": {
		before: [][]string{strings.Fields("go build -C {root} -o {dir}/thalweg-serve ./bench/cmd/thalweg-serve")},
		args: strings.Fields("{dir}/thalweg-serve --thalweg {thalweg} --script {file} --params {params} " +
			"--python {python} --dir {dir}/.thalweg --figures {timings}"), silent: true,
	},
	// The same over services, as a fleet: what it makes in them it removes.
	"serve a fleet": {
		before: [][]string{strings.Fields("go build -C {root} -o {dir}/thalweg-serve ./bench/cmd/thalweg-serve")},
		args:   strings.Fields("{dir}/thalweg-serve --fleet --thalweg {thalweg} --dir {dir}/.thalweg --figures {timings}"),
		silent: true, service: true,
	},
	// Runs and what was expected of them: it measures its own steps, and removes what it makes in services.
	"forecast": {
		before: [][]string{strings.Fields(buildForecast)}, args: strings.Fields(runForecast + " size"), silent: true,
	},
	"forecast over services": {
		before: [][]string{strings.Fields(buildForecast)}, silent: true, service: true,
		args: strings.Fields(runForecast + " fleet --params {params}"),
	},
	// The product's own bench: it removes what it makes.
	"sweep": {
		args: []string{"sh", "-c", runSweep + ` > "$1"`, "sh", "{timings}"}, silent: true,
	},
	"sweep over services": {
		before: [][]string{{"sh", "-c", writeCluster}, strings.Fields("{thalweg} cluster init --cluster {dir}/cluster.yaml")},
		args:   []string{"sh", "-c", runSweep + ` --cluster {dir}/cluster.yaml > "$1"`, "sh", "{timings}"}, silent: true,
		service: true,
	},
	"psql": {
		args:   strings.Fields("{python} {root}/bench/steps/postgres/measure.py psql {dir} {rows} {timings}"),
		silent: true, postgres: true,
		needs: "psql: Debian: apt-get install postgresql-client",
	},
	"thalweg postgres": {
		args: strings.Fields("{python} {root}/bench/steps/postgres/measure.py thalweg {dir} {rows} {timings} " +
			"{thalweg} {root}/bench/steps/postgres/script.yaml"), silent: true, postgres: true,
		needs: "psql: Debian: apt-get install postgresql-client",
	},
	"version": {args: []string{"{thalweg}", "version"}, silent: true},
	// The program itself: the one that pip makes beside it starts Python first.
	"duckdb -c": {args: []string{"sh", "-c", `exec {env:duckdb}/lib/python3*/site-packages/duckdb_cli/duckdb -c "$1"`,
		"sh", smallByHand}},
	"validate": {args: []string{"{thalweg}", "validate", "{in}/wide.yaml"}, silent: true},
	"duckdb": {args: strings.Fields("{env:duckdb}/bin/python3 {root}/bench/peers/duckdb/portfolio_duckdb.py --params " +
		"{params} --out {out} --python {cores} --plan fused --json {timings}")},
	"sql": {
		args: strings.Fields("{env:duckdb}/bin/python3 {root}/bench/peers/duckdb/sql.py {file} --in {in} --out {out} " +
			"--rows {rows} --json {timings}"),
		limit: []string{"--memory", "{memory}"},
	},
	"dbt": {
		args: []string{"{env:dbt}/bin/dbt", "--quiet", "run", "--target-path", "{dir}/target", "--log-path",
			"{dir}", "--vars",
			`{"in": "{in}", "out": "{out}", "database": "{dir}/dbt.duckdb", "processes": {cores}, ` +
				`"memory": "{memory}", "period_start": "2020-12-31", "period_end": "2022-12-31"}`},
		limit: []string{"--target", "limited"},
		dir:   "bench/peers/dbt",
	},
	"polars": {args: strings.Fields("{env:polars}/bin/python3 {root}/bench/peers/polars/peer.py --params {params} " +
		"--out {out} --processes {cores}")},
	"pyspark": {
		args: strings.Fields("{env:pyspark}/bin/python3 {root}/bench/peers/pyspark/peer.py --params {params} --out " +
			"{out} --processes {cores}"),
		limit: []string{"--memory", "{memory}"},
		needs: "java: install 17 or later (Debian: apt-get install openjdk-17-jre-headless)",
	},
}

// command is the command line of a side's run, with its values in place.
func (s *session) command(ctx context.Context, sd side, values map[string]string) (args []string, err error) {
	p := programs[sd.program]
	all := append(append([]string{}, p.args...), sd.flags...)
	if sd.memory != "" {
		all = append(all, p.limit...)
	}
	return s.fill(ctx, all, values)
}

// fill puts values in their places in a command line.
func (s *session) fill(ctx context.Context, all []string, values map[string]string) (args []string, err error) {
	pairs := []string{"{thalweg}", s.config.Thalweg, "{root}", s.config.Root, "{python}", s.config.Python}
	for name, value := range values {
		pairs = append(pairs, "{"+name+"}", value)
	}
	for _, text := range all {
		if _, rest, ok := strings.Cut(text, "{env:"); ok {
			name, _, _ := strings.Cut(rest, "}")
			dir, err := s.environment(ctx, name)
			if err != nil {
				return nil, err
			}
			pairs = append(pairs, "{env:"+name+"}", dir)
		}
	}
	fill := strings.NewReplacer(pairs...)
	for _, text := range all {
		args = append(args, fill.Replace(text))
	}
	return args, nil
}

// lacking says what a side cannot be measured without, or nothing.
func lacking(sd side) string {
	if programs[sd.program].service && os.Getenv("THALWEG_TEST_CASSANDRA") == "" {
		return "THALWEG_TEST_CASSANDRA is not set: `make services-up` starts what is needed"
	}
	if programs[sd.program].postgres && os.Getenv("THALWEG_TEST_POSTGRES") == "" {
		return "THALWEG_TEST_POSTGRES is not set: `ONLY=postgres scripts/services up` starts a server"
	}
	if name, hint, ok := strings.Cut(programs[sd.program].needs, ": "); ok {
		if _, err := exec.LookPath(name); err != nil {
			return name + " is not there: " + hint
		}
	}
	return ""
}

// environment returns the directory of a virtual environment with the packages
// that bench/peers/NAME/requirements.txt pins, made when it is not there.
func (s *session) environment(ctx context.Context, name string) (dir string, err error) {
	wanted := filepath.Join(s.config.Root, "bench", "peers", name, requirements)
	text, err := os.ReadFile(wanted)
	if err != nil {
		return "", &fault.Error{Kind: fault.Environment, Message: "reading what a peer needs", Err: err}
	}
	for _, line := range strings.Fields(string(text)) {
		if pkg, version, ok := strings.Cut(line, "=="); ok {
			s.versions[name+" "+pkg] = version
		}
	}
	dir = filepath.Join(s.config.Environments, name)
	python := filepath.Join(dir, "bin", "python3")
	// What was installed is kept beside it, written when it was.
	installed := filepath.Join(dir, requirements)
	if found, err := os.ReadFile(installed); err == nil && string(found) == string(text) {
		return dir, nil
	}
	s.config.Logger.InfoContext(ctx, "installing", "peer", name, "dir", dir)
	for _, args := range [][]string{
		{s.config.Python, "-m", "venv", dir},
		{python, "-m", "pip", "install", "--disable-pip-version-check", "--quiet", "-r", wanted},
	} {
		if _, err := output(ctx, "", args...); err != nil {
			return "", &fault.Error{Kind: fault.Environment, Message: "getting the packages of " + wanted, Err: err,
				Hint: "install them in " + dir + " yourself"}
		}
	}
	if err := os.WriteFile(installed, text, 0o644); err != nil {
		return "", &fault.Error{Kind: fault.Environment, Message: "noting what was installed", Err: err}
	}
	return dir, nil
}

// requirements is the file with the pinned packages of a peer.
const requirements = "requirements.txt"

// servicesOf are the processes of the services that a program asks: scripts/services
// says which they are.
func servicesOf(p program) (pids []int) {
	if !p.service && !p.postgres {
		return nil
	}
	for _, text := range strings.Fields(os.Getenv("THALWEG_SERVICES_PIDS")) {
		if pid, err := strconv.Atoi(text); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}
