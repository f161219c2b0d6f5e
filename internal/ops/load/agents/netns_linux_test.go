package agents

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/ops/load"
	"thalweg/internal/test/effort"
)

// Variables that make the test's program an agent.
const (
	listenVariable = "THALWEG_TEST_AGENT_LISTEN"
	skewVariable   = "THALWEG_TEST_AGENT_SKEW"
)

func TestMain(m *testing.M) {
	if at := os.Getenv(listenVariable); at != "" {
		if err := beAgent(at, os.Getenv(skewVariable)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// beAgent serves until its input ends.
func beAgent(at, skew string) error {
	by, err := time.ParseDuration(skew)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp", at)
	if err != nil {
		return err
	}
	fmt.Println("it listens")
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	return Serve(ctx, ln, testToken, Does{Open: opens(newStore()), Run: rated, Ahead: by},
		slog.New(slog.DiscardHandler))
}

// rated carries out loads with a rate, and takes samples for others.
func rated(ctx context.Context, target load.Target, p load.Plan) (load.Result, error) {
	if p.Rate > 0 {
		return load.Run(ctx, target, p)
	}
	return sampled(ctx, target, p)
}

// hosts makes hosts on this one: a network namespace each, with one link to ours. It answers with their names.
func hosts(t *testing.T, addresses []string) (names []string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root makes network namespaces")
	}
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skip("there is no ip command")
	}
	ip := func(args ...string) {
		t.Helper()
		text, err := exec.Command("ip", args...).CombinedOutput()
		require.NoError(t, err, "ip %v: %s", args, text)
	}
	for i, address := range addresses {
		name := fmt.Sprintf("tw%d-%d", os.Getpid(), i)
		if text, err := exec.Command("ip", "netns", "add", name).CombinedOutput(); err != nil {
			t.Skipf("network namespaces are not to be made here: %s", text)
		}
		t.Cleanup(func() { ip("netns", "del", name) })
		ours, theirs := name+"o", name+"t"
		ip("link", "add", ours, "type", "veth", "peer", "name", theirs, "netns", name)
		t.Cleanup(func() { _ = exec.Command("ip", "link", "del", ours).Run() }) // it goes with the namespace, but later
		ip("addr", "add", fmt.Sprintf("198.18.%d.1/30", i), "dev", ours)
		ip("link", "set", ours, "up")
		ip("-n", name, "addr", "add", address+"/30", "dev", theirs)
		ip("-n", name, "link", "set", theirs, "up")
		names = append(names, name)
	}
	return names
}

func TestChaosAgentsInNamespacesDoOneLoad(t *testing.T) {
	addresses := []string{"198.18.0.2", "198.18.1.2", "198.18.2.2"}
	var c Config
	for i, name := range hosts(t, addresses) {
		at := net.JoinHostPort(addresses[i], "7420")
		self, err := os.Executable()
		require.NoError(t, err)
		cmd := exec.Command("ip", "netns", "exec", name, self)
		cmd.Env = append(os.Environ(), listenVariable+"="+at, skewVariable+"="+skews[i].String())
		cmd.Stderr = os.Stderr
		input, err := cmd.StdinPipe()
		require.NoError(t, err)
		output, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		t.Cleanup(func() {
			require.NoError(t, input.Close())
			require.NoError(t, cmd.Wait())
		})
		line, err := bufio.NewReader(output).ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, "it listens\n", line)
		c.Agents = append(c.Agents, at)
	}
	f := fleetOf(t, c)
	run := func(p load.Plan) (out Outcome) {
		most := effort.Of(together, together, 5*time.Millisecond)
		const tries = 3 // what other processes take of the machine only makes it worse
		for range tries {
			var err error
			out, err = f.Run(t.Context(), p)
			require.NoError(t, err)
			t.Log("between the first and the last start:", out.Spread)
			if out.Spread <= most {
				break
			}
		}
		require.LessOrEqual(t, out.Spread, most)
		return out
	}
	p := load.Plan{Keys: 3000, Of: load.Uniform, Clients: 12, Ops: 200_000, Seed: 2}
	for range effort.Of(1, 1, 7) {
		out := run(p)
		requireTogether(t, p, len(addresses), out)
		for i, g := range out.Generators {
			require.Equal(t, c.Agents[i], g.Agent)
			require.InDelta(t, skews[i], g.Offset, float64(g.Unsure+time.Millisecond))
		}
	}
	p = load.Plan{Keys: 3001, Of: load.Sequential, Reads: 1, Clients: 12, Depth: 16, Rate: 6000, Seed: 2}
	out := run(p)
	require.Equal(t, []any{p, int64(3001), int64(3001)},
		[]any{out.Plan, out.Of[load.Read].Ops, out.Of[load.Read].Response.TotalCount()})
	require.NotEmpty(t, out.Before)
}
