package capacity

import (
	_ "embed"
	"encoding/csv"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"thalweg/internal/base/fault"
	"thalweg/internal/ops/price"
)

// portfolioText has the published runs of Capillaries' portfolio_bigtest (996 portfolios, 14,683,696 transactions,
// 713,800 holdings) on AWS: the notes of 2024-08-10, 2025-07-17 and 2026-05-22, with the machines of each deployment
// and what the note says of its cores and price an hour. The note of 2026 ran the deployments of 2025.
//
//go:embed portfolio.csv
var portfolioText string

// Studies are the names of the published studies.
var Studies = []string{"2024", "2025", "2026", "netflix", "arm", "aerospike"}

// Study returns the report of a published study.
func Study(name string) (Report, error) {
	switch name {
	case "2024", "2025", "2026":
		return portfolioStudy(name)
	case "netflix":
		return netflixStudy()
	case "arm":
		return armStudy()
	case "aerospike":
		return aerospikeStudy()
	}
	return Report{}, fault.New(fault.Script, "there is no study %q: %s", name, strings.Join(Studies, ", "))
}

// notedRun is a run as a note has it.
type notedRun struct {
	Run
	node, daemon      string
	services, counted []string    // machines beside the nodes; as the note's sums count them
	cores             int         // that the note says
	perHour, cost     price.Money // likewise
	source            string
}

// noted reads the runs of a note.
func noted(study string) (out []notedRun, err error) {
	err = eachRow(portfolioText, func(row *row) {
		if row.text("study") != study {
			return
		}
		r := notedRun{Run: Run{Shape: Shape{row.whole("nodes"), row.whole("cores")}, Seconds: row.number("seconds")},
			node: row.text("node_machine"), daemon: row.text("daemon_machine"),
			services: strings.Fields(row.text("services")), counted: strings.Fields(row.text("services_as_counted")),
			cores: row.whole("cores_published"), perHour: row.money("usd_per_hour_published"), cost: row.money("usd"),
			source: row.text("source")}
		for _, class := range []string{"load", "join", "calc"} {
			if row.text(class+"_s") != "" {
				r.Classes = append(r.Classes, Class{class, row.number(class + "_s")})
			}
		}
		r.Machines = r.node + " + " + r.daemon
		out = append(out, r)
	})
	return out, err
}

// sum returns the cores and the price an hour of the nodes, a daemon beside each, and services.
func (r notedRun) sum(book *price.Book, services []string) (cores int, perHour price.Money, err error) {
	for machine, n := range map[string]int{r.node: r.Nodes, r.daemon: r.Nodes} {
		line, ok := book.Find(machine)
		if !ok {
			return 0, 0, fmt.Errorf("there is no price of %s", machine)
		}
		cores, perHour = cores+n*line.Cores, perHour+line.PerHour.Times(n)
	}
	for _, machine := range services {
		line, ok := book.Find(machine)
		if !ok {
			return 0, 0, fmt.Errorf("there is no price of %s", machine)
		}
		cores, perHour = cores+line.Cores, perHour+line.PerHour
	}
	return cores, perHour, nil
}

func portfolioStudy(study string) (Report, error) {
	edition := map[string]string{"2024": "2024"}[study]
	book, err := price.Edition(edition)
	if err != nil {
		return Report{}, err
	}
	notes, err := noted(study)
	if err != nil {
		return Report{}, err
	}
	var runs []Run
	var sources, doubts []string
	deployments, costs := 0, 0
	for _, n := range notes {
		cores, perHour, err := n.sum(book, n.counted)
		if err != nil {
			return Report{}, err
		}
		n.TotalCores = cores
		run := n.Priced(perHour)
		runs = append(runs, run)
		if cores == n.cores && perHour == n.perHour {
			deployments++
		} else {
			doubts = append(doubts, fmt.Sprintf("%s: the note has %d cores for %s an hour; the sum of its machines is %d "+
				"for %s.",
				n.Shape, n.cores, n.perHour.Text(4), cores, perHour.Text(4)))
		}
		if run.Cost.String() == n.cost.String() {
			costs++
		} else {
			doubts = append(doubts, fmt.Sprintf("%s: the note has %s a run; by time and price it is %s.", n.Shape, n.cost,
				run.Cost))
		}
		if !slices.Contains(sources, n.source) {
			sources = append(sources, n.source)
		}
	}
	r, err := Describe(study, "Capillaries' portfolio test on AWS, "+study, runs, study == "2025")
	if err != nil {
		return r, err
	}
	r.Sources = append(sources, pricesOf(notes, book)...)
	r.Findings = append(r.Findings, fmt.Sprintf("Of the note's figures, cores and price an hour of %d of %d "+
		"deployments, and the costs of %d of %d runs, are the sums of its machines.", deployments, len(notes), costs,
		len(notes)))
	r.Doubts = append(doubts, miscounted(notes, book)...)
	r.Doubts = append(r.Doubts, unequalStages(runs)...)
	r.Asked = asked[study]
	if study == "2025" {
		r.Findings = append(r.Findings, theories(r.Classes, runs)...)
	}
	r.panels = runPanels(runs)
	return r, nil
}

