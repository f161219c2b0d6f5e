package history

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"thalweg/internal/store/state"
)

// Limits of timelines.
const (
	TimelineReadMax    = 100_000 // batches that one covers
	TimelineBatchesMax = 5_000   // batches that are given one by one; more are given as spans
	timelineSpansMax   = 1_000
	timelineSlowest    = 5
	timelineRangesMax  = 10 // of a status
)

// TimelineOptions select batches of a node.
type TimelineOptions struct {
	From int // the first one
	To   int // the one behind the last; 0: all
	Now  time.Time
}

// Timeline says when the batches of a node were worked on. It has them one by one, or if they are many, in spans.
type Timeline struct {
	Node    string           `json:"node"`
	Status  state.Status     `json:"status"`
	Total   int              `json:"total"` // batches of the node
	From    int              `json:"from"`
	To      int              `json:"to"`              // behind the last one that is covered
	Next    int              `json:"next,omitempty"`  // where to go on; none: at the end of what was asked for
	Began   *time.Time       `json:"began,omitempty"` // of the first one; times below are from here
	Summary TimelineSummary  `json:"summary"`
	Batches *TimelineBatches `json:"batches,omitempty"`
	Spans   []TimelineSpan   `json:"spans,omitempty"`
}

// TimelineSummary has figures of the batches that a timeline covers. Times are of those that have succeeded.
type TimelineSummary struct {
	Statuses map[state.Status]int `json:"statuses"`
	// Ranges have the numbers of the batches of each status, from one to another: the first few.
	Ranges    map[state.Status][][2]int `json:"ranges"`
	ElapsedMS int64                     `json:"elapsed_ms"` // from the first start to the last end
	MeanMS    float64                   `json:"mean_ms"`
	Deviation float64                   `json:"deviation_ms"` // standard deviation
	Variation float64                   `json:"variation"`    // Deviation as a part of MeanMS
	MedianMS  float64                   `json:"median_ms"`
	Slowest   []Longest                 `json:"slowest"`
}

// TimelineBatches has a value for each batch in each list, in order of their numbers.
type TimelineBatches struct {
	Statuses []state.Status `json:"statuses"` // that there are
	Workers  []string       `json:"workers"`
	Status   []int          `json:"status"` // place in Statuses
	Worker   []int          `json:"worker"` // of the latest attempt: place in Workers; -1: none yet
	Attempts []int          `json:"attempts"`
	Rows     []int64        `json:"rows"`     // that it wrote
	Start    []int64        `json:"start_ms"` // from Began; -1: not begun
	End      []int64        `json:"end_ms"`   // from Began; -1: not over
}

// TimelineSpan has what neighbouring batches are together.
type TimelineSpan struct {
	From      int                  `json:"from"`
	Batches   int                  `json:"batches"`
	Statuses  map[state.Status]int `json:"statuses"`
	Attempts  int                  `json:"attempts"` // the most of one
	Start     int64                `json:"start_ms"` // the first; -1: none has begun
	End       int64                `json:"end_ms"`   // the last; -1: none is over
	LongestMS int64                `json:"longest_ms"`
	TookMS    int64                `json:"took_ms"` // all together
	Rows      int64                `json:"rows"`    // that they wrote
}

// ReadTimeline reads the batches of a node.
func ReadTimeline(ctx context.Context, store state.Store, key state.NodeKey, o TimelineOptions) (Timeline, error) {
	n, err := node(ctx, store, key)
	if err != nil {
		return Timeline{}, err
	}
	out := Timeline{Node: n.Name, Status: n.Status, Total: n.BatchesTotal, From: min(o.From, n.BatchesTotal)}
	end := n.BatchesTotal
	if o.To > 0 {
		end = min(end, o.To)
	}
	out.To = max(min(end, out.From+TimelineReadMax), out.From)
	if out.To < end {
		out.Next = out.To
	}
	batches := make([]state.Batch, 0, out.To-out.From)
	for page := (state.Page{From: int64(out.From), Brief: true}); len(batches) < out.To-out.From; {
		page.Limit = min(state.PageMax, out.To-out.From-len(batches))
		some, next, err := store.Batches(ctx, key, page)
		if err != nil {
			return Timeline{}, fmt.Errorf("read the batches of %s: %w", key.Node, err)
		}
		batches = append(batches, some...)
		if page.From = next; next == 0 {
			break
		}
	}
	out.fill(batches, o.Now)
	return out, nil
}

// fill makes the timeline of batches.
func (t *Timeline) fill(batches []state.Batch, now time.Time) {
	for i := range batches {
		if b := &batches[i]; !b.Started.IsZero() && (t.Began == nil || b.Started.Before(*t.Began)) {
			t.Began = &b.Started
		}
	}
	t.Summary = t.summary(batches, now)
	if len(batches) <= TimelineBatchesMax {
		t.Batches = t.packed(batches)
		return
	}
	size := (len(batches) + timelineSpansMax - 1) / timelineSpansMax
	for some := range slices.Chunk(batches, size) {
		t.Spans = append(t.Spans, t.span(some))
	}
}

