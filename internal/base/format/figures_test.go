package format_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/format"
)

func TestTexts(t *testing.T) {
	t.Parallel()
	for want, got := range map[string]string{
		"-1,234,567": format.Count(-1_234_567),
		"999":        format.Count(999),
		"1 batch":    format.Counted(1, "batch", "batches"),
		"0 batches":  format.Counted(0, "batch", "batches"),
		"1023 B":     format.Size(1023),
		"1.5 MiB":    format.Size(3 << 19),
		"-":          format.Span(0),
		"999 ms":     format.Span(999 * time.Millisecond),
		"1.5 s":      format.Span(1500 * time.Millisecond),
		"59 s":       format.Span(59_400 * time.Millisecond),
		"1 min":      format.Span(59_900 * time.Millisecond),
		"2 min 1 s":  format.Span(121 * time.Second),
		"1 h":        format.Span(3_599_900 * time.Millisecond),
		"1 h 30 min": format.Span(90 * time.Minute),
		"1 d 1 h":    format.Span(25 * time.Hour),
		"100 d":      format.Span(2400*time.Hour + time.Minute),

		"0 worker-seconds":               format.Cost(0, 0),
		"9.5 worker-seconds":             format.WorkerTime(9500 * time.Millisecond),
		"3,599 worker-seconds":           format.WorkerTime(3599 * time.Second),
		"1.5 worker-hours":               format.WorkerTime(90 * time.Minute),
		"1,000 worker-hours":             format.WorkerTime(1000 * time.Hour),
		"4.0 worker-seconds, 25 % lost":  format.Cost(3*time.Second, time.Second),
		"0.1 worker-seconds, 100 % lost": format.Cost(0, 100*time.Millisecond),
		"33 %":                           format.Percent(time.Second, 3*time.Second),
		"100 %":                          format.Percent(4*time.Second, 3*time.Second),
		"0 %":                            format.Percent(time.Second, 0),
	} {
		require.Equal(t, want, got)
	}
}

func TestBarsAddUp(t *testing.T) {
	t.Parallel()
	a, b := func(v int64) format.Piece { return format.Piece{Letter: 'a', Value: v} },
		func(v int64) format.Piece { return format.Piece{Letter: 'b', Value: v} }
	require.Equal(t, "aaaaabbbbb", format.Bar(10, 100, a(50), b(50)))
	require.Equal(t, "abbbbbbbbb", format.Bar(10, 1000, a(149), b(851)), "15 % and 85 % of 10 letters are 10 letters")
	require.Equal(t, "aaaaaaaaaa", format.Bar(10, 100, a(500), b(500)), "more than the whole is the whole")
	require.Empty(t, format.Bar(10, 0, a(1)))
	require.Equal(t, "bb", format.Bar(4, 2, a(-5), b(1)))
	require.Equal(t, []string{"", "▏", "██████████"}, format.Lengths(10, []int64{0, 1, 100_000}))
	require.Equal(t, []string{""}, format.Lengths(10, []int64{0}))
}
