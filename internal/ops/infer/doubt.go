package infer

import (
	"fmt"
	"slices"
	"strings"
)

// Doubt is a point that the proposal leaves out or guesses.
type Doubt struct {
	Kind DoubtKind `json:"kind"`
	Text string    `json:"text"`
}

// DoubtKind names the effect of a doubt on the data.
type DoubtKind string

// The kinds.
const (
	LeftOut DoubtKind = "left out" // files, sheets, columns
	Aside   DoubtKind = "put aside"
	Guessed DoubtKind = "guessed" // it could be read otherwise
)

// doubt keeps what people are told of, and as a comment if the script does not say it elsewhere.
func (p *Proposal) doubt(kind DoubtKind, comment bool, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if comment {
		p.Notes = append(p.Notes, text)
	}
	if d := (Doubt{kind, strings.Replace(text, " is left out: ", ": ", 1)}); !slices.Contains(p.Doubts, d) {
		p.Doubts = append(p.Doubts, d)
	}
}

func (p *Proposal) guessed(format string, args ...any) { p.doubt(Guessed, true, format, args...) }

func (p *Proposal) leftOut(format string, args ...any) { p.doubt(LeftOut, true, format, args...) }

// sayColumns tells what columns are left out, and whose types are guessed.
func (p *Proposal) sayColumns() {
	for i := range p.Columns {
		c := &p.Columns[i]
		switch {
		case c.left != "":
			p.doubt(LeftOut, false, "%s: %s", c.called(i), c.left)
		case c.guess != "":
			p.doubt(Guessed, false, "%s: %s", c.called(i), c.guess)
		}
	}
	if p.BadRows > 0 {
		what, _ := p.badRows()
		p.doubt(Aside, false, "%s", what)
	}
}
