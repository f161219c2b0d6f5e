package host

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"thalweg/internal/base/budget"
)

// Facts are what the kernel says of a machine.
type Facts struct {
	Kernel    string      `json:"kernel,omitempty"`
	Arch      string      `json:"arch"`
	Compiler  string      `json:"compiler"` // of the program that measures: rates depend on it
	Processor Processor   `json:"processor"`
	Guest     Guest       `json:"guest"`
	Memory    int64       `json:"memory_bytes"`
	Nodes     []NUMANode  `json:"numa,omitempty"`
	Huge      HugePages   `json:"huge_pages"`
	Clock     ClockSource `json:"clock"`
	Limits    Limits      `json:"limits"`
	Cards     []Card      `json:"cards,omitempty"`
}

// Processor is what computes.
type Processor struct {
	Model    string  `json:"model,omitempty"`
	Cores    int     `json:"cores"` // logical ones that are on
	Sockets  int     `json:"sockets,omitempty"`
	PerCore  int     `json:"threads_per_core,omitempty"` // that are on; 0: not known
	SMT      string  `json:"smt,omitempty"`              // on, off, forceoff, notsupported, …
	Governor string  `json:"governor,omitempty"`
	Caches   []Cache `json:"caches,omitempty"`
}

// Cache is one of the first core.
type Cache struct {
	Level int    `json:"level"`
	Type  string `json:"type"`
	Bytes int64  `json:"bytes"`
	Of    int    `json:"shared_by"` // cores
}

// Guest says what is around a machine.
type Guest struct {
	Kind       string `json:"kind"` // none (a machine itself), HVM, PV, PVH; "": not known
	Hypervisor string `json:"hypervisor,omitempty"`
	Vendor     string `json:"vendor,omitempty"`
	Product    string `json:"product,omitempty"`
	Container  string `json:"container,omitempty"` // "": none is known of
}

// NUMANode is memory with cores beside it.
type NUMANode struct {
	Node      int    `json:"node"`
	Cores     string `json:"cores"`
	Bytes     int64  `json:"bytes"`
	Distances string `json:"distances,omitempty"`
}

// HugePages are the settings of larger pages.
type HugePages struct {
	Transparent string `json:"transparent,omitempty"` // always, madvise, never
	Reserved    int64  `json:"reserved"`
	Free        int64  `json:"free"`
	Bytes       int64  `json:"bytes,omitempty"` // of each
}

// ClockSource is what the time is read from.
type ClockSource struct {
	Source    string `json:"source,omitempty"`
	Available string `json:"available,omitempty"`
}

// Limits are those of the control groups of this process.
type Limits struct {
	Version     int               `json:"cgroup_version,omitempty"`
	CPUs        float64           `json:"cpus,omitempty"` // 0: all
	MemoryBytes int64             `json:"memory_bytes,omitempty"`
	Cores       string            `json:"cores,omitempty"`
	IO          map[string]string `json:"io,omitempty"` // by file
	Throttled   float64           `json:"throttled_periods,omitempty"`
}

// look reads the facts; what cannot be seen is noted.
func (m *measuring) look() {
	t, f := m.root, &m.Facts
	f.Arch, f.Compiler = runtime.GOARCH, runtime.Version()
	f.Kernel = t.said("proc/sys/kernel/osrelease")
	f.Processor = t.processor()
	f.Guest = t.guest()
	if f.Guest.Kind == "" {
		m.miss("hypervisor", "neither the processor's flags nor the firmware's names say whether there is one")
	}
	f.Memory = t.meminfo("MemTotal")
	for _, name := range t.names("node", "sys/devices/system/node") {
		n, err := strconv.Atoi(strings.TrimPrefix(name, "node"))
		if err != nil {
			continue
		}
		dir := filepath.Join("sys/devices/system/node", name)
		f.Nodes = append(f.Nodes, NUMANode{Node: n, Cores: t.said(dir, "cpulist"), Distances: t.said(dir, "distance"),
			Bytes: kibIn(t.said(dir, "meminfo"), "MemTotal:")})
	}
	f.Huge = HugePages{Transparent: chosen(t.said("sys/kernel/mm/transparent_hugepage/enabled")),
		Reserved: t.meminfo("HugePages_Total") >> 10, Free: t.meminfo("HugePages_Free") >> 10,
		Bytes: t.meminfo("Hugepagesize")}
	const clocks = "sys/devices/system/clocksource/clocksource0"
	f.Clock = ClockSource{t.said(clocks, "current_clocksource"), t.said(clocks, "available_clocksource")}
	f.Limits = t.limits(f.Memory)
	f.Cards = m.cards()
	m.missFacts()
}

