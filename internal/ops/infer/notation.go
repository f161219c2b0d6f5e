package infer

import "slices"

// notation is the number form of a file.
type notation struct {
	form     int
	doubtful bool // they may be written in another way
}

// are reports whether a column is one of numbers in a form.
func (p *profile) are(i int) bool {
	f := p.numbers[i]
	misfits := p.filled() - f.fits
	return !f.dead && f.fits > 0 && (misfits == 0 || tolerable(misfits, p.filled()))
}

// notationOf chooses how numbers are written in a file: by what makes numbers of the
// most columns. Where two forms do it equally well, and differ, it is doubtful.
func notationOf(columns []*profile, separator byte) notation {
	count := func(i int) (n int) {
		for _, p := range columns {
			if p.are(i) {
				n++
			}
		}
		return n
	}
	order := make([]int, len(numberForms))
	for i := range order {
		order[i] = i
	}
	if separator == ';' { // where commas are in numbers, they do not separate values
		slices.SortStableFunc(order[1:],
			func(a, b int) int { return int(numberForms[a].decimal) - int(numberForms[b].decimal) })
	}
	best, most := 0, -1
	for _, i := range order {
		if n := count(i); n > most {
			best, most = i, n
		}
	}
	// Whole numbers are so in all forms; where semicolons separate values, points may be between thousands.
	differs := func(i int) bool {
		return best != 0 || separator == ';' && slices.ContainsFunc(columns,
			func(p *profile) bool { return p.twofold(0, i) })
	}
	doubtful := false
	for _, i := range order {
		if n := count(i); i != best && n == most && numberForms[i].decimal != numberForms[best].decimal && differs(i) {
			doubtful = true
		}
	}
	return decideThousands(columns, notation{best, doubtful})
}

// twofold reports numbers with decimal digits in one form that are whole ones in the other, unless some are too large
// to be without separators there.
func (p *profile) twofold(decimals, thousands int) bool {
	return p.are(decimals) && p.are(thousands) && p.numbers[decimals].most > 0 && p.numbers[thousands].bare == 0
}

// decideThousands looks at columns whose numbers have a separator of thousands in the notation, and are numbers with
// decimal digits in another one: 1.123 beside 10,50. That it is between thousands is known by a number that has it
// twice, or with decimal digits behind it, and by many that have it among small ones that have not. That it is not, by
// thousands without it. What nothing decides stays text; but commas are hardly decimal ones where there are points.
func decideThousands(columns []*profile, n notation) notation {
	form := numberForms[n.form]
	if form.thousands != '.' && form.thousands != ',' {
		return n
	}
	plain := slices.Index(numberForms[:], numberForm{form.thousands, 0})
	sure, bare := false, false
	for _, p := range columns {
		if p.are(n.form) {
			sure, bare = sure || p.numbers[n.form].sure > 0, bare || p.numbers[n.form].bare > 0
		}
	}
	left := false
	for _, p := range columns {
		own := p.numbers[n.form]
		switch small := own.fits - own.grouped - own.bare; {
		case !p.are(n.form) || own.grouped == 0:
		case sure || !p.are(plain) || !bare && small > 0 && own.grouped >= fiftyOne:
			left = true
		case form.thousands == ',' && !bare:
			left, n.doubtful = true, true
		default:
			p.open = true
		}
	}
	if !left {
		n.form = slices.Index(numberForms[:], numberForm{form.decimal, 0})
	}
	return n
}

// ownNotation returns the number form of one of several files. marked: some have decimal digits or separators
// between thousands, and are numbers in the notation of all files as well.
func ownNotation(columns []*profile, separator byte, all notation) (own notation, marked bool) {
	own = notationOf(columns, separator)
	for _, p := range columns {
		n := p.numbers[own.form]
		marked = marked || p.are(own.form) && p.are(all.form) && n.most+int(n.grouped) > 0
		own.doubtful, p.open = own.doubtful || p.open, false // it is the question of all files together
	}
	return own, marked
}
