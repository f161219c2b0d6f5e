package query

import "slices"

// join follows a join. An inner one may leave rows that meet apart: conditions
// above it may bring their keys together.
func (c *cutter) join(n node) (flow, error) {
	sides := n.list("children")
	if len(sides) != 2 || n.truth("delim_flipped") {
		return flow{}, unknown(n)
	}
	left, err := c.flow(sides[0])
	if err != nil {
		return left, err
	}
	correlated := n.text("type") == "LOGICAL_DELIM_JOIN"
	if correlated {
		if err := c.enter(left, n.list("duplicate_eliminated_columns"), sides[1]); err != nil {
			return left, err
		}
		defer func() { c.delims = c.delims[:len(c.delims)-1] }()
	}
	right, err := c.flow(sides[1])
	if err != nil {
		return right, err
	}
	kind, equal := n.text("join_type"), conditions(n, left.width)
	switch {
	case n.text("type") == "LOGICAL_CROSS_PRODUCT", kind == "INNER":
		return c.equate(pair(left, right), equal), nil
	case !left.fixed() && !right.fixed():
		if err := c.meeting(left, right, equal, kind, correlated); err != nil {
			return left, err
		}
	case !left.fixed() && !slices.Contains([]string{"LEFT", "SINGLE", "SEMI", "ANTI", "MARK"}, kind),
		!right.fixed() && !slices.Contains([]string{"RIGHT", "RIGHT_SEMI", "RIGHT_ANTI"}, kind):
		return left, &dependent{why: "a join keeps rows without a match of what is none of the tables: they would be " +
			"there once for each batch",
			words: []string{"full", "right", "left", "join"}, hint: "join the other way round"}
	}
	return outer(left, right, kind)
}

// enter begins a subquery that is computed for the rows of left, once for those
// that are equal in some columns.
func (c *cutter) enter(left flow, columns []node, subquery node) error {
	rows := project(left, columns)
	if err := c.within(rows, dependent{why: "a subquery for each row"},
		"what it compares with the rows around it"); err != nil {
		if takesApart(subquery) {
			err = &dependent{why: "FROM has a list or a table function of columns, which is computed once for " +
				"equal values", words: []string{"unnest", "range", "generate_series"},
				hint: "write it into the select list: SELECT k, unnest(range(x)) AS i FROM …"}
		}
		return err
	}
	c.delims = append(c.delims, rows)
	return nil
}

// takesApart reports whether a list or a table function makes rows of an operator.
func takesApart(operator node) (found bool) {
	each(operator, func(n node) {
		found = found || n.text("type") == "LOGICAL_UNNEST" || n.text("type") == "LOGICAL_GET" &&
			len(n.list("children")) > 0
	})
	return found
}

// meeting requires that the sides of a join other than an inner one meet by their keys.
func (c *cutter) meeting(left, right flow, equal [][2]int, kind string, correlated bool) error {
	if c.by == nil || len(left.groups) > 1 || len(right.groups) > 1 {
		return c.apart()
	}
	if kind == "MARK" && !correlated { // NULL among the rows of any key changes what it says
		return &dependent{why: "IN looks at the rows of all keys", words: []string{"in", "any", "all"},
			hint: "write SEMI JOIN, ANTI JOIN or EXISTS with the keys"}
	}
	for i, keys := range left.groups[0] {
		if !slices.ContainsFunc(equal,
			func(p [2]int) bool { return keys[p[0]] && right.groups[0][i][p[1]-left.width] }) {
			return c.apart()
		}
	}
	return nil
}

// conditions lists the columns that a join compares, those of the right side
// behind those of the left.
func conditions(n node, left int) (out [][2]int) {
	for _, e := range n.list("conditions") {
		a, isA := reference(e.child("left"))
		b, isB := reference(e.child("right"))
		if isA && isB && equality(e.text("comparison")) {
			out = append(out, [2]int{a, b + left})
		}
	}
	if e := n.child("condition"); e != nil {
		for _, p := range equalities([]node{e}) {
			if p[0] > p[1] {
				p[0], p[1] = p[1], p[0]
			}
			out = append(out, p)
		}
	}
	return out
}

// pair puts the columns of two sides beside each other.
func pair(left, right flow) flow {
	out := right.moved(func(column int) []int { return []int{left.width + column} }, left.width+right.width)
	if !left.fixed() && !right.fixed() {
		left.either, out.either = nil, nil
	}
	out.groups, out.either = append(left.groups, out.groups...), append(left.either, out.either...)
	return out
}

// outer describes the rows of a join that is not an inner one. A side whose columns may be NULL for want of a
// match has no keys.
func outer(left, right flow, kind string) (flow, error) {
	both := pair(left, right)
	switch kind {
	case "SEMI", "ANTI":
		return left, nil
	case "MARK":
		left.width++
		return left, nil
	case "RIGHT_SEMI", "RIGHT_ANTI":
		return right, nil
	case "LEFT", "SINGLE":
		left.width = both.width
		return left, nil
	case "RIGHT":
		both.groups = both.groups[len(left.groups):]
		return both, nil
	case "FULL", "OUTER":
		if both.fixed() {
			return both, nil
		}
		out := flow{width: both.width, groups: [][]columnSet{make([]columnSet, len(both.groups[0]))}}
		for i := range out.groups[0] {
			out.groups[0][i] = columnSet{}
			out.either = append(out.either, [2]columnSet{both.groups[0][i], both.groups[1][i]})
		}
		return out, nil
	}
	return both, &dependent{why: kind + " JOIN may look at all rows"}
}
