package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"thalweg/internal/io/tableindex"
)

// server is one of those that take turns.
type server struct {
	name, address string
	kind          string // of a peer: Redis or Valkey
	ours          bool
	cmd           *exec.Cmd
	ready         time.Duration // from its start until it answered
	serving       chan string   // what ours says when it serves a table, or does not
}

const (
	startPatience = 2 * time.Minute
	lookPause     = 5 * time.Millisecond
)

// start starts a server and waits until it answers.
func start(ctx context.Context, name string, args func(port string) []string) (*server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &server{name: name, address: l.Addr().String(), serving: make(chan string, mostSaid)}
	_, port, _ := net.SplitHostPort(s.address)
	if err := l.Close(); err != nil {
		return nil, err
	}
	line := args(port)
	s.cmd = exec.CommandContext(ctx, line[0], line[1:]...)
	s.cmd.Stderr = &announcements{to: s.serving}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	began := time.Now()
	waiting, stop := context.WithTimeout(ctx, startPatience)
	defer stop()
	look := time.NewTicker(lookPause)
	defer look.Stop()
	for {
		c, err := net.Dial("tcp", s.address)
		if err == nil {
			s.ready = time.Since(began)
			return s, c.Close()
		}
		select {
		case <-waiting.Done():
			return nil, errors.Join(fmt.Errorf("%s does not answer: %w", name, err), s.end())
		case <-look.C:
		}
	}
}

// announcements pass lines about tables on, and print all others.
type announcements struct {
	rest []byte
	to   chan<- string
}

const mostSaid = 1000 // lines

// Write implements io.Writer.
func (a *announcements) Write(p []byte) (int, error) {
	a.rest = append(a.rest, p...)
	for {
		line, rest, whole := bytes.Cut(a.rest, []byte("\n"))
		if !whole {
			return len(p), nil
		}
		if about := bytes.HasPrefix(line, []byte("serving ")) || bytes.HasPrefix(line, []byte("not served")); !about {
			fmt.Fprintf(os.Stderr, "%s\n", line)
		} else {
			select {
			case a.to <- string(line):
			default: // nobody reads so many
			}
		}
		a.rest = rest
	}
}

const oursName = "serve-table"

func startOurs(ctx context.Context, o options, table string) (*server, error) {
	s, err := start(ctx, oursName, func(port string) []string {
		return []string{o.program, "serve-table", table, "--listen", "127.0.0.1:" + port}
	})
	if s != nil {
		s.ours = true
	}
	return s, err
}

// startThrice starts ours three times, and returns the last with the median of the seconds until it answered.
func startThrice(ctx context.Context, o options, table string) (*server, float64, error) {
	var seconds []float64
	for {
		s, err := startOurs(ctx, o, table)
		if err != nil {
			return nil, 0, err
		}
		<-s.serving // it has been said before it listens
		seconds = append(seconds, s.ready.Seconds())
		if len(seconds) == 3 {
			fmt.Printf("ready after %.2f s\n", seconds)
			slices.Sort(seconds)
			return s, seconds[1], nil
		}
		if err := s.end(); err != nil {
			return nil, 0, err
		}
	}
}

func startPeer(ctx context.Context, program string, o options) (*server, error) {
	s, err := start(ctx, filepath.Base(program), func(port string) []string {
		return append([]string{program, "--port", port}, o.redisServerArgs...)
	})
	if err != nil {
		return nil, err
	}
	began := time.Now()
	if s.kind, err = s.kindOf(); err == nil {
		err = s.fill(o)
	}
	if err != nil {
		return nil, errors.Join(err, s.end())
	}
	fmt.Printf("%s filled in %.1f s\n", s.name, time.Since(began).Seconds())
	return s, nil
}

// kindOf asks a peer what it is: Valkey calls itself Redis, too.
func (s *server) kindOf() (string, error) {
	c, err := net.Dial("tcp", s.address)
	if err != nil {
		return "", err
	}
	defer c.Close()
	if _, err := io.WriteString(c, "INFO server\r\nQUIT\r\n"); err != nil {
		return "", err
	}
	text, err := io.ReadAll(c)
	switch {
	case err != nil:
		return "", err
	case bytes.Contains(text, []byte("\nvalkey_version:")):
		return "Valkey", nil
	case bytes.Contains(text, []byte("\nredis_version:")):
		return "Redis", nil
	}
	return "", fmt.Errorf("%s is neither Redis nor Valkey: %.200q", s.name, text)
}

