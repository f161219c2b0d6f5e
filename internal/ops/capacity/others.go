package capacity

import (
	"cmp"
	_ "embed"
	"fmt"
	"math"
	"slices"
	"strings"

	"thalweg/internal/base/format"
	"thalweg/internal/ops/chart"
	"thalweg/internal/ops/price"
)

// Published figures of other studies.
var (
	// netflixText: Cockcroft and Sheahan, Benchmarking Cassandra Scalability on AWS, 2011-11-02: cassandra-stress writes,
	// replication factor 3. Its text has the rates of the largest cluster alone; the others are in a chart.
	//
	//go:embed netflix.csv
	netflixText string
	// armText: MityLytics, Cassandra on ARMv8: cassandra-stress on 3 nodes, with a price an hour of one.
	//
	//go:embed arm.csv
	armText string
	// aerospikeText: Aerospike on EC2, 2014-08-18: 100 % reads in memory, 10 M objects of 100 bytes.
	//
	//go:embed aerospike.csv
	aerospikeText string
)

// NetflixLine is a cluster of Netflix's study. Rates of 0 are not in its text.
type NetflixLine struct {
	Nodes      int     `json:"nodes"`
	Clients    int     `json:"clients"`
	Writes     float64 `json:"client_writes_per_s,omitempty"`
	Replicated float64 `json:"replicated_writes_per_s,omitempty"`
	PerNode    float64 `json:"client_writes_per_s_and_node,omitempty"`
}

func netflixStudy() (Report, error) {
	r := Report{Name: "netflix", Title: "Netflix: a million writes a second, 2011"}
	t := Table{Title: "write stress of Cassandra, replication factor 3",
		Header: []string{"nodes", "clients", "writes/s", "replicated writes/s", "writes/s and node"}}
	var lines []NetflixLine
	err := eachRow(netflixText, func(row *row) {
		l := NetflixLine{Nodes: row.whole("nodes"), Clients: row.whole("clients"), Writes: row.number("client_writes_per_s"),
			Replicated: row.number("replicated_writes_per_s")}
		l.PerNode = l.Writes / float64(l.Nodes)
		r.addSource(row)
		lines = append(lines, l)
		t.Rows = append(t.Rows, []string{fmt.Sprint(l.Nodes), fmt.Sprint(l.Clients), rate(l.Writes), rate(l.Replicated),
			rate(l.PerNode)})
	})
	if err != nil {
		return r, err
	}
	last := lines[len(lines)-1]
	known, linear := chart.Series{Name: "published", Dots: true}, chart.Series{Name: "if linear", Dashed: true}
	for _, l := range lines {
		x := float64(l.Nodes)
		if l.Writes > 0 {
			known.Points = append(known.Points, chart.Point{X: x, Y: l.Writes, Text: rate(l.Writes) + " writes/s"})
		}
		linear.Points = append(linear.Points, chart.Point{X: x, Y: x * last.PerNode,
			Text: rate(x*last.PerNode) + " writes/s"})
	}
	r.Lines, r.tables = lines, []Table{t}
	r.panels = []chart.Panel{{Title: r.Title, X: "nodes", Y: "client writes a second", Log: true,
		Series: []chart.Series{known, linear}}}
	r.Findings = []string{
		fmt.Sprintf("%d nodes took %s writes a second, %s of each, each written %.0f times.", last.Nodes, rate(last.Writes),
			rate(last.PerNode), last.Replicated/last.Writes),
		"The text calls throughput linear from 48 to 288 nodes, and the load of each node the same; each run had a " +
			"client for 4.8 nodes.",
		"The whole test took less than two hours and a few hundred dollars."}
	r.Doubts = []string{"The rates of the three smaller clusters are in the chart alone: linearity is the text's word " +
		"here, not a fit."}
	return r, nil
}

func (r *Report) addSource(row *row) {
	if s := row.text("source"); len(r.Sources) == 0 || r.Sources[len(r.Sources)-1] != s {
		r.Sources = append(r.Sources, s)
	}
}

// rate writes a number a second; one that is not known is "-".
func rate(v float64) string {
	if v == 0 {
		return "-"
	}
	return format.Count(int64(math.Round(v)))
}

// armNodes is the size of the clusters of the study of Armv8.
const armNodes = 3

