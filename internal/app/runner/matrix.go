package runner

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"thalweg/internal/app/instance"
	"thalweg/internal/app/outputs"
	"thalweg/internal/app/registry"
	"thalweg/internal/app/sources"
	"thalweg/internal/app/view"
	"thalweg/internal/base/fault"
	"thalweg/internal/lang/matrix"
	"thalweg/internal/lang/script"
	"thalweg/internal/ops/clusterconfig"
	"thalweg/internal/run/orders"
	"thalweg/internal/store/state"
)

// A matrix is a script that is run once for each cell. What it is follows from
// the script's name, the axes and the other parameters: the same call goes on
// with it. Of each cell a note says which run is its latest; runs are begun with
// tokens made of matrix, cell, try and script, so that a call that was cut off
// before the note begins none twice, and none of another script.

// Topics of a workspace's notes.
const (
	topicMatrices = "matrices" // by id; data: matrixNote
	topicCells    = "matrix/"  // followed by id and round; by cell; data: cellNote
)

// MatrixOptions say how a script is run over values.
type MatrixOptions struct {
	Options
	Dir         string                // of the state
	Cluster     *clusterconfig.Config // whose workers work on the cells; nil: this process does
	Axes        []matrix.Axis
	Concurrency int  // cells at once
	FailFast    bool // no cell begins behind one that failed
	Again       bool // all cells, also those that are complete
	Show        func(CellState)
}

// CellState is a cell and its latest run.
type CellState struct {
	Matrix  string
	Cell    string
	Params  map[string]string
	Run     int64 // 0: none yet
	Try     int
	Status  state.Status // Pending: no run yet
	Kept    bool         // it was not worked on: it is complete, or waits for people
	Elapsed time.Duration
	Failure *state.Failure
}

// Matrix is one that a workspace remembers.
type Matrix struct {
	ID     string
	Script string
	Axes   []matrix.Axis // nil: too many values to be kept
	Round  int           // how often all of it was begun
	Begun  time.Time
}

// View returns the matrix as programs see it.
func (m Matrix) View() view.Matrix {
	return view.Matrix{Matrix: m.ID, Script: m.Script, Axes: m.Axes, Round: m.Round, Begun: m.Begun}
}

// View returns the cell as programs see it.
func (c CellState) View() view.Cell {
	return view.Cell{Matrix: c.Matrix, Cell: c.Cell, Params: c.Params, Run: c.Run, Try: c.Try, Status: c.Status,
		Kept: c.Kept, ElapsedMS: c.Elapsed.Milliseconds(), Failure: c.Failure}
}

// matrixNote holds the description of a matrix in a note.
type matrixNote struct {
	Round  int           `json:"round"`
	Script string        `json:"script"`
	Axes   []matrix.Axis `json:"axes,omitempty"` // left out where they are too many
}

// cellNote holds the state of a cell in a note.
type cellNote struct {
	Index  int               `json:"index"`
	Try    int               `json:"try"`
	Cell   string            `json:"cell"`
	Params map[string]string `json:"params"`
}

// sweep is one call of RunMatrix.
type sweep struct {
	opts  MatrixOptions
	cells []*cell
	id    string
	topic string // of the cells' notes
}

// cell is one cell while it is worked on.
type cell struct {
	CellState
	index  int
	name   string         // of its note
	script *script.Script // nil: invalid says why
	opts   Options

	invalid *sources.InvalidScriptError
}

// RunMatrix runs the script once for each cell that is not complete, and gives
// all cells as they are then. A cell that fails is no error.
func RunMatrix(ctx context.Context, opts MatrixOptions) (_ []CellState, err error) {
	opts.Process = opts.WithDefaults()
	m := &sweep{opts: opts}
	home, err := m.open(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, home.Close()) }()
	if err := m.load(ctx); err != nil {
		return nil, err
	}
	if err := m.checkOutputs(); err != nil {
		return nil, err
	}
	if err := m.find(ctx, home); err != nil {
		return nil, err
	}
	return m.run(ctx)
}

// open opens the state.
func (m *sweep) open(ctx context.Context) (*instance.Instance, error) {
	if m.opts.Cluster != nil {
		return instance.OpenCluster(ctx, m.opts.Cluster, instance.ClusterOptions{})
	}
	return instance.Open(ctx, m.opts.Dir, true)
}