// end ends the server.
func (s *server) end() error {
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	var exit *exec.ExitError
	if err := s.cmd.Wait(); err != nil && !errors.As(err, &exit) {
		return err
	}
	return nil
}

// fill writes all keys.
func (s *server) fill(o options) error {
	c, err := net.Dial("tcp", s.address)
	if err != nil {
		return err
	}
	defer c.Close()
	written := make(chan error, 1)
	go func() {
		w := bufio.NewWriterSize(c, 1<<20)
		var key, value []byte
		for i := range o.keys {
			key, value = appendKey(key[:0], i), appendValue(value[:0], i, 1, o.bytes)
			fmt.Fprintf(w, "*3\r\n$3\r\nSET\r\n$16\r\n%s\r\n$%d\r\n%s\r\n", key, o.bytes, value)
		}
		written <- w.Flush()
	}()
	const ok = "+OK\r\n"
	in, got := bufio.NewReaderSize(c, 1<<20), make([]byte, len(ok))
	for range o.keys {
		if _, err := io.ReadFull(in, got); err != nil || string(got) != ok {
			return fmt.Errorf("fill %s: %q: %w", s.name, got, err)
		}
	}
	return <-written
}

// check reads keys over all of the table, and one that is not there.
func (s *server) check(o options) error {
	c, err := net.Dial("tcp", s.address)
	if err != nil {
		return err
	}
	defer c.Close()
	in := bufio.NewReader(c)
	const samples = 1000
	for n := range int64(samples) {
		i := n * (o.keys - 1) / (samples - 1)
		want := string(tableindex.Frame(nil, appendValue(nil, i, 1, o.bytes)))
		if n == 0 {
			i, want = o.keys, tableindex.Null
		}
		if _, err := fmt.Fprintf(c, "GET %s\r\n", appendKey(nil, i)); err != nil {
			return err
		}
		got := make([]byte, len(want))
		if _, err := io.ReadFull(in, got); err != nil || string(got) != want {
			return fmt.Errorf("%s answers %q to GET %s: %w", s.name, got, appendKey(nil, i), err)
		}
	}
	return nil
}

// deeper is how many reads a pipelined window has for one of the others.
const deeper = 5

// window lets redis-benchmark read, and looks at the server's processor time before and behind it.
func (s *server) window(ctx context.Context, o options, depth int) (w window, err error) {
	w = window{Server: s.name, Depth: depth, Reads: o.reads}
	if depth > 1 {
		w.Reads *= deeper
	}
	host, port, _ := net.SplitHostPort(s.address)
	cmd := exec.CommandContext(ctx, o.benchmark, "-h", host, "-p", port, "-n", strconv.FormatInt(w.Reads, 10), "-r",
		strconv.FormatInt(o.keys, 10), "-c", strconv.Itoa(o.clients), "-P", strconv.Itoa(depth), "-q", "GET",
		"key:__rand_int__")
	before, err := s.cpu()
	if err != nil {
		return w, err
	}
	began := time.Now()
	if said, err := cmd.CombinedOutput(); err != nil || bytes.Contains(said, []byte("rror")) {
		return w, fmt.Errorf("%s: %w: %s", o.benchmark, err, said)
	}
	w.WallS = time.Since(began).Seconds()
	after, err := s.cpu()
	w.ServerCPUS = after - before
	if err == nil && w.ServerCPUS <= 0 {
		err = fmt.Errorf("%s has used no processor time: let it answer more --reads", s.name)
	}
	return w, err
}

// resident is the memory of the server, in bytes.
func (s *server) resident() (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	_, behind, _ := strings.Cut(string(text), "VmRSS:")
	var kib float64
	if _, err := fmt.Sscan(behind, &kib); err != nil {
		return 0, fmt.Errorf("read resident memory: %w", err)
	}
	return kib * 1024, nil
}

// ticks are how many of the kernel's there are in a second.
const ticks = 100

// cpu is the processor time of the server, in seconds.
func (s *server) cpu() (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	_, behind, _ := strings.Cut(string(text), ") ") // the name may have blanks
	fields := strings.Fields(behind)
	const user, system = 11, 12
	if len(fields) <= system {
		return 0, fmt.Errorf("read processor time: %q", text)
	}
	total := 0.0
	for _, i := range []int{user, system} {
		n, err := strconv.ParseFloat(fields[i], 64)
		if err != nil {
			return 0, fmt.Errorf("read processor time: %w", err)
		}
		total += n / ticks
	}
	return total, nil
}
