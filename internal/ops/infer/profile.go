package infer

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"strings"
	"unicode/utf8"
)

const (
	// sampleRows of a file say which forms are worth trying on all of it, and how
	// many different texts a column has.
	sampleRows = 2_000
	// exampleChars of a value are shown as evidence.
	exampleChars = 24
)

// profile sums up a column during a pass over a file.
type profile struct {
	rows, blank int64
	nulls       map[string]int64    // texts that usually stand for nothing
	least, most string              // of the texts, cut off
	different   map[uint64]struct{} // hashes of the first texts
	sampled     int64
	seed        maphash.Seed

	bools   form
	numbers [len(numberForms)]numbers
	times   []times
	open    bool // its numbers can be read in two ways, and nothing decides
}

// form counts how well the values of a column fit one form.
type form struct {
	fits   int64
	missed bool // there is a misfit
	misfit misfit
	dead   bool // it does not fit most of the sample, so it is not tried any more
}

// misfit is the first value that does not fit.
type misfit struct {
	text string
	line int64
	file string // if there are several
}

func (m misfit) String() string {
	if m.file != "" {
		return fmt.Sprintf("%s in line %d of %s", quoted(m.text), m.line, m.file)
	}
	return fmt.Sprintf("%s in line %d", quoted(m.text), m.line)
}

type numbers struct {
	form
	whole         int   // most digits before the point
	least, most   int   // digits behind it
	zeros, pluses int64 // with leading zeros, or plus signs
	grouped, sure int64 // with separators between thousands; with several, or with decimal digits, too
	bare          int64 // of thousands and more without separators
	exponents     bool
	large         bool
	fractionsSeen bool
}

type times struct {
	form
	layout   string
	fraction int // most digits behind the second
}

func newProfile(seed maphash.Seed) *profile {
	p := &profile{seed: seed, nulls: map[string]int64{}, different: map[uint64]struct{}{}}
	for _, layout := range layouts() {
		p.times = append(p.times, times{layout: layout})
	}
	return p
}

// nullLike lists texts that usually stand for a missing value.
func nullLike() []string {
	return []string{"NULL", "null", "Null", "NA", "N/A", "n/a", "na", "N.A.", "n.a.", "#N/A", "<NA>",
		`\N`, "None", "none", "nil", "NaN", "nan",
		"-", "--", "?", "unknown", "Unknown", "UNKNOWN"}
}

// nullLength is the most bytes of such a text.
const nullLength = 7

// filled counts the values that say something.
func (p *profile) filled() int64 {
	n := p.rows - p.blank
	for _, count := range p.nulls {
		n -= count
	}
	return n
}

// add takes a value of a line. nulls has what usually stands for nothing.
func (p *profile) add(text []byte, line int64, nulls map[string]struct{}) {
	p.rows++
	if len(bytes.TrimSpace(text)) == 0 {
		p.blank++
		return
	}
	if len(text) <= nullLength {
		if _, ok := nulls[string(text)]; ok {
			p.nulls[string(text)]++
			return
		}
	}
	p.look(text)
	p.tryBool(text, line)
	p.tryNumber(text, line)
	p.tryTimes(text, line)
	if p.rows == sampleRows {
		p.giveUp()
	}
}

// look keeps what is shown of texts.
func (p *profile) look(text []byte) {
	if p.least == "" || string(text) < p.least {
		p.least = short(text)
	}
	if string(text) > p.most {
		p.most = short(text)
	}
	if p.rows <= sampleRows {
		p.sampled++
		p.different[maphash.Bytes(p.seed, text)] = struct{}{}
	}
}

// short is the beginning of a text, in whole characters.
func short(text []byte) string {
	n, at := 0, 0
	for at < len(text) && n < exampleChars {
		_, size := utf8.DecodeRune(text[at:])
		at, n = at+size, n+1
	}
	return strings.ToValidUTF8(string(text[:at]), "\ufffd")
}

func (f *form) miss(text []byte, line int64) {
	if !f.missed {
		f.missed, f.misfit = true, misfit{text: short(text), line: line}
	}
}

