package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"thalweg/internal/app"
	"thalweg/internal/app/benches"
	"thalweg/internal/app/sizing"
	"thalweg/internal/base/fault"
)

type benchStoreCmd struct {
	Target string `help:"What is measured: cql://HOST:PORT,…, redis://HOST:PORT, rediss://…, unix:///SOCKET; or parts, state or cql of --cluster; or parts or state in --in." placeholder:"URL|NAME"`
	loadFlags
	storeFlags
	generatorFlags
	Perf   []int  `help:"Have perf count events of these processes of this machine." placeholder:"PID,…"`
	Beside string `help:"Measure each load, but no search, again beside this command line." placeholder:"COMMAND"`
	costFlags
	Prometheus []string `help:"Exporters of the servers, asked each second: http://HOST:PORT/metrics." placeholder:"URL,…"`
	reportFlags
}

// loadFlags say what is sent. What is not said follows from the target.
type loadFlags struct {
	Fill         bool          `help:"Write all keys before. Default: if there are reads, and no --existing." negatable:""`
	Keys         string        `help:"Keys there are. Default: 10M of redis, 1M of cql, 10k of state, 64 of parts." placeholder:"N"`
	ValueBytes   int           `help:"Bytes of a value. Default: 100 of redis, 34 of each of cql's columns, 8 MiB of parts." placeholder:"N"`
	Distribution string        `help:"Keys that are asked for: ${enum}." enum:"uniform,zipf,sequential" default:"uniform"`
	Mix          []string      `help:"Reads and writes in percent, each measured by itself. Default: 100/0 of redis, 0/100 of state, else 50/50." placeholder:"R/W,…"`
	Ops          []string      `help:"Operations of a load, each number measured by itself; instead of a time." placeholder:"N,…"`
	For          time.Duration `help:"Time of a load, and of each load of a search." default:"30s" placeholder:"TIME"`
	WarmUp       time.Duration `help:"Time before that, which counts for nothing." default:"5s" placeholder:"TIME"`
	Clients      int           `help:"Clients at once. Default: 50; 8 of state, 4 of parts." placeholder:"N"`
	Depth        int           `help:"Operations that a client sends together." default:"1" placeholder:"N"`
	Rate         float64       `help:"Operations a second that are meant to begin, whatever becomes of them; 0: a client sends when it is answered." placeholder:"N"`
	Seed         uint64        `help:"What keys follow from." default:"1" placeholder:"N"`
	Peak         bool          `help:"Find the most operations a second, by doubling clients."`
	Sustained    time.Duration `help:"Find the highest rate at which p99 stays under this." placeholder:"TIME"`
}

// storeFlags are about one kind of store each.
type storeFlags struct {
	In          string         `help:"Directory of parts or state without a cluster: they get one in it." default:"." type:"path" placeholder:"DIR"`
	Cluster     string         `help:"Measure services of this cluster, beside what is in them." type:"path" placeholder:"FILE"`
	Name        string         `help:"Name of the keyspace, directory or prefix: bench_…. Default: a new one." placeholder:"NAME"`
	Keep        bool           `help:"Leave there what was written. What was there before always stays."`
	Columns     int            `help:"cql: columns of a row, beside the key. Default: 5." placeholder:"N"`
	Consistency string         `help:"cql: of reads and writes. Default: LOCAL_ONE." placeholder:"LEVEL"`
	Copies      map[string]int `help:"cql: copies by datacenter. Default: 1, or the cluster's." placeholder:"DC=N"`
	Connections int            `help:"cql: with each node. Default: 8." placeholder:"N"`
	Fields      int            `help:"redis: hashes of so many fields, instead of values." placeholder:"N"`
	Existing    string         `help:"redis: only read keys that are there: this and a number." placeholder:"PREFIX"`
	Batches     int            `help:"state: batches of each run. Default: 10000." placeholder:"N"`
}

