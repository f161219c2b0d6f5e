package host

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"thalweg/internal/base/format"
)

// Verdict says whether a machine is as an advice wants it.
type Verdict string

// The verdicts.
const (
	Yes         Verdict = "yes"
	No          Verdict = "no"
	NotMeasured Verdict = "not measured"
)

// Rule is a published advice, held against the machine.
type Rule struct {
	Rule      string  `json:"rule"`
	Advice    string  `json:"advice"`
	Verdict   Verdict `json:"verdict"` // it is so
	Measured  string  `json:"measured,omitempty"`
	Threshold string  `json:"threshold"`
	Change    string  `json:"change,omitempty"` // what would make it so, or measure it
	Source    string  `json:"source"`
}

const (
	aerospike = "Aerospike, 1M TPS on EC2 (2014), "
	cores2025 = "Capillaries on deployments (2025), "
	ownBound  = " (bound: ours)"
)

// Bounds of the rules.
const (
	classicPackets  = 85_000 // a second, of an interface without enhanced networking
	stealMost       = 0.7    // per cent
	stealSpreadMost = 0.7
	roundTripMost   = 200.0 // us
	linkLeast       = 0.8   // of the speed that the card says it has
	busyMost        = 50.0  // per cent of a core's time
	queuesEnough    = 8
)

// judge holds the advices against what was measured.
func (m *measuring) judge() {
	m.Rules = []Rule{m.hvm(), m.driver(), m.packetRate(), m.placement(), m.bandwidthRule(), m.tenancy(), m.stealRule(),
		m.spread(), m.oneCore(), m.queues(), m.rps(), m.xps(), m.coalesce(), m.kept()}
	for _, r := range m.Rules {
		if r.Verdict == NotMeasured {
			m.miss("rule "+r.Rule, r.Change)
		}
	}
}

// is returns a rule with the verdict of what is so.
func (r Rule) is(so bool, measured string, args ...any) Rule {
	r.Verdict, r.Measured = No, fmt.Sprintf(measured, args...)
	if so {
		r.Verdict, r.Change = Yes, ""
	}
	return r
}

// unknown returns a rule for which nothing was measured.
func (r Rule) unknown(why string) Rule {
	r.Verdict, r.Measured, r.Change = NotMeasured, "", why
	return r
}

const noPeer = "measured with {{set peer}}, to {{do bench-host listen=}} on another machine"

func (m *measuring) hvm() Rule {
	r := Rule{Rule: "hvm", Advice: "Virtualisation by hardware (HVM), or none.", Threshold: "none or HVM",
		Change: "choose an image of the kind HVM", Source: aerospike + "step 2"}
	if m.Facts.Guest.Kind == "" {
		return r.unknown("the kernel does not say what is around this machine")
	}
	return r.is(slices.Contains([]string{"none", "HVM"}, m.Facts.Guest.Kind), "%s",
		strings.TrimSpace(m.Facts.Guest.Kind+" "+m.Facts.Guest.Hypervisor))
}

// emulated are drivers of cards that a hypervisor emulates or passes each packet of on.
var emulated = []string{"vif", "xen_netfront", "e1000", "e1000e", "8139cp", "8139too", "pcnet32", "ne2k-pci"}

// driven are the cards that have a driver: those of a container are pairs of the kernel's own.
func (m *measuring) driven() []Card {
	return slices.DeleteFunc(slices.Clone(m.Facts.Cards), func(c Card) bool { return c.Driver == "" })
}

// noCard says why nothing is known of cards.
func (m *measuring) noCard() string {
	switch {
	case !m.root.there("sys/class/net"):
		return "the kernel does not show its interfaces: there is no /sys here"
	case len(m.Facts.Cards) > 0:
		return "no interface has a device here: measure on the machine itself, not in a container"
	}
	return "there is no interface but the loopback"
}

func (m *measuring) driver() Rule {
	r := Rule{Rule: "enhanced networking", Advice: "Cards that the guest drives itself (SR-IOV, ENA, virtio with vhost).",
		Threshold: "no card is emulated or Xen's", Change: "enable enhanced networking for the machine and its image",
		Source: aerospike + "step 2"}
	cards := m.driven()
	if len(cards) == 0 {
		return r.unknown(m.noCard())
	}
	var names []string
	slow := false
	for _, c := range cards {
		names = append(names, c.Name+": "+c.Driver)
		slow = slow || slices.Contains(emulated, c.Driver)
	}
	return r.is(!slow, "%s", strings.Join(names, ", "))
}