func (p *profile) tryBool(text []byte, line int64) {
	switch {
	case p.bools.dead:
	case len(text) <= len("false") && (strings.EqualFold(string(text), "true") ||
		strings.EqualFold(string(text), "false")):
		p.bools.fits++
	default:
		p.bools.miss(text, line)
	}
}

func (p *profile) tryNumber(text []byte, line int64) {
	for i := range p.numbers {
		n := &p.numbers[i]
		if n.dead {
			continue
		}
		d, ok := numberText(text, numberForms[i])
		if !ok {
			n.miss(text, line)
			continue
		}
		n.fits++
		if d.zeros {
			n.zeros++
		}
		if d.plus {
			n.pluses++
		}
		n.countGroups(d)
		n.whole, n.large, n.exponents = max(n.whole, d.whole), n.large || d.large, n.exponents || d.exponent
		if n.most = max(n.most, d.fraction); !n.fractionsSeen || d.fraction < n.least {
			n.least, n.fractionsSeen = d.fraction, true
		}
	}
}

// countGroups tells what the separators of thousands are, if they are any.
func (n *numbers) countGroups(d digits) {
	const groupDigits = 3
	switch {
	case d.groups > 1 || d.groups == 1 && d.fraction > 0:
		n.sure++
		n.grouped++
	case d.groups == 1:
		n.grouped++
	case d.whole > groupDigits:
		n.bare++
	}
}

func (p *profile) tryTimes(text []byte, line int64) {
	may, tried := true, false
	for i := range p.times {
		t := &p.times[i]
		if t.dead {
			continue
		}
		if !tried {
			may, tried = mayBeTime(text), true
		}
		fraction, ok := 0, false
		if may {
			fraction, ok = timeText(text, t.layout)
		}
		if !ok {
			t.miss(text, line)
			continue
		}
		t.fits++
		t.fraction = max(t.fraction, fraction)
	}
}

// giveUp stops trying what hardly fits.
func (p *profile) giveUp() {
	half := p.filled() / 2
	hopeless := func(f *form) { f.dead = f.fits <= half && p.filled() > 0 }
	hopeless(&p.bools)
	for i := range p.numbers {
		hopeless(&p.numbers[i].form)
	}
	for i := range p.times {
		hopeless(&p.times[i].form)
	}
}

// merge adds what another file tells of the column.
func (p *profile) merge(o *profile, file string) {
	p.rows, p.blank = p.rows+o.rows, p.blank+o.blank
	p.sampled += o.sampled
	for text, n := range o.nulls {
		p.nulls[text] += n
	}
	if p.least == "" || o.least != "" && o.least < p.least {
		p.least = o.least
	}
	p.most = max(p.most, o.most)
	for hash := range o.different {
		p.different[hash] = struct{}{}
	}
	// A form that was given up in one file may fit few of its values, none is known of the rest.
	p.bools.merge(o.bools, file)
	for i := range p.numbers {
		n, other := &p.numbers[i], o.numbers[i]
		n.form.merge(other.form, file)
		n.zeros, n.pluses = n.zeros+other.zeros, n.pluses+other.pluses
		n.grouped, n.sure, n.bare = n.grouped+other.grouped, n.sure+other.sure, n.bare+other.bare
		n.whole, n.large, n.exponents = max(n.whole, other.whole), n.large || other.large,
			n.exponents || other.exponents
		if n.most = max(n.most, other.most); other.fractionsSeen && (!n.fractionsSeen || other.least < n.least) {
			n.least, n.fractionsSeen = other.least, true
		}
	}
	for i := range p.times {
		p.times[i].form.merge(o.times[i].form, file)
		p.times[i].fraction = max(p.times[i].fraction, o.times[i].fraction)
	}
}

func (f *form) merge(o form, file string) {
	f.fits += o.fits
	f.dead = f.dead || o.dead
	if !f.missed {
		f.missed, f.misfit = o.missed, o.misfit
		f.misfit.file = file
	}
}
