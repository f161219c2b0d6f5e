package parquetfile

import (
	"slices"
	"strings"
)

// Shape is the kind of nesting of an element in a schema's tree.
type Shape string

// The shapes. Of Unread ones is not known what readers take them for.
const (
	Value  Shape = "" // not nested: Column says what it is
	List   Shape = "list"
	Struct Shape = "struct"
	Map    Shape = "map"
	Unread Shape = "unread"
)

// Element is a column, or what is within a nested one.
type Element struct {
	Column
	Shape Shape
	Inner []Element // of a list its element, of a struct its members
	Leaf  int       // of a Value: which leaf of the whole column it is, counted from 0
}

// Element gives the tree of a column.
func (f *Footer) Element(column int) Element { return f.elements[column] }

// String is the shape in words, with the types of the file.
func (e Element) String() string {
	switch e.Shape {
	case Value:
		return e.Type
	case Map, Unread:
		return map[Shape]string{Map: "map", Unread: e.Type}[e.Shape]
	}
	parts := make([]string, len(e.Inner))
	for i, inner := range e.Inner {
		parts[i] = inner.String()
		if e.Shape == Struct {
			parts[i] = inner.Name + " " + parts[i]
		}
	}
	return string(e.Shape) + "(" + strings.Join(parts, ", ") + ")"
}

// elementOf makes the tree that begins at an element of the flattened schema,
// which is complete.
func elementOf(schema []schemaElement, at int) Element {
	e := schema[at]
	out := Element{Column: e.describe(), Shape: Unread}
	out.Kind, out.Type = Nested, nestedText
	if e.repetition == repetitionRepeated {
		return out // a list of the oldest form, which readers take for different things
	}
	switch {
	case e.leaf():
		return Element{Column: e.describeLeaf(), Leaf: e.leafIndex}
	case e.logical == logicalMap, e.converted == convertedMap, e.converted == convertedMapKeyValue:
		out.Shape = Map
	case e.logical == logicalList, e.logical == none && e.converted == convertedList:
		out.listOf(schema, at)
	case e.logical == none && e.converted == none && e.children > 0:
		out.Shape = Struct
		for inner := range e.children {
			if inner == 0 {
				at++
			} else {
				at, _, _ = skipElement(schema, at)
			}
			out.Inner = append(out.Inner, elementOf(schema, at))
		}
	}
	return out
}

// listOf reads the three levels that the format has for lists. Those of older
// writers have two, which can be taken for something else.
func (e *Element) listOf(schema []schemaElement, at int) {
	list := schema[at]
	if list.children != 1 || at+2 >= len(schema) {
		return
	}
	middle := schema[at+1]
	older := []string{"array", list.name + "_tuple"}
	if middle.repetition != repetitionRepeated || middle.children != 1 || middle.physical != none ||
		slices.Contains(older, middle.name) {
		return
	}
	e.Shape, e.Inner = List, []Element{elementOf(schema, at+2)}
}