// ArmLine is a workload of the study of Cassandra on Armv8.
type ArmLine struct {
	Platform   string      `json:"platform"`
	Workload   string      `json:"workload"`
	Operations float64     `json:"operations"`
	Peak       float64     `json:"peak_per_s"`
	Sustained  float64     `json:"sustained_per_s"`
	Mean       float64     `json:"latency_mean_ms"`
	P50        float64     `json:"latency_p50_ms"`
	P95        float64     `json:"latency_p95_ms"`
	P99        float64     `json:"latency_p99_ms"`
	P999       float64     `json:"latency_p999_ms"`
	Max        float64     `json:"latency_max_ms"`
	PerHour    price.Money `json:"usd_per_node_hour"`
	PerBillion float64     `json:"usd_per_billion_operations"`
}

func armStudy() (Report, error) {
	r := Report{Name: "arm", Title: "Cassandra on Armv8 beside x86, 3 nodes"}
	rates := Table{Title: "operations a second; US dollars per billion at the sustained rate of 3 nodes",
		Header: []string{"platform", "workload", "operations", "peak/s", "sustained/s", "$/h of a node", "$/10⁹"}}
	latencies := Table{Title: "latency in ms", Header: []string{"platform", "workload", "operations", "mean", "p50",
		"p95", "p99",
		"p99.9", "max"}}
	var lines []ArmLine
	var series []chart.Series
	err := eachRow(armText, func(row *row) {
		l := ArmLine{Platform: row.text("platform"), Workload: row.text("workload"), Operations: row.number("operations"),
			Peak: row.number("peak_ops_per_s"), Sustained: row.number("sustained_ops_per_s"),
			Mean: row.number("latency_mean_ms"), P50: row.number("latency_p50_ms"), P95: row.number("latency_p95_ms"),
			P99: row.number("latency_p99_ms"), P999: row.number("latency_p999_ms"), Max: row.number("latency_max_ms"),
			PerHour: row.money("usd_per_hour")}
		l.PerBillion = perBillion(l.PerHour.Times(armNodes), l.Sustained)
		r.addSource(row)
		lines = append(lines, l)
		rates.Rows = append(rates.Rows, []string{l.Platform, l.Workload, rate(l.Operations), rate(l.Peak), rate(l.Sustained),
			l.PerHour.String(), fmt.Sprintf("%.2f", l.PerBillion)})
		latency := []string{l.Platform, l.Workload, rate(l.Operations)}
		for _, ms := range []float64{l.Mean, l.P50, l.P95, l.P99, l.P999, l.Max} {
			latency = append(latency, fmt.Sprintf("%.1f", ms))
		}
		latencies.Rows = append(latencies.Rows, latency)
		kind, _, _ := strings.Cut(l.Workload, "_")
		name := l.Platform + " " + kind
		if n := len(series); n == 0 || series[n-1].Name != name {
			series = append(series, chart.Series{Name: name})
		}
		s := &series[len(series)-1]
		s.Points = append(s.Points, chart.Point{X: l.Operations, Y: l.Sustained,
			Text: fmt.Sprintf("%s, %s operations: %s/s", name, rate(l.Operations), rate(l.Sustained))})
	})
	if err != nil {
		return r, err
	}
	r.Lines, r.tables = lines, []Table{rates, latencies}
	r.panels = []chart.Panel{{Title: r.Title, X: "operations", Y: "sustained operations a second", Series: series}}
	r.Findings = armFindings(lines)
	return r, nil
}

// armFindings compares the platforms where both ran the same.
func armFindings(lines []ArmLine) (out []string) {
	for _, x := range lines {
		for _, arm := range lines {
			if arm.Platform != x.Platform && arm.Platform < x.Platform && arm.Workload == x.Workload &&
				arm.Operations == x.Operations {
				out = append(out, fmt.Sprintf("%s, %s operations: %s sustained %.2f of the rate of %s, at %.2f of its dollars "+
					"an operation.",
					x.Workload, rate(x.Operations), arm.Platform, arm.Sustained/x.Sustained, x.Platform, arm.PerBillion/x.PerBillion))
			}
		}
	}
	return append(out, "Neither platform was tuned, and cores were not equal: 96 slow ones beside 4.")
}

// perBillion is the price in US dollars of a billion operations.
func perBillion(perHour price.Money, perSecond float64) float64 {
	return perHour.USD() / (perSecond * 3600) * 1e9
}

