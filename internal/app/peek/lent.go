package peek

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"thalweg/internal/app/inspect"
	"thalweg/internal/app/instance"
	"thalweg/internal/app/runtime"
	"thalweg/internal/app/scripts"
	"thalweg/internal/base/fault"
	"thalweg/internal/base/secret"
	"thalweg/internal/io/remote"
	"thalweg/internal/lang/script"
	"thalweg/internal/ops/compare"
	"thalweg/internal/ops/lineage"
	"thalweg/internal/run/sandbox"
	"thalweg/internal/store/parts"
	"thalweg/internal/store/state"
)

// What children are asked that are lent an instance.
type (
	diffArgs struct {
		Runs [2]state.RunKey     `json:"runs"`
		Diff inspect.DiffOptions `json:"diff"`
	}
	traceArgs struct {
		Workspace string          `json:"workspace"`
		Name      string          `json:"name"`
		Run       int64           `json:"run"`
		Trace     lineage.Options `json:"trace"`
	}
	checkArgs struct {
		Script      scripts.Named `json:"script"`
		Fingerprint string        `json:"fingerprint"` // of the script as the parent has loaded it
		Run         state.Run     `json:"run"`
		Nodes       []string      `json:"nodes"`
		RowsMax     int           `json:"rows_max"`
	}
)

// lentHost looks at an instance that its parent lends.
type lentHost struct {
	noRuns
	home    *instance.Instance
	process runtime.Process
	client  *remote.Client
}

var _ sandbox.Answerer = (*lentHost)(nil)

func newLentHost(set settings, notes []string, p sandbox.Parent, connect Connect) (*lentHost, error) {
	if set.Home == nil {
		return nil, fault.New(fault.Bug, "a child was not told which instance it looks at")
	}
	client, err := connect(set.Home.Client, p.Logger)
	if err != nil {
		return nil, err
	}
	h := set.Home
	return &lentHost{noRuns: noRuns{notes: notes}, client: client,
		home: instance.Lent(instance.Lending{Dir: h.Dir, Beside: h.Beside, PartsDir: h.Parts, Work: p.WorkDir,
			State: p.State, Parts: p.Parts}),
		process: runtime.Process{Program: h.Program, Interpreter: h.Interpreter, Keeper: h.Keeper, Dir: h.WorkingDir,
			RowTimeout: h.RowTimeout, GroupTimeout: h.GroupTimeout, Remote: client, Known: secret.New(),
			Logger: p.Logger, MemoryBytes: set.MemoryBytes}}, nil
}

// Close implements sandbox.Host.
func (h *lentHost) Close() error { return h.client.Close() }

// Answer implements sandbox.Answerer.
func (h *lentHost) Answer(ctx context.Context, method string, args json.RawMessage,
	send func([]byte) error) (any, error) {
	ctx, stop := telling(ctx, send)
	defer stop()
	switch method {
	case askDiff:
		var a diffArgs
		if err := json.Unmarshal(args, &a); err != nil {
			return nil, fmt.Errorf("decode a question: %w", err)
		}
		a.Diff.MemoryBytes = h.process.MemoryBytes
		return found(inspect.Diff(ctx, h.home, a.Runs, a.Diff))
	case askTrace:
		return h.trace(ctx, args)
	case askCheck:
		return h.check(ctx, args)
	case askExplain:
		var key state.BatchKey
		if err := json.Unmarshal(args, &key); err != nil {
			return nil, fmt.Errorf("decode a question: %w", err)
		}
		return inspect.ExplainBatch(ctx, h.home, h.process, key)
	}
	return nil, fault.New(fault.Bug, "there is no question %q", method)
}

// found makes the values of a comparison's rows what is shown of them: the driver's own do not travel.
func found(c inspect.Comparison, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	for _, list := range [][]compare.Difference{c.SampleRemoved, c.SampleAdded, c.SampleChanged} {
		for i := range list {
			list[i].A, list[i].B = toWire(list[i].A), toWire(list[i].B)
		}
	}
	return c, nil
}

