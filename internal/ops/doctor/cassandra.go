package doctor

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"thalweg/internal/base/format"
	"thalweg/internal/store/cassandra"
)

// Limits of what is seen of Cassandra.
const (
	clockWarn = time.Second // leases are some tens of seconds
	clockBad  = 10 * time.Second
	slowWarn  = 100 * time.Millisecond // one request
	// oldestMajor is the version that the tables and the driver are tried with, at least.
	oldestMajor = 4
	peersMax    = 32 // that are asked, beyond the configured ones
	peersAtOnce = 8
)

// Cassandra holds the inputs of the checks of a state in Cassandra.
type Cassandra struct {
	Hosts       []string
	Keyspace    string
	Datacenter  string         // "": whichever
	Replication map[string]int // that the configuration asks for
	// Ask asks one node.
	Ask func(ctx context.Context, host string) (cassandra.Node, error)
	// Open opens the keyspace; the others are asked only then.
	Open func(ctx context.Context) error
	// Copies are the keyspace's by datacenter; none if there is no such keyspace.
	Copies func(ctx context.Context) (map[string]int, error)
	Tables func(ctx context.Context) (missing []string, err error)
	// Version refuses tables of another version.
	Version func(ctx context.Context) error
	Try     func(ctx context.Context) (write, read time.Duration, err error)
	Close   func()

	mu    sync.Mutex
	nodes []cassandra.Node // that have answered
	known []cassandra.Peer
	down  []cassandra.Peer // of the known, those that do not answer
}

// Service gives the checks.
func (c *Cassandra) Service() Service {
	s := Service{Name: "state", Close: c.Close}
	for _, host := range c.Hosts {
		s.Checks = append(s.Checks, Check{Name: host,
			Look: func(ctx context.Context) Result { return c.host(ctx, host) }})
	}
	s.Checks = append(s.Checks,
		Check{Name: "nodes", Limit: 20 * time.Second, Gate: true, Look: c.others},
		Check{Name: "clocks", Look: func(context.Context) Result { return c.clocks() }},
		Check{Name: "datacenter", Look: func(context.Context) Result { return c.datacenter() }},
		Check{Name: "replication", Gate: true, Look: c.replication},
		Check{Name: "keyspace", Gate: true, Look: c.open},
		Check{Name: "tables", Gate: true, Look: c.tables},
		Check{Name: "write and read", Limit: 15 * time.Second, Look: c.try},
	)
	return s
}

func (c *Cassandra) host(ctx context.Context, host string) Result {
	n, err := c.Ask(ctx, host)
	if err != nil {
		return Failed(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.add(n)
	for _, p := range n.Peers {
		if !slices.ContainsFunc(c.known, func(k cassandra.Peer) bool { return k.ID == p.ID }) {
			c.known = append(c.known, p)
		}
	}
	return JudgeNode(n)
}

// add counts a node once, however many names it has.
func (c *Cassandra) add(n cassandra.Node) {
	if !slices.ContainsFunc(c.nodes, func(k cassandra.Node) bool { return k.ID == n.ID }) {
		c.nodes = append(c.nodes, n)
	}
}

// JudgeNode says whether a node is as it should be by itself.
func JudgeNode(n cassandra.Node) Result {
	r := good("Cassandra %s, datacenter %s, %s a request", n.Version, n.Datacenter, format.Span(n.Took))
	major, _, _ := strings.Cut(n.Version, ".")
	number, err := strconv.Atoi(major)
	switch {
	case err != nil || number < oldestMajor-1:
		r.Verdict, r.Mend = Bad, fmt.Sprintf("Cassandra %d or later is needed", oldestMajor)
	case number < oldestMajor:
		r.Verdict, r.Mend = Warning, fmt.Sprintf("nobody has tried it with a version before %d", oldestMajor)
	case n.Took > slowWarn:
		r.Verdict, r.Mend = Warning, "look for what makes the node or the network slow: each batch costs some requests"
	}
	return r
}

// others asks the nodes that the configuration does not name.
func (c *Cassandra) others(ctx context.Context) Result {
	c.mu.Lock()
	reached, asked := len(c.nodes), slices.Clone(c.known)
	c.mu.Unlock() // nobody else is at work until others are asked
	if reached == 0 {
		return Result{Verdict: Bad, Seen: "no node that the configuration names can be used",
			Mend: "see what is said of each of them"}
	}
	asked = slices.DeleteFunc(asked, func(p cassandra.Peer) bool {
		return slices.ContainsFunc(c.nodes, func(n cassandra.Node) bool { return n.ID == p.ID })
	})
	more := max(0, len(asked)-peersMax)
	asked = asked[:min(len(asked), peersMax)]
	var all sync.WaitGroup
	turns := make(chan struct{}, peersAtOnce)
	limited, stop := context.WithTimeout(ctx, limitDefault)
	defer stop()
	for _, p := range asked {
		all.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			n, err := c.Ask(limited, p.Address)
			c.mu.Lock()
			defer c.mu.Unlock()
			if err != nil {
				c.down = append(c.down, p)
				return
			}
			c.add(n)
		})
	}
	all.Wait()
	return c.judgeNodes(more)
}

