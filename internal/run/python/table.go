package python

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"thalweg/internal/base/fault"
)

// Table makes a program a function that is called with the columns of many rows
// at once, and returns columns.
type Table struct {
	Function  string                     // in the program's files
	Input     Input                      // what its only positional argument is
	Arguments map[string]json.RawMessage // given to every call by name
	// rows come in numbered groups, each of which is one call; otherwise calls are cut by size
	Grouped bool
}

// Input is the form in which a function over many rows gets them. All but
// Lists need a module of the same name (arrow: pyarrow).
type Input string

// The forms of input.
const (
	Lists  Input = "lists"  // dict of lists: int, float, str, bool, Decimal, datetime in UTC, None
	Numpy  Input = "numpy"  // dict of arrays; masked arrays where there are NULLs
	Pandas Input = "pandas" // DataFrame
	Polars Input = "polars" // DataFrame
	Arrow  Input = "arrow"  // Table
)

type tableSpec struct {
	Function  string                     `json:"function"`
	Input     Input                      `json:"input"`
	Arguments map[string]json.RawMessage `json:"arguments"`
}

func (t *Table) spec() *tableSpec {
	s := &tableSpec{Function: t.Function, Input: t.Input, Arguments: t.Arguments}
	if s.Arguments == nil {
		s.Arguments = map[string]json.RawMessage{}
	}
	if s.Input == "" {
		s.Input = Lists
	}
	return s
}

// timeout limits one step of the program: a row, or a call.
func (p *program) timeout(cfg *Config) time.Duration {
	if p.Table != nil {
		return cfg.GroupTimeout
	}
	return cfg.RowTimeout
}

// call describes the rows of one call of the function.
type call struct {
	group int64 // as next numbers it
	first int64 // rows of the Run before it
	rows  int
}

// RunTable calls prog's function for all rows. next returns a row as in
// Run, and the number of its group; rows of a group follow one another. emit gets
// the rows of each group's result, in the order of the groups and of the result, each
// with its number in the result from 0. Groups are called whole, whatever their size,
// up to Config.MaxGroupBytes. Without prog.Table.Grouped numbers are ignored: calls get at
// most 65,536 rows and Config.MaxChunkBytes each, cut by these alone, and are
// numbered from 0.
//
// A failure is the first one in the order of groups; describe gives a group's name
// for its message, and is called when neither next nor emit is any more.
func (p *Pool) RunTable(ctx context.Context, prog *Program, next func() (Row, int64, error),
	emit func(group, row int64, values []any) error, describe func(group int64) string) (Stats, error) {
	if prog.Table == nil {
		return Stats{}, fault.New(fault.Bug, "a Python program of formulas where one of a function is needed")
	}
	ready, err := prepare(prog, false)
	if err != nil {
		return Stats{}, err
	}
	r := p.newRun(ready)
	in := &callReader{run: r, enc: newEncoder(ready), next: next, group: -1}
	e := &tableEmitter{run: r, row: make([]any, len(prog.Fields)), emit: emit}
	err = p.drive(ctx, r, in.read, e.chunk)
	var failed *callError
	if errors.As(err, &failed) {
		err = failed.named(ready, describe)
	}
	return r.stats(e.rows), err
}

// callError is the failure of a call whose name is not known yet.
type callError struct {
	call call
	err  *fault.Error
}

func (e *callError) Error() string { return e.err.Error() }

// named puts the name of the call before the failure's message.
func (e *callError) named(prog *program, describe func(int64) string) error {
	where := fmt.Sprintf("rows %d to %d of its batch", e.call.first+1, e.call.first+int64(e.call.rows))
	if prog.Table.Grouped {
		where = describe(e.call.group)
	}
	e.err.Message = fmt.Sprintf("function %s, %s: %s", prog.Table.Function, where, e.err.Message)
	return e.err
}

// callReader collects the rows of calls, and calls until they are enough for a chunk.
type callReader struct {
	run   *run
	next  func() (Row, int64, error)
	enc   *encoder // rows of the call that is being read
	group int64    // its number
	total int64    // rows of calls before it

	calls   []call // complete, of the next chunk
	columns []byte
}

