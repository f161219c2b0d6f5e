package fault

// BadRow is a row that was put aside because it could not be read or computed.
type BadRow struct {
	Place  Place
	Raw    string // the row as it came: a record's text, or a table row as JSON
	Reason string
}
