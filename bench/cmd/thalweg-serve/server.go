package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Times of a server.
const (
	stopWithin = 20 * time.Second
	askWithin  = time.Minute
)

// server is a process that serves, and its client.
type server struct {
	cmd     *exec.Cmd
	address string
	cookie  string
	said    sync.WaitGroup
	stderr  bytes.Buffer
}

var errNoAddress = errors.New("the server has ended before it said where it is")

// serve starts a server over the state, and signs in as who started it.
func (o options) serve(ctx context.Context) (*server, error) {
	at, err := o.place("server" + rand.Text())
	if err != nil {
		return nil, err
	}
	s := &server{cmd: exec.CommandContext(ctx, o.Thalweg, append([]string{"serve", "--listen", "127.0.0.1:0"}, at...)...)}
	s.cmd.Dir = o.Dir
	s.cmd.Cancel = func() error { return s.cmd.Process.Signal(syscall.SIGTERM) }
	s.cmd.WaitDelay = stopWithin
	stderr, err := s.cmd.StderrPipe()
	if err == nil {
		err = s.cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("start a server: %w", err)
	}
	lines, start := bufio.NewScanner(stderr), ""
	for start == "" && lines.Scan() {
		_, at, _ := strings.Cut(lines.Text(), "to sign in: ")
		s.address, start, _ = strings.Cut(at, "/start#")
		s.stderr.WriteString(lines.Text() + "\n")
	}
	s.said.Go(func() {
		for lines.Scan() {
			s.stderr.WriteString(lines.Text() + "\n")
		}
	})
	if start == "" {
		return nil, errors.Join(errNoAddress, s.stop())
	}
	if err := s.login(ctx, start); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return s, nil
}

// login begins a session.
func (s *server) login(ctx context.Context, start string) error {
	answer, err := s.send(ctx, http.MethodPost, "/v1/login", map[string]string{"start": start})
	if err != nil {
		return err
	}
	for _, c := range answer.Cookies() {
		s.cookie = c.Name + "=" + c.Value
	}
	return answer.Body.Close()
}

// stop ends the server; it is an error if it has ended otherwise.
func (s *server) stop() error {
	err := s.cmd.Process.Signal(syscall.SIGTERM)
	late := time.AfterFunc(stopWithin, func() { _ = s.cmd.Process.Kill() })
	defer late.Stop()
	s.said.Wait()
	if err = errors.Join(err, s.cmd.Wait()); err != nil {
		return fmt.Errorf("stop the server: %w: %s", err, s.stderr.Bytes())
	}
	return nil
}

// place tells who looks at the pages where they are.
type place struct {
	Address string `json:"address"`
	Cookie  string `json:"cookie"`
}

// show says where the server is, and waits until who looks at its pages says a byte, or has gone.
func (s *server) show(ctx context.Context) error {
	if err := json.NewEncoder(os.Stdout).Encode(place{s.address, s.cookie}); err != nil {
		return fmt.Errorf("say where the server is: %w", err)
	}
	said := make(chan error, 1)
	go func() {
		_, err := os.Stdin.Read(make([]byte, 1))
		said <- err
	}()
	select {
	case err := <-said:
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// send asks the server. The caller closes the answer's body.
func (s *server) send(ctx context.Context, method, path string, body any) (*http.Response, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	q, err := http.NewRequestWithContext(ctx, method, s.address+path, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	q.Header.Set("Content-Type", "application/json")
	if s.cookie != "" {
		q.Header.Set("Cookie", s.cookie)
	}
	answer, err := http.DefaultClient.Do(q)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode/100 != 2 {
		why, _ := io.ReadAll(answer.Body) // the status says enough
		return nil, errors.Join(&refused{path, answer.StatusCode, string(why)}, answer.Body.Close())
	}
	return answer, nil
}

// refused is an answer that is none.
type refused struct {
	path   string
	status int
	text   string
}

func (r *refused) Error() string { return fmt.Sprintf("%s: %d %s", r.path, r.status, r.text) }

// ask sends a request and decodes the answer.
func (s *server) ask(ctx context.Context, method, path string, body, into any) error {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	answer, err := s.send(ctx, method, path, body)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(answer.Body)
	if err = errors.Join(err, answer.Body.Close()); err == nil && into != nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		return fmt.Errorf("read the answer of %s: %w", path, err)
	}
	return nil
}

// measure asks for a path several times and returns the 95th hundredth of what it took, and what the first took, in
// seconds. What is decoded into is the last answer.
func (o options) measure(ctx context.Context, s *server, path string, into any) (p95, first float64, err error) {
	took := make([]float64, o.Times)
	for i := range took {
		began := time.Now()
		if err := s.ask(ctx, http.MethodGet, path, nil, into); err != nil {
			return 0, 0, err
		}
		took[i] = time.Since(began).Seconds()
	}
	return hundredth(took, 95), took[0], nil
}

// hundredth is the p-th hundredth of some values.
func hundredth(values []float64, p int) float64 {
	v := slices.Sorted(slices.Values(values))
	return v[max(0, (len(v)*p+99)/100-1)]
}

const mb = 1e6

// memory is the resident memory of the server, and the most that it has had, in MB.
func (s *server) memory() (now, most float64, err error) {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(s.cmd.Process.Pid), "status"))
	if err != nil {
		return 0, 0, fmt.Errorf("read the server's memory: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		kb, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 64)
		switch {
		case err != nil:
		case name == "VmRSS":
			now = kb * 1024 / mb
		case name == "VmHWM":
			most = kb * 1024 / mb
		}
	}
	return now, most, nil
}

// stat is what the kernel counts of a process.
type stat struct {
	parent int
	own    time.Duration // processor time, without that of its children
}

// statOf reads the counts of a process: none, if it has ended.
func statOf(pid int) (s stat) {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return stat{}
	}
	// The name is in parentheses; fields behind it count from the third, see proc(5).
	_, rest, _ := strings.Cut(string(text), ") ")
	const parent, utime, stime, tick = 4 - 3, 14 - 3, 15 - 3, 10 * time.Millisecond
	for i, field := range strings.Fields(rest) {
		n, err := strconv.Atoi(field)
		switch {
		case err != nil:
		case i == parent:
			s.parent = n
		case i == utime || i == stime:
			s.own += time.Duration(n) * tick
		}
	}
	return s
}
