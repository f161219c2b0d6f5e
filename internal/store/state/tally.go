package state

import (
	"cmp"
	"math/bits"
	"slices"
	"time"
)

// Counters of what batches did for lack of memory, and took of processors. The texts are stored.
const (
	CounterPieces  = "pieces"        // that a batch was cut into
	CounterAlone   = "alone"         // batches that had the memory of all slots
	CounterSpilled = "spilled_bytes" // the most that a batch was seen to have in spill files
	// These are microseconds.
	CounterEngineCPU     = "engine_cpu_us"     // of the process, while the batch was in DuckDB
	CounterPythonCPU     = "python_cpu_us"     // of interpreters
	CounterPythonStarved = "python_starved_us" // for which interpreters waited for a processor
)

// Tally sums up what the ended batches of a node measured, so that nobody has
// to read them all. It is kept beside them, and no condition looks at it.
// Tallies of batches that are apart add up in any order (Merge): a store may
// keep pieces, one for each writer say, and add them when it is asked.
type Tally struct {
	Batches  int         `json:"batches"`            // that ended: succeeded or failed
	Stats    Stats       `json:"stats"`              // sums; PeakBytes is the most of one; no Warnings
	Took     map[int]int `json:"took,omitempty"`     // succeeded batches by how long they took: see spanOf
	Longest  []Taken     `json:"longest,omitempty"`  // those that took longest, the longest first
	Warned   int         `json:"warned,omitempty"`   // warnings of all of them, but for Repeats
	Warnings []Warning   `json:"warnings,omitempty"` // the first of them, by batch
	Repeats  []Repeat    `json:"repeats,omitempty"`  // by kind
}

// Told lists the first warnings for people, by batch, and says how many there are of all batches.
func (t *Tally) Told() (first []Warning, all int) {
	first = slices.Clone(t.Warnings)
	for _, r := range t.Repeats {
		first = append(first, Warning{Batch: r.Batch, Text: r.Text()})
	}
	slices.SortStableFunc(first, func(a, b Warning) int { return cmp.Compare(a.Batch, b.Batch) })
	return first, t.Warned + len(t.Repeats)
}

// Taken is a batch that took long.
type Taken struct {
	Batch int   `json:"batch"`
	Stats Stats `json:"stats"` // no Warnings, no Repeats, no Counters
}

// Warning is one of a batch's.
type Warning struct {
	Batch int    `json:"batch"`
	Text  string `json:"text"`
}

// What a tally keeps of single batches.
const (
	TallyLongestMax  = 3
	TallyWarningsMax = 20
)

// Count takes in a batch that ended as it did.
func (t *Tally) Count(batch int, as Status, s Stats) {
	one := Tally{Batches: 1, Stats: s, Warned: len(s.Warnings)}
	for _, text := range s.Warnings[:min(len(s.Warnings), TallyWarningsMax)] {
		one.Warnings = append(one.Warnings, Warning{Batch: batch, Text: text})
	}
	for _, r := range s.Repeats {
		r.Batch = batch
		one.Repeats = append(one.Repeats, r)
	}
	if as == Succeeded {
		brief := s
		brief.Slot, brief.Counters, brief.Warnings, brief.Repeats = 0, nil, nil, nil
		one.Took, one.Longest = map[int]int{spanOf(s.Elapsed): 1}, []Taken{{Batch: batch, Stats: brief}}
	}
	t.Merge(one)
}

// Merge takes in what other batches measured.
func (t *Tally) Merge(o Tally) {
	t.Batches += o.Batches
	t.Stats.add(o.Stats)
	for span, n := range o.Took {
		if t.Took == nil {
			t.Took = map[int]int{}
		}
		t.Took[span] += n
	}
	t.Longest = append(t.Longest, o.Longest...)
	slices.SortFunc(t.Longest, func(a, b Taken) int {
		return cmp.Or(cmp.Compare(b.Stats.Elapsed, a.Stats.Elapsed), cmp.Compare(a.Batch, b.Batch))
	})
	t.Longest = t.Longest[:min(len(t.Longest), TallyLongestMax)]
	t.Warned += o.Warned
	t.Warnings = append(t.Warnings, o.Warnings...)
	slices.SortStableFunc(t.Warnings, func(a, b Warning) int { return cmp.Compare(a.Batch, b.Batch) })
	t.Warnings = t.Warnings[:min(len(t.Warnings), TallyWarningsMax)]
	t.Repeats = mergeRepeats(t.Repeats, o.Repeats)
}

// mergeRepeats makes one of those of one kind: the first of a batch is before all that follow in it.
func mergeRepeats(one, other []Repeat) []Repeat {
	out := slices.Clone(one)
	for _, r := range other {
		i := slices.IndexFunc(out, func(o Repeat) bool { return o.Kind == r.Kind })
		switch {
		case i < 0:
			out = append(out, r)
		case r.Batch < out[i].Batch:
			r.Count += out[i].Count
			out[i] = r
		default:
			out[i].Count += r.Count
		}
	}
	slices.SortFunc(out, func(a, b Repeat) int { return cmp.Compare(a.Kind, b.Kind) })
	return out
}

// add sums what batches measured, but for their warnings, and those that are given once a node.
func (s *Stats) add(o Stats) {
	s.RowsIn += o.RowsIn
	s.RowsOut += o.RowsOut
	s.BytesIn += o.BytesIn
	s.BytesOut += o.BytesOut
	s.Elapsed += o.Elapsed
	s.Engine += o.Engine
	s.Python += o.Python
	s.Read += o.Read
	s.Write += o.Write
	s.Commit += o.Commit
	s.Wait += o.Wait
	s.Turn += o.Turn
	s.PeakBytes = max(s.PeakBytes, o.PeakBytes)
	s.Warnings, s.Repeats = nil, nil
	for name, n := range o.Counters {
		if s.Counters == nil {
			s.Counters = map[string]int64{}
		}
		s.Counters[name] += n
	}
}

// Median is about how long the middle one of the succeeded batches took: off
// by an eighth at most. 0: there is none.
func (t *Tally) Median() time.Duration {
	total := 0
	for _, n := range t.Took {
		total += n
	}
	left := (total + 1) / 2
	for _, span := range t.Spans() {
		if left -= t.Took[span]; left <= 0 {
			from, to := SpanBounds(span)
			return from + (to-from)/2
		}
	}
	return 0
}

// Spans lists the spans of time that batches took, the shortest first.
func (t *Tally) Spans() []int {
	spans := make([]int, 0, len(t.Took))
	for span := range t.Took {
		spans = append(spans, span)
	}
	slices.Sort(spans)
	return spans
}

// Spans of time are cut at each power of two microseconds, and in four equal
// parts between two of them. The numbers are stored.
const (
	spanParts    = 4
	spanPartBits = 2
)

func spanOf(d time.Duration) int {
	us := max(d.Microseconds(), spanParts)
	octave := bits.Len64(uint64(us)) - 1
	return octave*spanParts + int(us>>(octave-spanPartBits))&(spanParts-1)
}

// SpanBounds gives from when and until when a span goes.
func SpanBounds(span int) (from, to time.Duration) {
	octave, part := span/spanParts, span%spanParts
	if octave < spanPartBits {
		return 0, 0
	}
	width := time.Microsecond << (octave - spanPartBits)
	from = time.Duration(spanParts+part) * width
	return from, from + width
}
