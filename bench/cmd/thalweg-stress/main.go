// Command thalweg-stress measures `thalweg bench store` and cassandra-stress as clients of the same Cassandra: the most
// that they reach in a closed loop, their processor time an operation, and then, at half of that, what both say of
// response times. They take turns, ABBA. scripts/bench-cassandra-stress starts it.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"thalweg/internal/store/cassandra"
)

// options say what is measured.
type options struct {
	node, program, java, classes, out string
	keys                              int64
	clients, rounds                   int
	window, warmUp                    time.Duration
}

func main() {
	var o options
	flag.StringVar(&o.node, "node", os.Getenv("THALWEG_TEST_CASSANDRA"), "HOST:PORT of a node")
	flag.StringVar(&o.program, "thalweg", "bin/thalweg", "the program")
	flag.StringVar(&o.java, "services", "scripts/services", "what starts Java as cassandra-stress wants it")
	flag.StringVar(&o.classes, "classes", "", "class path of cassandra-stress")
	flag.StringVar(&o.out, "out", "", "file for the figures, as JSON")
	flag.Int64Var(&o.keys, "keys", 1_000_000, "rows of the table")
	flag.IntVar(&o.clients, "clients", 64, "operations at once")
	flag.IntVar(&o.rounds, "rounds", 3, "times that ours, theirs, theirs, ours are measured")
	flag.DurationVar(&o.window, "for", time.Minute, "what is measured of each load")
	flag.DurationVar(&o.warmUp, "warm-up", 10*time.Second, "what is not, before")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		stop()
		fmt.Fprintln(os.Stderr, "thalweg-stress:", err)
		os.Exit(1)
	}
}

// kinds of loads: reads first, over tables that are alike. What writes leave depends on how many there were.
var kinds = []string{"reads", "writes"}

// window is what a client has reached and said in one load.
type window struct {
	Client string  `json:"client"`
	Kind   string  `json:"kind"`
	Fixed  int     `json:"fixed_rate"` // operations a second that were meant to begin; 0: as many as it can
	Rate   float64 `json:"rate"`
	CPU    float64 `json:"cpu_us"` // of the client, an operation
	P50    float64 `json:"p50_us"` // of response times if the rate is fixed, otherwise of service times: they are the same
	P99    float64 `json:"p99_us"`
}

// client measures.
type client interface {
	name() string
	keyspace() string
	// fill makes the table and writes all rows.
	fill(ctx context.Context, o options) error
	window(ctx context.Context, o options, kind string, fixed int) (window, error)
}

// session measures by clients that take turns.
type session struct {
	o       options
	cql     *cassandra.Session
	rows    map[string]string // by client: what a row and its table are like
	windows []window
}

func run(ctx context.Context, o options) (err error) {
	cql, err := cassandra.OpenWithin(ctx, cassandra.Config{Hosts: []string{o.node}, Timeout: time.Minute})
	if err != nil {
		return err
	}
	defer cql.Close()
	s := &session{o: o, cql: cql, rows: map[string]string{}}
	defer func() { err = errors.Join(err, s.drop(context.WithoutCancel(ctx))) }()
	if err := s.prepare(ctx); err != nil {
		return err
	}
	for _, kind := range kinds {
		if err := s.phase(ctx, kind, 0); err != nil {
			return err
		}
		most := min(s.median(ours{}, kind, false, rateOf), s.median(theirs{}, kind, false, rateOf))
		if err := s.phase(ctx, kind, int(most/2)); err != nil {
			return err
		}
	}
	missed := s.print()
	if o.out != "" {
		text, err := json.MarshalIndent(s.windows, "", "  ")
		if err := cmp.Or(err, os.WriteFile(o.out, append(text, '\n'), 0o644)); err != nil {
			return err
		}
	}
	if missed > 0 {
		return fmt.Errorf("%d bars were missed", missed)
	}
	return nil
}

// phase has the clients take turns with loads of a kind, at a fixed rate, or at as many as they can if it is 0.
func (s *session) phase(ctx context.Context, kind string, fixed int) error {
	for range s.o.rounds {
		for _, c := range []client{ours{}, theirs{}, theirs{}, ours{}} {
			if err := s.turn(ctx, c, kind, fixed); err != nil {
				return fmt.Errorf("%s: %w", c.name(), err)
			}
		}
	}
	return nil
}

// prepare fills a table for each client. Windows are short beside what a filling leaves to be compacted, so that they
// are measured over tables that were filled once.
func (s *session) prepare(ctx context.Context) error {
	if err := s.drop(ctx); err != nil { // of a session that was killed
		return err
	}
	for _, c := range []client{ours{}, theirs{}} {
		if err := c.fill(ctx, s.o); err != nil {
			return fmt.Errorf("%s: %w", c.name(), err)
		}
		if err := s.compare(ctx, c); err != nil {
			return fmt.Errorf("%s: %w", c.name(), err)
		}
	}
	return nil
}

func (s *session) drop(ctx context.Context) error {
	var statements []string
	for _, c := range []client{ours{}, theirs{}} {
		statements = append(statements, "DROP KEYSPACE IF EXISTS "+c.keyspace())
	}
	return s.cql.Make(ctx, statements)
}

