package host

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"
)

// lookedAt is a machine of testdata, of whose files those that begin with -> are links.
func lookedAt(t *testing.T, name string) *measuring {
	t.Helper()
	archive, err := txtar.ParseFile(filepath.Join("testdata", name+".txtar"))
	require.NoError(t, err)
	root := t.TempDir()
	for _, f := range archive.Files {
		path := filepath.Join(root, f.Name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		if to, link := strings.CutPrefix(string(f.Data), "-> "); link {
			require.NoError(t, os.Symlink(strings.TrimSpace(to), path))
			continue
		}
		require.NoError(t, os.WriteFile(path, f.Data, 0o600))
	}
	m := newMeasuring(Options{Root: root})
	m.look()
	return m
}

func (m *measuring) rule(t *testing.T, name string) Rule {
	t.Helper()
	for _, r := range m.Rules {
		if r.Rule == name {
			require.NotEmpty(t, r.Source)
			require.NotEmpty(t, r.Threshold)
			return r
		}
	}
	require.Fail(t, "there is no rule "+name)
	return Rule{}
}

func (m *measuring) why(t *testing.T, what string) string {
	t.Helper()
	for _, u := range m.Unseen {
		if u.What == what {
			return u.Why
		}
	}
	require.Fail(t, "it is not named", "%s: %v", what, m.Unseen)
	return ""
}

func TestGuestOnEC2(t *testing.T) {
	t.Parallel()
	m := lookedAt(t, "ec2")
	require.Equal(t, "c5.2xlarge", m.Machine)
	f := m.Facts
	require.Equal(t, Processor{Model: "Intel(R) Xeon(R) Platinum 8124M CPU @ 3.00GHz", Cores: 8, Sockets: 1, PerCore: 2,
		SMT: "on", Caches: []Cache{{Level: 3, Type: "Unified", Bytes: 25344 << 10, Of: 8}}}, f.Processor)
	require.Equal(t, Guest{Kind: "HVM", Hypervisor: "Nitro", Vendor: "Amazon EC2", Product: "c5.2xlarge"}, f.Guest)
	require.Equal(t, HugePages{Transparent: "madvise", Reserved: 16, Free: 4, Bytes: 2 << 20}, f.Huge)
	require.Equal(t, ClockSource{"tsc", "tsc kvm-clock"}, f.Clock)
	require.Equal(t, Limits{Version: 2, Cores: "0-7"}, f.Limits)
	require.Equal(t, []NUMANode{{Node: 0, Cores: "0-7", Bytes: 16000000 << 10}}, f.Nodes)
	require.Len(t, f.Cards, 1)
	c := f.Cards[0]
	require.Equal(t, "ena", c.Driver)
	require.Equal(t, []int{4, 2, 0}, []int{c.Receiving, c.Sending, c.RPSCores})
	require.Equal(t, []string{"27"}, c.Interrupts)
	require.Contains(t, m.why(t, "coalescing of eth0"), "files of another")

	m.judge()
	require.Equal(t, Yes, m.rule(t, "hvm").Verdict)
	require.Equal(t, Yes, m.rule(t, "enhanced networking").Verdict)
	require.Equal(t, No, m.rule(t, "queues").Verdict)
	require.Equal(t, "4 receive queues on 1 card, 8 cores", m.rule(t, "queues").Measured)
	require.Equal(t, No, m.rule(t, "rps").Verdict)
	require.Contains(t, m.rule(t, "rps").Change, "rps_cpus")
	require.Equal(t, "eth0: 1 of 2 queues have none", m.rule(t, "xps").Measured)
	require.Equal(t, Yes, m.rule(t, "quota").Verdict)
	for _, name := range []string{"packets", "placement", "bandwidth", "interrupts", "steal", "tenancy", "coalescing"} {
		require.Equal(t, NotMeasured, m.rule(t, name).Verdict, name)
		require.NotEmpty(t, m.why(t, "rule "+name))
	}
	m.diskNames("/data/x")
	require.Equal(t, []string{"xfs", "/dev/nvme1n1"}, []string{m.Disk.FileSystem, m.Disk.Device})
	m.diskNames("/database")
	require.Equal(t, "ext4", m.Disk.FileSystem)
}

func TestMachineItself(t *testing.T) {
	t.Parallel()
	m := lookedAt(t, "metal")
	p := m.Facts.Processor
	require.Equal(t, []any{"Neoverse N1", 4, 2, 1, "off", "performance"},
		[]any{p.Model, p.Cores, p.Sockets, p.PerCore, p.SMT, p.Governor})
	require.Equal(t, "none", m.Facts.Guest.Kind)
	require.Len(t, m.Facts.Nodes, 2)
	require.Equal(t, "20 10", m.Facts.Nodes[1].Distances)
	require.InDelta(t, 25000, m.Facts.Cards[0].Mbps, 0)
	require.Contains(t, m.why(t, "sizes of caches"), "kernel")
	require.Equal(t, map[string]float64{"hwmon0 coretemp Core 0": 61.5}, m.root.temperatures())

	before := m.root.count()
	meter := m.root.path("sys/class/powercap/intel-rapl:0/energy_uj")
	require.NoError(t, os.WriteFile(meter, []byte("57000000\n"), 0o600)) // it has begun anew
	after := m.root.count()
	after.at = before.at.Add(2e9)
	require.Equal(t, "intel-rapl:0 package-0", power(before, after)[0].Domain)
	require.InDelta(t, 100, power(before, after)[0].Watts, 1e-6)

	m.add("peer_packets", "packets/s", 85_001)
	m.add("peer_round_trip_p50", "us", 201)
	m.add("peer_sent", "MB/s", 2500)
	m.judge()
	for name, want := range map[string]Verdict{"hvm": Yes, "queues": Yes, "rps": Yes, "xps": Yes, "packets": Yes,
		"placement": No, "bandwidth": Yes} {
		require.Equal(t, want, m.rule(t, name).Verdict, name)
	}
	m.add("peer_packets", "packets/s", 85_000)
	m.add("peer_sent", "MB/s", 2499)
	m.judge()
	require.Equal(t, No, m.rule(t, "packets").Verdict)
	require.Equal(t, No, m.rule(t, "bandwidth").Verdict)
}

func TestContainerWithQuota(t *testing.T) {
	t.Parallel()
	m := lookedAt(t, "container")
	require.Equal(t, Guest{Kind: "PV", Hypervisor: "Xen", Container: "docker"}, m.Facts.Guest)
	require.Equal(t, 2, m.Facts.Processor.Cores)
	require.Equal(t, Limits{Version: 2, CPUs: 1.5, MemoryBytes: 1 << 30, Throttled: 17,
		IO: map[string]string{"/sys/fs/cgroup/docker/abc/io.max": "259:0 rbps=1048576 wbps=max"}}, m.Facts.Limits)
	require.Empty(t, m.Machine)
	m.judge()
	require.Equal(t, No, m.rule(t, "hvm").Verdict)
	require.Equal(t, "PV Xen", m.rule(t, "hvm").Measured)
	require.Equal(t, "a quota of 1.50 processors, held back 17 times", m.rule(t, "quota").Measured)
	require.Contains(t, m.why(t, "rule queues"), "not in a container")
	for _, what := range []string{"SMT", "clock source", "sizes of caches"} {
		require.NotEmpty(t, m.why(t, what))
	}
	m.missPower()
	require.Contains(t, m.why(t, "power"), "RAPL")
	require.Contains(t, m.why(t, "temperatures"), "hwmon")
	m.Facts.Cards[0].Driver = "vif"
	m.judge()
	require.Equal(t, No, m.rule(t, "enhanced networking").Verdict)
}

func TestListsAndMasksOfCores(t *testing.T) {
	t.Parallel()
	require.Equal(t, []int{0, 1, 2, 8}, coresIn("0-2,8"))
	require.Empty(t, coresIn(""))
	require.Empty(t, coresIn("0-999999999"))
	require.Equal(t, 5, coresOfMask("00000001,0000000f"))
}

// Where the kernel shows nothing, all of it is named, and no rule says that it is so.
func TestNothingIsShown(t *testing.T) {
	t.Parallel()
	m := newMeasuring(Options{Root: t.TempDir()})
	m.look()
	m.judge()
	for _, what := range []string{"processor model", "sockets", "SMT", "sizes of caches", "frequency governor", "memory",
		"NUMA nodes", "transparent huge pages", "clock source", "control groups", "interrupts by core", "hypervisor"} {
		require.NotEmpty(t, m.why(t, what))
	}
	require.Contains(t, m.why(t, "network cards"), "/sys")
	for _, r := range m.Rules {
		require.Equal(t, NotMeasured, r.Verdict, r.Rule)
		require.NotEmpty(t, m.why(t, "rule "+r.Rule))
	}
}
