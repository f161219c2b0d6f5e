package bench

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"thalweg/internal/base/fault"
)

// finished is the last event of `thalweg run --json`.
type finished struct {
	Event      string  `json:"event"`
	Status     string  `json:"status"`
	Run        int     `json:"run"`
	ElapsedMS  float64 `json:"elapsed_ms"`
	PeakBytes  int64   `json:"peak_bytes"`
	OverheadMS float64 `json:"overhead_ms"`
	Nodes      []node  `json:"nodes"`
}

// node holds the figures of one node of the script.
type node struct {
	Node         string  `json:"node"`
	Type         string  `json:"type"`
	RowsIn       int64   `json:"rows_in"`
	RowsOut      int64   `json:"rows_out"`
	Batches      int     `json:"batches"`
	StartedMS    int64   `json:"started_ms"`  // since the epoch
	FinishedMS   int64   `json:"finished_ms"` // since the epoch
	EngineMS     float64 `json:"engine_ms"`
	PythonBusyMS float64 `json:"python_busy_ms"`
	ComputedIn   string  `json:"computed_in,omitempty"` // the node that does its work, if it does none itself
	ReusedFrom   *reused `json:"reused_from,omitempty"` // the node whose rows it has, likewise
}

// reused is a node of an earlier run.
type reused struct {
	Run  int64  `json:"run"`
	Node string `json:"node"`
}

// Contract values that the measurements lean on.
const (
	eventFinished  = "run_finished"
	statusComplete = "complete"
	typeFileTable  = "file_table"
	typeLookup     = "table_lookup_table"
)

// maxEventBytes bounds one line of events.
const maxEventBytes = 16 << 20

// events takes the lines of `thalweg run --json` as they come and keeps the
// final one.
type events struct {
	partial  bytes.Buffer
	finished *finished
	err      error
}

func (e *events) Write(p []byte) (int, error) {
	e.partial.Write(p)
	for {
		i := bytes.IndexByte(e.partial.Bytes(), '\n')
		if i < 0 {
			break
		}
		line := bytes.TrimSpace(e.partial.Next(i + 1))
		if len(line) > 0 {
			e.line(line)
		}
	}
	if e.partial.Len() > maxEventBytes && e.err == nil {
		e.err = fault.New(fault.Environment, "a line of events is longer than %d bytes", maxEventBytes)
		e.partial.Reset()
	}
	return len(p), nil // the program must not die of a full pipe: close reports
}

func (e *events) line(line []byte) {
	var f finished
	var kind struct {
		Event string `json:"event"`
	}
	err := json.Unmarshal(line, &kind)
	if err == nil && kind.Event == eventFinished {
		err = json.Unmarshal(line, &f)
	}
	if err != nil {
		if e.err == nil {
			e.err = &fault.Error{Kind: fault.Environment, Message: "a line of events is not JSON",
				Detail: string(line), Err: err}
		}
		return
	}
	if f.Event == eventFinished {
		f.Nodes = slices.DeleteFunc(f.Nodes, func(n node) bool { return n.ComputedIn != "" || n.ReusedFrom != nil })
		e.finished = &f
	}
}

// close says whether the events were as promised and the run complete.
func (e *events) close(m measured) error {
	switch {
	case e.err != nil:
		return e.err
	case e.finished == nil:
		return fault.New(fault.Environment, "the events end without %s", eventFinished)
	case e.finished.Status != statusComplete:
		return fault.New(fault.Environment, "the run ended as %q", e.finished.Status)
	}
	// Times of another kind would make nonsense of all figures.
	from, to := m.started.Add(-clockTolerance).UnixMilli(), m.started.Add(m.wall+clockTolerance).UnixMilli()
	for _, n := range e.finished.Nodes {
		if n.StartedMS < from || n.FinishedMS > to || n.FinishedMS < n.StartedMS {
			return fault.New(fault.Environment, "node %s is said to have worked from %d to %d, outside its "+
				"process (%d to %d)", n.Node, n.StartedMS, n.FinishedMS, from, to)
		}
	}
	return nil
}

// clockTolerance is the largest adjustment of a clock during a run that is accepted.
const clockTolerance = time.Second

// span is a stretch of time, milliseconds since the epoch.
type span struct{ from, to int64 }

// spans merges the times of the nodes that match, ascending and disjoint.
func (f *finished) spans(match func(node) bool) []span {
	var all []span
	for _, n := range f.Nodes {
		if match(n) {
			all = append(all, span{n.StartedMS, n.FinishedMS})
		}
	}
	slices.SortFunc(all, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	var merged []span
	for _, s := range all {
		if last := len(merged) - 1; last >= 0 && s.from <= merged[last].to {
			merged[last].to = max(merged[last].to, s.to)
		} else {
			merged = append(merged, s)
		}
	}
	return merged
}

// length is the time that spans cover together, in milliseconds.
func length(spans []span) float64 {
	var sum int64
	for _, s := range spans {
		sum += s.to - s.from
	}
	return float64(sum)
}

// extent is the time from the first span's start to the last one's end, in
// milliseconds.
func extent(spans []span) float64 {
	if len(spans) == 0 {
		return 0
	}
	return float64(spans[len(spans)-1].to - spans[0].from)
}

func ofType(types ...string) func(node) bool {
	return func(n node) bool { return slices.Contains(types, n.Type) }
}

func usesPython(n node) bool { return n.PythonBusyMS > 0 }

// steps are the figures of a run by name, in milliseconds of wall time.
// load_join goes from the start of the first node to the end of the last, with
// whatever lies between: it is more than the nodes' own times.
func (f *finished) steps() map[string]float64 {
	return map[string]float64{
		"load_join": extent(f.spans(ofType(typeFileTable, typeLookup))),
		"python":    length(f.spans(usesPython)),
	}
}
