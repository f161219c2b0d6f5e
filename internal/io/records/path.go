package records

import (
	"fmt"

	"thalweg/internal/lang/filespec"
)

// node is a place in records where a wanted value is, or that leads to some.
type node struct {
	path    string
	keys    map[string]*node
	items   map[int]*node
	columns []int
	record  int64 // in which it was seen last
	found   bool  // in it
	null    bool  // what leads there is null in it
}

// tree puts the columns' paths together.
func tree(columns []filespec.Column) (*node, []*node, error) {
	root, leaves := &node{}, make([]*node, len(columns))
	for i, c := range columns {
		steps, err := filespec.ParsePath(c.Path)
		if err != nil {
			return nil, nil, err
		}
		at := root
		for _, s := range steps {
			at = at.child(s)
		}
		at.columns = append(at.columns, i)
		leaves[i] = at
	}
	return root, leaves, nil
}

func (n *node) child(s filespec.Step) *node {
	if s.Index >= 0 {
		if n.items == nil {
			n.items = map[int]*node{}
		}
		if n.items[s.Index] == nil {
			n.items[s.Index] = &node{path: fmt.Sprintf("%s[%d]", n.path, s.Index)}
		}
		return n.items[s.Index]
	}
	if n.keys == nil {
		n.keys = map[string]*node{}
	}
	if n.keys[s.Key] == nil {
		path := filespec.KeyPath(s.Key)
		if n.path != "" {
			path = n.path + "." + path
		}
		n.keys[s.Key] = &node{path: path}
	}
	return n.keys[s.Key]
}

func (n *node) leads() bool { return n.keys != nil || n.items != nil }
