package infer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"thalweg/internal/lang/expr"
)

// columnKey finds a column in each of several CSV files. A header that is unique in all of them is enough;
// otherwise header and index both have to match. Of others header and index have to be right, as of those
// without a header. Without a header record it is the index alone.
type columnKey struct {
	header string
	index  int // -1: the header is enough
}

// placedKeys lists for each column of a file what finds it. doubled are the headers that are not enough.
func placedKeys(s shape, doubled map[string]bool) []columnKey {
	keys := make([]columnKey, len(s.names))
	for i, header := range s.names {
		switch {
		case !s.header:
			keys[i] = columnKey{"", i}
		case doubled[header]:
			keys[i] = columnKey{header, i}
		default:
			keys[i] = columnKey{header, -1}
		}
	}
	return keys
}

// doubledHeaders are headers that some file has more than once, and the empty one.
func doubledHeaders(list []inputFile) map[string]bool {
	doubled := map[string]bool{"": true}
	for _, f := range list {
		seen := map[string]bool{}
		for _, header := range f.shape.names {
			doubled[header] = doubled[header] || seen[header]
			seen[header] = true
		}
	}
	return doubled
}

// union are the columns of all files, in the order in which they are first seen; those behind the
// last header of a file, which have none, come last.
func (p *Proposal) union(list []inputFile) (columns []*profile) {
	doubled := doubledHeaders(list)
	of := make([][]columnKey, len(list)) // for each file
	at := map[columnKey]int{}
	var keys, last []columnKey
	for n, f := range list {
		of[n] = placedKeys(f.shape, doubled)
		for i, key := range of[n] {
			if _, known := at[key]; known {
				continue
			}
			at[key] = 0
			if f.shape.header && !slices.ContainsFunc(f.shape.names[i:], func(h string) bool { return h != "" }) {
				last = append(last, key)
			} else {
				keys = append(keys, key)
			}
		}
	}
	for k, key := range append(keys, last...) {
		at[key] = k
		columns = append(columns, newProfile(p.seed))
		p.Columns = append(p.Columns, Column{Source: key.header, Index: max(key.index, 0), Type: expr.String,
			placed: p.HasHeader && key.index >= 0})
	}
	for n, f := range list {
		file := ""
		if len(list) > 1 {
			file = f.name
		}
		for i, key := range of[n] {
			k := at[key]
			list[n].at[k] = i
			p.Columns[k].Index = i
			columns[k].merge(f.found.columns[i], file)
		}
	}
	for k := range p.Columns {
		for n := len(list) - 1; n >= 0; n-- {
			i, has := list[n].at[k]
			if has {
				p.Columns[k].Index = i // in the first one that has it
			}
			p.Columns[k].Optional = p.Columns[k].Optional || !has
		}
	}
	p.doubtPlaces(list)
	return columns
}

// doubtPlaces leaves columns out that have the same header and index in several files, but not
// certainly the same meaning: what stands beside them differs, and both have values.
func (p *Proposal) doubtPlaces(list []inputFile) {
	for k := range p.Columns {
		c := &p.Columns[k]
		if !c.placed {
			continue
		}
		first, said := -1, false
		for n, f := range list {
			i, has := f.at[k]
			if !has || f.found.columns[i].rows == f.found.columns[i].blank {
				continue
			}
			if first < 0 {
				first = n
				continue
			}
			one := list[first]
			switch {
			case c.left != "" || slices.Equal(one.shape.names, f.shape.names):
			case sameNeighbours(one.shape.names, f.shape.names, i), c.Source != "" &&
				slices.Equal(one.shape.names[:i], f.shape.names[:i]):
				if !said {
					p.guessed("%s of %s was taken for the same as %s of %s: it stands at the same place, other "+
						"columns of the files differ", c.called(i), f.name, c.called(i), one.name)
				}
				said = true
			default:
				c.leaveOut(fmt.Sprintf("what stands beside it differs in %s and %s, so it may be another one",
					one.name, f.name))
			}
		}
	}
}

// sayAlike tells of columns whose headers differ only in case and blanks, and that no file has both: they may be one.
func (p *Proposal) sayAlike(list []inputFile) {
	firsts := map[string]int{}
	for k := range p.Columns {
		folded := strings.ToLower(strings.Join(strings.Fields(p.Columns[k].Source), " "))
		first, known := firsts[folded]
		switch {
		case folded == "" || firstWith(list, k) == "":
		case !known:
			firsts[folded] = k
		case p.Columns[first].Source != p.Columns[k].Source &&
			!slices.ContainsFunc(list, func(f inputFile) bool { return f.has(first) && f.has(k) }):
			p.guessed("%s of %s may be %s of %s: their headers differ only in case or blanks, so they are two columns "+
				"(write the same header in both files)",
				p.Columns[k].called(k), firstWith(list, k), p.Columns[first].called(first), firstWith(list, first))
		}
	}
}

// has reports whether a column of the proposal is in the file.
func (f inputFile) has(column int) bool { _, has := f.at[column]; return has }

// firstWith names the first file that has a column; "": none has it.
func firstWith(list []inputFile, column int) string {
	for _, f := range list {
		if f.has(column) {
			return f.name
		}
	}
	return ""
}

// sameNeighbours reports whether the same headers stand beside a column in two files.
func sameNeighbours(a, b []string, i int) bool {
	beside := func(names []string, i int) string {
		if i < 0 || i >= len(names) {
			return "\n" // the end
		}
		return names[i]
	}
	return beside(a, i-1) == beside(b, i-1) && beside(a, i+1) == beside(b, i+1)
}

// withoutBraces sees to headers that a script takes for references to parameters: where all files have
// the same ones, columns are found by their positions; else those columns are left out.
func (p *Proposal) withoutBraces(list []inputFile) {
	braces := func(c Column) bool { return strings.ContainsAny(c.Source, "{}") }
	with := slices.IndexFunc(p.Columns, braces)
	if !p.HasHeader || with < 0 {
		return
	}
	header := p.Columns[with].Source
	same := !slices.ContainsFunc(list, func(f inputFile) bool {
		return !slices.Equal(f.shape.names, list[0].shape.names)
	})
	for i := range p.Columns {
		c := &p.Columns[i]
		if same {
			c.label, c.Source, c.placed, p.byPosition = c.Source, "", false, true
		} else if braces(*c) {
			c.leaveOut("its header has braces, in which scripts have parameters")
		}
	}
	if same {
		p.guessed("columns are read by their positions, because the header %s has braces, "+
			"in which scripts have parameters: a run does not look at headers then", quoted(header))
	}
}

// leaveOut takes a column from the script.
func (c *Column) leaveOut(why string) {
	c.Type, c.behind, c.empty = expr.Invalid, "", ""
	c.left, c.Evidence = why, "left out: "+why
}

// called returns the column's name for people.
func (c *Column) called(i int) string {
	if c.title() == "" {
		return fmt.Sprintf("column %d", i+1)
	}
	return "column " + quoted(c.title())
}

// title is the column's header, if it has one.
func (c *Column) title() string { return cmp.Or(c.label, c.Source) }
