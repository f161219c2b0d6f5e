// Command thalweg-serve-table measures `thalweg serve-table` and prints each figure beside its bar: reads for a second
// of the server's own processor time beside servers of Redis, which take turns with it, with redis-benchmark as the
// client; memory; the start; answers and their latency while tables are switched; and how fast an index is written.
// scripts/bench-serve-table starts it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// options say what is measured.
type options struct {
	keys, reads     int64
	answers         int64
	switches        int
	bytes, clients  int
	rounds, cores   int
	program         string
	peers           []string
	benchmark, dir  string
	out             string
	depths          []int
	redisServerArgs []string
}

func main() {
	o := options{depths: []int{1, 16, deepest},
		redisServerArgs: []string{"--save", "", "--appendonly", "no", "--bind", "127.0.0.1", "--daemonize", "no"}}
	flag.Int64Var(&o.keys, "keys", 10_000_000, "keys of the table")
	flag.IntVar(&o.bytes, "bytes", 200, "bytes of a row")
	flag.Int64Var(&o.reads, "reads", 2_000_000, "reads of a window, unpipelined; more of deeper ones")
	flag.Int64Var(&o.answers, "answers", 100_000_000, "answers that are checked while tables are switched")
	flag.IntVar(&o.switches, "switches", 20, "switches, each other one of them back")
	flag.IntVar(&o.clients, "clients", 50, "connections")
	flag.IntVar(&o.rounds, "rounds", 5, "windows of each server and depth")
	flag.IntVar(&o.cores, "cores", 32, "cores that unpipelined reads are projected to; those of a c3.8xlarge, which did "+
		"a million a second for $1.68 an hour in Aerospike's note")
	flag.StringVar(&o.program, "thalweg", "bin/thalweg", "the program")
	flag.StringVar(&o.benchmark, "benchmark", "redis-benchmark", "the client")
	flag.StringVar(&o.dir, "dir", "", "empty directory for the tables; default: a temporary one")
	flag.StringVar(&o.out, "out", "", "file for the figures, as JSON")
	flag.Func("peer", "another server of the Redis protocol; may be repeated", func(path string) error {
		o.peers = append(o.peers, path)
		return nil
	})
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o); err != nil {
		stop()
		fmt.Fprintln(os.Stderr, "thalweg-serve-table:", err)
		os.Exit(1)
	}
}

const deepest = 100 // commands of a pipeline

// window is what was measured of a server once.
type window struct {
	Server     string  `json:"server"`
	Depth      int     `json:"depth"`
	Reads      int64   `json:"reads"`
	WallS      float64 `json:"wall_s"`
	ServerCPUS float64 `json:"server_cpu_s"`
}

func (w window) perCPU() float64  { return float64(w.Reads) / w.ServerCPUS }
func (w window) perWall() float64 { return float64(w.Reads) / w.WallS }

// names of the tables in their directory.
const (
	tableName  = "first.twx"
	otherName  = "second.twx"
	servedName = "served.twx" // leads to one of them
)

func run(ctx context.Context, o options) (err error) {
	if o.program, err = filepath.Abs(o.program); err != nil {
		return err
	}
	if o.dir == "" {
		if o.dir, err = os.MkdirTemp("", "thalweg-serve-table"); err != nil {
			return err
		}
		defer os.RemoveAll(o.dir)
	}
	f := &figures{}
	built, err := buildTable(ctx, o)
	if err != nil {
		return err
	}
	f.atLeast("rows of an index written by a node", built, 1e6, "rows/s")
	versions := [2]string{filepath.Join(o.dir, tableName), filepath.Join(o.dir, otherName)}
	if err := makeTable(versions[1], 2, o); err != nil {
		return err
	}
	served := filepath.Join(o.dir, servedName)
	if err := os.Link(versions[0], served); err != nil {
		return err
	}
	unix.Sync() // or the tables go to the disk beside what is measured
	ours, ready, err := startThrice(ctx, o, served)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ours.end()) }()
	f.atMost("ready after its start, file in the page cache", ready, 3, "s")
	if err := throughput(ctx, o, ours, f); err != nil {
		return err
	}
	if err := memory(ours, served, f); err != nil {
		return err
	}
	if f.Switches, err = switches(ctx, o, ours, versions); err != nil {
		return err
	}
	f.switched(o)
	f.show()
	if o.out != "" {
		err = f.write(o.out)
	}
	return errors.Join(err, f.missed())
}