// turn measures a client.
func (s *session) turn(ctx context.Context, c client, kind string, fixed int) error {
	if err := s.settle(ctx); err != nil {
		return err
	}
	w, err := c.window(ctx, s.o, kind, fixed)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "%s %s at %d/s: %.0f/s, %.1f µs of processor, p50 %.0f µs, p99 %.0f µs\n", w.Client, kind,
		w.Fixed, w.Rate, w.CPU, w.P50, w.P99)
	s.windows = append(s.windows, w)
	return nil
}

// settleMost is the longest wait for compactions.
const settleMost = 5 * time.Minute

// settle waits until the node compacts nothing of what was written before.
func (s *session) settle(ctx context.Context) error {
	ctx, stop := context.WithTimeout(ctx, settleMost)
	defer stop()
	for quiet := 0; quiet < 3; {
		tasks, err := s.cql.Query("SELECT * FROM system_views.sstable_tasks").IterContext(ctx).SliceMap()
		if err != nil {
			return fmt.Errorf("wait for compactions: %w", err)
		}
		if quiet++; len(tasks) > 0 {
			quiet = 0
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the node still compacts after %s: %w", settleMost, ctx.Err())
		case <-time.After(time.Second):
		}
	}
	return nil
}

// compare fails unless the tables and the rows of both clients are alike.
func (s *session) compare(ctx context.Context, c client) error {
	is := ""
	for _, statement := range []string{
		"SELECT * FROM system_schema.tables WHERE keyspace_name=?",
		"SELECT * FROM system_schema.columns WHERE keyspace_name=?",
	} {
		rows, err := s.cql.Query(statement, c.keyspace()).IterContext(ctx).SliceMap()
		if err != nil {
			return err
		}
		for _, row := range rows {
			if row["table_name"] != "standard1" {
				continue // cassandra-stress makes one for counters, too
			}
			delete(row, "keyspace_name")
			delete(row, "id")
			is += fmt.Sprintln(row) // maps are printed in the order of their keys
		}
	}
	row, err := s.cql.Query("SELECT * FROM " + c.keyspace() + ".standard1 LIMIT 1").IterContext(ctx).SliceMap()
	switch {
	case err != nil:
		return err
	case len(row) == 0:
		return errors.New("it has filled nothing")
	}
	sizes := map[string]int{}
	for name, value := range row[0] {
		sizes[name] = len(value.([]byte))
	}
	is += fmt.Sprintln(sizes)
	s.rows[c.name()] = is
	for other, was := range s.rows {
		if was != is {
			return fmt.Errorf("its table is another than that of %s:\n%s\n%s", other, is, was)
		}
	}
	return nil
}

func rateOf(w window) float64 { return w.Rate }
func cpuOf(w window) float64  { return w.CPU }
func p50Of(w window) float64  { return w.P50 }
func p99Of(w window) float64  { return w.P99 }

// median of what the windows of a client say.
func (s *session) median(c client, kind string, fixed bool, of func(window) float64) float64 {
	var all []float64
	for _, w := range s.windows {
		if w.Client == c.name() && w.Kind == kind && (w.Fixed > 0) == fixed {
			all = append(all, of(w))
		}
	}
	slices.Sort(all)
	return (all[(len(all)-1)/2] + all[len(all)/2]) / 2
}

// bar is what is wanted of ours beside theirs.
type bar struct {
	what, wanted string
	fixed        bool // at half of the peak
	of           func(window) float64
	met          func(ours, theirs float64) bool
}

// The bars. Response times may differ by a part, or by a time that is short whatever part it is.
const (
	peakLeast, cpuMost = 0.95, 1.0
	partMost, apartUS  = 0.15, 300
)

func near(ours, theirs float64) bool {
	apart := math.Abs(ours - theirs)
	return apart <= partMost*theirs || apart <= apartUS
}

var bars = []bar{
	{"peak, operations/s", "0.95 at least", false, rateOf, func(a, b float64) bool { return a >= peakLeast*b }},
	{"processor time an operation at the peak, µs", "1.00 at most", false, cpuOf,
		func(a, b float64) bool { return a <= cpuMost*b }},
	{"p50 at half of it, µs", "0.85 to 1.15, or 300 µs apart", true, p50Of, near},
	{"p99 at half of it, µs", "0.85 to 1.15, or 300 µs apart", true, p99Of, near},
}

// print prints the medians, and whether they are as wanted. It returns how many are not.
func (s *session) print() (missed int) {
	for _, kind := range kinds {
		for _, r := range bars {
			a, b := s.median(ours{}, kind, r.fixed, r.of), s.median(theirs{}, kind, r.fixed, r.of)
			verdict := "met"
			if !r.met(a, b) {
				verdict, missed = "missed", missed+1
			}
			fmt.Printf("%-6s  %-6s  %-44s  %10.1f  %10.1f  %.3f  (%s)\n", verdict, kind, r.what, a, b, a/b, r.wanted)
		}
	}
	return missed
}
