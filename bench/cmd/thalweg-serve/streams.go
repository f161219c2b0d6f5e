package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	lookEvery    = 20 * time.Millisecond
	lineBytesMax = 1 << 20
	batchEnded   = "batch_ended"
	runCompleted = "run_completed"
)

// told is a line of a stream.
type told struct {
	N    int       `json:"n"`
	Kind string    `json:"kind"`
	Time time.Time `json:"time"` // before its commit
}

var errStreamEnded = errors.New("a stream has ended before its run")

// listen reads a run's stream to the run's end. heard gets each line, and when it came.
func (s *server) listen(ctx context.Context, topic string, open func(), heard func(told, time.Time)) error {
	answer, err := s.send(ctx, http.MethodGet, "/v1/stream?topics="+topic, nil)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	open()
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, lineBytesMax)
	for lines.Scan() {
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
		if !ok {
			continue
		}
		var line told
		at := time.Now()
		if err := json.Unmarshal(data, &line); err != nil {
			return fmt.Errorf("read a line of a stream: %w", err)
		}
		if heard(line, at); line.Kind == runCompleted {
			return nil
		}
	}
	return errors.Join(lines.Err(), errStreamEnded)
}

// latest waits for a run behind a number and returns its number.
func (s *server) latest(ctx context.Context, after int) (int, error) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		var page struct {
			Runs []struct {
				Run int `json:"run"`
			} `json:"runs"`
		}
		if err := s.ask(ctx, http.MethodGet, inWorkspace+"/runs?limit=1", nil, &page); err != nil {
			return 0, err
		}
		if len(page.Runs) > 0 && page.Runs[0].Run > after {
			return page.Runs[0].Run, nil
		}
		select {
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// latencies are those of a run's batches: of each the longest of all streams.
type latencies struct {
	mu      sync.Mutex
	open    int
	all     time.Time // when all streams were open
	longest map[int]time.Duration
	heard   map[int]int // streams
}

// news measures the time from a batch's commit by a run's process to the last of the streams that hear of it. They
// are opened while the run loads a table.
func news(ctx context.Context, o options, out *figures) error {
	urls, err := o.items(loadFiles, max(1, o.Size/loadFiles))
	if err != nil {
		return err
	}
	return o.with(ctx, func(s *server) error {
		kinds := map[string][]string{"one core": {"--cores", "1"}, "all cores": nil}
		if o.in != nil {
			kinds = map[string][]string{"fleet": nil}
		}
		if o.Pages {
			if err := s.show(ctx); err != nil {
				return err
			}
			kinds = map[string][]string{"shown": nil}
		}
		for name, flags := range kinds {
			if err := o.hear(ctx, s, out, name, urls, flags); err != nil {
				return err
			}
		}
		if o.Pages {
			return s.show(ctx)
		}
		_, most, err := s.memory()
		out.Counts["server MB"] = most
		return err
	})
}

// hear lets a run work while streams listen to it.
func (o options) hear(ctx context.Context, s *server, out *figures, name string, urls, flags []string) error {
	cmd, err := o.writing(ctx, urls, 2*o.Times, flags...)
	if err != nil {
		return err
	}
	before := int(out.Counts["runs"])
	l := latencies{longest: map[int]time.Duration{}, heard: map[int]int{}}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { _, err := work(cmd); return err })
	group.Go(func() error {
		run, err := s.latest(ctx, before)
		if err != nil {
			return err
		}
		for range o.Streams {
			group.Go(func() error {
				return s.listen(ctx, workspace+"/"+strconv.Itoa(run), func() { l.opened(o.Streams) }, l.line)
			})
		}
		return nil
	})
	if err := group.Wait(); err != nil {
		return err
	}
	if len(l.longest) < o.Times {
		return fmt.Errorf("%w: %d commits of %d were heard by all", errTooFast, len(l.longest), o.Times)
	}
	var took []float64
	for n, d := range l.longest {
		if l.heard[n] != o.Streams {
			return fmt.Errorf("%w: %d of %d streams got line %d", errLost, l.heard[n], o.Streams, n)
		}
		took = append(took, d.Seconds())
	}
	out.Counts["runs"]++
	out.Counts["commits, "+name] = float64(len(took))
	out.Steps["line, "+name], out.Steps["line, "+name+", median"] = hundredth(took, 95), hundredth(took, 50)
	return nil
}

var errLost = errors.New("streams have left lines out, or told them twice")

var errTooFast = errors.New("the run was over too soon: more rows make it longer")

func (l *latencies) opened(all int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open++; l.open == all {
		l.all = time.Now()
	}
}

// line notes a line that came when all streams were open.
func (l *latencies) line(t told, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t.Kind == batchEnded && !l.all.IsZero() && t.Time.After(l.all) {
		l.heard[t.N]++
		l.longest[t.N] = max(l.longest[t.N], at.Sub(t.Time))
	}
}