func (m *measuring) packetRate() Rule {
	r := Rule{Rule: "packets", Advice: "More packets a second than an interface without enhanced networking carries.",
		Threshold: "> 85,000 packets/s to a peer",
		Change:    "enable enhanced networking, on both sides; choose a larger network class",
		Source:    aerospike + "step 2"}
	f, there := m.Figures["peer_packets"]
	if !there {
		return r.unknown(noPeer)
	}
	return r.is(f.Value > classicPackets, "%s packets/s of %d bytes", format.Count(int64(f.Value)), packetBytes)
}

func (m *measuring) placement() Rule {
	r := Rule{Rule: "placement", Advice: "Machines that talk to each other are near each other (a placement group).",
		Threshold: "median round trip ≤ 200 µs" + ownBound, Change: "put both into one placement group, in one zone",
		Source: aerospike + "step 3"}
	f, there := m.Figures["peer_round_trip_p50"]
	if !there {
		return r.unknown(noPeer)
	}
	return r.is(f.Value <= roundTripMost, "median %.0f µs", f.Value)
}

func (m *measuring) bandwidthRule() Rule {
	r := Rule{Rule: "bandwidth", Advice: "The network is not the limit: the bytes that a card promises can be had.",
		Threshold: "≥ 0.8 of the card's speed, to a peer" + ownBound,
		Change:    "a larger network class, or one placement group; then compare with the bytes a second of your runs",
		Source:    cores2025 + "theory 3; " + aerospike + "step 3"}
	sent, there := m.Figures["peer_sent"]
	if !there {
		return r.unknown(noPeer)
	}
	const mbps = 8
	fastest := 0.0
	for _, c := range m.driven() { // what a container's pair says is made up
		fastest = max(fastest, c.Mbps)
	}
	if fastest == 0 {
		return r.unknown(fmt.Sprintf("%.0f MB/s were sent, and no card says how fast it is: hold them against what the "+
			"machine's type promises", sent.Value))
	}
	return r.is(sent.Value*mbps >= linkLeast*fastest, "sent %.0f MB/s of %.0f Mbit/s", sent.Value, fastest)
}

func (m *measuring) tenancy() Rule {
	r := Rule{Rule: "tenancy", Advice: "Dedicated or shared, on demand or spot makes no difference.",
		Threshold: "intervals of the ratios hold 1", Source: aerospike + "step 4"}
	return r.unknown("one machine does not show it: measure one of each, " +
		"and compare their files by {{do capacity-compare}}")
}

func (m *measuring) stealRule() Rule {
	r := Rule{Rule: "steal", Advice: "Others on the same hardware take little of this machine's time.",
		Threshold: "mean ≤ 0.7 % under full load (the note saw 0.2 to 0.7)",
		Change: "begin the machine anew elsewhere, or choose a type " +
			"that shares no cores", Source: aerospike + "step 5"}
	s := m.Load.Steal
	if !s.Known {
		return r.unknown("the kernel does not count stolen time")
	}
	return r.is(s.Mean <= stealMost, "mean %.2f %% in %.0f s", s.Mean, m.Load.Seconds)
}

func (m *measuring) spread() Rule {
	r := Rule{Rule: "steal spread", Advice: "What others take does not come in bursts.",
		Threshold: "standard deviation ≤ 0.7 % between seconds" + ownBound,
		Change:    "as for steal: bursts are in the slowest answers",
		Source:    aerospike + "step 5"}
	s := m.Load.Steal
	if !s.Known || len(m.Load.Samples) < 2 {
		return r.unknown("there are not two samples of stolen time")
	}
	return r.is(s.Spread <= stealSpreadMost, "sd %.2f %%, %.2f to %.2f %%", s.Spread, s.Least, s.Most)
}

func (m *measuring) oneCore() Rule {
	r := Rule{Rule: "interrupts", Advice: "No single core has all interrupts of the network.",
		Threshold: "no core spends > 50 % on interrupts while a peer is measured" + ownBound,
		Change: "spread them: more queues with an interrupt each (irqbalance, smp_affinity), RPS, coalescing, " +
			"or a second card; leave that core to them", Source: aerospike + "step 6"}
	i := slices.IndexFunc(m.Interrupts, func(i Interrupts) bool { return i.During == "peer" })
	if i < 0 || len(m.Interrupts[i].Cores) == 0 {
		return r.unknown(noPeer)
	}
	busiest := slices.MaxFunc(m.Interrupts[i].Cores, func(a, b CoreShare) int { return cmp.Compare(a.Busy, b.Busy) })
	return r.is(busiest.Busy <= busyMost, "core %d spends %.0f %%", busiest.Core, busiest.Busy)
}