// throughput measures ours beside the others, which have ended when it returns.
func throughput(ctx context.Context, o options, ours *server, f *figures) (err error) {
	var servers []*server
	defer func() {
		for _, s := range servers {
			if !s.ours {
				err = errors.Join(err, s.end())
			}
		}
	}()
	for _, peer := range o.peers {
		s, err := startPeer(ctx, peer, o)
		if err != nil {
			return err
		}
		servers = append(servers, s)
	}
	servers = append(servers, ours)
	for _, s := range servers {
		if err := s.check(o); err != nil {
			return err
		}
	}
	if f.Windows, err = measure(ctx, o, servers); err != nil {
		return err
	}
	show(o, servers, f.Windows)
	for _, kind := range []string{"Redis", "Valkey"} {
		if !slices.ContainsFunc(servers, func(s *server) bool { return s.kind == kind }) {
			f.Unheld = append(f.Unheld, kind)
		}
	}
	f.compared(o, servers)
	return nil
}

// compared holds ours against the best of the others at each depth.
func (f *figures) compared(o options, servers []*server) {
	for _, depth := range o.depths {
		best, cpu, least := 0.0, 0.0, 1.0
		for _, s := range servers {
			if one := medianOf(f.Windows, s.name, depth, window.perCPU); s.ours {
				cpu = one
			} else {
				best = max(best, one)
			}
		}
		if depth == deepest {
			least = 2.5
			f.atLeast(fmt.Sprintf("reads at depth %d", depth), medianOf(f.Windows, oursName, depth, window.perWall), 1e6,
				"reads/s")
		}
		if depth == 1 && o.cores > 0 {
			f.Projection = &projection{o.cores, cpu * float64(o.cores)}
		}
		if best > 0 {
			f.atLeast(fmt.Sprintf("reads/CPU second at depth %d, of the best peer's", depth), cpu/best, least, "times")
		}
	}
}

// memory holds what the server keeps in memory against the file.
func memory(s *server, path string, f *figures) error {
	resident, err := s.resident()
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	f.atMost("resident memory, of the file's size", resident/float64(info.Size()), 1.05, "times")
	return nil
}

// switched holds what clients saw during switches against what they may.
func (f *figures) switched(o options) {
	t := f.Switches
	f.atLeast("switches and rollbacks under load", float64(t.Switches), float64(o.switches), "switches")
	f.atLeast("answers that were checked", float64(t.Answers), float64(o.answers), "answers")
	f.atMost("wrong answers", float64(t.Wrong), 0, "MGETs")
	f.atMost("answers mixed of two tables", float64(t.Mixed), 0, "MGETs")
	f.atMost("p99.9 while switching, of the one before", t.DuringUS/t.BeforeUS, 2, "times")
}

// measure has the servers take turns, one round to and the next fro.
func measure(ctx context.Context, o options, servers []*server) (out []window, err error) {
	for _, depth := range o.depths {
		for round := range o.rounds + 1 { // the first warms up
			turn := slices.Clone(servers)
			if round%2 == 1 {
				slices.Reverse(turn)
			}
			for _, s := range turn {
				w, err := s.window(ctx, o, depth)
				if err != nil {
					return nil, err
				}
				if round > 0 {
					out = append(out, w)
				}
			}
		}
	}
	return out, nil
}

// show prints medians.
func show(o options, servers []*server, windows []window) {
	fmt.Printf("%-14s %6s %18s %18s\n", "server", "depth", "reads/CPU second", "reads/second")
	for _, depth := range o.depths {
		for _, s := range servers {
			fmt.Printf("%-14s %6d %18.0f %18.0f\n", s.name, depth, medianOf(windows, s.name, depth, window.perCPU),
				medianOf(windows, s.name, depth, window.perWall))
		}
	}
}

func medianOf(windows []window, server string, depth int, of func(window) float64) float64 {
	var values []float64
	for _, w := range windows {
		if w.Server == server && w.Depth == depth {
			values = append(values, of(w))
		}
	}
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[len(values)/2]
}
