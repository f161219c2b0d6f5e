package bill_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/ops/bill"
	"thalweg/internal/run/sheet"
)

func TestWhatRunsAtOncePayTwice(t *testing.T) {
	t.Parallel()
	half := func(s *sheet.Sheet) { s.From = s.From.Add(30 * time.Minute); s.To = s.To.Add(30 * time.Minute) }
	for name, c := range map[string]struct {
		runs               [][]sheet.Sheet
		machines, services time.Duration
	}{
		"none":                    {nil, 0, 0},
		"one run":                 {[][]sheet.Sheet{{worker("v", "h", ""), worker("w", "h", "")}}, 0, 0},
		"one worker":              {[][]sheet.Sheet{{worker("w", "h", "", halved)}, {worker("w", "h", "", halved)}}, 0, 0},
		"two workers of one host": {[][]sheet.Sheet{{worker("v", "h", "")}, {worker("w", "h", "")}}, time.Hour, time.Hour},
		"two hosts":               {[][]sheet.Sheet{{worker("v", "g", "")}, {worker("w", "h", "")}}, 0, time.Hour},
		"one after the other":     {[][]sheet.Sheet{{worker("v", "h", "")}, {worker("w", "h", "", later)}}, 0, 0},
		"for half of the time": {[][]sheet.Sheet{{worker("v", "h", "")}, {worker("w", "h", "", half)}},
			30 * time.Minute, 30 * time.Minute},
		"runs that have no sheets": {[][]sheet.Sheet{{}, {worker("w", "h", "")}, nil}, 0, 0},
		"three runs at once on a host": {[][]sheet.Sheet{{worker("u", "h", "")}, {worker("v", "h", "")},
			{worker("w", "h", "")}},
			2 * time.Hour, 2 * time.Hour},
	} {
		machines, services := bill.Twice(c.runs)
		require.Equal(t, c.machines, machines, name)
		require.Equal(t, c.services, services, name)
	}
}
