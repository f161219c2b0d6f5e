package main

import (
	"encoding/json"
	"fmt"
	"os"
)

// bar is a figure beside what it has to reach.
type bar struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
	Limit float64 `json:"limit"`
	Least bool    `json:"least"` // the limit is the least; else it is the most
	Met   bool    `json:"met"`
}

// figures are all that was measured.
type figures struct {
	Windows  []window `json:"windows"`
	Switches *tally   `json:"switches"`
	Unheld   []string `json:"not_compared,omitempty"` // kinds of peers that were not there
	// Of unpipelined reads; nil: they were not measured.
	Projection *projection `json:"projection,omitempty"`
	Bars       []bar       `json:"bars"`
}

// projection is what so many cores would do if each did as much as those of the server: nobody has measured it.
type projection struct {
	Cores int     `json:"cores"`
	Reads float64 `json:"reads_per_s"`
}

func (p projection) String() string {
	return fmt.Sprintf("projection, not measured: %d cores of this server would do %.0f unpipelined reads/s",
		p.Cores, p.Reads)
}

// missed returns an error if a bar was missed.
func (f *figures) missed() error {
	n := 0
	for _, b := range f.Bars {
		if !b.Met {
			n++
		}
	}
	if n > 0 {
		return fmt.Errorf("%d of %d bars were missed", n, len(f.Bars))
	}
	return nil
}

func (f *figures) atLeast(name string, value, limit float64, unit string) {
	f.Bars = append(f.Bars, bar{name, value, unit, limit, true, value >= limit})
}

func (f *figures) atMost(name string, value, limit float64, unit string) {
	f.Bars = append(f.Bars, bar{name, value, unit, limit, false, value <= limit})
}

// show prints each figure with its bar.
func (f *figures) show() {
	for _, b := range f.Bars {
		verdict, relation := "missed", "at most"
		if b.Met {
			verdict = "met"
		}
		if b.Least {
			relation = "at least"
		}
		fmt.Printf("%-6s  %-48s %14.4g %s (%s %.4g)\n", verdict, b.Name, b.Value, b.Unit, relation, b.Limit)
	}
	if f.Projection != nil {
		fmt.Println(f.Projection)
	}
	for _, kind := range f.Unheld {
		fmt.Printf("not compared with %s: no --peer is one; \"best peer\" is of the others\n", kind)
	}
}

func (f *figures) write(path string) error {
	text, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}
