package price

import (
	"math"
	"math/big"
	"strings"
	"time"

	"thalweg/internal/base/allowance"
)

// Money is an amount of US dollars in millionths, as whole numbers: sums of it are exact.
type Money int64

// Dollar is one US dollar.
const Dollar Money = 1_000_000

// decimals is the number of digits behind the point that Money has.
const decimals = 6

// For returns what a time costs at m an hour, rounded to a millionth, half away from zero. Beyond what Money can
// hold, it is the most that it can.
func (m Money) For(d time.Duration) Money {
	product := new(big.Int).Mul(big.NewInt(int64(m)), big.NewInt(int64(d)))
	hour := big.NewInt(int64(time.Hour))
	product.Mul(product, big.NewInt(2))
	if product.Sign() < 0 {
		product.Sub(product, hour)
	} else {
		product.Add(product, hour)
	}
	return clamped(product.Quo(product, hour.Lsh(hour, 1)))
}

// Times returns n times the amount; beyond what Money can hold, it is the most that it can.
func (m Money) Times(n int) Money {
	return clamped(new(big.Int).Mul(big.NewInt(int64(m)), big.NewInt(int64(n))))
}

func clamped(n *big.Int) Money {
	switch {
	case n.IsInt64():
		return Money(n.Int64())
	case n.Sign() < 0:
		return math.MinInt64
	}
	return math.MaxInt64
}

// USD returns the amount as a number, for ratios and charts; sums of such numbers drift.
func (m Money) USD() float64 { return float64(m) / float64(Dollar) }

// Text writes the amount with so many digits behind the point, 0 to 6, rounded half away from zero: $14.0053.
func (m Money) Text(digits int) string {
	unit := int64(1)
	for range decimals - digits {
		unit *= 10
	}
	sign, n := "", new(big.Int).Abs(big.NewInt(int64(m)))
	n.Add(n, big.NewInt(unit/2)).Quo(n, big.NewInt(unit))
	if m < 0 && n.Sign() != 0 {
		sign = "-"
	}
	return sign + "$" + pointed(n.String(), digits)
}

// pointed puts the point before the last digits of a whole number.
func pointed(whole string, digits int) string {
	if digits == 0 {
		return whole
	}
	whole = strings.Repeat("0", max(0, digits+1-len(whole))) + whole
	return whole[:len(whole)-digits] + "." + whole[len(whole)-digits:]
}

// String writes the amount in cents, and one of less than a dime with its first two figures: $0.72, $0.0051. It is how
// amounts are shown wherever no table has its own digits.
func (m Money) String() string {
	const cents = 2
	digits, n := cents, new(big.Int).Abs(big.NewInt(int64(m)))
	for least := int64(Dollar / 10); n.Sign() != 0 && digits < decimals && n.Cmp(big.NewInt(least)) < 0; least /= 10 {
		digits++
	}
	return m.Text(digits)
}

// MarshalJSON writes the amount as a number of US dollars with all of its digits.
func (m Money) MarshalJSON() ([]byte, error) {
	text := strings.Replace(m.Text(decimals), "$", "", 1)
	return []byte(strings.TrimRight(strings.TrimRight(text, "0"), ".")), nil
}

// UnmarshalJSON reads what MarshalJSON writes.
func (m *Money) UnmarshalJSON(text []byte) (err error) {
	negative := strings.HasPrefix(string(text), "-")
	*m, err = Parse(strings.TrimPrefix(string(text), "-"))
	if negative {
		*m = -*m
	}
	return err
}

// Parse reads an amount in US dollars, such as 0.03988: see allowance.Dollars.
func Parse(text string) (Money, error) {
	n, err := allowance.Dollars(text)
	return Money(n), err
}
