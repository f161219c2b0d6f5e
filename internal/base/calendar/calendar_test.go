package calendar_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"thalweg/internal/base/calendar"
)

func times(t require.TestingT, expr, zone string) *calendar.Times {
	z, err := calendar.ParseZone(zone)
	require.NoError(t, err)
	out, err := calendar.ParseTimes(expr, z)
	require.NoError(t, err)
	return out
}

func moment(t require.TestingT, text string) time.Time {
	at, err := time.Parse(time.RFC3339, text)
	require.NoError(t, err)
	return at
}

func TestNext(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cron, zone, after string
		want              []string
	}{
		"daily": {"30 6 * * *", "", "2026-01-01T06:30:00Z", []string{"2026-01-02T06:30:00Z", "2026-01-03T06:30:00Z"}},
		"word": {"@monthly", "Asia/Tokyo", "2026-01-31T14:59:59Z",
			[]string{"2026-02-01T00:00:00+09:00", "2026-03-01T00:00:00+09:00"}},
		"weekdays, or a day of the month": {"0 12 1 * mon", "UTC", "2026-03-29T00:00:00Z",
			[]string{"2026-03-30T12:00:00Z", "2026-04-01T12:00:00Z", "2026-04-06T12:00:00Z"}},
		"leap days": {"0 0 29 2 *", "UTC", "2026-01-01T00:00:00Z",
			[]string{"2028-02-29T00:00:00Z", "2032-02-29T00:00:00Z"}},
		"eight years without one": {"0 0 29 2 *", "UTC", "2096-03-01T00:00:00Z", []string{"2104-02-29T00:00:00Z"}},
		"31st": {"0 0 31 * *", "UTC", "2026-01-31T00:00:00Z",
			[]string{"2026-03-31T00:00:00Z", "2026-05-31T00:00:00Z"}},
		"not there: when the clock jumps": {"30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z",
			[]string{"2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00"}},
		"not there, several: once": {"0,30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z",
			[]string{"2026-03-29T03:00:00+02:00", "2026-03-30T02:00:00+02:00"}},
		"not there, and the next: once": {"0 2,3 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z",
			[]string{"2026-03-29T03:00:00+02:00", "2026-03-30T02:00:00+02:00"}},
		"the first that is there": {"0 3 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z",
			[]string{"2026-03-29T03:00:00+02:00", "2026-03-30T03:00:00+02:00"}},
		"twice: the first": {"30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z",
			[]string{"2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01:00"}},
		"twice, asked in between": {"30 2 * * *", "Europe/Berlin", "2026-10-25T01:10:00Z",
			[]string{"2026-10-26T02:30:00+01:00"}},
		"after the second": {"0 3 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z",
			[]string{"2026-10-25T03:00:00+01:00", "2026-10-26T03:00:00+01:00"}},
		"at the hour that is put back": {"0 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z",
			[]string{"2026-10-25T02:00:00+02:00", "2026-10-26T02:00:00+01:00"}},
		"every hour, forward": {"30 * * * *", "Europe/Berlin", "2026-03-29T00:00:00Z",
			[]string{"2026-03-29T01:30:00+01:00", "2026-03-29T03:30:00+02:00"}},
		"every hour, back": {"30 * * * *", "Europe/Berlin", "2026-10-25T00:00:00Z",
			[]string{"2026-10-25T02:30:00+02:00", "2026-10-25T02:30:00+01:00", "2026-10-25T03:30:00+01:00"}},
		"every hour, on it, back": {"0 * * * *", "Europe/Berlin", "2026-10-24T23:30:00Z",
			[]string{"2026-10-25T02:00:00+02:00", "2026-10-25T02:00:00+01:00", "2026-10-25T03:00:00+01:00"}},
		"every hour, on it, forward": {"0 * * * *", "Europe/Berlin", "2026-03-29T00:30:00Z",
			[]string{"2026-03-29T03:00:00+02:00", "2026-03-29T04:00:00+02:00"}},
		"midnight that is not there": {"0 0 * * *", "America/Santiago", "2026-09-05T12:00:00Z",
			[]string{"2026-09-06T01:00:00-03:00", "2026-09-07T00:00:00-03:00"}},
		"half an hour": {"15 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00:00Z",
			[]string{"2026-10-04T02:30:00+11:00", "2026-10-05T02:15:00+11:00"}},
		"a day that is not there": {"0 6 * * *", "Pacific/Apia", "2011-12-29T20:00:00Z",
			[]string{"2011-12-31T00:00:00+14:00", "2011-12-31T06:00:00+14:00", "2012-01-01T06:00:00+14:00"}},
		"minutes of an hour, forward": {"*/30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z",
			[]string{"2026-03-30T02:00:00+02:00"}},
		"a zone that never changes it": {"0 2 * * *", "Asia/Kolkata", "2026-03-29T00:00:00Z",
			[]string{"2026-03-30T02:00:00+05:30"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := moment(t, c.after)
			for _, want := range c.want {
				at = times(t, c.cron, c.zone).Next(at)
				require.Equal(t, want, at.Format(time.RFC3339))
			}
		})
	}
}