// missFacts names what the kernel has not said.
func (m *measuring) missFacts() {
	f, unsaid := m.Facts, "the kernel does not say it"
	for _, fact := range []struct {
		what string
		seen bool
		why  string
	}{
		{"processor model", f.Processor.Model != "", unsaid},
		{"sockets", f.Processor.Sockets > 0, unsaid},
		{"SMT", f.Processor.PerCore > 0, "the kernel does not say which cores are threads of one"},
		{"sizes of caches", len(f.Processor.Caches) > 0, unsaid},
		{"frequency governor", f.Processor.Governor != "", "the kernel shows none: virtual machines are not given one"},
		{"memory", f.Memory > 0, unsaid},
		{"NUMA nodes", len(f.Nodes) > 0, unsaid},
		{"transparent huge pages", f.Huge.Transparent != "", unsaid},
		{"clock source", f.Clock.Source != "", unsaid},
		{"control groups", f.Limits.Version > 0, "the kernel does not show them"},
		{"interrupts by core", m.root.there("proc/interrupts"), "the kernel does not show them"},
	} {
		if !fact.seen {
			m.miss(fact.what, fact.why)
		}
	}
}

// chosen is the word in brackets: always [madvise] never.
func chosen(text string) string {
	_, rest, _ := strings.Cut(text, "[")
	word, _, _ := strings.Cut(rest, "]")
	return word
}

// meminfo returns a line of the kernel's account of memory, in bytes; counts come as 1024 times what they are.
func (t tree) meminfo(name string) int64 { return kibIn(t.said("proc/meminfo"), name+":") }

// kibIn returns the number behind a word of a text, times 1024.
func kibIn(text, name string) int64 {
	words := strings.Fields(text)
	i := slices.Index(words, name)
	if i < 0 || i+1 == len(words) {
		return 0
	}
	n, _ := strconv.ParseInt(words[i+1], 10, 64) // of the kernel
	return n << 10
}

func (t tree) processor() (p Processor) {
	const cpus = "sys/devices/system/cpu"
	online := coresIn(t.said(cpus, "online"))
	info := t.said("proc/cpuinfo")
	if p.Cores = len(online); p.Cores == 0 {
		p.Cores = strings.Count("\n"+info, "\nprocessor")
	}
	if p.Cores == 0 {
		p.Cores = runtime.NumCPU()
	}
	p.Model = modelIn(info)
	sockets := map[string]bool{}
	for _, c := range online {
		if id := t.said(cpus, "cpu"+strconv.Itoa(c), "topology/physical_package_id"); id != "" {
			sockets[id] = true
		}
	}
	p.Sockets = len(sockets)
	if p.SMT = t.said(cpus, "smt/control"); p.SMT == "" {
		p.SMT = map[string]string{"1": "on", "0": "off"}[t.said(cpus, "smt/active")]
	}
	first := "cpu0"
	if len(online) > 0 {
		first = "cpu" + strconv.Itoa(online[0])
	}
	p.PerCore = len(coresIn(t.said(cpus, first, "topology/thread_siblings_list")))
	p.Governor = t.said(cpus, first, "cpufreq/scaling_governor")
	for _, name := range t.names("index", cpus, first, "cache") {
		dir := filepath.Join(cpus, first, "cache", name)
		level, _ := t.number(dir, "level")
		kib, err := strconv.ParseInt(strings.TrimSuffix(t.said(dir, "size"), "K"), 10, 64)
		if err != nil {
			continue
		}
		p.Caches = append(p.Caches, Cache{Level: int(level), Type: t.said(dir, "type"), Bytes: kib << 10,
			Of: len(coresIn(t.said(dir, "shared_cpu_list")))})
	}
	return p
}

// largest is the size of the largest cache.
func (p Processor) largest() (bytes int64) {
	for _, c := range p.Caches {
		bytes = max(bytes, c.Bytes)
	}
	return bytes
}

// armParts are names of Arm's cores, whose numbers alone the kernel has.
var armParts = map[string]string{"0xd0c": "Neoverse N1", "0xd40": "Neoverse V1", "0xd49": "Neoverse N2",
	"0xd4f": "Neoverse V2", "0xd83": "Neoverse V3"}

func modelIn(info string) string {
	values := map[string]string{}
	for line := range strings.SplitSeq(info, "\n") {
		name, value, _ := strings.Cut(line, ":")
		values[strings.TrimSpace(name)] = strings.TrimSpace(value)
	}
	part, by := values["CPU part"], values["CPU implementer"]
	switch {
	case values["model name"] != "":
		return values["model name"]
	case by == "0x41" && armParts[part] != "":
		return armParts[part]
	case part != "":
		return "implementer " + by + " part " + part
	}
	return ""
}