// load loads the script with the parameters of each cell.
func (m *sweep) load(ctx context.Context) error {
	all, err := matrix.Cells(m.opts.Axes)
	if err != nil {
		return err
	}
	read := sources.Remembered(m.opts.Sources(m.opts.Policy, m.opts.Options.Dir, m.opts.ScriptPath,
		m.opts.ParamsPath).Read)
	for i, c := range all {
		params := maps.Clone(m.opts.Params)
		if params == nil {
			params = map[string]string{}
		}
		own := map[string]string{}
		for _, p := range c {
			if _, given := m.opts.Params[p.Name]; given {
				return &fault.Error{Kind: fault.Script,
					Message: fmt.Sprintf("parameter %s is given by {{set param}} and by {{set matrix}}",
						p.Name), Hint: "leave {{set param}} out"}
			}
			params[p.Name], own[p.Name] = p.Value, p.Value
		}
		one := &cell{index: i, CellState: CellState{Cell: c.String(), Params: own, Status: state.Pending},
			opts: m.opts.Options}
		one.opts.Params, one.opts.Description = params, cmp.Or(m.opts.Description, one.Cell)
		src := m.opts.Sources(m.opts.Policy, m.opts.Options.Dir, m.opts.ScriptPath, m.opts.ParamsPath)
		src.Known, src.Params, src.Lenient, src.Read = m.opts.Known, params, m.opts.Lenient, read
		src.Literal = m.opts.Literal
		var diags view.Diagnostics
		if one.script, diags = script.Load(ctx, src); diags.HasErrors() { // its own files may not be there
			one.script, one.invalid = nil, &sources.InvalidScriptError{Diagnostics: diags}
		}
		one.opts.Script, one.opts.ScriptSources = one.script, &src
		m.cells = append(m.cells, one)
	}
	if !slices.ContainsFunc(m.cells, func(c *cell) bool { return c.script != nil }) {
		return cmp.Or(ctx.Err(), error(m.cells[0].invalid))
	}
	return ctx.Err()
}

// checkOutputs refuses cells that would write the same file.
func (m *sweep) checkOutputs() error {
	type writer struct {
		outputs.Target
		cell string
	}
	var patterns []writer
	exact := map[string]writer{}
	for _, c := range m.cells {
		if c.script == nil {
			continue
		}
		nodes, err := m.opts.nodes(c.script)
		if err != nil {
			return err
		}
		for _, n := range nodes {
			// each run has a name of its own
			if n.Out == nil || script.ExpandURL(n.Out.URL, 1, 0) != script.ExpandURL(n.Out.URL, 2, 0) {
				continue
			}
			written, err := outputs.WrittenTargets(c.script.Dir, n)
			if err != nil {
				return err
			}
			for _, out := range written {
				w := writer{out, c.Cell}
				other, same := exact[out.At]
				for _, p := range patterns {
					if !same && p.cell != c.Cell && p.Meets(out) {
						other, same = p, true
					}
				}
				if same && other.cell != c.Cell {
					return out.Refuse(fmt.Sprintf("cells %s and %s both write %s", other.cell, c.Cell, out.Shown),
						"put the parameters of {{set matrix}} into the url_template")
				}
				if exact[out.At] = w; out.Other != nil {
					patterns = append(patterns, w)
				}
			}
		}
	}
	return nil
}

