package infer

import (
	"context"
	"fmt"
	"strings"

	"thalweg/internal/expr"
)

// csvFile is one CSV file, and what a pass over it has told.
type csvFile struct {
	name  string
	shape shape
	found scanned
	at    map[int]int // its field, by column of the proposal
}

// csv looks at all of the files, then reads them with the types that follow.
func (p *Proposal) csv(ctx context.Context, o Options) error {
	list, err := p.lookThrough(ctx, o)
	if err != nil {
		return err
	}
	columns := p.union(list)
	best, doubtful := formOf(columns, p.Separator)
	p.sayNumbers(numberForms[best], doubtful)
	days := orderOf(columns)
	for i := range p.Columns {
		if c := &p.Columns[i]; c.left == "" {
			c.choose(columns[i], best, days)
		}
	}
	p.sayZone()
	p.sayDifferences(list, best, days)
	return p.finish(ctx, o)
}

// lookThrough passes over each file. Files that cannot be read with the first are left out.
func (p *Proposal) lookThrough(ctx context.Context, o Options) (list []csvFile, err error) {
	kept := p.Files[:0:0]
	for n, name := range p.Files {
		encoding, err := p.plainText(ctx, name, n, o)
		if err != nil {
			return nil, err
		}
		s, err := shapeOf(ctx, p.texts[name], name, o)
		if err != nil {
			return nil, err
		}
		f := csvFile{name: name, shape: s, at: map[int]int{}}
		if len(list) == 0 {
			p.Encoding, p.Separator, p.HasHeader, p.Above = encoding, s.separator, s.header, s.skip
			p.Notes = append(p.Notes, s.notes...)
		} else if why := p.unlike(list[0], f, encoding); why != "" {
			p.leftOut("%s is left out: %s, so it needs a node of its own", name, why)
			continue
		}
		if f.found, err = scan(ctx, p.texts[name], name, s, o.Threads, p.seed, progressOf(name, p.texts[name], o)); err != nil {
			return nil, err
		}
		if err := f.found.tooBroken(); err != nil {
			return nil, err
		}
		p.badStructure += f.found.bad
		list, kept = append(list, f), append(kept, name)
	}
	p.Files = kept
	return list, nil
}

// unlike says why a file cannot be read as the first one is.
func (p *Proposal) unlike(first, f csvFile, encoding string) string {
	switch {
	case encoding != p.Encoding:
		return fmt.Sprintf("its text is in %s", encodingName(encoding))
	case f.shape.separator != first.shape.separator && f.shape.fields > 1:
		return fmt.Sprintf("its fields are separated by %q", f.shape.separator)
	case f.shape.header != first.shape.header && first.shape.header:
		return "its first record is no header"
	case f.shape.header != first.shape.header:
		return "its first record seems to be a header"
	case f.shape.skip != first.shape.skip:
		return fmt.Sprintf("%s above its header", linesAre(f.shape.skip))
	case !f.shape.header && f.shape.fields != first.shape.fields:
		return fmt.Sprintf("it has %s, %s has %d", counted(int64(f.shape.fields), "column"), first.name, first.shape.fields)
	}
	return ""
}

func encodingName(name string) string {
	if name == "" {
		return "UTF-8"
	}
	return name
}

// sayNumbers keeps what the script has to say of numbers.
func (p *Proposal) sayNumbers(form numberForm, doubtful bool) {
	if form.decimal == ',' {
		p.Decimal = ","
	}
	if form.thousands != 0 {
		p.Thousands = string(form.thousands)
	}
	if doubtful {
		other := "a decimal comma"
		switch form {
		case numberForms[0]:
			other = "points between thousands"
		case numberForm{',', 0}:
			other = "commas between thousands"
		}
		p.Notes = append(p.Notes, fmt.Sprintf("numbers could have %s as well: look whether the values are right", other))
	}
}

// sayZone takes times that are too fine for a datetime for those of UTC.
func (p *Proposal) sayZone() {
	for i := range p.Columns {
		if p.Columns[i].unzoned() && p.Zone == "" {
			p.Zone = "UTC"
			p.Notes = append(p.Notes, "times without a zone that are finer than a millisecond were taken for those of UTC: see zone")
		}
	}
}

// sayDifferences names columns that not all files have, or whose values are of
// other types in some.
func (p *Proposal) sayDifferences(list []csvFile, numbers int, days dayOrder) {
	const namedMax = 3
	for i := range p.Columns {
		c := &p.Columns[i]
		if c.left != "" {
			continue
		}
		var without, unlike []string
		for _, f := range list {
			at, has := f.at[i]
			if !has {
				without = append(without, f.name)
				continue
			}
			var own Column
			own.Type = expr.String
			own.choose(f.found.columns[at], numbers, days)
			if f.found.columns[at].filled() > 0 && own.Type != c.Type {
				unlike = append(unlike, fmt.Sprintf("%s in %s", own.Type, f.name))
			}
		}
		if c.Optional && len(without) > 0 {
			c.behind += "; not in " + listed(without, namedMax)
		}
		if len(list) > 1 && len(unlike) > 0 && len(unlike) < len(list) {
			c.behind += "; " + listed(unlike, namedMax)
		}
	}
}

func listed(names []string, most int) string {
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