func (t tree) guest() (g Guest) {
	const dmi = "sys/class/dmi/id"
	g.Vendor, g.Product = t.said(dmi, "sys_vendor"), t.said(dmi, "product_name")
	g.Container = t.container()
	info := t.said("proc/cpuinfo")
	flags := flagsIn(info)
	switch {
	case t.said("sys/hypervisor/type") == "xen":
		g.Hypervisor, g.Kind = "Xen", t.said("sys/hypervisor/guest_type")
	case slices.Contains(flags, "hypervisor"):
		g.Kind = "HVM"
	case len(flags) > 0:
		g.Kind = "none"
	case t.said("proc/device-tree/hypervisor/compatible") != "":
		g.Hypervisor, g.Kind = strings.Trim(t.said("proc/device-tree/hypervisor/compatible"), "\x00"), "HVM"
	case g.Vendor == ec2 && strings.HasSuffix(g.Product, ".metal"):
		g.Kind = "none"
	case g.Vendor == ec2:
		g.Kind = "HVM"
	}
	if g.Kind == "HVM" && g.Hypervisor == "" {
		clocks := t.said("sys/devices/system/clocksource/clocksource0/available_clocksource")
		switch {
		case g.Vendor == ec2:
			g.Hypervisor = "Nitro"
		case strings.Contains(clocks, "kvm-clock"):
			g.Hypervisor = "KVM"
		case strings.Contains(clocks, "hyperv"):
			g.Hypervisor = "Hyper-V"
		}
	}
	return g
}

// ec2 is the vendor of machines whose product is the type of the machine.
const ec2 = "Amazon EC2"

// machineType is the type of a machine, where its firmware has it; "": it does not.
func (g Guest) machineType() string {
	if g.Vendor == ec2 {
		return g.Product
	}
	return ""
}

// flagsIn are the flags of the first processor; Arm's has none of a hypervisor, and another name for them.
func flagsIn(info string) []string {
	for line := range strings.SplitSeq(info, "\n") {
		if name, value, _ := strings.Cut(line, ":"); strings.TrimSpace(name) == "flags" {
			return strings.Fields(value)
		}
	}
	return nil
}

func (t tree) container() string {
	groups := t.said("proc/self/cgroup")
	switch {
	case t.there("run/.containerenv"):
		return "podman"
	case t.there(".dockerenv"):
		return "docker"
	case strings.Contains(groups, "kubepods"):
		return "kubernetes"
	case strings.Contains(groups, "docker"), strings.Contains(groups, "containerd"):
		return "docker"
	}
	return ""
}

func (t tree) limits(memory int64) (l Limits) {
	const groups = "sys/fs/cgroup"
	switch {
	case t.there(groups, "cgroup.controllers"):
		l.Version = 2
	case t.there(groups):
		l.Version = 1
	}
	l.CPUs = budget.QuotaIn(string(t))
	if bytes := budget.MachineBytesIn(string(t)); memory > 0 && bytes < memory {
		l.MemoryBytes = bytes
	}
	l.Cores = t.allowed()
	for _, file := range []string{"read_bps", "write_bps", "read_iops", "write_iops"} {
		for _, path := range budget.LimitFiles(string(t), "io.max", "blkio", "blkio.throttle."+file+"_device") {
			text, err := os.ReadFile(path)
			if err != nil || strings.TrimSpace(string(text)) == "" {
				continue
			}
			if l.IO == nil {
				l.IO = map[string]string{}
			}
			l.IO[strings.TrimPrefix(path, strings.TrimSuffix(string(t), "/"))] = strings.TrimSpace(string(text))
		}
	}
	l.Throttled = t.throttled()
	return l
}

// throttled is how many times the control groups of this process were held back so far.
func (t tree) throttled() (times float64) {
	for _, path := range budget.LimitFiles(string(t), "cpu.stat", "cpu", "cpu.stat") {
		text, _ := os.ReadFile(path) // not in every group
		times = max(times, float64(kibIn(string(text), "nr_throttled")>>10))
	}
	return times
}

// allowed are the processors that this process may use.
func (t tree) allowed() string {
	for line := range strings.SplitSeq(t.said("proc/self/status"), "\n") {
		if list, is := strings.CutPrefix(line, "Cpus_allowed_list:"); is {
			return strings.TrimSpace(list)
		}
	}
	return ""
}