func (h *lentHost) trace(ctx context.Context, args json.RawMessage) (any, error) {
	var a traceArgs
	if err := json.Unmarshal(args, &a); err != nil {
		return nil, fmt.Errorf("decode a question: %w", err)
	}
	tree, err := inspect.Trace(ctx, h.home, inspect.TraceOptions{Process: h.process, Workspace: a.Workspace,
		Name: a.Name, Run: a.Run, Trace: a.Trace})
	if err != nil {
		return nil, err
	}
	return tree, nil
}

func (h *lentHost) check(ctx context.Context, args json.RawMessage) (any, error) {
	var a checkArgs
	if err := json.Unmarshal(args, &a); err != nil {
		return nil, fmt.Errorf("decode a question: %w", err)
	}
	sc, err := h.script(ctx, a)
	if err != nil {
		return nil, err
	}
	list, err := inspect.Check(ctx, h.home, sc, inspect.CheckOptions{Process: h.process, Run: a.Run,
		ScriptPath: a.Script.Path, Nodes: a.Nodes, RowsMax: a.RowsMax})
	for i := range list {
		for n, row := range list[i].Failing.Rows {
			list[i].Failing.Rows[n] = toWire(row)
		}
	}
	return list, err
}

// script loads the script whose checks are made: that of the run, if no other is named.
func (h *lentHost) script(ctx context.Context, a checkArgs) (sc *script.Script, err error) {
	if a.Script.Path == "" {
		sc, _, err = inspect.ScriptOf(ctx, h.home, a.Run.RunKey, h.process)
	} else {
		service := scripts.Service{Remote: h.client, Dir: h.process.Dir, Known: h.process.Known}
		sc, _, err = service.Valid(ctx, a.Script)
	}
	if err == nil && a.Fingerprint != "" && sc.Fingerprint != a.Fingerprint {
		err = &fault.Error{Kind: fault.Script, Code: fault.Conflict, Retryable: true,
			Message: "the script has changed while its checks were to be made", Hint: "make them again"}
	}
	return sc, err
}

// Cells of rows travel as texts, each behind a letter that says what it is.
func toWire(row []any) []any {
	if row == nil {
		return nil
	}
	out := make([]any, len(row))
	for i, cell := range row {
		nested, is := cell.(inspect.Nested)
		if !is {
			cell = inspect.Cell(cell)
		}
		switch v := cell.(type) {
		case nil:
		case inspect.Nested:
			out[i] = string(tagNested) + string(nested)
		case bool:
			out[i] = v
		case int64:
			out[i] = string(tagInt) + strconv.FormatInt(v, 10)
		case float64:
			out[i] = string(tagFloat) + strconv.FormatFloat(v, 'g', -1, 64)
		default:
			out[i] = string(tagText) + fmt.Sprint(v)
		}
	}
	return out
}

// fromWire makes cells of what toWire has made; what it has not is left as it is.
func fromWire(row []any) []any {
	for i, cell := range row {
		text, is := cell.(string)
		if !is || text == "" {
			continue
		}
		rest := text[1:]
		switch text[0] {
		case tagText:
			row[i] = rest
		case tagNested:
			row[i] = inspect.Nested(rest)
		case tagInt:
			if n, err := strconv.ParseInt(rest, 10, 64); err == nil {
				row[i] = n
			}
		case tagFloat:
			if f, err := strconv.ParseFloat(rest, 64); err == nil {
				row[i] = f
			}
		}
	}
	return row
}

// readOnly is a state that can be read.
func readOnly(store state.Store) state.Store {
	return state.Around(store, func(ctx context.Context, op state.Op, call func(context.Context) error) error {
		if op.Kind != state.Reads {
			return fault.New(fault.Bug, "a child that looks at tables changes nothing of the state: %s", op.Name)
		}
		return call(ctx)
	})
}

// readOnlyParts are parts that can be read.
type readOnlyParts struct{ parts.Store }

var errPartsAreRead = errors.New("a child that looks at tables changes no parts")

// Put implements parts.Store.
func (readOnlyParts) Put(context.Context, string, string) (parts.Info, error) {
	return parts.Info{}, errPartsAreRead
}

// Delete implements parts.Store.
func (readOnlyParts) Delete(context.Context, string) error { return errPartsAreRead }
