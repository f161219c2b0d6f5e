package price

import (
	_ "embed"
	"encoding/csv"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Line is the price of one type of machine.
type Line struct {
	Machine     string `json:"machine"` // type, as its provider names it: c7g.large
	Cores       int    `json:"cores"`
	MemoryBytes int64  `json:"memory_bytes"`
	Arch        string `json:"arch,omitempty"`
	NVMe        bool   `json:"nvme,omitempty"` // it has disks of its own
	PerHour     Money  `json:"usd_per_hour"`
	Region      string `json:"region,omitempty"`
	Date        string `json:"date"`   // when it was so: a year, a month or a day
	Source      string `json:"source"` // who says so
}

// Book has prices by type of machine. It is not changed once it is made.
type Book struct{ lines map[string]Line }

// bookText has the published prices: 39 types of machines as Capillaries' deployment files of June 2025 have them, and
// the five others that the sums of its note of 2024-08-10 bear, as the edition 2024.
//
//go:embed book.csv
var bookText string

// The columns of bookText.
const (
	columnEdition = iota
	columnMachine
	columnCores
	columnMemory
	columnArch
	columnNVMe
	columnPrice
	columnRegion
	columnDate
	columnSource
	columnsCount
)

var published = sync.OnceValues(func() (map[string]*Book, error) {
	r := csv.NewReader(strings.NewReader(bookText))
	r.FieldsPerRecord = columnsCount
	records, err := r.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("read the book of prices: %w", err)
	}
	latest := &Book{map[string]Line{}}
	editions := map[string]*Book{"": latest}
	for _, record := range records[1:] {
		line, err := lineOf(record)
		if err != nil {
			return nil, fmt.Errorf("read the book of prices: %s: %w", record[columnMachine], err)
		}
		edition := record[columnEdition]
		if editions[edition] == nil {
			editions[edition] = &Book{maps.Clone(latest.lines)}
		}
		editions[edition].lines[line.Machine] = line
	}
	return editions, nil
})

func lineOf(record []string) (line Line, err error) {
	line = Line{Machine: record[columnMachine], Arch: record[columnArch], NVMe: record[columnNVMe] == "yes",
		Region: record[columnRegion], Date: record[columnDate], Source: record[columnSource]}
	if line.Cores, err = strconv.Atoi(record[columnCores]); err != nil {
		return line, fmt.Errorf("read its cores: %w", err)
	}
	memory, err := strconv.ParseInt(record[columnMemory], 10, 64)
	if err != nil {
		return line, fmt.Errorf("read its memory: %w", err)
	}
	line.MemoryBytes = memory << 30
	line.PerHour, err = Parse(record[columnPrice])
	return line, err
}

// Published returns the book that comes with the program.
func Published() (*Book, error) { return Edition("") }

// Edition returns a book of former prices: those of the edition, and for other machines those of Published. The only
// edition is 2024.
func Edition(name string) (*Book, error) {
	editions, err := published()
	if err != nil {
		return nil, err
	}
	if editions[name] == nil {
		return nil, fmt.Errorf("there is no edition %q of the prices", name)
	}
	return editions[name], nil
}

// Find returns the line of a type of machine; false: it has no price.
func (b *Book) Find(machine string) (Line, bool) {
	line, ok := b.lines[machine]
	return line, ok
}

// Machines lists the types of machines that have a price, sorted.
func (b *Book) Machines() []string { return slices.Sorted(maps.Keys(b.lines)) }

// With returns the book with what another one adds and replaces.
func (b *Book) With(other *Book) *Book {
	lines := maps.Clone(b.lines)
	maps.Copy(lines, other.lines)
	return &Book{lines}
}