// since returns a time in milliseconds from the beginning; -1: it has not come.
func (t *Timeline) since(at time.Time) int64 {
	if at.IsZero() || t.Began == nil {
		return -1
	}
	return max(at.Sub(*t.Began).Milliseconds(), 0)
}

// summary has the figures of batches.
func (t *Timeline) summary(batches []state.Batch, now time.Time) TimelineSummary {
	out := TimelineSummary{Statuses: map[state.Status]int{}, Ranges: map[state.Status][][2]int{}, Slowest: []Longest{}}
	var took []float64
	var last time.Time
	for i := range batches {
		b := &batches[i]
		out.Statuses[b.Status]++
		out.addRange(b.Status, b.BatchKey.Batch)
		switch {
		case b.Status == state.Claimed:
			last = now
		case b.Finished.After(last):
			last = b.Finished
		}
		if b.Status == state.Succeeded {
			took = append(took, float64(b.Stats.Elapsed)/float64(time.Millisecond))
			out.Slowest = slowest(out.Slowest, Longest{Batch: b.BatchKey.Batch, Elapsed: b.Stats.Elapsed.Milliseconds()})
		}
	}
	if t.Began != nil {
		out.ElapsedMS = max(last.Sub(*t.Began).Milliseconds(), 0)
	}
	if len(took) == 0 {
		return out
	}
	count := float64(len(took))
	for _, ms := range took {
		out.MeanMS += ms / count
	}
	for _, ms := range took {
		out.Deviation += (ms - out.MeanMS) * (ms - out.MeanMS) / count
	}
	out.Deviation = math.Sqrt(out.Deviation)
	if out.MeanMS > 0 {
		out.Variation = out.Deviation / out.MeanMS
	}
	slices.Sort(took)
	out.MedianMS = (took[(len(took)-1)/2] + took[len(took)/2]) / 2
	return out
}

// addRange adds a batch, which is behind all others.
func (s *TimelineSummary) addRange(status state.Status, batch int) {
	list := s.Ranges[status]
	switch last := len(list) - 1; {
	case last >= 0 && list[last][1] == batch-1:
		list[last][1] = batch
	case len(list) < timelineRangesMax:
		s.Ranges[status] = append(list, [2]int{batch, batch})
	}
}

// slowest puts a batch into a list of those that took longest.
func slowest(list []Longest, one Longest) []Longest {
	at, _ := slices.BinarySearchFunc(list, one, func(a, b Longest) int {
		return cmp.Or(cmp.Compare(b.Elapsed, a.Elapsed), cmp.Compare(a.Batch, b.Batch))
	})
	if at == timelineSlowest {
		return list
	}
	list = slices.Insert(list, at, one)
	return list[:min(len(list), timelineSlowest)]
}

// packed gives batches one by one.
func (t *Timeline) packed(batches []state.Batch) *TimelineBatches {
	n := len(batches)
	out := &TimelineBatches{Statuses: []state.Status{}, Workers: []string{}, Status: make([]int, n), Worker: make([]int, n),
		Attempts: make([]int, n), Rows: make([]int64, n), Start: make([]int64, n), End: make([]int64, n)}
	statuses, workers := map[state.Status]int{}, map[string]int{"": -1}
	for i := range batches {
		b := &batches[i]
		out.Status[i] = placeIn(&out.Statuses, statuses, b.Status)
		out.Worker[i] = placeIn(&out.Workers, workers, b.Owner)
		out.Attempts[i], out.Start[i], out.End[i] = b.Attempt, t.since(b.Started), t.since(b.Finished)
		out.Rows[i] = b.Stats.RowsOut
	}
	return out
}

// placeIn returns the place of a text in a list, and adds it where it is not there.
func placeIn[T comparable](list *[]T, places map[T]int, one T) int {
	at, ok := places[one]
	if !ok {
		at = len(*list)
		places[one] = at
		*list = append(*list, one)
	}
	return at
}

// span gives neighbouring batches together.
func (t *Timeline) span(batches []state.Batch) TimelineSpan {
	out := TimelineSpan{From: batches[0].BatchKey.Batch, Batches: len(batches), Statuses: map[state.Status]int{},
		Start: -1, End: -1}
	for i := range batches {
		b := &batches[i]
		out.Statuses[b.Status]++
		out.Attempts = max(out.Attempts, b.Attempt)
		if start := t.since(b.Started); start >= 0 && (out.Start < 0 || start < out.Start) {
			out.Start = start
		}
		out.End = max(out.End, t.since(b.Finished))
		out.Rows += b.Stats.RowsOut
		out.TookMS += b.Stats.Elapsed.Milliseconds()
		out.LongestMS = max(out.LongestMS, b.Stats.Elapsed.Milliseconds())
	}
	return out
}
