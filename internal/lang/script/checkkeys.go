package script

import "math"

// The shapes of checks. They are never changed.
var (
	namesForms = either(text(), listOf(text()))
	valueForms = either(text(), number(), boolean())

	checkShape = &shape{name: "check",
		doc: "A rule that rows must keep; it has one of the keys from not_null to reconcile.", keys: []key{
			{name: "not_null", form: namesForms, doc: "Fields that must not be NULL."},
			{name: "unique", form: namesForms, doc: "Fields whose values together must not occur twice."},
			{name: "range", form: keysOf(checkRangeShape), doc: "Bounds of a field."},
			{name: "accepted_values", form: keysOf(checkValuesShape), doc: "The only values of a field."},
			{name: "rows", form: keysOf(checkRowsShape), doc: "How many rows there may be."},
			{name: "references", form: keysOf(checkReferencesShape), doc: "Values that must be in another table."},
			{name: "freshness", form: keysOf(checkFreshnessShape), doc: "How new the newest value of a field must be."},
			{name: "expression", form: text(), doc: "Condition over w.* that must hold."},
			{name: "reconcile", form: keysOf(checkReconcileShape), doc: "Totals that must agree with another table's."},
			{name: "name", form: text(), doc: "Name of the check; default: made of what it checks."},
			{name: "severity", form: text(SeverityError, SeverityWarn, SeverityApproval),
				doc: "error (default): the node fails; warn: it is counted and shown; approval: the nodes that read " +
					"the table wait until somebody has decided."},
			{name: "max_rows", form: whole(0, MaxFailedRows), doc: "Failing rows that are kept at most; default 1000."},
			{name: "where", form: text(), doc: "Condition over w.*: the rows that are checked."},
		}}

	checkRangeShape = &shape{name: "check_range", keys: []key{
		{name: "field", form: text(), need: true, doc: "The field."},
		{name: "min", form: valueForms, doc: "Smallest value that passes."},
		{name: "max", form: valueForms, doc: "Largest value that passes."},
	}}

	checkValuesShape = &shape{name: "check_accepted_values", keys: []key{
		{name: "field", form: text(), need: true, doc: "The field."},
		{name: "values", form: listOf(valueForms), need: true, doc: "The values that pass."},
	}}

	checkRowsShape = &shape{name: "check_rows", keys: []key{
		{name: "min", form: whole(0, math.MaxInt), doc: "Least rows; default 0."},
		{name: "max", form: whole(0, math.MaxInt), doc: "Most rows; default: no bound."},
		{name: "change_percent", form: either(number(), text()),
			doc: "Percent by which the count may differ from the previous complete run's."},
	}}

	checkReferencesShape = &shape{name: "check_references", keys: []key{
		{name: "fields", form: namesForms, need: true, doc: "The fields whose values must be there."},
		{name: "table", form: text(), need: true, doc: "The table where they must be; the node's own is allowed."},
		{name: "to", form: namesForms, doc: "Its fields, one for each of fields; default: the same names."},
	}}

	checkFreshnessShape = &shape{name: "check_freshness", keys: []key{
		{name: "field", form: text(), need: true,
			doc: "The field whose newest value counts: it must not be older than in the previous complete run."},
		{name: "newer_than_previous", form: boolean(), doc: "It must be newer than in the previous complete run."},
		{name: "max_age", form: text(), doc: "It must not be older than this when the run starts: 3d, 36h, 90m."},
	}}

	checkReconcileShape = &shape{name: "check_reconcile", keys: []key{
		{name: "value", form: text(), need: true, doc: "Aggregate over w.*."},
		{name: "table", form: text(), need: true, doc: "The other table."},
		{name: "equals", form: text(), need: true, doc: "Aggregate over the other table's r.*."},
		{name: "by", form: either(text(), listOf(text()), namesOf(text())),
			doc: "Fields whose values make the groups that are compared: names, or a map of names to those of the " +
				"other table."},
		{name: "tolerance", form: either(number(), text()), doc: "Largest difference that passes; default 0."},
	}}
)