func queuesText(n int) string { return format.Counted(int64(n), "receive queue", "receive queues") }

func (m *measuring) queues() Rule {
	r := Rule{Rule: "queues", Advice: "As many receive queues as cores, on one card or several (the note: 4 cards).",
		Threshold: "≥ min(cores, 8) queues of all cards" + ownBound,
		Change:    "ethtool -L, a type with more queues, or more cards",
		Source:    aerospike + "step 6"}
	cards := m.driven()
	if len(cards) == 0 {
		return r.unknown(m.noCard())
	}
	n := 0
	for _, c := range cards {
		n += c.Receiving
	}
	return r.is(n >= min(m.Facts.Processor.Cores, queuesEnough), "%s on %s, %d cores", queuesText(n),
		format.Counted(int64(len(cards)), "card", "cards"), m.Facts.Processor.Cores)
}

func (m *measuring) rps() Rule {
	r := Rule{Rule: "rps", Advice: "Where there are fewer queues than cores, the kernel spreads packets (RPS).",
		Threshold: "each card has queues ≥ cores, or a mask of ≥ 2 cores",
		Change:    "write a mask of cores to each rx queue's rps_cpus",
		Source:    aerospike + "step 6"}
	cards := m.driven()
	if len(cards) == 0 {
		return r.unknown(m.noCard())
	}
	good := true
	var said []string
	for _, c := range cards {
		good = good && (c.Receiving >= m.Facts.Processor.Cores || c.RPSCores >= 2)
		said = append(said, fmt.Sprintf("%s: %s, RPS over %d cores", c.Name, queuesText(c.Receiving), c.RPSCores))
	}
	return r.is(good, "%s", strings.Join(said, ", "))
}

func (m *measuring) xps() Rule {
	r := Rule{Rule: "xps", Advice: "Each core sends by a queue near it (XPS).",
		Threshold: "each queue of a card with several has a mask",
		Change:    "write a mask of cores to each tx queue's xps_cpus",
		Source:    aerospike + "step 6"}
	good, seen := true, false
	var said []string
	for _, c := range m.driven() {
		if c.Sending < 2 {
			seen, said = true, append(said, c.Name+": one queue")
			continue
		}
		if len(c.XPS) == 0 {
			continue
		}
		seen = true
		without := len(c.XPS) - c.XPSQueues()
		good = good && without == 0
		said = append(said, fmt.Sprintf("%s: %d of %d queues have none", c.Name, without, len(c.XPS)))
	}
	if !seen {
		return r.unknown("no card shows masks of its queues for sending")
	}
	return r.is(good, "%s", strings.Join(said, ", "))
}

func (m *measuring) coalesce() Rule {
	r := Rule{Rule: "coalescing", Advice: "Cards wait for more packets before they interrupt.",
		Threshold: "adaptive, or > 0 µs or > 1 frame",
		Change:    "ethtool -C INTERFACE adaptive-rx on, or rx-usecs", Source: aerospike + "step 6"}
	good, seen := true, false
	var said []string
	for _, c := range m.driven() {
		if co := c.Coalescing; co != nil {
			seen, good = true, good && (co.Adaptive || co.Micros > 0 || co.Frames > 1)
			said = append(said, fmt.Sprintf("%s: adaptive %t, %d µs, %d frames", c.Name, co.Adaptive, co.Micros, co.Frames))
		}
	}
	if !seen {
		return r.unknown("no card's driver tells")
	}
	return r.is(good, "%s", strings.Join(said, ", "))
}

func (m *measuring) kept() Rule {
	r := Rule{Rule: "quota", Advice: "Other tenants and limits are known before two machines are compared.",
		Threshold: "no quota of processors, none held back so far",
		Change:    "measure without the quota, or give both the same",
		Source:    "Cassandra on Armv8, remarks on co-tenants and tuning"}
	l := m.Facts.Limits
	if l.Version == 0 {
		return r.unknown("there are no control groups to be seen")
	}
	if l.CPUs > 0 {
		return r.is(false, "a quota of %.2f processors, held back %.0f times", l.CPUs, l.Throttled)
	}
	return r.is(l.Throttled == 0, "no quota, held back %.0f times", l.Throttled)
}
