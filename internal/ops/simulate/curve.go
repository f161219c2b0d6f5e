package simulate

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"thalweg/internal/run/sheet"
)

// WriteCSV writes results as a table.
func WriteCSV(w io.Writer, results []Result) error {
	out := csv.NewWriter(w)
	head := []string{"workers", "slots", "batches", "elapsed_s", "efficiency", "limit", "state_reads", "state_writes",
		"writes_lost", "claims_refused", "deaths"}
	if err := out.Write(append(head, sheet.Names()...)); err != nil {
		return fmt.Errorf("write the curve: %w", err)
	}
	for _, r := range results {
		row := []string{strconv.Itoa(r.Workers), strconv.Itoa(r.Slots), strconv.Itoa(r.Batches), number(r.Elapsed),
			number(r.Efficiency), r.Limit,
			strconv.Itoa(r.Reads), strconv.Itoa(r.Writes), strconv.Itoa(r.Lost), strconv.Itoa(r.Refused),
			strconv.Itoa(r.Deaths)}
		for _, name := range sheet.Names() {
			row = append(row, number(r.Shares[name]))
		}
		if err := out.Write(row); err != nil {
			return fmt.Errorf("write the curve: %w", err)
		}
	}
	out.Flush()
	return out.Error()
}

func number(f float64) string { return strconv.FormatFloat(f, 'f', 4, 64) }

// The picture's measures, in pixels.
const (
	pictureWidth, pictureHeight = 640, 360
	pictureLeft, pictureTop     = 60, 20
	plotWidth, plotHeight       = 560, 290
	labelGap                    = 18
)

// WriteSVG draws efficiency over workers, these at distances of their logarithms.
func WriteSVG(w io.Writer, results []Result) error {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" role="img">`+
		"\n<title>Efficiency by workers</title>\n", pictureWidth, pictureHeight)
	b.WriteString("<style>text{font:12px " +
		"sans-serif;fill:#444}.grid{stroke:#ddd}.curve{fill:none;stroke:#06c;stroke-width:2}.point{fill:#06c}.bar{stroke:#c60;stroke-dasharray:4 3}</style>\n")
	for percent := 0; percent <= 100; percent += 20 {
		y := placeY(float64(percent) / 100)
		fmt.Fprintf(&b, `<line class="grid" x1="%d" y1="%.1f" x2="%d" y2="%.1f"/><text x="%d" y="%.1f" `+
			`text-anchor="end">%d %%</text>`+"\n",
			pictureLeft, y, pictureLeft+plotWidth, y, pictureLeft-labelGap/2, y+4, percent)
	}
	fmt.Fprintf(&b, `<line class="bar" x1="%d" y1="%.1f" x2="%d" y2="%.1f"/>`+"\n", pictureLeft, placeY(Bar),
		pictureLeft+plotWidth, placeY(Bar))
	var line []string
	for _, r := range results {
		x, y := placeX(r.Workers, results), placeY(r.Efficiency)
		line = append(line, fmt.Sprintf("%.1f,%.1f", x, y))
		fmt.Fprintf(&b, `<circle class="point" cx="%.1f" cy="%.1f" r="3"><title>%d workers: %.1f `+
			`%%</title></circle><text x="%.1f" y="%d" text-anchor="middle">%d</text>`+"\n",
			x, y, r.Workers, 100*r.Efficiency, x, pictureTop+plotHeight+labelGap, r.Workers)
	}
	fmt.Fprintf(&b, `<polyline class="curve" points="%s"/>`+"\n</svg>\n", strings.Join(line, " "))
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("write the curve: %w", err)
	}
	return nil
}

// Bar is the efficiency that 64 workers are to have.
const Bar = 0.9

func placeY(share float64) float64 { return pictureTop + plotHeight*(1-share) }

func placeX(workers int, results []Result) float64 {
	most := 2
	for _, r := range results {
		most = max(most, r.Workers)
	}
	return pictureLeft + plotWidth*math.Log2(float64(workers))/math.Log2(float64(most))
}
