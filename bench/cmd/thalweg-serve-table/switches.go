package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sync/errgroup"

	"thalweg/internal/io/tableindex"
)

// tally is what clients saw while tables were switched under them.
type tally struct {
	Answers  int64   `json:"answers"`
	Wrong    int64   `json:"wrong"`
	Mixed    int64   `json:"mixed"`
	Switches int64   `json:"switches"`
	BeforeUS float64 `json:"p999_before_us"`
	DuringUS float64 `json:"p999_during_us"`
}

const (
	loaders       = 8  // connections
	commandsAhead = 16 // that one of them sends at once
	keysOfCommand = 10
	answerWait    = time.Minute // for one that is missing
	behindSwitch  = time.Second // belongs to it: the table before is released
	longestUS     = 100_000_000
)

// phases of the load, by what is counted of its latency.
const (
	between = iota
	before
	during
	phases
)

// load is clients that check each answer, and who switches the tables meanwhile.
type load struct {
	o      options
	server *server
	// begun and settled count switches, from 0, which is the first table: an answer may be of each table from settled,
	// when its command was sent, to begun, when it came. Even ones are of version 1, odd ones of version 2.
	begun, settled        atomic.Int64
	phase                 atomic.Int32
	answers, wrong, mixed atomic.Int64
	mu                    sync.Mutex
	latency               [phases]*hdrhistogram.Histogram
}

// switches lets clients read until all answers have come, and switches to and fro meanwhile.
func switches(ctx context.Context, o options, s *server, versions [2]string) (*tally, error) {
	l := &load{o: o, server: s}
	for i := range l.latency {
		l.latency[i] = hdrhistogram.New(1, longestUS, 3)
	}
	enough, stop := context.WithCancel(ctx)
	defer stop()
	work, ctx := errgroup.WithContext(ctx)
	for i := range loaders {
		work.Go(func() error { return l.client(enough, rand.New(rand.NewPCG(1, uint64(i)))) })
	}
	work.Go(func() error {
		defer stop()
		return l.switchAll(ctx, versions)
	})
	if err := work.Wait(); err != nil {
		return nil, err
	}
	return &tally{Answers: l.answers.Load(), Wrong: l.wrong.Load(), Mixed: l.mixed.Load(), Switches: l.settled.Load(),
		BeforeUS: float64(l.latency[before].ValueAtQuantile(99.9)),
		DuringUS: float64(l.latency[during].ValueAtQuantile(99.9))}, nil
}

// switchAll spreads the switches over the answers. The first share of them warms up and is measured as before.
func (l *load) switchAll(ctx context.Context, versions [2]string) error {
	shares := int64(l.o.switches) + 3
	if err := l.await(ctx, l.o.answers/shares); err != nil {
		return err
	}
	l.phase.Store(before)
	for n := int64(1); n <= int64(l.o.switches); n++ {
		if err := l.await(ctx, l.o.answers*(n+1)/shares); err != nil {
			return err
		}
		l.begun.Store(n)
		l.phase.Store(during)
		if err := l.publish(ctx, versions[n%2], n); err != nil {
			return err
		}
		l.settled.Store(n)
		if err := l.wait(ctx, behindSwitch); err != nil {
			return err
		}
		l.phase.Store(between)
	}
	return l.await(ctx, l.o.answers)
}

// publish puts a file in the place of the one that is served, and waits until the server says that it is.
func (l *load) publish(ctx context.Context, version string, n int64) error {
	beside := filepath.Join(l.o.dir, fmt.Sprint("next", n))
	if err := os.Link(version, beside); err != nil {
		return err
	}
	if err := os.Rename(beside, filepath.Join(l.o.dir, servedName)); err != nil {
		return err
	}
	if err := l.server.cmd.Process.Signal(syscall.SIGHUP); err != nil { // it would look within a second, and say so later
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case line := <-l.server.serving:
		if !strings.HasPrefix(line, "serving ") {
			return fmt.Errorf("switch %d: %s", n, line)
		}
		return nil
	}
}

// await waits until so many answers have come.
func (l *load) await(ctx context.Context, answers int64) error {
	for l.answers.Load() < answers {
		if err := l.wait(ctx, lookPause); err != nil {
			return err
		}
	}
	return nil
}

func (l *load) wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// client asks for random keys, and checks what it gets, until the context ends.
func (l *load) client(ctx context.Context, random *rand.Rand) error {
	c, err := net.Dial("tcp", l.server.address)
	if err != nil {
		return err
	}
	defer c.Close()
	head := fmt.Sprintf("*%d\r\n$4\r\nMGET\r\n", keysOfCommand+1)
	answerHead := fmt.Sprintf("*%d\r\n", keysOfCommand)
	frame := len(tableindex.Frame(nil, make([]byte, l.o.bytes)))
	in := bufio.NewReaderSize(c, 1<<20)
	got := make([]byte, len(answerHead)+keysOfCommand*frame)
	var keys [commandsAhead * keysOfCommand]int64
	var out []byte
	check := checker{bytes: l.o.bytes, head: answerHead, frame: frame}
	for ctx.Err() == nil {
		out = out[:0]
		for i := range keys {
			if i%keysOfCommand == 0 {
				out = append(out, head...)
			}
			keys[i] = random.Int64N(l.o.keys)
			out = append(appendKey(append(out, "$16\r\n"...), keys[i]), "\r\n"...)
		}
		phase, from, began := l.phase.Load(), l.settled.Load(), time.Now()
		if err := c.SetDeadline(began.Add(answerWait)); err != nil {
			return err
		}
		if _, err := c.Write(out); err != nil {
			return err
		}
		for i := 0; i < len(keys); i += keysOfCommand {
			if _, err := io.ReadFull(in, got); err != nil {
				return fmt.Errorf("an answer is missing: %w", err)
			}
			l.judge(check.version(got, keys[i:i+keysOfCommand]), from)
		}
		l.record(phase, time.Since(began))
	}
	return nil
}

// record counts how long a client waited for the answers to what it sent in a phase.
func (l *load) record(phase int32, took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.latency[phase].RecordValue(min(max(1, took.Microseconds()), longestUS)) // it is within its range
}

// judge counts an answer of a version. from is the last switch that had ended when it was asked for.
func (l *load) judge(version int, from int64) {
	to := l.begun.Load()
	served := version == 1+int(from%2) || version == 1+int(to%2) || to-from > 1
	switch {
	case version == mixedVersions:
		l.mixed.Add(1)
	case version == noVersion || !served:
		l.wrong.Add(1)
	}
	l.answers.Add(keysOfCommand)
}

// What answers are of, beside one version.
const (
	noVersion     = 0
	mixedVersions = -1
)

// checker compares an answer with what tables have.
type checker struct {
	bytes, frame int
	head         string
	value, want  []byte
}

// version returns the version that all values of an answer are of.
func (c *checker) version(got []byte, keys []int64) (version int) {
	if !bytes.HasPrefix(got, []byte(c.head)) {
		return noVersion
	}
	got = got[len(c.head):]
	for n, key := range keys {
		one := noVersion
		for candidate := 1; candidate <= 2 && one == noVersion; candidate++ {
			c.value = appendValue(c.value[:0], key, candidate, c.bytes)
			c.want = tableindex.Frame(c.want[:0], c.value)
			if bytes.Equal(c.want, got[n*c.frame:][:c.frame]) {
				one = candidate
			}
		}
		switch {
		case one == noVersion:
			return noVersion
		case n > 0 && one != version:
			return mixedVersions
		}
		version = one
	}
	return version
}