// generatorFlags have several machines send the loads.
type generatorFlags struct {
	Agents    []string `help:"Have these send the loads: each is 'bench store --listen' on a machine." placeholder:"HOST:PORT,…"`
	AgentsCA  string   `name:"agents-ca" help:"Ask them over TLS: authorities of their certificates, in PEM." type:"path" placeholder:"FILE"`
	Listen    string   `help:"Only send loads for who asks here, until it is interrupted." placeholder:"HOST:PORT"`
	TLSCert   string   `name:"tls-cert" help:"Certificate of --listen, in PEM." type:"path" placeholder:"FILE"`
	TLSKey    string   `name:"tls-key" help:"Its key, in PEM." type:"path" placeholder:"FILE"`
	TokenFile string   `help:"File with what both sides know: 16 characters or more." type:"path" placeholder:"FILE"`
}

// costFlags say what servers and the bench cost.
type costFlags struct {
	Price         string         `help:"Price of all servers an hour, in USD." placeholder:"USD"`
	Machines      map[string]int `help:"Servers, instead: how many of which type." placeholder:"TYPE=N"`
	AgentMachines map[string]int `help:"Machines of generators, in the price of the bench itself." placeholder:"TYPE=N"`
	Prices        string         `help:"Prices of machines, beside the published ones and before them." placeholder:"FILE" type:"path"`
	BringUp       time.Duration  `help:"Time of each machine that is paid before and after." default:"1m" placeholder:"DURATION"`
}

// Help implements kong.HelpProvider.
func (c *benchStoreCmd) Help() string {
	return "It makes a keyspace, a directory or keys of its own, puts loads on it, one behind the other, and removes it. " +
		"With --peak or --sustained it measures loads of --ops only, and searches. If something fails, what was measured " +
		"before is printed all the same."
}

// nameOfBenches begins the names of what benches make and remove.
const nameOfBenches = "bench_"

// Run implements kong's command.
func (c *benchStoreCmd) Run(ctx context.Context, a *console) error {
	if err := c.check(a); err != nil {
		return err
	}
	g := benches.Generators{Agents: c.Agents, Version: version, CA: c.AgentsCA}
	if c.TokenFile != "" {
		text, err := readSmall(c.TokenFile)
		if err != nil {
			return err
		}
		if g.Token = string(bytes.TrimSpace(text)); len(g.Token) < tokenLeast {
			return fault.New(fault.Script, "%s: a token has %d characters at least", c.TokenFile, tokenLeast)
		}
		a.known.Add(g.Token, "[token]")
	}
	if c.Listen != "" {
		return c.answer(ctx, a, g)
	}
	to, err := c.chart()
	if err != nil {
		return err
	}
	o, err := c.options(a)
	if err != nil {
		return err
	}
	o.Generators = g
	r, err := benches.Store(ctx, o)
	if !r.Measured() {
		return err
	}
	return errors.Join(c.print(a, to, r), err) // what was measured before it failed is worth something
}

// print prints a report, and draws it.
func (c *benchStoreCmd) print(a *console, to outFile, r benches.Report) error {
	if c.Out != "" {
		if err := to.write(a, r.WriteSVG); err != nil {
			return err
		}
	}
	if c.JSON {
		return printJSON(a.stdout, r)
	}
	var tables []sizing.Table
	for _, t := range r.Tables() {
		tables = append(tables, sizing.Table(t))
	}
	a.printTables(tables)
	a.printTexts("notes", r.Notes())
	return nil
}

// tokenLeast is how long a token is at least.
const tokenLeast = 16