// asked is what notes say and ask beside their tables, and which command says so of one's own runs.
var asked = map[string][]string{
	"2024": {
		"Up or out? `capacity plan` says so for a run of yours and a deadline.",
		"Three things had changed since the runs before: NVMe in the place of a RAM disk, daemons with a quarter and no " +
			"longer half of Cassandra's cores, Graviton in the place of AMD. Its figures do not tell them apart.",
		"Writes peak at 2.3 million a second on 16 × 64. The charts of `capacity explain` have processors, rows, bytes " +
			"and calls of the state over time, of a run of yours."},
	"2025": {
		"Loading keeps daemons at 95 % of their processors and Cassandra at 65 %, joins low and at 60 %, Python at 100 % " +
			"and low. `capacity explain` finds these zones of your workers.",
		"No thread should be idle. What slots did all the time stands with the workers in `show`.",
		"With GOMEMLIMIT at 75 % of the memory, daemons settle at 85 %. The peak of each of your workers stands there, " +
			"too.",
		"Larger data and smaller batches might tell. `capacity plan` simulates both, for a run of yours."},
}

// theories holds what the note of 2025 supposes of its largest deployments against the classes of nodes.
func theories(classes []ClassFit, runs []Run) []string {
	most := 0
	for _, r := range runs {
		most = max(most, r.Total())
	}
	low, high := math.Inf(1), 0.0
	for _, r := range runs {
		if r.Total() == most {
			low, high = min(low, r.Seconds), max(high, r.Seconds)
		}
	}
	var free, floors []string
	for _, c := range classes {
		if c.Floor < floorLeast {
			free = append(free, c.Name)
		} else {
			floors = append(floors, fmt.Sprintf("%.0f s of %s", c.Floor, c.Name))
		}
	}
	if len(free) == 0 || len(floors) == 0 {
		return nil
	}
	return []string{
		fmt.Sprintf("Too little to do (the note's first theory) is not so for %s, which has no floor.", listed(free)),
		fmt.Sprintf("Idle by batches (its second) are at most the floors: %s, of %.0f–%.0f s with %d cores.", listed(floors),
			low, high, most),
		fmt.Sprintf("A ceiling of the network (its third) is not seen: %s moves the most, and has no floor.",
			listed(free)),
		"Limits of the design (its fourth) are what is left. `capacity explain` has their parts of a run of yours."}
}

// pricesOf lists the sources of the prices of the nodes and daemons.
func pricesOf(notes []notedRun, book *price.Book) (out []string) {
	for _, n := range notes {
		for _, machine := range []string{n.node, n.daemon} {
			line, _ := book.Find(machine)
			if text := "prices of " + line.Date + ": " + line.Source; !slices.Contains(out, text) {
				out = append(out, text)
			}
		}
	}
	return out
}

// miscounted says where a note's sums count other machines than those that it lists.
func miscounted(notes []notedRun, book *price.Book) (out []string) {
	n := notes[0]
	if slices.Equal(n.services, n.counted) {
		return nil
	}
	cores, perHour, err := n.sum(book, n.services)
	if err != nil {
		return nil // what is counted has prices: see portfolioStudy
	}
	for i := range n.services {
		if n.services[i] != n.counted[i] {
			out = append(out, fmt.Sprintf("The note's sums count its %s host as one more %s: %d cores and %s an hour for "+
				"%s, where its "+
				"machines have %d and cost %s. Prices and costs here are as the note counts.", n.services[i], n.counted[i], n.cores,
				n.perHour.Text(4), n.Shape, cores, perHour.Text(4)))
		}
	}
	return out
}

// unequalStages says of which runs the classes, one behind the other, do not take the time of the run.
func unequalStages(runs []Run) (out []string) {
	for _, r := range runs {
		sum := 0.0
		for _, c := range r.Classes {
			sum += c.Seconds
		}
		if len(r.Classes) > 0 && (sum-r.Seconds > 1 || r.Seconds-sum > 1) {
			out = append(out, fmt.Sprintf("%s takes %s by its stages, and %s in the text; the text's time is used here.",
				r.Shape,
				secondsText(sum), secondsText(r.Seconds)))
		}
	}
	return out
}

// row is a record of an embedded table. The first thing that is wrong with it stays in err.
type row struct {
	columns map[string]int
	fields  []string
	err     error
}

// eachRow calls do for the records of an embedded table, which begins with its header.
func eachRow(text string, do func(*row)) error {
	records, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		return fmt.Errorf("read the figures of the studies: %w", err)
	}
	columns := map[string]int{}
	for i, name := range records[0] {
		columns[name] = i
	}
	for _, fields := range records[1:] {
		r := &row{columns: columns, fields: fields}
		if do(r); r.err != nil {
			return fmt.Errorf("read the figures of the studies: %w", r.err)
		}
	}
	return nil
}

func (r *row) text(column string) string {
	i, ok := r.columns[column]
	if !ok {
		r.failed(fmt.Errorf("there is no column %s", column))
		return ""
	}
	return r.fields[i]
}

func (r *row) failed(err error) {
	if r.err == nil {
		r.err = err
	}
}

func (r *row) whole(column string) int {
	n, err := strconv.Atoi(r.text(column))
	if err != nil {
		r.failed(fmt.Errorf("column %s: %w", column, err))
	}
	return n
}

// number reads a number; an empty field is 0.
func (r *row) number(column string) float64 {
	if r.text(column) == "" {
		return 0
	}
	n, err := strconv.ParseFloat(r.text(column), 64)
	if err != nil {
		r.failed(fmt.Errorf("column %s: %w", column, err))
	}
	return n
}

func (r *row) money(column string) price.Money {
	m, err := price.Parse(r.text(column))
	if err != nil {
		r.failed(fmt.Errorf("column %s: %w", column, err))
	}
	return m
}
