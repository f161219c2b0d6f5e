package infer

import "bytes"

// numberForm is a notation of numbers: the decimal mark, and the separator of groups of three whole digits
// (0: none).
type numberForm struct{ decimal, thousands byte }

// numberForms lists the forms from the most usual on; of forms that fit equally
// many columns the first is taken.
var numberForms = [...]numberForm{{'.', 0}, {'.', ','}, {',', 0}, {',', '.'}, {',', ' '}, {'.', '\''}, {'.', ' '},
	{',', '\''}}

// digits describes a number in one form.
type digits struct {
	whole, fraction int // digits
	groups          int // separators between thousands
	exponent        bool
	zeros, plus     bool // it has leading zeros, or a plus sign
	large           bool // no int has so many digits, or such a value
}

// numberText takes a number apart; ok is false for other texts. A separator
// of thousands that is not between groups of three is none.
func numberText(text []byte, form numberForm) (d digits, ok bool) {
	rest := text
	if len(rest) > 0 && (rest[0] == '-' || rest[0] == '+') {
		d.plus = rest[0] == '+'
		rest = rest[1:]
	}
	rest, first, ok := wholeDigits(rest, form.thousands, &d)
	if !ok {
		return d, false
	}
	if len(rest) > 0 && rest[0] == form.decimal {
		n := countDigits(rest[1:])
		d.fraction, rest = n, rest[1+n:]
	}
	if d.whole+d.fraction == 0 {
		return d, false
	}
	d.zeros = d.whole > 1 && first == '0'
	if len(rest) > 0 && (rest[0] == 'e' || rest[0] == 'E') {
		rest = rest[1:]
		if len(rest) > 0 && (rest[0] == '-' || rest[0] == '+') {
			rest = rest[1:]
		}
		n := countDigits(rest)
		if n == 0 {
			return d, false
		}
		d.exponent, rest = true, rest[n:]
	}
	const intDigits, largest = 19, "9223372036854775807"
	d.large = d.whole > intDigits || d.whole == intDigits &&
		(form.thousands != 0 || string(bytes.TrimLeft(text, "+-")) > largest)
	return d, len(rest) == 0
}

// wholeDigits passes the digits before the point.
func wholeDigits(text []byte, thousands byte, d *digits) (rest []byte, first byte, ok bool) {
	n := countDigits(text)
	if n > 0 {
		first = text[0]
	}
	d.whole, rest = n, text[n:]
	if thousands == 0 || n == 0 || n > 3 {
		return rest, first, true
	}
	for {
		size := separatorSize(rest, thousands)
		if size == 0 {
			return rest, first, true
		}
		if countDigits(rest[size:]) != 3 || first == '0' {
			return rest, first, false
		}
		d.whole, d.groups, rest = d.whole+3, d.groups+1, rest[size+3:]
	}
}

// separatorSize returns the size in bytes of the separator at the start of text. People write several
// characters for an apostrophe and for a space.
func separatorSize(text []byte, thousands byte) int {
	if len(text) > 0 && text[0] == thousands {
		return 1
	}
	var same []string
	switch thousands {
	case ' ':
		same = []string{"\u00a0", "\u202f"}
	case '\'':
		same = []string{"\u2019"}
	}
	for _, s := range same {
		if bytes.HasPrefix(text, []byte(s)) {
			return len(s)
		}
	}
	return 0
}

func countDigits(text []byte) int {
	n := 0
	for n < len(text) && text[n] >= '0' && text[n] <= '9' {
		n++
	}
	return n
}