// check looks at which flags go together.
func (c *benchStoreCmd) check(a *console) error {
	refuse := func(format string, args ...any) error { return fault.New(fault.Script, format, args...) }
	switch {
	case (len(c.Agents) > 0 || c.Listen != "") && c.TokenFile == "":
		return &fault.Error{Kind: fault.Script, Message: "--agents and --listen go with --token-file",
			Hint: "both sides have the same file, such as of 'openssl rand -hex 32'"}
	case len(c.Agents) == 0 && c.Listen == "" && c.TokenFile != "":
		return refuse("--token-file goes with --agents or --listen")
	case c.AgentsCA != "" && len(c.Agents) == 0:
		return refuse("--agents-ca goes with --agents")
	case (c.TLSCert == "") != (c.TLSKey == ""), c.TLSCert != "" && c.Listen == "":
		return refuse("--tls-cert and --tls-key go together, and with --listen")
	}
	if err := c.checkEncrypted(); err != nil {
		return err
	}
	if c.Listen != "" {
		for name := range a.typed {
			switch name {
			case "listen", "token-file", "tls-cert", "tls-key", "json":
			default:
				return refuse("--listen measures nothing itself: --%s does not go with it", name)
			}
		}
		return nil
	}
	switch {
	case c.Target == "":
		return &fault.Error{Kind: fault.Script, Message: "nothing is named that could be measured",
			Hint: "name it with --target: cql://HOST:PORT, redis://HOST:PORT, parts or state"}
	case c.Name != "" && !strings.HasPrefix(c.Name, nameOfBenches):
		return refuse("--name %s: what may be removed has a name that begins with %s", c.Name, nameOfBenches)
	case c.Cluster != "" && strings.Contains(c.Target, "://"):
		return refuse("--cluster and the address %s: leave one of them out", c.Target)
	case c.Cluster != "" && a.typed["in"]:
		return refuse("--in is for what has no --cluster")
	case c.Price != "" && len(c.Machines) > 0:
		return refuse("--price is of all servers, and --machines names them: leave one of them out")
	case (c.Peak || c.Sustained > 0) && len(c.Mix) > 1:
		return refuse("--peak and --sustained are searched for one --mix")
	case a.typed["ops"] && a.typed["for"] && !c.Peak && c.Sustained == 0:
		return refuse("--ops and --for each say when a load ends: leave one of them out")
	case a.typed["rate"] && c.Peak && len(c.Ops) == 0:
		return refuse("--peak has no --rate, and --sustained begins with what it finds: leave --rate out")
	case c.Beside != "" && (c.Peak || c.Sustained > 0) && len(c.Ops) == 0:
		return refuse("--beside is for loads of --ops or --for: searches have none beside them")
	case len(c.AgentMachines) > 0 && len(c.Agents) == 0:
		return refuse("--agent-machines goes with --agents")
	case a.typed["prices"] && len(c.Machines)+len(c.AgentMachines) == 0:
		return refuse("--prices goes with --machines or --agent-machines")
	case a.typed["bring-up"] && c.Price == "" && len(c.Machines)+len(c.AgentMachines) == 0:
		return refuse("--bring-up is paid: add --price or --machines")
	case c.Sustained < 0 || c.BringUp < 0:
		return refuse("--sustained and --bring-up are not below 0")
	case len(c.Agents) > 0 && len(c.Perf) > 0 && c.WarmUp > 0:
		return refuse("--perf cannot leave out the warm-up of --agents: add --warm-up 0s")
	}
	return c.checkKind(a)
}

// checkLoads refuses loads of what is not there, and flags that say nothing about any.
func (c *benchStoreCmd) checkLoads(a *console, o benches.StoreOptions) error {
	refuse := func(format string, args ...any) error { return fault.New(fault.Script, format, args...) }
	first := append(slices.Clone(o.Plans), o.Search)[0]
	if c.Existing != "" {
		for _, name := range []string{"fill", "name", "keep", "value-bytes"} {
			if a.typed[name] {
				return refuse("--existing only reads what is there: --%s does not go with it", name)
			}
		}
		if slices.ContainsFunc(append(o.Plans, o.Search), func(p benches.Plan) bool { return p.Reads < 1 }) {
			return refuse("--existing only reads what is there: --mix 100/0 is the only one")
		}
		return nil
	}
	switch {
	case !o.Fill && first.Reads > 0 && c.kind() == "state":
		return refuse("--no-fill: of state only batches are read that were written before: leave it out")
	case !o.Fill && first.Reads > 0 && c.Name == "":
		return refuse("--no-fill: there is nothing to read: leave it out, or name with --name what --keep has left")
	case a.typed["clients"] && c.Peak && c.Sustained == 0 && len(c.Ops) == 0 && !o.Fill:
		return refuse("--peak finds the number of clients: leave --clients out")
	}
	return nil
}

