// Command thalweg-serve-table measures how many reads `thalweg serve-table` and servers of Redis
// answer for a second of their own processor time, with redis-benchmark as the client. The
// servers take turns. scripts/bench-serve-table starts it.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"time"
)

// options say what is measured.
type options struct {
	keys, reads     int64
	bytes, clients  int
	rounds          int
	program         string
	peers           []string
	benchmark, dir  string
	out, only       string
	depths          []int
	redisServerArgs []string
}

func main() {
	o := options{depths: []int{1, 16, 100},
		redisServerArgs: []string{"--save", "", "--appendonly", "no", "--bind", "127.0.0.1", "--daemonize", "no"}}
	flag.Int64Var(&o.keys, "keys", 10_000_000, "keys of the table")
	flag.IntVar(&o.bytes, "bytes", 200, "bytes of a row")
	flag.Int64Var(&o.reads, "reads", 2_000_000, "reads of a window, unpipelined; more of deeper ones")
	flag.IntVar(&o.clients, "clients", 50, "connections")
	flag.IntVar(&o.rounds, "rounds", 5, "windows of each server and depth")
	flag.StringVar(&o.program, "thalweg", "bin/thalweg", "the program")
	flag.StringVar(&o.benchmark, "benchmark", "redis-benchmark", "the client")
	flag.StringVar(&o.dir, "dir", "", "directory for the table; default: a temporary one")
	flag.StringVar(&o.out, "out", "", "file for the figures, as JSON")
	flag.StringVar(&o.only, "only-make", "", "make the table as this file, and end")
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

func run(ctx context.Context, o options) (err error) {
	if o.only != "" {
		return makeTable(o.only, o.keys, o.bytes)
	}
	if o.dir == "" {
		if o.dir, err = os.MkdirTemp("", "thalweg-serve-table"); err != nil {
			return err
		}
		defer os.RemoveAll(o.dir)
	}
	table := filepath.Join(o.dir, "table.twi")
	began := time.Now()
	if err := makeTable(table, o.keys, o.bytes); err != nil {
		return err
	}
	fmt.Printf("table of %d keys made in %.1f s\n", o.keys, time.Since(began).Seconds())
	var servers []*server
	defer func() {
		for _, s := range servers {
			err = errors.Join(err, s.end())
		}
	}()
	for _, peer := range o.peers {
		s, err := startPeer(ctx, peer, o)
		if err != nil {
			return err
		}
		servers = append(servers, s)
	}
	ours, err := startOurs(ctx, o, table)
	if err != nil {
		return err
	}
	servers = append(servers, ours)
	for _, s := range servers {
		if err := s.check(o); err != nil {
			return err
		}
	}
	windows, err := measure(ctx, o, servers)
	if err != nil {
		return err
	}
	show(o, servers, windows)
	if o.out == "" {
		return nil
	}
	text, err := json.MarshalIndent(windows, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(o.out, append(text, '\n'), 0o644)
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

// show prints medians, and how ours compares with the best of the others.
func show(o options, servers []*server, windows []window) {
	fmt.Printf("%-14s %6s %18s %18s %8s\n", "server", "depth", "reads/CPU second", "reads/second", "ratio")
	for _, depth := range o.depths {
		best := 0.0
		for _, s := range servers {
			cpu := medianOf(windows, s.name, depth, window.perCPU)
			ratio := ""
			if s.ours && best > 0 {
				ratio = fmt.Sprintf("%.2f", cpu/best)
			} else {
				best = max(best, cpu)
			}
			fmt.Printf("%-14s %6d %18.0f %18.0f %8s\n", s.name, depth, cpu,
				medianOf(windows, s.name, depth, window.perWall), ratio)
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
