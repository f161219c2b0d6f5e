package view

import (
	"strconv"

	"thalweg/internal/ops/lineage"
)

// Page holds rows of a table or of a query. Cells are texts, so that numbers of 64 bits and decimals reach any reader
// whole; null is NULL.
type Page struct {
	Columns []PageColumn `json:"columns"`
	Rows    [][]*string  `json:"rows"`
	Cut     []CutCell    `json:"cut"`             // cells of which only the beginning is there
	From    int64        `json:"from"`            // number of the first row, from 0
	Next    *int64       `json:"next,omitempty"`  // number of the first row of the next page; none: there is none
	Total   *int64       `json:"total,omitempty"` // rows of all pages, if that is known without reading them
	// Warnings are of tables that were named with their run, and are invalid or not complete.
	Warnings []string `json:"warnings"`
}

// PageColumn is a column of a page.
type PageColumn struct {
	Name string `json:"name"`
	Type string `json:"type"` // DuckDB's name for it
	Text bool   `json:"text"` // its cells are no numbers, truth values or times
}

// EmptyPage returns a page of a table that has no rows.
func EmptyPage() Page {
	return Page{Columns: []PageColumn{}, Rows: [][]*string{}, Cut: []CutCell{}, Total: new(int64), Warnings: []string{}}
}

// TableColumns lists the columns of a table.
type TableColumns struct {
	Table   string        `json:"table"`
	Run     int64         `json:"run"`  // whose node has written it: an earlier one, if its rows were taken over
	Node    string        `json:"node"` // that has written it
	Columns []TableColumn `json:"columns"`
}

// TableColumn is a column of a table.
type TableColumn struct {
	Name     string `json:"name"`
	Type     string `json:"type"` // the script's word for it
	Nullable bool   `json:"nullable"`
}

// ColumnLineage says what a column is made of, and what is made of it.
type ColumnLineage struct {
	Column lineage.Column `json:"column"`
	Links  []lineage.Link `json:"links"`
}

// NodeLineage says what the columns of a node's table are made of, and what is made of them: one step each.
type NodeLineage struct {
	Node    string          `json:"node"`
	Columns []lineage.Parts `json:"columns"`
}

// BatchSQL is what a batch executes.
type BatchSQL struct {
	Run    int64      `json:"run"` // whose batch it is: an earlier one, if rows were taken over
	Node   string     `json:"node"`
	Batch  int        `json:"batch"`
	Setup  []string   `json:"setup"`            // statements before all others
	Python string     `json:"python,omitempty"` // what functions of Python read
	SQL    string     `json:"sql,omitempty"`
	Plan   []PlanStep `json:"plan"` // of what Python reads, if there is that, else of SQL; none: it has no query
}

// PlanStep is an operator of a plan. Those that it reads follow it, one deeper.
type PlanStep struct {
	Depth    int      `json:"depth"`
	Operator string   `json:"operator"`
	Says     []string `json:"says"`
}

// CutCell names a cell of a page by its places in the page.
type CutCell struct {
	Row    int `json:"row"`
	Column int `json:"column"`
}

// CellText returns the text of a cell that holds a text, a whole number, a float or a truth value, as JSON has it.
func CellText(cell any) string {
	switch v := cell.(type) {
	case string:
		return v
	case int64:
		return strconv.FormatInt(v, 10)
	case bool:
		return strconv.FormatBool(v)
	}
	text, err := JSON(CellJSON(cell))
	if err != nil {
		return ""
	}
	if said, ok := CellJSON(cell).(string); ok { // a float that is no number
		return said
	}
	return string(text)
}

// Profile says what is known of a table's columns without reading its rows.
type Profile struct {
	Rows    int64           `json:"rows"`
	Columns []ColumnProfile `json:"columns"`
}

// ColumnProfile is what the parts of a table say of a column. What they do not say is not there.
type ColumnProfile struct {
	Name  string  `json:"name"`
	Type  string  `json:"type"` // the script's word for it
	Nulls *int64  `json:"nulls,omitempty"`
	Min   *string `json:"min,omitempty"`
	Max   *string `json:"max,omitempty"`
}

// Distribution says which values a column has, and how often.
type Distribution struct {
	Column   string     `json:"column"`
	Rows     int64      `json:"rows"`
	Nulls    int64      `json:"nulls"`
	Distinct int64      `json:"distinct"` // values that are not NULL
	Top      []TopValue `json:"top"`      // the most frequent ones; of equally frequent ones the least
	// Histogram has ranges of equal width between the least and the greatest value of numbers, dates and times.
	Histogram []HistogramBar `json:"histogram"`
}

// TopValue is a value with the number of its rows.
type TopValue struct {
	Value string `json:"value"`
	Cut   bool   `json:"cut,omitempty"` // only its beginning is there
	Rows  int64  `json:"rows"`
}

// HistogramBar is a range of values, its end excluded but for the last, with the number of rows in it.
type HistogramBar struct {
	From string `json:"from"`
	To   string `json:"to"`
	Rows int64  `json:"rows"`
}
