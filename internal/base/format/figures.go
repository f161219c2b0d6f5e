package format

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// Count writes a number with thousands apart.
func Count(n int64) string {
	s := fmt.Sprintf("%d", n)
	neg := ""
	if n < 0 {
		neg, s = "-", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return neg + s
}

// Counted writes a number of things: 1 batch, 2 batches.
func Counted(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return Count(n) + " " + many
}

// Size writes bytes in binary units.
func Size(n int64) string {
	const unit = 1024
	if n < unit {
		return fmt.Sprintf("%d B", n)
	}
	v, i := float64(n)/unit, 0
	for ; v >= unit && i < 4; i++ {
		v /= unit
	}
	return fmt.Sprintf("%.1f %ciB", v, "KMGTP"[i])
}

// Span writes a time that something took, as pages do: a minute and more as the two largest units that it has. None is
// "-".
func Span(d time.Duration) string {
	switch {
	case d <= 0:
		return "-"
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Minute-time.Second/2:
		return fmt.Sprintf("%.0f s", d.Seconds())
	}
	const day = 24 * time.Hour
	for _, u := range []struct {
		size, rest  time.Duration
		name, small string
	}{{day, time.Hour, "d", "h"}, {time.Hour, time.Minute, "h", "min"}} {
		if whole := d.Round(u.rest); whole >= u.size {
			return inUnits(whole, u.size, u.rest, u.name, u.small)
		}
	}
	return inUnits(d.Round(time.Second), time.Minute, time.Second, "min", "s")
}

func inUnits(d, size, rest time.Duration, name, small string) string {
	text := fmt.Sprintf("%d %s", d/size, name)
	if left := d % size / rest; left > 0 {
		text += fmt.Sprintf(" %d %s", left, small)
	}
	return text
}

// WorkerTime writes what workers spent, as hours or seconds of one worker.
func WorkerTime(d time.Duration) string {
	switch hours, seconds := d.Hours(), d.Seconds(); {
	case hours >= 10:
		return Count(int64(math.Round(hours))) + " worker-hours"
	case hours >= 1:
		return fmt.Sprintf("%.1f worker-hours", hours)
	case seconds > 0 && seconds < 10:
		return fmt.Sprintf("%.1f worker-seconds", seconds)
	default:
		return Count(int64(math.Round(seconds))) + " worker-seconds"
	}
}

// Cost writes what work has cost, and how much of it was lost.
func Cost(worked, lost time.Duration) string {
	text := WorkerTime(worked + lost)
	if lost > 0 {
		text += ", " + Percent(lost, worked+lost) + " lost"
	}
	return text
}

// Percent writes part of whole, rounded: a part is never more than the whole.
func Percent(part, whole time.Duration) string {
	if whole <= 0 || part <= 0 {
		return "0 %"
	}
	return fmt.Sprintf("%.0f %%", min(100*float64(part)/float64(whole), 100))
}

// Piece is a part of a bar.
type Piece struct {
	Letter rune
	Value  int64 // none below 0
}

// Bar draws pieces in a row of letters so wide: each as long as it is large,
// the whole as long as whole allows. Lengths are rounded so that they add up:
// what is drawn of several pieces is as long as the sum of them.
func Bar(width int, whole int64, pieces ...Piece) string {
	var b strings.Builder
	if whole <= 0 {
		return ""
	}
	var sum int64
	drawn := 0
	for _, p := range pieces {
		sum += max(p.Value, 0)
		end := min(int((float64(sum)/float64(whole))*float64(width)+0.5), width)
		for ; drawn < end; drawn++ {
			b.WriteRune(p.Letter)
		}
	}
	return b.String()
}

// Lengths draws bars of values, the largest being as long as width allows; any
// that is not 0 can be seen.
func Lengths(width int, values []int64) []string {
	var most int64
	for _, v := range values {
		most = max(most, v)
	}
	bars := make([]string, len(values))
	for i, v := range values {
		bars[i] = Bar(width, most, Piece{Letter: '█', Value: v})
		if v > 0 && bars[i] == "" {
			bars[i] = "▏"
		}
	}
	return bars
}
