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
	Bars     []bar    `json:"bars"`
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
}

func (f *figures) write(path string) error {
	text, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}