// checkEncrypted refuses to have token and passwords cross a network in the clear.
func (c *benchStoreCmd) checkEncrypted() error {
	var reached []string
	hint := "--agents-ca asks them over TLS, which they answer with --tls-cert"
	switch {
	case c.AgentsCA == "" && len(c.Agents) > 0:
		reached = c.Agents
	case c.TLSCert == "" && c.Listen != "":
		reached, hint = []string{c.Listen}, "--tls-cert encrypts it; or listen at 127.0.0.1"
	}
	for _, at := range reached {
		if host, _, err := net.SplitHostPort(at); err == nil && !app.Loopback(host) {
			return &fault.Error{Kind: fault.Script, Hint: hint,
				Message: "the token would cross the network to " + at + " in the clear"}
		}
	}
	return nil
}

// kindsOf are flags that are about some kinds of targets only.
var kindsOf = map[string][]string{"columns": {"cql"}, "consistency": {"cql"}, "copies": {"cql"}, "connections": {"cql"},
	"fields": {"redis"}, "existing": {"redis"}, "batches": {"state"}, "value-bytes": {"cql", "redis", "parts"},
	"in": {"parts", "state"}, "cluster": {"cql", "parts", "state"}}

// checkKind refuses flags that are about another kind of target.
func (c *benchStoreCmd) checkKind(a *console) error {
	kind := c.kind()
	if _, known := ofKinds[kind]; !known {
		return &fault.Error{Kind: fault.Script, Message: "--target names nothing that can be measured",
			Hint: "write cql://HOST:PORT, redis://HOST:PORT, rediss://HOST:PORT, unix:///SOCKET, parts, state or cql"}
	}
	for _, name := range slices.Sorted(maps.Keys(kindsOf)) {
		if a.typed[name] && !slices.Contains(kindsOf[name], kind) {
			return fault.New(fault.Script, "--%s is of %s, not of %s", name, strings.Join(kindsOf[name], ", "), kind)
		}
	}
	return nil
}

// kind is the kind of the target: redis, cql, parts or state.
func (c *benchStoreCmd) kind() string {
	scheme, _, _ := strings.Cut(c.Target, "://")
	if scheme == "rediss" || scheme == "unix" {
		return "redis"
	}
	return scheme
}

// ofKinds are loads by kind of target, unless something else is said.
var ofKinds = map[string]struct {
	keys    string
	mix     string
	clients int
}{"redis": {"10M", "100/0", 50}, "cql": {"1M", "50/50", 50}, "state": {"10k", "0/100", 8}, "parts": {"64", "50/50", 4}}

// options are what is measured.
func (c *benchStoreCmd) options(a *console) (o benches.StoreOptions, err error) {
	o.Target = benches.TargetOptions{At: c.Target, Dir: c.In, Name: c.Name, Keep: c.Keep, Exporters: c.Prometheus,
		Value: c.ValueBytes, Batches: c.Batches, Redis: benches.RedisOptions{Fields: c.Fields, There: c.Existing},
		CQL: benches.CQLOptions{Columns: c.Columns, Consistency: c.Consistency, Copies: c.Copies,
			Connections: c.Connections}}
	if c.Cluster != "" {
		if o.Target.Cluster, err = app.LoadCluster(c.Cluster, a.process()); err != nil {
			return o, err
		}
	}
	if err := c.loads(a, &o); err != nil {
		return o, err
	}
	if err := c.costs(&o); err != nil {
		return o, err
	}
	o.Count, o.Beside, o.Self = c.Perf, c.Beside, ownExecutable
	o.Told = func(text string) { a.note("%s", text) }
	return o, nil
}

// loads makes the loads, and those of searches.
func (c *benchStoreCmd) loads(a *console, o *benches.StoreOptions) error {
	usual := ofKinds[c.kind()]
	if c.Keys == "" {
		c.Keys = usual.keys
	}
	if len(c.Mix) == 0 {
		c.Mix = []string{usual.mix}
	}
	if c.Clients == 0 {
		c.Clients = usual.clients
	}
	keys, err := parseCount("--keys", c.Keys)
	if err != nil {
		return err
	}
	plan := benches.Plan{Keys: uint64(keys), Of: benches.Distribution(c.Distribution), Clients: c.Clients, Depth: c.Depth,
		WarmUp: c.WarmUp, Rate: c.Rate, Seed: c.Seed}
	searched := c.Peak || c.Sustained > 0
	reads := false
	for _, mix := range c.Mix {
		if plan.Reads, err = parseMix(mix); err != nil {
			return err
		}
		reads = reads || plan.Reads > 0
		o.Search = plan
		o.Search.For = c.For
		for _, ops := range c.Ops {
			counted := plan
			if counted.Ops, err = parseCount("--ops", ops); err != nil {
				return err
			}
			o.Plans = append(o.Plans, counted)
		}
		if len(c.Ops) == 0 && !searched {
			o.Plans = append(o.Plans, o.Search)
		}
	}
	for _, plan := range append(o.Plans, o.Search) {
		if err := plan.Check(); err != nil {
			return err
		}
	}
	o.Peak, o.Bound = c.Peak, c.Sustained
	if o.Fill = reads && c.Existing == ""; a.typed["fill"] || a.typed["no-fill"] {
		o.Fill = c.Fill
	}
	return c.checkLoads(a, *o)
}

