package calendar_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"thalweg/internal/base/calendar"
	"thalweg/internal/test/effort"
)

// reference finds the moments of an expression by looking at every minute.
type reference struct {
	fields [5]map[int]bool
	star   [5]bool // the field is *
	hands  bool
}

// referenceOf reads fields of numbers, names, ranges, steps and lists.
func referenceOf(expr string) (r reference) {
	least, most := [5]int{0, 0, 1, 1, 0}, [5]int{59, 23, 31, 12, 6}
	for i, field := range strings.Fields(expr) {
		r.fields[i], r.star[i] = map[int]bool{}, field == "*"
		for item := range strings.SplitSeq(field, ",") {
			span, step, stepped := strings.Cut(item, "/")
			by := 1
			if stepped {
				by, _ = strconv.Atoi(step)
			}
			from, to := least[i], most[i]
			if span != "*" {
				a, b, ranged := strings.Cut(span, "-")
				if from = number(a); ranged {
					to = number(b)
				} else if !stepped {
					to = from
				}
			}
			for n := from; n <= to; n += by {
				if i == 4 {
					r.fields[i][n%7] = true
				} else {
					r.fields[i][n] = true
				}
			}
		}
	}
	text := strings.Fields(expr)
	r.hands = strings.HasPrefix(text[0], "*") || strings.HasPrefix(text[1], "*")
	return r
}

func number(text string) int {
	names := map[string]int{"sun": 0, "mon": 1, "tue": 2, "wed": 3, "thu": 4, "fri": 5, "sat": 6, "jan": 1, "feb": 2,
		"mar": 3, "apr": 4, "oct": 10, "dec": 12}
	if n, ok := names[strings.ToLower(text)]; ok {
		return n
	}
	n, _ := strconv.Atoi(text)
	return n
}

// matches reports whether the hands of a clock show a moment of the expression.
func (r reference) matches(at time.Time) bool {
	dom, dow := r.fields[2][at.Day()], r.fields[4][int(at.Weekday())]
	day := dom && dow
	if !r.star[2] && !r.star[4] {
		day = dom || dow
	}
	return r.fields[0][at.Minute()] && r.fields[1][at.Hour()] && r.fields[3][int(at.Month())] && day
}

// moments are those of some days: of the hands at each minute that really passes;
// of times of day the first minute at which a clock shows them, or, where it jumps
// over them, the one at which it jumps.
func (r reference) moments(begin, end time.Time, zone *time.Location) (out []time.Time) {
	shown := map[string]bool{}
	last := begin.Add(-3 * time.Hour).In(zone)
	for at := begin.Add(-3 * time.Hour).Truncate(time.Minute); at.Before(end); at = at.Add(time.Minute) {
		here := at.In(zone)
		hit := false
		if r.hands {
			hit = r.matches(here)
		} else {
			_, before := last.Zone()
			_, now := here.Zone()
			for skipped := before; skipped < now; skipped += 60 { // minutes that the clock leaves out
				fake := at.In(time.FixedZone("", skipped))
				if !shown[fake.Format("01-02 15:04")] {
					hit = hit || r.matches(fake)
				}
				shown[fake.Format("01-02 15:04")] = true
			}
			if name := here.Format("01-02 15:04"); !shown[name] {
				hit, shown[name] = hit || r.matches(here), true
			}
		}
		if last = here; hit && at.After(begin) {
			out = append(out, at)
		}
	}
	return out
}

