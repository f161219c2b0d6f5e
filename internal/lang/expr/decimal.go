package expr

import (
	"math/big"
	"strings"
)

// Decimals are DuckDB DECIMALs of two shapes: narrow ones of 18 digits, which
// DuckDB computes in 64-bit integers, and wide ones of 38 digits. The number
// of digits after the point is known at load time.
const (
	narrowDigits  = 18
	wideDigits    = 38
	columnScale   = 2  // digits after the point of a table field
	quotientScale = 16 // of a division, and of a decimal whose digits are known only at run time

	// finestScale is the most digits after the point of a decimal of a file:
	// those that 38 leave beside the 16 before it.
	finestScale = wideDigits - (narrowDigits - columnScale)
)

// decimalType is the physical type of a decimal value.
type decimalType struct {
	wide  bool
	scale int
	// digits of the types that scripts name with theirs; 0: all that the shape has.
	digits int

	// open values come from files: this is the type that holds all of them, but
	// theirs is known only when the file is read. Mostly it is a column's.
	open bool
	// fine values are of open ones, by a choice or a sum: this is their type.
	fine bool
}

// ofFiles reports that values may have all the digits that files have, so that
// a product cannot.
func (t decimalType) ofFiles() bool { return t.open || t.fine }

// openDecimal is the type of decimals of files.
func openDecimal() decimalType { return decimalType{wide: true, scale: finestScale, open: true} }

// number is an exact decimal constant: mantissa / 10^scale.
type number struct {
	mantissa *big.Int
	scale    int
}

func pow10(n int) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil) }

// parseNumber reads [+-]digits[.digits][e[+-]digits]; ok is false for other
// text and for exponents beyond what a wide decimal could hold.
func parseNumber(text string) (n number, ok bool) {
	const maxExponent = 2 * wideDigits
	body, exponent := text, 0
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		e, valid := new(big.Int).SetString(text[i+1:], 10)
		if !valid || !e.IsInt64() || e.Int64() > maxExponent || e.Int64() < -10*maxExponent {
			return number{}, false
		}
		body, exponent = text[:i], int(e.Int64())
	}
	digits := strings.TrimLeft(body, "+-")
	if len(body)-len(digits) > 1 {
		return number{}, false
	}
	whole, fraction, _ := strings.Cut(digits, ".")
	if whole+fraction == "" || strings.Trim(whole+fraction, "0123456789") != "" {
		return number{}, false
	}
	m, _ := new(big.Int).SetString(whole+fraction, 10)
	if strings.HasPrefix(body, "-") {
		m.Neg(m)
	}
	n = number{m, len(fraction) - exponent}
	if n.scale < 0 {
		n = number{m.Mul(m, pow10(-n.scale)), 0}
	}
	return n.trim(), true
}

// trim drops zeros at the end.
func (n number) trim() number {
	m, rest := new(big.Int).Set(n.mantissa), new(big.Int)
	ten := big.NewInt(10)
	for n.scale > 0 {
		q, r := new(big.Int).QuoRem(m, ten, rest)
		if r.Sign() != 0 {
			break
		}
		m, n.scale = q, n.scale-1
	}
	return number{m, n.scale}
}

// round rounds half away from zero to at most scale digits after the point.
func (n number) round(scale int) number {
	if n.scale <= scale {
		return n
	}
	unit := pow10(n.scale - scale)
	q, r := new(big.Int).QuoRem(n.mantissa, unit, new(big.Int))
	if r.Abs(r).Lsh(r, 1).Cmp(unit) >= 0 {
		q.Add(q, big.NewInt(int64(n.mantissa.Sign())))
	}
	return number{q, scale}.trim()
}

// at returns the mantissa that n has with scale digits after the point; scale ≥ n.scale.
func (n number) at(scale int) *big.Int {
	return new(big.Int).Mul(n.mantissa, pow10(scale-n.scale))
}

// digits counts those of n with scale digits after the point; scale ≥ n.scale.
func (n number) digits(scale int) int { return len(new(big.Int).Abs(n.at(scale)).String()) }

// text writes n with exactly scale digits after the point; scale ≥ n.scale.
func (n number) text(scale int) string {
	m := n.at(scale)
	digits := new(big.Int).Abs(m).String()
	if len(digits) <= scale {
		digits = strings.Repeat("0", scale-len(digits)+1) + digits
	}
	if scale > 0 {
		digits = digits[:len(digits)-scale] + "." + digits[len(digits)-scale:]
	}
	if m.Sign() < 0 {
		digits = "-" + digits
	}
	return digits
}

// String writes n as Go prints a decimal: no zeros at the end.
func (n number) String() string { t := n.trim(); return t.text(t.scale) }

// shape is the smallest decimal type that holds n; ok is false if none does.
func (n number) shape() (t decimalType, ok bool) {
	digits := len(new(big.Int).Abs(n.mantissa).String())
	digits = max(digits, n.scale)
	return decimalType{wide: digits > narrowDigits, scale: n.scale}, digits <= wideDigits
}