// AerospikeLine is an instance of Aerospike's study.
type AerospikeLine struct {
	Instance   string      `json:"instance"`
	Bandwidth  string      `json:"peak_bandwidth"`
	Reads      float64     `json:"reads_per_s"`
	PerHour    price.Money `json:"usd_per_hour"`
	Month      price.Money `json:"usd_per_month"`
	Month1     price.Money `json:"reserved_1y_usd_per_month"`
	Year1      price.Money `json:"reserved_1y_usd_per_year"`
	Month3     price.Money `json:"reserved_3y_usd_per_month"`
	Year3      price.Money `json:"reserved_3y_usd_per_year"`
	Cores      bool        `json:"cores_limit"` // its cores are the bottleneck
	PerBillion float64     `json:"usd_per_billion_reads"`
}

func aerospikeStudy() (Report, error) {
	r := Report{Name: "aerospike", Title: "Aerospike on EC2: a million reads a second, 2014"}
	rates := Table{Title: "100 % reads in memory, 10 M objects of 100 bytes; US dollars per billion reads",
		Header: []string{"instance", "reads/s", "bandwidth", "cores limit", "an hour", "$/10⁹"}}
	prices := Table{Title: "prices in US dollars: on demand, and reserved for one and three years",
		Header: []string{"instance", "a month", "1 y: a month", "1 y: a year", "3 y: a month", "3 y: a year"}}
	var lines []AerospikeLine
	var series []chart.Series
	err := eachRow(aerospikeText, func(row *row) {
		l := AerospikeLine{Instance: row.text("instance"), Bandwidth: row.text("peak_bandwidth"),
			Reads:   row.number("tps_max"),
			PerHour: row.money("on_demand_usd_per_hour"), Month: row.money("on_demand_usd_per_month"),
			Month1: row.money("reserved_1y_usd_per_month"), Year1: row.money("reserved_1y_usd_per_year"),
			Month3: row.money("reserved_3y_usd_per_month"), Year3: row.money("reserved_3y_usd_per_year"),
			Cores: row.text("core_bottleneck") == "yes"}
		l.PerBillion = perBillion(l.PerHour, l.Reads)
		r.addSource(row)
		lines = append(lines, l)
		rates.Rows = append(rates.Rows, []string{l.Instance, rate(l.Reads), l.Bandwidth,
			map[bool]string{true: "yes", false: "no"}[l.Cores], l.PerHour.Text(3), fmt.Sprintf("%.3f", l.PerBillion)})
		prices.Rows = append(prices.Rows, []string{l.Instance, l.Month.String(), l.Month1.String(), l.Year1.String(),
			l.Month3.String(), l.Year3.String()})
		if n := len(series); n == 0 || series[n-1].Name != l.Instance[:2] {
			series = append(series, chart.Series{Name: l.Instance[:2]})
		}
		s := &series[len(series)-1]
		s.Points = append(s.Points, chart.Point{X: l.Reads, Y: l.PerBillion,
			Text: fmt.Sprintf("%s: %s reads/s, $%.3f a billion", l.Instance, rate(l.Reads), l.PerBillion)})
	})
	if err != nil {
		return r, err
	}
	r.Lines, r.tables = lines, []Table{rates, prices}
	r.panels = []chart.Panel{{Title: r.Title, X: "reads a second", Y: "US dollars a billion reads", Series: series}}
	r.Findings, r.Doubts = aerospikeFindings(lines), aerospikeDoubts(lines)
	return r, nil
}

func aerospikeFindings(lines []AerospikeLine) []string {
	byPrice := func(a, b AerospikeLine) int { return cmp.Compare(a.PerBillion, b.PerBillion) }
	least, most := slices.MinFunc(lines, byPrice), slices.MaxFunc(lines, byPrice)
	out := []string{fmt.Sprintf("%s reads the cheapest, %.3f dollars a billion; %s the dearest, %.3f.", least.Instance,
		least.PerBillion, most.Instance, most.PerBillion)}
	for _, l := range lines {
		if l.Reads >= 1e6 {
			out = append(out, fmt.Sprintf("%s reads a second cost %s an hour on %s.", rate(l.Reads), l.PerHour, l.Instance))
		}
	}
	return out
}

// aerospikeDoubts says where twelve months of a reservation are not its year.
func aerospikeDoubts(lines []AerospikeLine) []string {
	low, high := math.Inf(1), 0.0
	for _, l := range lines {
		times := l.Month3.Times(12).USD() / l.Year3.USD()
		low, high = min(low, times), max(high, times)
	}
	return []string{fmt.Sprintf("Reserved for three years, twelve months cost %.1f to %.1f times as much as a year: %s "+
		"beside %s on %s. Reserved for one year, they agree within one per cent.", low, high,
		lines[0].Month3.Times(12), lines[0].Year3, lines[0].Instance)}
}
