package script

import (
	"strings"

	"thalweg/internal/base/document"
)

// sideTables refuses tables whose names are those of the rows kept beside
// others: a query would show the one in place of the other. Node.sides are the
// names that package plan gives them.
func (l *loader) sideTables() {
	owners := map[string]*Node{}
	for _, d := range l.nodes {
		for _, side := range d.node.sides() {
			owner := owners[side]
			if owner == nil {
				owners[side] = d.node
				continue
			}
			at := l.ErrorAt(d.key, d.path, "the rows kept beside node %s would be in table %s, as are those "+
				"beside node %s", document.Quote(d.node.Name), document.Quote(side), document.Quote(owner.Name))
			at.Hint = "give the node another name"
		}
	}
	for _, d := range l.nodes {
		if d.node.Table == nil || owners[strings.ToLower(d.node.Table.Name)] == nil {
			continue
		}
		owner := owners[strings.ToLower(d.node.Table.Name)]
		at := l.ErrorAt(d.w.get("name"), d.w.keyPath("name"), "table %s has the name of the rows kept beside node %s",
			document.Quote(d.node.Table.Name), document.Quote(owner.Name))
		at.Hint = "choose another name: those that end in __bad and __failed are where bad rows and the findings of " +
			"checks are queried"
	}
}

// sides lists the names, in lower case, under which rows kept beside a node's
// output because of its checks and bad_rows are queried.
func (n *Node) sides() []string {
	base := n.Name
	if n.Table != nil {
		base = n.Table.Name
	}
	var out []string
	if len(n.Checks) > 0 {
		out = append(out, strings.ToLower(base)+"__failed")
	}
	if n.BadRows != nil {
		out = append(out, strings.ToLower(base)+"__bad")
	}
	return out
}
