package cassandra

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func anySegment(t *rapid.T) segment {
	s := segment{era: rapid.Int64Range(0, 1<<40).Draw(t, "era")}
	for range rapid.IntRange(0, 40).Draw(t, "runs") {
		e := entry{status: rapid.Uint8Range(0, entryWaiting).Draw(t, "status"),
			has: rapid.Uint8Range(0, 7).Draw(t, "has"), attempt: rapid.IntRange(0, 1_000_000).Draw(t, "attempt")}
		if e.timed() {
			e.until = rapid.Int64().Draw(t, "until")
		}
		for range rapid.IntRange(1, 25).Draw(t, "times") {
			s.entries = append(s.entries, e)
		}
	}
	return s
}

func TestSegmentsAreReadAsTheyWereWritten(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := anySegment(t)
		got, err := parseSegment(s.append(nil))
		require.NoError(t, err)
		require.Equal(t, s.era, got.era)
		require.Equal(t, len(s.entries), len(got.entries))
		for i, e := range s.entries {
			require.Equal(t, e, got.entries[i])
		}
	})
}

// Eras that free one after the other leave what one that comes later would.
func TestEras(t *testing.T) {
	t.Parallel()
	entries := []entry{{status: entryClaimed, attempt: 2, until: 9}, {status: entryFailed, attempt: 1, has: 7},
		{status: entrySucceeded,
			attempt: 3, has: 1}, {status: entryWaiting, attempt: 4, until: 5}, {}}
	s := segment{entries: append([]entry{}, entries...)}
	s.live(0, 0)
	require.Equal(t, entries, s.entries)
	s.live(3, 0)
	require.Equal(t, []entry{{attempt: 2}, {attempt: 1}, {status: entrySucceeded, attempt: 3, has: 1},
		{attempt: 4}, {}},
		s.entries)
	s.live(5, 3) // all were freed before it was written
	require.Equal(t, uint8(entrySucceeded), s.entries[2].status)
	s.live(7, 6)
	require.Equal(t, []entry{{attempt: 2}, {attempt: 1}, {attempt: 3}, {attempt: 4}, {}}, s.entries)
}

func FuzzSegment(f *testing.F) {
	f.Add(segment{era: 7, entries: []entry{{status: entryClaimed, attempt: 1, until: 1_900_000_000_000}, {}, {},
		{status: entrySucceeded,
			has: 5, attempt: 2}}}.append(nil))
	f.Add([]byte{segmentVersion, 0, 0x80, 0x08, 0, 0xff, 0xff, 3})
	f.Fuzz(func(t *testing.T, stored []byte) {
		s, err := parseSegment(stored)
		if err != nil {
			return
		}
		again, err := parseSegment(s.append(nil))
		require.NoError(t, err)
		require.Equal(t, len(s.entries), len(again.entries))
	})
}

func FuzzDocument(f *testing.F) {
	c, err := newCodec()
	require.NoError(f, err)
	packed, err := c.pack(map[string]string{"a": string(make([]byte, 2*packFrom))})
	require.NoError(f, err)
	f.Add(packed)
	f.Add([]byte(`x{}`))
	f.Fuzz(func(t *testing.T, stored []byte) {
		var v map[string]any
		_ = c.unpack(stored, &v)
	})
}
