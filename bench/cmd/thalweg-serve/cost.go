package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

// pageEvery is how often a reader turns a page, if the one before has come.
const pageEvery = 500 * time.Millisecond

// cost measures how much longer a run takes while streams listen to it and a reader pages through a table. Alone
// means that no server is there. Who comes first changes from round to round.
func cost(ctx context.Context, o options, out *figures) error {
	if _, err := o.measured(ctx); err != nil { // the reader reads its table; and files are in memory
		return err
	}
	var alone, read, ratios []float64
	for i := range o.Rounds {
		var times [2]float64 // alone, and read
		for j := range times {
			k := (i + j) % 2
			var err error
			if k == 0 {
				times[k], err = o.measured(ctx)
			} else {
				times[k], err = o.watched(ctx, 1+2*i+j, out)
			}
			if err != nil {
				return err
			}
		}
		alone, read, ratios = append(alone, times[0]), append(read, times[1]), append(ratios, times[1]/times[0])
		fmt.Fprintf(os.Stderr, "round %d: %.2f s alone, %.2f s read\n", i+1, times[0], times[1])
	}
	out.Steps["alone"], out.Steps["read"] = median(alone), median(read)
	out.Counts["read over alone"] = median(read) / median(alone)
	out.Counts["read over alone, median of rounds"] = median(ratios)
	out.Counts["read over alone, least"], out.Counts["read over alone, most"] = hundredth(ratios, 0), hundredth(ratios, 100)
	return nil
}

func median(values []float64) float64 {
	v := slices.Sorted(slices.Values(values))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// measured lets the run work that is measured, and returns how long its process took.
func (o options) measured(ctx context.Context) (float64, error) {
	cmd, err := o.command(ctx, o.Script, o.Params, "--python", o.Python)
	if err != nil {
		return 0, err
	}
	return work(cmd)
}

// watched lets a run work behind so many others, while a server is asked about it.
func (o options) watched(ctx context.Context, behind int, out *figures) (took float64, err error) {
	s, err := o.serve(ctx)
	if err != nil {
		return 0, err
	}
	defer func() {
		if s != nil {
			err = errors.Join(err, s.stop())
		}
	}()
	if _, err := s.latest(ctx, behind-1); err != nil {
		return 0, err
	}
	idle, _, err := s.memory()
	if err != nil {
		return 0, err
	}
	readers, said := o.readers(ctx, s, behind)
	if err := readers.Start(); err != nil {
		return 0, fmt.Errorf("start readers: %w", err)
	}
	took, err = o.measured(ctx)
	err = errors.Join(err, readers.Process.Signal(syscall.SIGTERM), readers.Wait())
	left, most, memoryErr := s.memory()
	own := statOf(s.cmd.Process.Pid).own
	if err = errors.Join(err, memoryErr); err != nil {
		return 0, fmt.Errorf("while readers read: %w: %s", err, readers.Stderr)
	}
	if err := out.add(said.Bytes()); err != nil {
		return 0, err
	}
	err, ended := s.stop(), s.cmd.ProcessState
	s = nil
	for name, v := range map[string]float64{
		"idle MB": idle, "most MB": most, "left MB": left,
		"CPU s of the readers a run": cpuOf(readers.ProcessState), "CPU s of the server a run": own.Seconds(),
		"CPU s of the server and its children a run": cpuOf(ended),
	} {
		out.Counts[name] = max(out.Counts[name], v)
	}
	return took, err
}

func cpuOf(p *os.ProcessState) float64 { return (p.UserTime() + p.SystemTime()).Seconds() }

// readers returns a process of its own for the clients, which gives way to all others.
func (o options) readers(ctx context.Context, s *server, behind int) (cmd *exec.Cmd, said *bytes.Buffer) {
	said = &bytes.Buffer{}
	cmd = exec.CommandContext(ctx, "nice", "-n", "19", os.Args[0], "--case", "listen", "--address", s.address,
		"--cookie", s.cookie, "--streams", strconv.Itoa(o.Streams), "--behind", strconv.Itoa(behind),
		"--rows", ofRun+"/tables/"+o.Table+"/rows")
	cmd.Stdout, cmd.Stderr = said, &bytes.Buffer{}
	return cmd, said
}

// readings are what readers have read.
type readings struct {
	Lines int64     `json:"lines"`
	Pages []float64 `json:"pages"` // s that each took
}

// add notes what readers say.
func (f *figures) add(text []byte) error {
	var r readings
	if err := json.Unmarshal(text, &r); err != nil {
		return fmt.Errorf("read what readers say: %w: %s", err, text)
	}
	f.Counts["lines that the streams got a run"] = max(f.Counts["lines that the streams got a run"], float64(r.Lines))
	f.Counts["pages that the reader got a run"] = max(f.Counts["pages that the reader got a run"], float64(len(r.Pages)))
	if len(r.Pages) > 0 {
		f.Steps["a page meanwhile"] = max(f.Steps["a page meanwhile"], hundredth(r.Pages, 95))
	}
	return nil
}

var errNothingRead = errors.New("readers have read nothing")

// read listens to the run behind a number and pages through a table, if there is one, until the process is told to end.
func read(ctx context.Context, o options) error {
	s := &server{address: o.Address, cookie: o.Cookie}
	http.DefaultTransport.(*http.Transport).MaxIdleConnsPerHost = o.Streams
	run, err := s.latest(ctx, o.Behind)
	if err != nil {
		return err
	}
	var lines atomic.Int64
	var r readings
	group, ctx := errgroup.WithContext(ctx)
	for range o.Streams {
		group.Go(func() error {
			return ended(ctx, s.listen(ctx, workspace+"/"+strconv.Itoa(run), func() {}, func(told, time.Time) {
				lines.Add(1)
			}))
		})
	}
	if o.Rows != "" {
		group.Go(func() error { return ended(ctx, r.turn(ctx, s, o.Rows)) })
	}
	err = group.Wait()
	if r.Lines = lines.Load(); err == nil && (r.Lines == 0 || o.Rows != "" && len(r.Pages) == 0) {
		err = errNothingRead
	}
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(r)
}

// ended is no error of readers that were told to end.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// turn turns pages until ctx ends.
func (r *readings) turn(ctx context.Context, s *server, rows string) error {
	tick := time.NewTicker(pageEvery)
	defer tick.Stop()
	for from := 0; ; {
		began := time.Now()
		var p page
		path := fmt.Sprintf("%s?from=%d&limit=%d", rows, from, pageRows)
		if err := s.ask(context.WithoutCancel(ctx), http.MethodGet, path, nil, &p); err != nil {
			return err
		}
		r.Pages = append(r.Pages, time.Since(began).Seconds())
		if from += len(p.Rows); len(p.Rows) < pageRows {
			from = 0
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
