package host

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func counted(at int, stat, interrupts, soft string) counters {
	return counters{at: time.Unix(int64(at), 0), cores: coreTimes(stat), hard: tableIn(interrupts), soft: tableIn(soft)}
}

func TestInterruptsByCore(t *testing.T) {
	t.Parallel()
	a := counted(0, "cpu 9 9 9 9 9 9 9 9 9 9\ncpu0 100 0 0 100 0 0 0 0 0 0\ncpu2 100 0 0 100 0 0 0 0 0 0\nintr 5",
		"           CPU0       CPU2\n 27:  1000  7  PCI-MSIX-0000:00:05.0  1-edge  eth0-Tx-Rx-0\nNMI:  5  5  Non-maskable\nERR:  0\n",
		"   CPU0 CPU2\nNET_RX: 50 60\n")
	b := counted(10, "cpu0 150 0 0 100 0 10 30 10 7 0\ncpu2 200 0 0 100 0 0 0 0 0 0",
		"           CPU0       CPU2\n 27:  6000  7  PCI-MSIX-0000:00:05.0  1-edge  eth0-Tx-Rx-0\n 28: 0 20 new\nNMI:  5  5  Non-maskable\n",
		"   CPU0 CPU2\nNET_RX: 1050 60\n")
	i := between(a, b, []Card{{Name: "eth0", Interrupts: []string{"27"}}}, "peer")
	require.Equal(t, []CoreShare{{Core: 0, Interrupts: 500, Soft: 100, Busy: 40, Steal: 10},
		{Core: 2, Interrupts: 2}}, i.Cores)
	require.Len(t, i.Sources, 3)
	require.Equal(t, Source{Name: "27 PCI-MSIX-0000:00:05.0 1-edge eth0-Tx-Rx-0", Card: "eth0", PerS: 500,
		ByCore: []float64{500, 0}}, i.Sources[0])
	require.Equal(t, Source{Name: "NET_RX", Soft: true, PerS: 100, ByCore: []float64{100, 0}}, i.Sources[1])
	require.InDelta(t, 5, stolen(a, b), 1e-9)

	m := &measuring{}
	m.Interrupts = []Interrupts{i}
	m.judge()
	require.Equal(t, Yes, m.rule(t, "interrupts").Verdict)
	require.Equal(t, "core 0 spends 40 %", m.rule(t, "interrupts").Measured)
	m.Interrupts[0].Cores[0].Busy = 51
	m.judge()
	require.Equal(t, No, m.rule(t, "interrupts").Verdict)

	b.hard.cores = []int{0, 1} // a core has come: the columns are others
	require.Zero(t, between(a, b, nil, "").Cores[0].Interrupts)
}

func TestCardsOfInterruptsByDevice(t *testing.T) {
	t.Parallel()
	c := Card{Name: "eth0", device: "virtio2"}
	require.True(t, c.interrupts("38", "PCI-MSIX-0000:00:03.0 1-edge virtio2-input.0"))
	require.False(t, c.interrupts("48", "PCI-MSIX-0000:00:03.0 1-edge virtio21-input.0"))
}

func TestStealAndItsSpread(t *testing.T) {
	t.Parallel()
	m := &measuring{}
	m.Load = Load{Seconds: 3, Samples: []Sample{{Steal: 0.2, Rate: 100}, {Steal: 0.5, Rate: 90}, {Steal: 1.4, Rate: 80}}}
	m.Load.summarize(true)
	s := m.Load.Steal
	require.InDelta(t, 0.7, s.Mean, 1e-9)
	require.InDelta(t, 0.6245, s.Spread, 1e-4)
	require.Equal(t, []float64{0.2, 1.4}, []float64{s.Least, s.Most})
	require.Equal(t, []float64{100, 90, 80}, m.Load.rates())
	m.Load.Steal.Mean = 0.7
	m.judge()
	require.Equal(t, Yes, m.rule(t, "steal").Verdict)
	require.Equal(t, Yes, m.rule(t, "steal spread").Verdict)
	m.Load.Steal.Mean, m.Load.Steal.Spread = 0.71, 0.71
	m.judge()
	require.Equal(t, No, m.rule(t, "steal").Verdict)
	require.Equal(t, No, m.rule(t, "steal spread").Verdict)
	m.Load.summarize(false)
	m.judge()
	require.Equal(t, NotMeasured, m.rule(t, "steal").Verdict)
}

func TestRatesOfWindows(t *testing.T) {
	t.Parallel()
	var l Load
	for i := range 60 {
		l.Samples = append(l.Samples, Sample{Rate: float64(i)})
	}
	require.Equal(t, []float64{4.5, 14.5, 24.5, 34.5, 44.5, 54.5}, l.rates())
}