// Random expressions have the moments that looking at every minute finds, around
// all the days on which clocks are changed.
func TestMomentsAreThoseOfEveryMinute(t *testing.T) {
	t.Parallel()
	days := map[string][]string{
		"Europe/Berlin":       {"2026-03-28", "2026-10-24"},
		"America/New_York":    {"2026-03-07", "2026-10-31"},
		"America/Santiago":    {"2026-04-04", "2026-09-05"},
		"Australia/Lord_Howe": {"2026-04-04", "2026-10-03"},
		"Africa/Casablanca":   {"2026-02-14", "2026-03-21"},
		"Asia/Kolkata":        {"2028-02-28"},
		"UTC":                 {"2028-02-28", "2026-12-30"},
	}
	zones := []string{"Europe/Berlin", "America/New_York", "America/Santiago", "Australia/Lord_Howe",
		"Africa/Casablanca", "Asia/Kolkata", "UTC"}
	field := func(t *rapid.T, name string, low, high int) string {
		n := func(what string) int { return rapid.IntRange(low, high).Draw(t, name+what) }
		switch rapid.IntRange(0, 6).Draw(t, name) {
		case 0, 1:
			return "*"
		case 2:
			return fmt.Sprint(n("one"))
		case 3:
			a, b := n("a"), n("b")
			return fmt.Sprintf("%d-%d", min(a, b), max(a, b))
		case 4:
			return fmt.Sprintf("*/%d", rapid.IntRange(2, 7).Draw(t, name+"step"))
		case 5:
			a, b := n("a"), n("b")
			return fmt.Sprintf("%d-%d/%d", min(a, b), max(a, b), min(rapid.IntRange(1, 4).Draw(t, name+"step"),
				max(1, max(a, b)-min(a, b))))
		}
		return fmt.Sprintf("%d,%d", n("a"), n("b"))
	}
	tried := 0
	rapid.Check(t, func(t *rapid.T) {
		if tried++; tried > effort.Of(15, 60, 5000) { // the package makes many more
			return
		}
		name := rapid.SampledFrom(zones).Draw(t, "zone")
		zone, err := calendar.ParseZone(name)
		require.NoError(t, err)
		day, err := time.ParseInLocation(time.DateOnly, rapid.SampledFrom(days[name]).Draw(t, "day"), zone)
		require.NoError(t, err)
		weekdays := []string{"*", "mon-fri", "0", "7", "5-7", "sat,SUN", "1-5/2", "*"}
		expr := strings.Join([]string{field(t, "minute", 0, 59), field(t, "hour", 0, 23), field(t, "dom", 1, 28), "*",
			rapid.SampledFrom(weekdays).Draw(t, "dow")}, " ")
		times, err := calendar.ParseTimes(expr, zone)
		require.NoError(t, err, expr)
		end := day.Add(4 * 24 * time.Hour)
		var got []time.Time
		for at := times.Next(day); at.Before(end); at = times.Next(at) {
			got = append(got, at.UTC())
		}
		want := referenceOf(expr).moments(day, end, zone)
		for i := range want {
			want[i] = want[i].UTC()
		}
		if !slices.EqualFunc(want, got, time.Time.Equal) {
			t.Fatalf("%s in %s from %s:\nwant %v\ngot  %v", expr, name, day, want, got)
		}
	})
}

// What other programs understand, and this one does not, is refused rather than
// understood in another way.
func TestFormsOfOtherPrograms(t *testing.T) {
	t.Parallel()
	for _, expr := range []string{"0 0 L * *", "0 0 1W * *", "0 0 * * 5#2", "0 0 * * 5L", "H * * * *", "60 * * * *",
		"0 24 * * *", "0 0 0 * *", "0 0 32 * *", "0 0 1 13 *", "0 0 * * 8",
		"-1 * * * *", "*/0 * * * *", "1/2/3 * * * *", "1,, * * * *", ", * * * *", "*-5 * * * *",
		"1, * * * *", "@reboot",
		"@every 1h", "@dialy", "0 0 30 feb *", "1-2-3 * * * *", "a * * * *", "0 0 * jan-foo *",
		"1.5 * * * *", "+1 * * * *"} {
		_, err := calendar.ParseTimes(expr, time.UTC)
		require.Error(t, err, expr)
	}
	for expr, want := range map[string]string{
		"@daily": "2026-01-02T00:00:00Z", " @Midnight ": "2026-01-02T00:00:00Z", "@weekly": "2026-01-04T00:00:00Z",
		"@yearly": "2027-01-01T00:00:00Z", "@annually": "2027-01-01T00:00:00Z",
		"@hourly": "2026-01-01T01:00:00Z", "0 6 * * MON-FRI": "2026-01-01T06:00:00Z",
		"0 6 * FEB Sun": "2026-02-01T06:00:00Z",
		"0  6\t* * 7":   "2026-01-04T06:00:00Z", "10/20 * * * *": "2026-01-01T00:10:00Z",
	} {
		got := times(t, expr, "UTC").Next(moment(t, "2026-01-01T00:00:00Z"))
		require.Equal(t, want, got.Format(time.RFC3339), expr)
	}
}
