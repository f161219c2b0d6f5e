package sizing

import (
	"thalweg/internal/base/fault"
	"thalweg/internal/ops/capacity"
	"thalweg/internal/ops/forecast"
	"thalweg/internal/ops/price"
)

// Report is what is said of measured runs of several deployments.
type Report = capacity.Report

// Record is what a complete run took.
type Record = forecast.Record

// Prices are prices of machines.
type Prices = price.Book

// Study returns the report of a published study, by name.
func Study(name string) (Report, error) { return capacity.Study(name) }

// Table returns the report of the runs of a table in CSV; errors name the file.
func Table(name string, text []byte, prices *Prices, byClass bool) (Report, error) {
	runs, err := capacity.ReadRuns(name, string(text), prices)
	if err != nil {
		return Report{}, err
	}
	return capacity.TableOf(name, runs, byClass)
}

// TableOfRuns returns the report of complete runs, by their records. A machine without a price has no cost.
func TableOfRuns(records []Record, prices *Prices, byClass bool) (Report, error) {
	var runs []capacity.Run
	for _, r := range records {
		if r.Workers == 0 {
			return Report{}, fault.New(fault.Script, "run %d has no time sheets: nobody knows how many worked on it", r.Run.Run)
		}
		one := capacity.Run{Shape: capacity.Shape{Nodes: r.Workers, Cores: r.Cores}, Machines: r.Machine,
			TotalCores: r.Workers * r.Cores, Seconds: r.Elapsed.Seconds()}
		for _, c := range r.Classes() {
			one.Classes = append(one.Classes, capacity.Class{Name: c.Class, Seconds: c.Seconds})
		}
		if line, known := prices.Find(r.Machine); known {
			one = one.Priced(line.PerHour.Times(r.Workers))
		}
		runs = append(runs, one)
	}
	return capacity.TableOf("this workspace", runs, byClass)
}

// PublishedPrices returns the prices that come with the program.
func PublishedPrices() (*Prices, error) { return price.Published() }

// ReadPrices reads prices of the user's; errors name the file.
func ReadPrices(name string, text []byte) (*Prices, error) {
	book, diags := price.Read(name, string(text))
	return book, diags.Err()
}
