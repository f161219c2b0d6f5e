package host

import (
	"path/filepath"
	"strconv"
	"strings"
)

// energy is what a meter of the processor has counted, in joules; it begins anew at most.
type energy struct{ joules, most float64 }

// Power is what a part of the machine took under full load.
type Power struct {
	Domain string  `json:"domain"`
	Watts  float64 `json:"watts"`
}

// Temperature is what a sensor says, before the load and at its end.
type Temperature struct {
	Sensor string  `json:"sensor"`
	Before float64 `json:"before_celsius"`
	Loaded float64 `json:"loaded_celsius"`
}

const (
	micro = 1e6
	milli = 1e3
)

// energies reads the meters (RAPL) that can be read.
func (t tree) energies() map[string]energy {
	const dir = "sys/class/powercap"
	out := map[string]energy{}
	for _, name := range t.names("", dir) {
		joules, ok := t.number(dir, name, "energy_uj")
		if !ok {
			continue
		}
		most, _ := t.number(dir, name, "max_energy_range_uj")
		out[name+" "+t.said(dir, name, "name")] = energy{joules / micro, most / micro}
	}
	return out
}

// power is what went into the meters between two counts.
func power(a, b counters) (out []Power) {
	s := b.at.Sub(a.at).Seconds()
	for _, name := range sortedKeys(b.joule) {
		was, there := a.joule[name]
		if !there || s <= 0 {
			continue
		}
		took := b.joule[name].joules - was.joules
		if took < 0 {
			took += was.most
		}
		if took >= 0 {
			out = append(out, Power{name, took / s})
		}
	}
	return out
}

// temperatures reads all sensors.
func (t tree) temperatures() map[string]float64 {
	out := map[string]float64{}
	const sensors, zones = "sys/class/hwmon", "sys/class/thermal"
	for _, name := range t.names("hwmon", sensors) {
		dir := filepath.Join(sensors, name)
		for n := 1; n <= sensorsMost; n++ {
			input := "temp" + strconv.Itoa(n)
			if of, ok := t.number(dir, input+"_input"); ok {
				label := t.said(dir, input+"_label")
				if label == "" {
					label = input
				}
				out[strings.TrimSpace(name+" "+t.said(dir, "name")+" "+label)] = of / milli
			}
		}
	}
	for _, name := range t.names("thermal_zone", zones) {
		if of, ok := t.number(zones, name, "temp"); ok {
			out[strings.TrimSpace(name+" "+t.said(zones, name, "type"))] = of / milli
		}
	}
	return out
}

// sensorsMost is more sensors than one chip has.
const sensorsMost = 128

// missPower says why there is no power or temperature.
func (m *measuring) missPower() {
	t := m.root
	const dir = "sys/class/powercap"
	meters := len(t.names("intel-rapl:", dir)) > 0
	switch {
	case len(m.Power) > 0:
	case meters:
		m.miss("power", "the kernel has meters (RAPL), and lets only root read them")
	default:
		m.miss("power", "the kernel shows no meters (RAPL): virtual machines are not given them")
	}
	if len(m.Temperatures) == 0 {
		m.miss("temperatures", "the kernel shows no sensors (hwmon): virtual machines are not given them")
	}
}
