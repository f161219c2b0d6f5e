// Package graph draws a script: its nodes, the tables and lookups between
// them, the files at both ends, which nodes wait for their names, and where people decide.
//
// What became of the nodes in a run can be added to their vertices.
//
// It owns the picture's content (FromScript), its layered layout and the two
// forms, SVG and Graphviz DOT. The same script gives the same bytes. Names are
// escaped, and cut to what fits a box; passwords in addresses do not appear.
//
// Nothing can fail but writing; a script of more than a few thousand nodes
// takes seconds.
package graph