func (c *Cassandra) judgeNodes(more int) Result {
	var away []string
	for _, p := range c.down {
		away = append(away, p.Address)
	}
	slices.Sort(away)
	total := len(c.nodes) + len(c.down)
	r := good("%d of %d can be reached", len(c.nodes), total)
	if more > 0 {
		r.Seen += fmt.Sprintf("; %d more were not asked", more)
	}
	schemas := map[string]bool{}
	for _, n := range c.nodes {
		schemas[n.Schema] = true
	}
	switch {
	case len(c.down) > 0:
		r.Verdict, r.Seen = Warning, r.Seen+"; not "+strings.Join(away, ", ")
		r.Mend = "start the nodes, or see why this machine does not reach them at the addresses that they tell " +
			"their clients"
	case len(schemas) > 1:
		r.Verdict, r.Seen, r.Mend = Warning, r.Seen+"; they do not agree on what tables there are",
			"wait a moment; if it lasts, see the nodes' logs"
	}
	return r
}

func (c *Cassandra) clocks() Result {
	var worst cassandra.Node
	for _, n := range c.nodes {
		if n.Ahead.Abs() > worst.Ahead.Abs() {
			worst = n
		}
	}
	return JudgeClock(worst.Address, worst.Ahead, worst.Doubt)
}

// JudgeClock says whether somebody's clock is near enough to this machine's.
func JudgeClock(whose string, ahead, doubt time.Duration) Result {
	apart := max(0, ahead.Abs()-doubt)
	if apart < clockWarn {
		return good("within %s of this machine's", format.Span(max(ahead.Abs(), doubt, time.Millisecond)))
	}
	where := "ahead of"
	if ahead < 0 {
		where = "behind"
	}
	r := Result{Verdict: Warning, Seen: fmt.Sprintf("that of %s is %s %s this machine's", whose,
		format.Span(ahead.Abs()), where),
		Mend: "let both machines take their time from the same servers (chrony, systemd-timesyncd)"}
	if apart >= clockBad {
		r.Verdict = Bad
	}
	return r
}

func (c *Cassandra) datacenter() Result {
	there := map[string]int{}
	for _, n := range c.nodes {
		there[n.Datacenter]++
	}
	for _, p := range c.down {
		there[p.Datacenter]++
	}
	return JudgeDatacenter(c.Datacenter, there)
}

// JudgeDatacenter says whether a datacenter is among those of which there are nodes.
func JudgeDatacenter(name string, there map[string]int) Result {
	names := strings.Join(slices.Sorted(maps.Keys(there)), ", ")
	switch {
	case name == "" && len(there) > 1:
		return Result{Verdict: Warning, Seen: "there are " + names +
			"; the configuration names none, so each request waits for nodes of several",
			Mend: "name the one that is near: state: {cassandra: {datacenter: NAME}}"}
	case name == "":
		return good("%s; consistency QUORUM, conditional writes SERIAL", names)
	case there[name] == 0:
		return Result{Verdict: Bad, Seen: fmt.Sprintf("there is no datacenter %s, only %s", name, names),
			Mend: "write its name as Cassandra has it (`nodetool status`)"}
	}
	return good("%s; consistency LOCAL_QUORUM, conditional writes LOCAL_SERIAL", name)
}

func (c *Cassandra) replication(ctx context.Context) Result {
	copies, err := c.Copies(ctx)
	if err != nil {
		return Failed(err)
	}
	if len(copies) == 0 {
		return Result{Verdict: Bad, Seen: "there is no keyspace " + c.Keyspace, Mend: "{{do cluster-init}} makes it"}
	}
	all, up := map[string]int{}, map[string]int{}
	for _, n := range c.nodes {
		all[n.Datacenter]++
		up[n.Datacenter]++
	}
	for _, p := range c.down {
		all[p.Datacenter]++
	}
	return JudgeReplication(copies, c.Replication, c.Datacenter, all, up)
}