func (in *callReader) read() error {
	r := in.run
	for {
		atEnd, err := in.fill()
		if err != nil {
			return err
		}
		if atEnd {
			r.pool.ended(r)
		}
		if len(in.calls) > 0 {
			if err := r.submit(in.chunk()); err != nil {
				return err
			}
		}
		if atEnd {
			return nil
		}
	}
}

func (in *callReader) chunk() *chunk {
	c := &chunk{run: in.run, rows: len(in.calls), calls: in.calls, at: -1, columns: in.columns,
		done: make(chan struct{})}
	for _, one := range in.calls {
		c.weight += one.rows
	}
	in.calls, in.columns = nil, nil
	return c
}

// fill reads until there are complete calls for a chunk.
func (in *callReader) fill() (atEnd bool, err error) {
	in.run.calls.Lock()
	defer in.run.calls.Unlock()
	grouped, cfg, began := in.run.prog.Table.Grouped, &in.run.pool.cfg, time.Now()
	for n := 1; ; n++ {
		select {
		case <-in.run.stop:
			return false, errStopped
		default:
		}
		row, group, err := in.next()
		if errors.Is(err, io.EOF) {
			in.endCall()
			return true, nil
		}
		if err != nil {
			return false, err
		}
		if grouped && group != in.group {
			in.endCall()
			in.group = group
		}
		if err := in.enc.add(row); err != nil {
			return false, in.failed(fault.Of(err))
		}
		switch {
		case in.enc.bytes > cfg.MaxGroupBytes:
			return false, in.failed(groupTooLarge(cfg.MaxGroupBytes))
		case !grouped && (in.enc.rows >= maxCallRows || in.enc.bytes >= cfg.MaxChunkBytes):
			in.endCall()
			return false, nil
		case grouped && in.enough(n, began):
			return false, nil
		}
	}
}

// enough says whether the complete calls make a chunk.
func (in *callReader) enough(n int, began time.Time) bool {
	if len(in.calls) == 0 {
		return false
	}
	last := in.calls[len(in.calls)-1]
	rows := last.first + int64(last.rows) - in.calls[0].first
	return rows >= in.run.chunkRows.Load() || int64(len(in.columns)) >= in.run.pool.cfg.MaxChunkBytes ||
		n%rowsBetweenLooks == 0 && time.Since(began) > in.run.pool.cfg.ChunkTarget
}

// endCall completes the call that is being read, if it has rows.
func (in *callReader) endCall() {
	if in.enc.rows == 0 {
		return
	}
	if !in.run.prog.Table.Grouped {
		in.group++
	}
	in.calls = append(in.calls, call{group: in.group, first: in.total, rows: in.enc.rows})
	in.columns = in.enc.appendTo(appendWord(in.columns, uint64(in.enc.rows)))
	in.total += int64(in.enc.rows)
	in.enc.reset()
}

// failed says that the call which is being read cannot be made.
func (in *callReader) failed(f *fault.Error) error {
	return &callError{call: call{group: in.group, first: in.total, rows: in.enc.rows}, err: f}
}

func groupTooLarge(limit int64) *fault.Error {
	f := fault.New(fault.Script, "its rows are more than the %d MiB that a call may have", limit>>20)
	f.Hint = "group by more columns, pass fewer with p.columns, or give the interpreters more with {{set memory}}"
	return f
}

// tableEmitter gives results to the caller, in the caller's goroutine.
type tableEmitter struct {
	run  *run
	row  []any
	rows int64
	emit func(group, row int64, values []any) error
}

// chunk emits the results of a chunk's calls.
func (e *tableEmitter) chunk(ctx context.Context, c *chunk) error {
	if c.err != nil {
		if f := fault.Of(c.err); c.at >= 0 && c.at < len(c.calls) {
			return &callError{call: c.calls[c.at], err: f}
		}
		return c.err
	}
	if failures := c.answer.report.Errors; len(failures) > 0 {
		f := &failures[0]
		if f.Row < 0 || f.Row >= len(c.calls) {
			return protocolFault(errProtocol)
		}
		return &callError{call: c.calls[f.Row], err: resultFault(e.run.prog, f)}
	}
	if c.answer.rows != len(c.calls) {
		return protocolFault(fmt.Errorf("%d results for %d calls: %w", c.answer.rows, len(c.calls), errProtocol))
	}
	e.run.calls.Lock()
	defer e.run.calls.Unlock()
	rest := c.answer.columns
	for _, one := range c.calls {
		var err error
		if rest, err = e.result(ctx, one, rest); err != nil {
			return err
		}
	}
	if len(rest) > 0 {
		return protocolFault(fmt.Errorf("%d bytes after the last result: %w", len(rest), errProtocol))
	}
	return nil
}

