package main

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/io/tableindex"
)

// A bar that is missed is an error, whatever the others are.
func TestMissed(t *testing.T) {
	t.Parallel()
	f := &figures{}
	f.atLeast("reads", 2, 1, "times")
	f.atMost("wrong answers", 0, 0, "MGETs")
	require.NoError(t, f.missed())
	f.atMost("ready", 4, 3, "s")
	require.EqualError(t, f.missed(), "1 of 3 bars were missed")
}

// TestJudge counts answers as what they are: of the table that was served, of another one, of two, or of none.
func TestJudge(t *testing.T) {
	t.Parallel()
	const size = 40
	answer := func(versions ...int) []byte {
		text := fmt.Appendf(nil, "*%d\r\n", len(versions))
		for i, v := range versions {
			text = tableindex.Frame(text, appendValue(nil, int64(i), v, size))
		}
		return text
	}
	damaged, absent := answer(1, 1), answer(1, 1)
	damaged[len(damaged)-3]++
	copy(absent[len("*2\r\n"):], tableindex.Null)
	for name, tc := range map[string]struct {
		got            []byte
		settled, begun int64
		wrong, mixed   int64
	}{
		"the first table":            {answer(1, 1), 0, 0, 0, 0},
		"the second, too early":      {answer(2, 2), 0, 0, 1, 0},
		"the first, during a switch": {answer(1, 1), 0, 1, 0, 0},
		"the second, then":           {answer(2, 2), 0, 1, 0, 0},
		"the first, behind it":       {answer(1, 1), 1, 1, 1, 0},
		"the first, rolled back to":  {answer(1, 1), 2, 2, 0, 0},
		"two tables":                 {answer(1, 2), 0, 1, 0, 1},
		"a flipped bit":              {damaged, 0, 0, 1, 0},
		"a row that is not there":    {absent, 0, 0, 1, 0},
		"an error":                   {append([]byte("-ERR"), answer(1, 1)[4:]...), 0, 0, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := checker{bytes: size, head: "*2\r\n", frame: len(tableindex.Frame(nil, make([]byte, size)))}
			l := &load{}
			l.begun.Store(tc.begun)
			l.judge(c.version(tc.got, []int64{0, 1}), tc.settled)
			require.Equal(t, tc.wrong, l.wrong.Load(), "wrong")
			require.Equal(t, tc.mixed, l.mixed.Load(), "mixed")
			require.EqualValues(t, keysOfCommand, l.answers.Load())
		})
	}
}
