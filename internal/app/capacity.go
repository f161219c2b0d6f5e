package app

import (
	"thalweg/internal/ops/capacity"
	"thalweg/internal/ops/price"
)

// CapacityReport is what is said of measured runs of several deployments.
type CapacityReport = capacity.Report

// Prices are prices of machines.
type Prices = price.Book

// CapacityStudy returns the report of a published study, by name.
func CapacityStudy(name string) (CapacityReport, error) { return capacity.Study(name) }

// CapacityTable returns the report of the runs of a table in CSV; errors name the file.
func CapacityTable(name string, text []byte, prices *Prices, byClass bool) (CapacityReport, error) {
	runs, err := capacity.ReadRuns(name, string(text), prices)
	if err != nil {
		return CapacityReport{}, err
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