// result emits the rows of one call's result and returns what follows it.
func (e *tableEmitter) result(ctx context.Context, one call, b []byte) ([]byte, error) {
	if len(b) < wordBytes || word(b, 0) > uint64(len(b)) {
		return nil, protocolFault(fmt.Errorf("a result is cut short: %w", errProtocol))
	}
	rows := int(word(b, 0))
	dec, rest, err := cutColumns(e.run.prog, rows, b[wordBytes:])
	if err != nil {
		return nil, protocolFault(err)
	}
	for i := range rows {
		if ctx.Err() != nil {
			return nil, e.run.pool.canceled(ctx)
		}
		if f := dec.row(i, e.row); f != nil {
			f.ResultRow = i + 1
			return nil, &callError{call: one, err: resultFault(e.run.prog, f)}
		}
		if err := e.emit(one.group, int64(i), e.row); err != nil {
			return nil, err
		}
		e.rows++
	}
	return rest, nil
}

// resultFault is the failure of a call, or of what it returned.
func resultFault(prog *program, f *failure) *fault.Error {
	out := fault.New(fault.Kind(f.Move), "%s", f.text())
	out.Place = fault.Place{File: f.File, Line: f.Line, Value: f.Value}
	out.Detail = f.Traceback
	subject := ""
	if f.Field >= 0 && f.Field < len(prog.Fields) {
		subject = "p." + prog.Fields[f.Field].Name
		out.Place.Field = prog.Fields[f.Field].Name
	}
	if f.ResultRow > 0 {
		if subject != "" {
			subject += " in "
		}
		subject += fmt.Sprintf("row %d of its result", f.ResultRow)
	}
	switch {
	case subject != "":
		out.Message = subject + ": " + out.Message
	case f.Type == "":
		out.Message = "its result: " + out.Message
	}
	switch {
	case f.Category == "memory":
		out.Hint = "pass fewer columns with p.columns, group by more columns, or allow a Python process more memory"
	case f.Category == "timeout":
		out.Hint = hintCallTime
	case f.Category == "digits":
		out.Hint = "round it in the function, or say round: true of the column in p.returns"
	case f.Category == "none":
		out.Hint = "return a value, or declare the column nullable: true in p.returns"
	case f.Type == "":
		out.Hint = "p.returns says what the function has to return: " + returnsText(prog)
	}
	return out
}

// returnsText names the columns that a function has to return.
func returnsText(prog *program) string {
	const most = 12
	text := ""
	for i, f := range prog.Fields {
		if i == most {
			return text + ", …"
		}
		if i > 0 {
			text += ", "
		}
		text += f.Name + " " + f.Type.String()
	}
	return text
}

// moduleFault says that the interpreter does not have what a function's input needs.
func (s *slot) moduleFault(prog *program, f *failure) *fault.Error {
	module := string(prog.Table.Input)
	if prog.Table.Input == Arrow {
		module = "pyarrow"
	}
	v := s.proc.hello.Version
	out := fault.New(fault.Environment,
		"input: %s needs the Python module %s, which the interpreter %s (%s %d.%d) cannot import: %s",
		prog.Table.Input, module, s.pool.path, s.proc.hello.Implementation, v[0], v[1], f.Message)
	out.Hint = fmt.Sprintf("install %s for it, name an interpreter that has it with {{set python}}, or use "+
		"input: lists", module)
	return out
}

// loadFault is the failure to import a program's files.
func (s *slot) loadFault(prog *program, f *failure) *fault.Error {
	if prog.Table != nil && f.Category == "module" {
		return s.moduleFault(prog, f)
	}
	return loadFault(prog, f, s.pool.path)
}
