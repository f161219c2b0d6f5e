package script

import (
	"time"

	"thalweg/internal/base/document"
	"thalweg/internal/lang/expr"
)

// CheckKind names the rule of a check.
type CheckKind string

// The kinds of checks, as scripts write them.
const (
	CheckNotNull    CheckKind = "not_null"
	CheckUnique     CheckKind = "unique"
	CheckRange      CheckKind = "range"
	CheckValues     CheckKind = "accepted_values"
	CheckRows       CheckKind = "rows"
	CheckReferences CheckKind = "references"
	CheckFreshness  CheckKind = "freshness"
	CheckExpression CheckKind = "expression"
	CheckReconcile  CheckKind = "reconcile"
)

// Severities of a check.
const (
	SeverityError = "error" // the node fails
	SeverityWarn  = "warn"  // it is counted and shown
	// SeverityApproval: it is counted and shown, and who reads the table waits
	// until somebody has decided.
	SeverityApproval = "approval"
)

// Check is a rule that the rows which a node writes must keep: w.*.
type Check struct {
	Name     string // unique in the node
	Kind     CheckKind
	Pos      document.Pos
	Severity string
	MaxRows  int            // failing rows that are kept at most
	Where    *expr.Compiled // over w.*: the rows that it looks at; nil: all

	// of w: CheckNotNull, CheckUnique, CheckReferences; one: CheckRange, CheckValues, CheckFreshness
	Fields   []string
	Min, Max *Constant  // CheckRange: inclusive; nil: no bound
	Values   []Constant // CheckValues
	RowsMin  int64      // CheckRows
	RowsMax  int64      // CheckRows; -1: none
	Change   float64    // CheckRows: percent by which the count may differ from the previous complete run's; -1: any
	// CheckFreshness: the newest value must be later than the previous complete run's, else not earlier
	Newer      bool
	MaxAge     time.Duration  // CheckFreshness: of the newest value when the run was started; 0: any
	Target     *Node          // CheckReferences, CheckReconcile: creator of the other table, perhaps the node itself
	To         []string       // CheckReferences: fields of the target
	Expr       *expr.Compiled // CheckExpression: over w.*
	Value      *expr.Compiled // CheckReconcile: aggregate over w.*
	Equals     *expr.Compiled // CheckReconcile: aggregate over the target's r.*
	By, ByEq   []string       // CheckReconcile: fields of w and of the target whose values make the groups
	Tolerance  string         // CheckReconcile: plain number ≥ 0
	references bool           // it reads Target, which is another node
}

// Constant is a value that the script gives for comparison with a field.
type Constant struct {
	Text string // as written
	SQL  string // literal of the field's type
}

// Previous reports whether a check compares with an earlier run.
func (c *Check) Previous() bool {
	return c.Kind == CheckFreshness || c.Kind == CheckRows && c.Change >= 0
}

// CheckedTables lists the nodes whose tables a node's checks compare its rows
// with, itself not among them, each once.
func (n *Node) CheckedTables() []*Node {
	var out []*Node
	seen := map[*Node]bool{}
	for _, c := range n.Checks {
		if c.references && !seen[c.Target] {
			seen[c.Target] = true
			out = append(out, c.Target)
		}
	}
	return out
}