// costs finds the prices.
func (c *benchStoreCmd) costs(o *benches.StoreOptions) error {
	prices, err := pricesOf(c.Prices)
	if err != nil {
		return err
	}
	o.BringUp, o.Cores = c.BringUp, benches.CoresOf(prices, c.Machines)
	if o.Others, err = benches.PerHour(prices, c.AgentMachines); err != nil {
		return err
	}
	if c.Price == "" {
		o.PerHour, err = benches.PerHour(prices, c.Machines)
		return err
	}
	if o.PerHour, err = benches.ParseMoney(c.Price); err != nil || o.PerHour <= 0 {
		return fault.New(fault.Script, "--price %s is no amount above 0, such as 1.68", c.Price)
	}
	return nil
}

// answer sends loads for others, until it is interrupted.
func (c *benchStoreCmd) answer(ctx context.Context, a *console, g benches.Generators) error {
	if _, _, err := net.SplitHostPort(c.Listen); err != nil {
		return &fault.Error{Kind: fault.Script, Message: "--listen " + c.Listen + " is no address", Err: err,
			Hint: "write HOST:PORT, such as 10.0.0.7:7800"}
	}
	var with *tls.Config
	if c.TLSCert != "" {
		pair, err := tls.LoadX509KeyPair(c.TLSCert, c.TLSKey)
		if err != nil {
			return &fault.Error{Kind: fault.Script, Message: "the certificate cannot be used", Err: err,
				Hint: "certificate and key are files in PEM that belong together"}
		}
		with = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	}
	ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp", c.Listen)
	if err != nil {
		return &fault.Error{Kind: fault.Script, Message: "cannot listen at " + c.Listen, Err: err,
			Hint: "another process may have the port: name another"}
	}
	fmt.Fprintf(a.stderr, "listening on %s; interrupt it to end\n", plain(ln.Addr().String()))
	if with != nil {
		ln = tls.NewListener(ln, with)
	}
	return benches.ServeLoads(ctx, ln, g, newLogger(a, false))
}

// countsOf are what letters behind a number stand for.
var countsOf = map[string]float64{"": 1, "k": 1e3, "M": 1e6, "G": 1e9}

// parseCount reads a number such as 500, 10k, 1.5M.
func parseCount(flag, text string) (int64, error) {
	number := strings.TrimRight(text, "kMG")
	n, err := strconv.ParseFloat(number, 64)
	times, known := countsOf[text[len(number):]]
	if n *= times; err != nil || !known || n < 1 || n > 1e15 || n != math.Trunc(n) {
		return 0, &fault.Error{Kind: fault.Script, Message: fmt.Sprintf("%s %s is no number from 1 on", flag, text),
			Hint: "write it as 500, 10k, 1.5M or 1G"}
	}
	return int64(n), nil
}

// parseMix reads percents of reads and of writes.
func parseMix(text string) (reads float64, err error) {
	r, w, two := strings.Cut(text, "/")
	a, errA := strconv.ParseFloat(r, 64)
	b, errB := strconv.ParseFloat(w, 64)
	if !two || errA != nil || errB != nil || a < 0 || b < 0 || a+b != 100 {
		return 0, &fault.Error{Kind: fault.Script, Message: fmt.Sprintf("--mix %s is no mix", text),
			Hint: "write percents of reads and of writes: 75/25"}
	}
	return a / 100, nil
}
