package fleet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// hosts are networks of the database nodes' own, each with one address, and a
// switch in this process between them and the machine: so that what goes from
// one node to another can be lost or come later, while clients reach both.
type hosts struct {
	name  string     // of the networks, before their number
	ports []*os.File // by host; the last is the machine
	paths [][]path   // from, to
	all   sync.WaitGroup
}

// path is the way from one host to another.
type path struct {
	down  atomic.Bool
	delay atomic.Int64 // time.Duration
	late  chan latePacket
}

type latePacket struct {
	due  time.Time
	data []byte
}

const (
	hostPrefix  = "10.213.7"
	hostMachine = 254     // the machine's last octet; nodes have 1, 2, …
	hostMTU     = 60000   // bytes
	lateMost    = 1 << 12 // packets on their way; more are lost, as on any line
)

// newHosts makes networks for n nodes. Its tests do not run beside each other.
func newHosts(t *testing.T, n int) *hosts {
	t.Helper()
	h := &hosts{name: fmt.Sprintf("thalweg%d-", os.Getpid())}
	t.Cleanup(h.close)
	for i := range n {
		name := fmt.Sprintf("%s%d", h.name, i+1)
		require.NoError(t, run("ip", "netns", "add", name))
		port, err := plug("/var/run/netns/"+name, i+1)
		require.NoError(t, err)
		h.ports = append(h.ports, port)
	}
	port, err := plug("", hostMachine)
	require.NoError(t, err)
	h.ports = append(h.ports, port)
	h.paths = make([][]path, len(h.ports))
	for from := range h.ports {
		h.paths[from] = make([]path, len(h.ports))
		for to := range h.paths[from] {
			p := &h.paths[from][to]
			p.late = make(chan latePacket, lateMost)
			h.all.Go(func() { h.bring(to, p.late) })
		}
	}
	for from := range h.ports {
		h.all.Go(func() { h.carry(from) })
	}
	return h
}

// plug makes an interface in a network ("": the machine's) whose packets this process has.
func plug(network string, number int) (port *os.File, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked: the thread ends with its network
		port, err = plugHere(network, number)
	}()
	<-done
	return port, err
}

func plugHere(network string, number int) (*os.File, error) {
	if network != "" {
		in, err := os.Open(network)
		if err != nil {
			return nil, err
		}
		defer in.Close()
		if err := unix.Setns(int(in.Fd()), unix.CLONE_NEWNET); err != nil {
			return nil, fmt.Errorf("enter %s: %w", network, err)
		}
	}
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open /dev/net/tun: %w", err)
	}
	device := fmt.Sprintf("thalweg%d", number)
	ask, err := unix.NewIfreq(device)
	if err == nil {
		ask.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, ask)
	}
	port := os.NewFile(uintptr(fd), device)
	return port, errors.Join(err, run("ip", "link", "set", "lo", "up"),
		run("ip", "addr", "add", fmt.Sprintf("%s.%d/24", hostPrefix, number), "dev", device),
		run("ip", "link", "set", device, "mtu", fmt.Sprint(hostMTU), "up"))
}

func run(name string, args ...string) error {
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, out)
	}
	return nil
}

// carry takes what a host sends to where it goes.
func (h *hosts) carry(from int) {
	defer func() {
		for to := range h.paths[from] {
			close(h.paths[from][to].late)
		}
	}()
	buf := make([]byte, hostMTU+4)
	for {
		n, err := h.ports[from].Read(buf)
		if err != nil {
			return
		}
		const destination = 16 // of an IPv4 header
		if n < destination+4 || buf[0]>>4 != 4 {
			continue
		}
		to := int(buf[destination+3]) - 1
		if to == hostMachine-1 {
			to = len(h.ports) - 1
		}
		if to < 0 || to >= len(h.ports) || to == from || h.paths[from][to].down.Load() {
			continue
		}
		p := &h.paths[from][to]
		select { // in order, so that a delay that ends brings nothing before what came earlier
		case p.late <- latePacket{due: time.Now().Add(time.Duration(p.delay.Load())),
			data: append([]byte(nil), buf[:n]...)}:
		default:
		}
	}
}

// bring gives a host its packets when they are due.
func (h *hosts) bring(to int, late <-chan latePacket) {
	for p := range late {
		if d := time.Until(p.due); d > 0 {
			pause(context.Background(), d)
		}
		_, _ = h.ports[to].Write(p.data) // what cannot be written is lost
	}
}

func (h *hosts) close() {
	for _, p := range h.ports {
		_ = p.Close()
	}
	h.all.Wait()
	for i := range len(h.ports) {
		name := fmt.Sprintf("%s%d", h.name, i+1)
		if _, err := os.Stat("/var/run/netns/" + name); !errors.Is(err, fs.ErrNotExist) {
			_ = run("ip", "netns", "del", name)
		}
	}
}

// apart has three database nodes in networks of their own; the broker is the one there is.
func apart(t *testing.T) services {
	t.Helper()
	chaos(t)
	h := newHosts(t, 3)
	dir := t.TempDir()
	command := func(verb string) error {
		cmd := exec.Command("../../../scripts/services", verb)
		cmd.Env = append(os.Environ(), servicesVariable+"="+dir, "NODES=3", "ONLY=cassandra", "HOSTS="+hostPrefix,
			"NETNS="+h.name, "CQL_PORT=9042", "STORAGE_PORT=7000")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("services %s: %w: %s", verb, err, out)
		}
		return nil
	}
	t.Cleanup(func() { require.NoError(t, command("clean")) })
	if err := command("up"); err != nil {
		for i := range 3 {
			text, _ := os.ReadFile(filepath.Join(dir, fmt.Sprintf("cassandra-%d", i+1), "log"))
			t.Logf("%s", text[max(0, len(text)-logShown):])
		}
		require.NoError(t, err)
	}
	s := withBroker(t, inKeyspace(t, []string{hostPrefix + ".1:9042", hostPrefix + ".2:9042", hostPrefix + ".3:9042"}))
	s.hosts = h
	return s
}

// betweenNodes does something to the way between two database nodes, or between
// one and all others, while all are reached by workers.
func betweenNodes(what string, lasts time.Duration, set func(*path), unset func(*path)) fault {
	return func(ctx context.Context, f *workerFleet) error {
		h := f.with.hosts
		nodes := len(h.ports) - 1
		for pause(ctx, time.Second+time.Duration(f.random(int(3*time.Second)))) {
			one, other := f.random(nodes), f.random(2*nodes) // beyond: all others
			each := func(do func(*path)) {
				for to := range nodes {
					if to != one && (other >= nodes || other%nodes == to) {
						do(&h.paths[one][to])
						do(&h.paths[to][one])
					}
				}
			}
			f.count(what, 1)
			each(set)
			pause(ctx, time.Duration(f.random(int(lasts))))
			each(unset)
			if err := f.revive(); err != nil {
				return err
			}
		}
		return nil
	}
}

// nodesCut loses what database nodes send to each other.
func nodesCut() fault {
	return betweenNodes("cuts between nodes", 30*time.Second, func(p *path) { p.down.Store(true) },
		func(p *path) { p.down.Store(false) })
}

// nodesFar has it come later.
func nodesFar() fault {
	return betweenNodes("delays between nodes", 15*time.Second,
		func(p *path) { p.delay.Store(int64(100 * time.Millisecond)) }, func(p *path) { p.delay.Store(0) })
}
