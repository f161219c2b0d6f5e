package view

// TableIndex is the JSON form of an index that was made of a table.
type TableIndex struct {
	Run     int64    `json:"run"`
	Table   string   `json:"table"`
	Key     []string `json:"key"`
	Columns []string `json:"columns"`
	Rows    int64    `json:"rows"`
	Bytes   int64    `json:"bytes"`
	File    string   `json:"file"`
}
