package infer

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"thalweg/internal/lang/expr"
)

// csvFiles are files of CSV that are read together.
type csvFiles struct {
	*Proposal
	list    []inputFile
	columns []*profile // of the proposal
}

// survey implements kind: it passes over each file.
func (p *csvFiles) survey(ctx context.Context, o Options) ([]inputFile, error) {
	shapes, err := p.shapes(ctx, o)
	if err != nil {
		return nil, err
	}
	p.Files = nil
	for _, f := range shapes {
		if len(p.list) == 0 {
			p.begin(f, o)
		} else if why := p.unlike(p.list[0], f); why != "" {
			p.leftOut("%s is left out: %s, so it needs a node of its own", f.name, why)
			continue
		}
		if len(p.list) > 0 {
			p.sayGuesses(f)
		}
		if err := p.scan(ctx, p.texts[f.name], &f, o); err != nil {
			return nil, err
		}
		p.list, p.Files = append(p.list, f), append(p.Files, f.name)
	}
	p.columns = p.union(p.list)
	return p.list, nil
}

// choose implements kind.
func (p *csvFiles) choose() {
	p.withoutBraces(p.list)
	n := notationOf(p.columns, p.Separator)
	p.sayNumbers(numberForms[n.form], n.doubtful)
	if !n.doubtful {
		p.sayBorrowed(p.list, n)
	}
	days := orderOf(p.columns)
	for i := range p.Columns {
		if c := &p.Columns[i]; c.left == "" {
			c.choose(p.columns[i], n.form, days)
		}
	}
	p.sayZone()
	p.sayDifferences(p.list, n.form, days)
}

// shapes finds out how each file is to be cut.
func (p *Proposal) shapes(ctx context.Context, o Options) (list []inputFile, err error) {
	for n, name := range p.Files {
		f := inputFile{name: name, at: map[int]int{}}
		if f.encoding, err = p.plainText(ctx, name, n, o); err != nil {
			return nil, err
		}
		if f.shape, err = shapeOf(ctx, p.texts[name], name, o); err != nil {
			return nil, err
		}
		list = append(list, f)
	}
	if o.Header == HeaderGuess {
		p.agreeOnHeader(list)
	}
	return list, nil
}

// begin takes over what the first file is like.
func (p *Proposal) begin(f inputFile, o Options) {
	p.Encoding, p.Separator, p.HasHeader, p.Above = f.encoding, f.shape.separator, f.shape.header, f.shape.skip
	p.Notes = append(p.Notes, f.shape.notes...)
	p.sayGuesses(f)
	switch {
	case o.Header != HeaderGuess:
	case f.shape.header && f.shape.only:
		p.guessed("the only record of %s was taken for a header ({{set no-header}} if it is data)", f.name)
	case f.shape.header:
		p.Notes = append(p.Notes, "the first record was taken for a header ({{set no-header}} if it is data)")
	default:
		p.Notes = append(p.Notes, "the first record was taken for data ({{set header}} if it is a header)")
	}
}

// sayGuesses tells how a file was cut, where it could be otherwise.
func (p *Proposal) sayGuesses(f inputFile) {
	for _, guess := range f.shape.guesses {
		p.guessed("%s", guess)
	}
}

// agreeOnHeader: a first record that is another file's header is one. If all files begin with the same
// record, and there are names in it, it is none of their data.
func (p *Proposal) agreeOnHeader(list []inputFile) {
	headed, same := -1, len(list) > 1
	for i, f := range list {
		if f.shape.header && headed < 0 {
			headed = i
		}
		same = same && slices.Equal(f.shape.names, list[0].shape.names)
	}
	if headed < 0 {
		if !same || !slices.ContainsFunc(list[0].shape.names,
			func(cell string) bool { return kindOfCell(cell) == word }) {
			return
		}
		headed = 0
		p.guessed("all files begin with the same record: it was taken for a header ({{set no-header}} if it is data)")
	}
	for i := range list {
		if s := &list[i].shape; slices.Equal(s.names, list[headed].shape.names) {
			s.header = true
		}
	}
}

// unlike says why a file cannot be read as the first one is.
func (p *Proposal) unlike(first, f inputFile) string {
	switch {
	case f.encoding != p.Encoding:
		return fmt.Sprintf("its text is in %s", encodingName(f.encoding))
	case f.shape.separator != first.shape.separator && f.shape.fields > 1:
		return fmt.Sprintf("its fields are separated by %q", f.shape.separator)
	case f.shape.header != first.shape.header && first.shape.header:
		return "its first record is no header"
	case f.shape.header != first.shape.header:
		return "its first record seems to be a header"
	case f.shape.skip != first.shape.skip:
		return fmt.Sprintf("%s above its header", linesAre(f.shape.skip))
	case !f.shape.header && f.shape.fields != first.shape.fields:
		return fmt.Sprintf("it has %s, %s has %d", counted(int64(f.shape.fields), "column"), first.name,
			first.shape.fields)
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
		case numberForm{'.', ','}:
			other = "commas before their decimal digits"
		}
		p.guessed("numbers could have %s as well: look whether the values are right", other)
	}
}

// sayBorrowed tells whose numbers alone could be read otherwise than all of them are: as other files show.
func (p *Proposal) sayBorrowed(list []inputFile, all notation) {
	const namedMax = 3
	var unsure []string
	shows := ""
	for _, f := range list {
		alone, marked := ownNotation(f.found.columns, p.Separator, all)
		switch same := numberForms[alone.form].decimal == numberForms[all.form].decimal; {
		case alone.doubtful || marked && !same:
			unsure = append(unsure, f.name)
		case marked && shows == "":
			shows = f.name
		}
	}
	if len(unsure) > 0 && len(unsure) < len(list) {
		p.guessed("numbers of %s could be read in two ways, and are read as those of %s are: look whether the values "+
			"are right",
			listed(unsure, namedMax), cmp.Or(shows, "the other files"))
	}
}

// sayZone takes times that are too fine for a datetime for those of UTC.
func (p *Proposal) sayZone() {
	for i := range p.Columns {
		if p.Columns[i].unzoned() && p.Zone == "" {
			p.Zone = "UTC"
			p.guessed("times without a zone that are finer than a millisecond were taken for those of UTC: see zone")
		}
	}
}

// sayDifferences names columns that not all files have, or whose values are of
// other types in some.
func (p *Proposal) sayDifferences(list []inputFile, numbers int, days dayOrder) {
	const namedMax = 3
	for i := range p.Columns {
		c := &p.Columns[i]
		if c.left != "" {
			continue
		}
		var unlike []string
		for _, f := range list {
			at, has := f.at[i]
			if !has {
				continue
			}
			var own Column
			own.Type = expr.String
			own.choose(f.found.columns[at], numbers, days)
			if f.found.columns[at].filled() > 0 && own.Type != c.Type {
				unlike = append(unlike, fmt.Sprintf("%s in %s", own.Type, f.name))
			}
		}
		if names := without(list, i); c.Optional && names != "" {
			c.behind += "; not in " + names
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
