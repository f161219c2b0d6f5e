package allowance

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// None is the text of a limit that is none.
const None = "none"

// Hints say how limits are written.
const (
	ElapsedHint = "write a time such as 2h or 90m, or none"
	CostHint    = "write US dollars such as 12.50, or none"
)

// decimals is the number of digits behind the point of an amount.
const decimals = 6

// Elapsed reads a time that a run may take, which is a millisecond at least; None is 0.
func Elapsed(text string) (time.Duration, error) {
	if text == None {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < time.Millisecond {
		return 0, fmt.Errorf("%q is no time that a run may take", text)
	}
	return d, nil
}

// Cost reads what a run may cost, in millionths of a dollar, which is one at least; None is 0.
func Cost(text string) (int64, error) {
	if text == None {
		return 0, nil
	}
	n, err := Dollars(text)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("%q is nothing that a run may cost", text)
	}
	return n, nil
}

// Dollars reads an amount in US dollars, such as 0.03988, in millionths: digits with at most six behind the point,
// exactly as they are written. It has no sign, and nothing else that a number can be: no exponent, no NaN.
func Dollars(text string) (int64, error) {
	whole, rest, pointed := strings.Cut(text, ".")
	if len(rest) > decimals {
		return 0, fmt.Errorf("%q has more than %d digits behind the point", text, decimals)
	}
	digits := whole + rest
	if whole == "" || pointed && rest == "" || strings.Trim(digits, "0123456789") != "" {
		return 0, fmt.Errorf("%q is not an amount such as 0.0725", text)
	}
	n, err := strconv.ParseInt(digits+strings.Repeat("0", decimals-len(rest)), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is too much", text)
	}
	return n, nil
}
