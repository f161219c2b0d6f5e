package main

import (
	"fmt"
	"io"
	"strings"

	"thalweg/internal/app/view"
)

// printPace says how much a worker does at once: what is in force, a line for each class, and the latest changes.
func printPace(to io.Writer, p view.WorkerPace) {
	fmt.Fprintf(to, "worker %s (process %d) does at once:\n", p.Host, p.PID)
	for i := 0; i < len(p.Concurrency); {
		class := p.Concurrency[i].Class
		var texts []string
		for ; i < len(p.Concurrency) && p.Concurrency[i].Class == class; i++ {
			k := p.Concurrency[i]
			texts = append(texts, fmt.Sprintf("%s %d (%s)", k.Knob, k.Value, k.Reason))
		}
		fmt.Fprintf(to, "  %s: %s\n", class, strings.Join(texts, ", "))
	}
	for _, d := range p.Decisions {
		fmt.Fprintf(to, "  %s: %s of %s from %d to %d: %s\n", d.At.Local().Format("15:04:05"), d.Knob, d.Class, d.From,
			d.To, d.Reason)
	}
}