// Every day has its time of day once, whatever the zone's clock does; and who
// asks from any moment in between gets the next of the same moments.
func TestEveryDayOnce(t *testing.T) {
	t.Parallel()
	zones := []string{"Europe/Berlin", "America/New_York", "America/Santiago", "Australia/Lord_Howe",
		"Africa/Casablanca", "Asia/Tehran", "UTC"}
	rapid.Check(t, func(t *rapid.T) {
		zone := rapid.SampledFrom(zones).Draw(t, "zone")
		hour, minute := rapid.IntRange(0, 23).Draw(t, "hour"), rapid.IntRange(0, 59).Draw(t, "minute")
		ticks := times(t, time.Date(2026, 1, 1, hour, minute, 0, 0, time.UTC).Format("4 15 * * *"), zone)
		at := moment(t, "2026-01-01T00:00:00Z").
			Add(time.Duration(rapid.IntRange(0, 366*24).Draw(t, "hours")) * time.Hour)
		days := map[string]bool{}
		for range 20 {
			next := ticks.Next(at)
			gap := next.Sub(at)
			require.Positive(t, gap)
			require.Equal(t, next, ticks.Next(at.Add(gap/2)), "asked in between")
			require.Equal(t, next, ticks.Next(next.Add(-1)))
			day := next.Format(time.DateOnly)
			require.False(t, days[day], "%s twice", day)
			days[day] = true
			if len(days) > 1 {
				require.InDelta(t, 24, gap.Hours(), 2)
			}
			at = next
		}
	})
}

// What goes by the hands is at each moment at which they are right, and at no other.
func TestByTheHands(t *testing.T) {
	t.Parallel()
	for _, zone := range []string{"Europe/Berlin", "Australia/Lord_Howe"} {
		ticks := times(t, "*/15 1-3 * * *", zone)
		for _, begin := range []string{"2026-03-28T12:00:00Z", "2026-04-04T00:00:00Z", "2026-10-03T00:00:00Z",
			"2026-10-24T12:00:00Z"} {
			at := moment(t, begin)
			for m := at.Add(time.Minute).
				Truncate(time.Minute); m.Before(at.Add(48 * time.Hour)); m = m.Add(time.Minute) {
				shown := m.In(ticks.Zone())
				if shown.Minute()%15 == 0 && shown.Hour() >= 1 && shown.Hour() <= 3 {
					require.Equal(t, shown.Format(time.RFC3339), ticks.Next(m.Add(-1)).Format(time.RFC3339))
				} else {
					require.NotEqual(t, m, ticks.Next(m.Add(-1)).UTC())
				}
			}
		}
	}
}

func TestWrongExpressions(t *testing.T) {
	t.Parallel()
	for expr, want := range map[string]struct {
		start, end int
		message    string
	}{
		"":                       {0, 0, "this one has 0"},
		"30 6 * *":               {0, 8, "this one has 4"},
		"0 30 6 * * *":           {0, 12, "this one has 6"},
		"30 24 * * *":            {3, 5, `the hour "24" cannot be read`},
		"30  6 * foo *":          {8, 11, `the month "foo" cannot be read`},
		"*/0 * * * *":            {0, 3, "the minute"},
		"0 0 30 2 *":             {0, 10, "there is no such day"},
		"@every 5m":              {0, 9, "is not known"},
		"TZ=UTC 0 0 * * *":       {0, 16, "this one has 6"},
		"CRON_TZ=Asia/Tokyo * *": {0, 22, "this one has 3"},
	} {
		_, err := calendar.ParseTimes(expr, time.UTC)
		var e *calendar.Error
		require.ErrorAs(t, err, &e, expr)
		require.Contains(t, e.Message, want.message, expr)
		require.Equal(t, []int{want.start, want.end}, []int{e.Start, e.End}, expr)
	}
	for _, zone := range []string{"Europe/Berln", "local", "../etc/passwd"} {
		_, err := calendar.ParseZone(zone)
		require.ErrorContains(t, err, "not a time zone")
	}
}

func TestDeadlines(t *testing.T) {
	t.Parallel()
	for text, c := range map[string]struct{ begin, want string }{
		"2h":                        {"2026-03-29T00:30:00Z", "2026-03-29T02:30:00Z"},
		"06:30 Europe/Berlin":       {"2026-03-28T05:29:00Z", "2026-03-28T05:30:00Z"},
		"6:30 Europe/Berlin":        {"2026-03-28T05:30:00Z", "2026-03-29T04:30:00Z"},
		"02:30 Europe/Berlin":       {"2026-03-28T12:00:00Z", "2026-03-29T01:00:00Z"},
		"23:00":                     {"2026-03-28T12:00:00Z", "2026-03-28T23:00:00Z"},
		"2026-03-02T06:30:00+01:00": {"2026-03-28T12:00:00Z", "2026-03-02T05:30:00Z"},
	} {
		d, err := calendar.ParseDeadline(text)
		require.NoError(t, err, text)
		require.Equal(t, c.want, d.Of(moment(t, c.begin)).UTC().Format(time.RFC3339), text)
	}
	for _, text := range []string{"", "tomorrow", "25:00", "06:30 Nowhere", "-1h", "10000h", "500ms"} {
		_, err := calendar.ParseDeadline(text)
		require.Error(t, err, text)
	}
}
