package host

import (
	"path/filepath"
	"slices"
	"strings"
)

// Card is a network interface with a device, or the one of a container.
type Card struct {
	Name       string      `json:"name"`
	Driver     string      `json:"driver,omitempty"` // "": it has no device
	Mbps       float64     `json:"mbps,omitempty"`   // 0: it does not say
	MTU        float64     `json:"mtu,omitempty"`
	Receiving  int         `json:"rx_queues"`
	Sending    int         `json:"tx_queues"`
	RPS        []string    `json:"rps_masks,omitempty"` // by queue
	XPS        []string    `json:"xps_masks,omitempty"`
	RPSCores   int         `json:"rps_cores"` // the most of a queue
	Interrupts []string    `json:"interrupts,omitempty"`
	Coalescing *Coalescing `json:"coalescing,omitempty"` // nil: it cannot be read
	device     string
}

// Coalescing says how long a card waits for more before it interrupts.
type Coalescing struct {
	Adaptive    bool   `json:"adaptive_rx"`
	Micros      uint32 `json:"rx_us"`
	Frames      uint32 `json:"rx_frames"`
	AdaptiveOut bool   `json:"adaptive_tx"`
	MicrosOut   uint32 `json:"tx_us"`
	FramesOut   uint32 `json:"tx_frames"`
}

// cards are the interfaces that are up, except the loopback.
func (m *measuring) cards() (out []Card) {
	t := m.root
	const net = "sys/class/net"
	for _, name := range t.names("", net) {
		dir := filepath.Join(net, name)
		if up := t.said(dir, "operstate"); name == "lo" || up == "down" {
			continue
		}
		c := Card{Name: name, Driver: t.target(dir, "device/driver"), device: t.target(dir, "device")}
		if c.Driver == "" && t.there(dir, "bridge") {
			continue
		}
		if mbps, ok := t.number(dir, "speed"); ok && mbps > 0 {
			c.Mbps = mbps
		}
		if c.Mbps == 0 {
			m.miss("speed of "+name, "its driver does not tell")
		}
		c.MTU, _ = t.number(dir, "mtu")
		c.queues(t, dir)
		if device, err := filepath.EvalSymlinks(t.path(dir, "device")); err == nil {
			c.Interrupts = tree(device).names("", "msi_irqs")
		}
		m.coalescingOf(&c)
		out = append(out, c)
	}
	if len(out) == 0 {
		m.miss("network cards", m.noCard())
	}
	return out
}

func (c *Card) queues(t tree, dir string) {
	for _, q := range t.names("rx-", dir, "queues") {
		c.Receiving++
		mask := t.said(dir, "queues", q, "rps_cpus")
		c.RPS, c.RPSCores = append(c.RPS, mask), max(c.RPSCores, coresOfMask(mask))
	}
	for _, q := range t.names("tx-", dir, "queues") {
		c.Sending++
		if t.there(dir, "queues", q, "xps_cpus") {
			c.XPS = append(c.XPS, t.said(dir, "queues", q, "xps_cpus"))
		}
	}
}

// XPSQueues is how many queues for sending have a mask of cores.
func (c Card) XPSQueues() (n int) {
	for _, mask := range c.XPS {
		if coresOfMask(mask) > 0 {
			n++
		}
	}
	return n
}

func (m *measuring) coalescingOf(c *Card) {
	what := "coalescing of " + c.Name
	if m.root != "/" {
		m.miss(what, "it is asked of the machine itself, and these are files of another")
		return
	}
	co, err := coalescing(c.Name)
	if err != nil {
		m.miss(what, "its driver does not tell: "+err.Error())
		return
	}
	c.Coalescing = &co
}

// interrupts reports whether a line of the kernel's table of interrupts is of a card.
func (c Card) interrupts(line, description string) bool {
	words := strings.FieldsFunc(description, func(r rune) bool { return strings.ContainsRune(" -@:/.", r) })
	return slices.Contains(c.Interrupts, line) || slices.Contains(words, c.Name) ||
		c.device != "" && slices.Contains(words, c.device)
}
