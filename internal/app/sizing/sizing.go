package sizing

import (
	"thalweg/internal/ops/capacity"
	"thalweg/internal/ops/price"
)

// Report is what is said of measured runs of several deployments.
type Report = capacity.Report

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

// PublishedPrices returns the prices that come with the program.
func PublishedPrices() (*Prices, error) { return price.Published() }

// ReadPrices reads prices of the user's; errors name the file.
func ReadPrices(name string, text []byte) (*Prices, error) {
	book, diags := price.Read(name, string(text))
	return book, diags.Err()
}