// find gives the matrix its id, and each cell its latest run.
func (m *sweep) find(ctx context.Context, home *instance.Instance) error {
	loaded := slices.IndexFunc(m.cells, func(c *cell) bool { return c.script != nil })
	parts := []any{home.Identity(m.cells[loaded].script.Name, m.opts.ScriptPath), m.opts.Axes,
		m.opts.Params, m.opts.Start, m.opts.From, m.opts.Ephemeral}
	if !m.opts.Select.Empty() {
		parts = append(parts, m.opts.Select)
	}
	what, err := json.Marshal(parts)
	if err != nil {
		return fmt.Errorf("name the matrix: %w", err)
	}
	sum := sha256.Sum256(what)
	m.id = hex.EncodeToString(sum[:5])
	notes, err := state.AllNotes(ctx, home.State, m.opts.Workspace, topicMatrices)
	if err != nil {
		return err
	}
	record := matrixNote{Script: m.opts.ScriptPath, Axes: m.opts.Axes}
	if i := slices.IndexFunc(notes, func(n state.Note) bool { return n.Name == m.id }); i >= 0 {
		if err := json.Unmarshal(notes[i].Data, &record); err != nil {
			return fmt.Errorf("read matrix %s: %w", m.id, err)
		}
	}
	if record.Round == 0 || m.opts.Again {
		record.Round++
		data, err := record.encode()
		if err != nil {
			return err
		}
		note := state.Note{Topic: topicMatrices, Name: m.id, Data: data, Time: time.Now()}
		if err := home.State.PutNote(ctx, m.opts.Workspace, note); err != nil {
			return fmt.Errorf("note matrix %s: %w", m.id, err)
		}
	}
	m.topic = topicCells + m.id + "/" + fmt.Sprint(record.Round)
	for _, c := range m.cells {
		c.Matrix, c.name = m.id, fmt.Sprintf("%06d", c.index)
	}
	before, err := cellsOf(ctx, home.State, m.opts.Workspace, m.id, record.Round)
	for _, b := range before {
		if i := b.index; i < len(m.cells) && m.cells[i].Cell == b.Cell {
			m.cells[i].Run, m.cells[i].Try, m.cells[i].Status, m.cells[i].Failure = b.Run, b.Try, b.Status, b.Failure
		}
	}
	return err
}

func (n matrixNote) encode() ([]byte, error) {
	data, err := json.Marshal(n)
	if err == nil && len(data) > state.NoteBytesMax {
		n.Axes = nil
		data, err = json.Marshal(n)
	}
	return data, err
}

// run works on the cells, several at once, in their order.
func (m *sweep) run(ctx context.Context) ([]CellState, error) {
	work := make(chan *cell)
	var mu sync.Mutex
	var errs []error
	failed := false
	var workers sync.WaitGroup
	for range min(max(m.opts.Concurrency, 1), len(m.cells)) {
		workers.Go(func() {
			for c := range work {
				mu.Lock()
				skip := failed && m.opts.FailFast || ctx.Err() != nil || len(errs) > 0
				mu.Unlock()
				if skip {
					continue
				}
				err := m.do(ctx, c)
				mu.Lock()
				failed = failed || c.Status == state.Failed
				if err != nil {
					errs = append(errs, fmt.Errorf("cell %s: %w", c.Cell, err))
				}
				if m.opts.Show != nil {
					m.opts.Show(c.CellState)
				}
				mu.Unlock()
			}
		})
	}
	for _, c := range m.cells {
		work <- c
	}
	close(work)
	workers.Wait()
	out := make([]CellState, len(m.cells))
	for i, c := range m.cells {
		out[i] = c.CellState
	}
	return out, errors.Join(errs...)
}

// do brings a cell to its end: by going on with its run, or by a new one.
func (m *sweep) do(ctx context.Context, c *cell) (err error) {
	if c.script == nil {
		c.Run = 0
		return c.ended(Summary{}, c.invalid)
	}
	home, err := m.open(ctx) // each cell at work has files of its own
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, home.Close()) }()
	next, err := m.next(ctx, home, c)
	if err != nil || next == keep {
		c.Kept = next == keep
		return err
	}
	if next == goOn {
		o := c.opts
		o.Resume, o.ResumeRun, o.Start, o.From = true, c.Run, nil, nil
		sum, err := m.work(ctx, home, o)
		if err == nil || ctx.Err() != nil || sum.Status != "" && sum.Status != state.Running {
			return c.ended(sum, err)
		}
		if now, err := m.next(ctx, home, c); err != nil || now == keep { // others have ended it meanwhile
			c.Kept = now == keep
			return err
		}
		m.opts.Logger.Info("a cell's run cannot go on; a new one begins", "cell", c.Cell, "run", c.Run, "error", err)
	}
	if c.Run != 0 { // of another script, or one that cannot go on: it would write the same files
		if _, err := orders.Stop(ctx, home.Control(), state.RunKey{Workspace: m.opts.Workspace, Run: c.Run},
			m.opts.Caller.Mark("another run of its cell begins")); err != nil && !errors.Is(err, state.ErrNotFound) {
			return err
		}
	}
	o := c.opts
	c.Try++
	o.Token = fmt.Sprintf("%s %s %d %s", m.topic, c.Cell, c.Try, c.script.Fingerprint)
	note := func(s Started) {
		data, err := json.Marshal(cellNote{Index: c.index, Try: c.Try, Cell: c.Cell, Params: c.Params})
		if err == nil {
			err = home.State.PutNote(ctx, m.opts.Workspace, state.Note{Topic: m.topic, Name: c.name,
				Run: s.Key.Run, Data: data, Time: time.Now()})
		}
		if err != nil {
			m.opts.Logger.Warn("which run a cell has could not be noted: the same call finds it", "cell", c.Cell, "run",
				s.Key.Run, "error", err)
		}
		if c.opts.Started != nil {
			c.opts.Started(s)
		}
	}
	o.Started = note
	sum, err := m.work(ctx, home, o)
	return c.ended(sum, err)
}