// JudgeReplication compares a keyspace's copies with what the configuration
// asks for, and with the nodes by datacenter, of which some are up.
func JudgeReplication(copies, asked map[string]int, datacenter string, all, up map[string]int) Result {
	wanted, nodes, alive := counted(copies, datacenter, all, up)
	if wanted == 0 {
		return Result{Verdict: Bad, Seen: "no copies are kept in datacenter " + datacenter + ": " + CopiesText(copies),
			Mend: "ALTER KEYSPACE … WITH replication, with the datacenter in it, then `nodetool repair --full` on " +
				"each node; " + StopHint}
	}
	quorum := wanted/2 + 1
	r := good("%s, of which each request needs %d", CopiesText(copies), quorum)
	mend := fmt.Sprintf("add nodes, or keep fewer copies: ALTER KEYSPACE … WITH replication, to at most %d", nodes)
	switch {
	case nodes < quorum:
		return Result{Verdict: Bad, Mend: mend,
			Seen: fmt.Sprintf("%s: %d nodes are needed for each request, and there are %d",
				CopiesText(copies), quorum, nodes)}
	case alive < quorum:
		return Result{Verdict: Bad, Mend: "start the nodes",
			Seen: fmt.Sprintf("%s: %d nodes are needed for each request, and %d can be reached", CopiesText(copies),
				quorum, alive)}
	case nodes < wanted:
		r.Verdict, r.Seen, r.Mend = Warning, fmt.Sprintf("%s on %s", CopiesText(copies),
			format.Counted(int64(nodes), "node", "nodes")), mend
	case len(asked) > 0 && !SameCopies(copies, asked):
		r.Verdict, r.Seen = Warning, r.Seen+"; the configuration asks for "+CopiesText(Asked(copies, asked))
		r.Mend = "write into the configuration what it keeps: " + Written(copies)
		if KeepsFewer(copies, asked) {
			r.Mend += "; or ALTER KEYSPACE … WITH replication, then `nodetool repair --full` on each node; " + StopHint
		}
	case quorum == wanted:
		r.Verdict, r.Seen = Warning, r.Seen+": a node that is away stops all work"
		r.Mend = "keep three copies on three nodes, where that matters"
	}
	return r
}

// StopHint is said where copies are to be added: until a repair has brought their rows, a
// quorum of them may have none of what was written before.
const StopHint = "stop all workers until the repair has ended"

// Asked returns the copies by datacenter that a configuration asks of an existing keyspace. A plain number
// counts for each datacenter of the keyspace.
func Asked(copies, asked map[string]int) map[string]int {
	n := asked[""]
	if n == 0 || copies[""] > 0 {
		return asked
	}
	out := make(map[string]int, len(copies))
	for name := range copies {
		out[name] = n
	}
	return out
}

// SameCopies compares what a keyspace keeps with what is asked for. One that keeps a plain
// number has them in any datacenter.
func SameCopies(copies, asked map[string]int) bool {
	asked = Asked(copies, asked)
	return maps.Equal(copies, asked) || copies[""] > 0 && len(asked) == 1 && copies[""] == sum(asked)
}

// KeepsFewer reports whether a keyspace keeps fewer copies than are asked for, anywhere.
func KeepsFewer(copies, asked map[string]int) bool {
	asked = Asked(copies, asked)
	if copies[""] > 0 {
		return copies[""] < sum(asked)
	}
	for name, n := range asked {
		if copies[name] < n {
			return true
		}
	}
	return false
}

func sum(copies map[string]int) (all int) {
	for _, n := range copies {
		all += n
	}
	return all
}

// Written returns the configuration's setting for so many copies.
func Written(copies map[string]int) string {
	if n := copies[""]; n > 0 {
		return fmt.Sprintf("`replication: %d`", n)
	}
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(copies)) {
		texts = append(texts, fmt.Sprintf("%s: %d", name, copies[name]))
	}
	return "`replication: {" + strings.Join(texts, ", ") + "}`"
}

// counted gives the copies of which requests need a quorum, and the nodes that may have them.
func counted(copies map[string]int, datacenter string, all, up map[string]int) (wanted, nodes, alive int) {
	if datacenter != "" && copies[""] == 0 {
		return copies[datacenter], all[datacenter], up[datacenter]
	}
	for name, n := range copies {
		wanted += n
		if name != "" { // more nodes than copies are of no use
			nodes, alive = nodes+min(n, all[name]), alive+min(n, up[name])
		}
	}
	if copies[""] > 0 {
		for name := range all {
			nodes, alive = nodes+all[name], alive+up[name]
		}
	}
	return wanted, nodes, alive
}

// CopiesText says how many copies are kept, and where.
func CopiesText(copies map[string]int) string {
	if n := copies[""]; n > 0 {
		return format.Counted(int64(n), "copy", "copies")
	}
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(copies)) {
		texts = append(texts, format.Counted(int64(copies[name]), "copy", "copies")+" in "+name)
	}
	return strings.Join(texts, ", ")
}

func (c *Cassandra) open(ctx context.Context) Result {
	if err := c.Open(ctx); err != nil {
		return Failed(err)
	}
	return good("%s can be used", c.Keyspace)
}

func (c *Cassandra) tables(ctx context.Context) Result {
	missing, err := c.Tables(ctx)
	if err == nil && len(missing) == 0 {
		err = c.Version(ctx)
	}
	switch {
	case err != nil:
		return Failed(err)
	case len(missing) > 0:
		const shown = 5
		text := strings.Join(missing[:min(len(missing), shown)], ", ")
		if more := len(missing) - shown; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		return Result{Verdict: Bad, Seen: "missing: " + text, Mend: "{{do cluster-init}} makes them"}
	}
	return good("all are there, in this program's version")
}

func (c *Cassandra) try(ctx context.Context) Result {
	write, read, err := c.Try(ctx)
	if err != nil {
		return Failed(err)
	}
	r := good("conditional write %s, read %s", format.Span(write), format.Span(read))
	if cmp.Compare(max(write, read), 4*slowWarn) > 0 {
		r.Verdict, r.Mend = Warning, "look for what makes the nodes slow: each batch costs some such writes"
	}
	return r
}
