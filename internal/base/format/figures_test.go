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
		"59.9 s":     format.Span(59_900 * time.Millisecond),
		"1h0m1s":     format.Span(3601 * time.Second),
		"33 %":       format.Percent(time.Second, 3*time.Second),
		"100 %":      format.Percent(4*time.Second, 3*time.Second),
		"0 %":        format.Percent(time.Second, 0),
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