// cellLook is the time between two looks at a cell that others work on. After each cellLooks of
// them it is looked whether anybody does.
const (
	cellLook  = 300 * time.Millisecond
	cellLooks = 10
)

// work brings a run to its end, or to where it waits for people: here, or by
// having the workers of a cluster do it. One that is left goes on there.
func (m *sweep) work(ctx context.Context, home *instance.Instance, o Options) (sum Summary, err error) {
	if home.ClusterConfig == nil {
		return Run(ctx, home, o)
	}
	key, warnings, err := Submit(ctx, home, o)
	if err != nil {
		return sum, err
	}
	if o.Started != nil {
		o.Started(Started{Key: key, Resumed: o.Resume, Warnings: warnings, Script: o.Script, Remote: true})
	}
	if err := m.await(ctx, home, key); err != nil && ctx.Err() == nil {
		return Summary{Key: key, Status: state.Running}, err
	}
	return SummaryOf(context.WithoutCancel(ctx), home, key)
}

// await returns when workers have nothing more to do for a run, or ctx ends.
func (m *sweep) await(ctx context.Context, home *instance.Instance, key state.RunKey) error {
	tick := time.NewTicker(cellLook)
	defer tick.Stop()
	said := ""
	for looks := 1; ; looks++ {
		sum := Summary{Key: key}
		if goes, err := goesOn(ctx, home, &sum); err != nil || !goes {
			return err
		}
		if looks%cellLooks == 0 {
			text, hint, err := registry.NobodyTakes(ctx, home, key)
			if err == nil && text != "" && text != said {
				said = text
				m.opts.Logger.Warn("a cell's run waits", "run", key.Run, "workspace", key.Workspace, "why",
					m.opts.Known.Text(text), "hint", hint)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// What is to be done for a cell.
type cellStep int

const (
	begin cellStep = iota
	goOn
	keep
)

// next decides what a cell needs.
func (m *sweep) next(ctx context.Context, home *instance.Instance, c *cell) (cellStep, error) {
	if c.Run == 0 {
		return begin, nil
	}
	run, err := home.State.Run(ctx, state.RunKey{Workspace: m.opts.Workspace, Run: c.Run})
	switch {
	case errors.Is(err, state.ErrNotFound):
		return begin, nil
	case err != nil:
		return begin, fmt.Errorf("read run %d: %w", c.Run, err)
	}
	c.Status, c.Failure = run.Status, run.Failure
	switch {
	case run.Invalidated != nil || run.Dropped != nil || run.Fingerprint != c.script.Fingerprint:
		return begin, nil
	case run.Status == state.Paused:
		return keep, nil
	case run.Status == state.Complete:
		void, err := hasInvalid(ctx, home.State, run.RunKey)
		if err != nil || void { // that is made again
			return goOn, err
		}
		return keep, nil
	case run.Status == state.Failed: // what it has completed is taken over
		return begin, nil
	}
	return goOn, nil
}

// hasInvalid reports whether somebody has declared a node of a run invalid.
func hasInvalid(ctx context.Context, store state.Store, key state.RunKey) (bool, error) {
	nodes, err := store.Nodes(ctx, key)
	if err != nil {
		return false, fmt.Errorf("read the nodes of run %d: %w", key.Run, err)
	}
	return slices.ContainsFunc(nodes, func(n state.Node) bool { return n.Status == state.Invalidated }), nil
}

// ended keeps how a cell's run ended. That it failed is no error of the matrix,
// nor that it could not begin because of its data.
func (c *cell) ended(sum Summary, err error) error {
	c.Run, c.Status, c.Failure, c.Elapsed = cmp.Or(sum.Key.Run, c.Run), sum.Status, sum.Failure, sum.Elapsed
	if err == nil || sum.Key.Run != 0 {
		return err
	}
	f := fault.Of(err)
	if f.Kind != fault.UserData && f.Kind != fault.Script {
		return err
	}
	c.Run, c.Status, c.Failure = 0, state.Failed, &state.Failure{Kind: f.Kind, Place: f.Place, Message: f.Message,
		Hint: f.Hint, Batch: -1}
	return nil
}

// Matrices lists the matrices of a workspace, the latest last.
func Matrices(ctx context.Context, home *instance.Instance, workspace string) ([]Matrix, error) {
	notes, err := state.AllNotes(ctx, home.State, workspace, topicMatrices)
	if err != nil {
		return nil, err
	}
	out := make([]Matrix, len(notes))
	for i, n := range notes {
		var m matrixNote
		if err := json.Unmarshal(n.Data, &m); err != nil {
			return nil, fmt.Errorf("read matrix %s: %w", n.Name, err)
		}
		out[i] = Matrix{ID: n.Name, Script: m.Script, Axes: m.Axes, Round: m.Round, Begun: n.Time}
	}
	slices.SortStableFunc(out, func(a, b Matrix) int { return a.Begun.Compare(b.Begun) })
	return out, nil
}

// MatrixCells lists the cells of a matrix that have a run, in their order.
func MatrixCells(ctx context.Context, home *instance.Instance, workspace string, m Matrix) ([]CellState, error) {
	cells, err := cellsOf(ctx, home.State, workspace, m.ID, m.Round)
	out := make([]CellState, len(cells))
	for i, c := range cells {
		out[i] = c.CellState
	}
	return out, err
}

func cellsOf(ctx context.Context, store state.Store, workspace, id string, round int) ([]cell, error) {
	notes, err := state.AllNotes(ctx, store, workspace, topicCells+id+"/"+fmt.Sprint(round))
	if err != nil {
		return nil, err
	}
	var out []cell
	for _, n := range notes {
		var said cellNote
		if err := json.Unmarshal(n.Data, &said); err != nil {
			return nil, fmt.Errorf("read a cell of matrix %s: %w", id, err)
		}
		c := cell{index: said.Index, CellState: CellState{Matrix: id, Cell: said.Cell, Params: said.Params, Run: n.Run,
			Try: said.Try}}
		run, err := store.Run(ctx, state.RunKey{Workspace: workspace, Run: n.Run})
		switch {
		case errors.Is(err, state.ErrNotFound):
			continue
		case err != nil:
			return nil, fmt.Errorf("read run %d: %w", n.Run, err)
		}
		if c.Status, c.Failure = run.Status, run.Failure; !run.Finished.IsZero() {
			c.Elapsed = run.Finished.Sub(run.Created)
		}
		if run.Status == state.Running {
			nodes, err := store.Nodes(ctx, run.RunKey)
			if err != nil {
				return nil, fmt.Errorf("read the nodes of run %d: %w", n.Run, err)
			}
			if state.Waits(nodes) {
				c.Status = state.Waiting
			}
		}
		out = append(out, c)
	}
	return out, nil
}

// ParseAxes reads parameters with their values, each as NAME=VALUES.
func ParseAxes(texts []string) (axes []matrix.Axis, err error) {
	for _, text := range texts {
		axis, err := matrix.Parse(text)
		if err != nil {
			return nil, err
		}
		axes = append(axes, axis)
	}
	return axes, nil
}

// Axis is a parameter with its values.
type Axis = matrix.Axis
