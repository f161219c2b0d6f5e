package peek

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"thalweg/internal/app/inspect"
	"thalweg/internal/app/instance"
	"thalweg/internal/app/runtime"
	"thalweg/internal/app/view"
	"thalweg/internal/base/budget"
	"thalweg/internal/base/fault"
	"thalweg/internal/base/keeper"
	"thalweg/internal/run/sandbox"
)

// Config of a pool.
type Config struct {
	Home    *instance.Instance
	Process runtime.Process // what children that are lent the instance may use
	Program string          // the path of this program
	Client  any             // what their Connect makes a client of; as JSON
	Limits  Limits
}

// Pool has children that answer questions. Its methods may be called by any number of goroutines; Close after all
// others.
type Pool struct {
	home   *instance.Instance
	limits Limits
	logger *slog.Logger
	dir    string          // of the children
	lent   json.RawMessage // homeSettings
	path   string          // of this program

	memory *budget.Ledger
	had    int64 // bytes of the share, when it was looked at before
	line   line  // before the memory
	slots  *sandbox.Slots
	stop   context.CancelFunc
	work   sync.WaitGroup

	known latest[view.Distribution]
	sums  latest[map[string]string] // of tables: see Pool.figures
}

// New returns a pool that has no child yet. It takes its share of the directory's memory as soon as others leave it.
func New(cfg Config) (_ *Pool, err error) {
	p := &Pool{home: cfg.Home, limits: cfg.Limits.withDefaults(), logger: cfg.Process.WithDefaults().Logger,
		path: cfg.Program}
	if p.lent, err = lentSettings(cfg); err != nil {
		return nil, err
	}
	if p.dir, err = cfg.Home.Scratch(); err != nil {
		return nil, err
	}
	guest := budget.Guest{LeastBytes: min(childBytesMin, p.limits.ChildBytes), Slots: p.limits.Children, Stays: true,
		MostBytes: int64(p.limits.Children) * p.limits.ChildBytes}
	member := budget.Member{Owner: fmt.Sprintf("the queries of process %d", os.Getpid()), Guest: &guest,
		Total: max(budget.Default(), guest.MostBytes), Resized: p.resized,
		Wanted: func() { p.line.yield(yieldAfter) }}
	p.line.resize(p.limits.Children)
	if p.memory, err = budget.Join(filepath.Join(cfg.Home.Dir, "shares"), member, guest.Whole()); err != nil {
		return nil, errors.Join(instance.Fault(cfg.Home.Dir, "share the memory with other processes", err),
			os.RemoveAll(p.dir))
	}
	p.slots = sandbox.New(sandbox.Config{Size: p.limits.Children, WorkDir: p.dir, State: readOnly(cfg.Home.State),
		Parts: readOnlyParts{cfg.Home.Parts}, Room: p.memory.Room(), Nice: nice, Grace: grace, Silence: silence,
		Logger: p.logger})
	var ctx context.Context
	ctx, p.stop = context.WithCancel(context.Background())
	p.work.Go(func() {
		p.memory.Review(ctx, func(err error) {
			p.logger.Warn("what other processes hold of the memory cannot be followed; it is tried again",
				"error", err)
		})
	})
	p.work.Go(func() { p.endIdle(ctx) })
	return p, nil
}

func lentSettings(cfg Config) (json.RawMessage, error) {
	client, err := json.Marshal(cfg.Client)
	if err != nil {
		return nil, fmt.Errorf("write the settings of children: %w", err)
	}
	p := cfg.Process
	text, err := json.Marshal(homeSettings{Dir: cfg.Home.Dir, Beside: cfg.Home.BaseDir, Parts: cfg.Home.PartsDir,
		Program: p.Program, Interpreter: p.Interpreter, Keeper: p.Keeper, WorkingDir: p.Dir, RowTimeout: p.RowTimeout,
		GroupTimeout: p.GroupTimeout, Client: client})
	if err != nil {
		return nil, fmt.Errorf("write the settings of children: %w", err)
	}
	return text, nil
}

// Close ends the children and gives their memory back.
func (p *Pool) Close() error {
	p.stop()
	p.work.Wait()
	return errors.Join(p.slots.Close(), p.memory.Leave(), os.RemoveAll(p.dir))
}

// endIdle ends children that nobody has asked for a while.
func (p *Pool) endIdle(ctx context.Context) {
	tick := time.NewTicker(max(p.limits.Idle/2, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			p.slots.EndIdle(p.limits.Idle)
		}
	}
}

// resized ends the children that nobody uses when their memory goes to others.
func (p *Pool) resized(b budget.Budget) bool {
	if b.TotalBytes < p.had {
		p.slots.EndIdle(0)
	}
	p.had = b.TotalBytes
	p.line.resize(b.Slots)
	return true
}

// question is what a child is asked.
type question struct {
	by     string   // who asks
	actor  string   // whose SQL it is; "": nobody's
	heavy  bool     // it may take long: it leaves others a child
	read   []string // files
	lent   bool
	method string
	args   any
	doing  string // what it is, for people: the query
	limit  time.Duration
}

// program is a child of this program. A bare one gets no variables; scripts name ours.
func (p *Pool) program(lent bool) func() keeper.Program {
	return func() keeper.Program {
		program := keeper.Program{Path: p.path, Name: "thalweg", Args: []string{Command}, Env: []string{}, Dir: p.dir}
		if lent {
			program.Env, program.Dir = keeper.All(), ""
		}
		return program
	}
}

// ask has a child answer a question once there is memory for it. consume reads what the child sends meanwhile; if it
// returns an error, that is the answer. nil: nothing is sent.
func (p *Pool) ask(ctx context.Context, q question, consume func(io.Reader) error) (answer json.RawMessage, err error) {
	view.TellProgress(ctx, view.Progress{Phase: "waiting for memory"})
	waiting, stopWaiting := context.WithTimeoutCause(ctx, p.limits.Wait, errBusy)
	defer stopWaiting()
	place, leave, err := p.line.enter(waiting, q)
	if err != nil {
		return nil, p.why(ctx, waiting, err, q)
	}
	defer leave()
	grant, release, err := p.memory.Room().Take(waiting, budget.OneSlot)
	if err != nil {
		return nil, p.why(ctx, waiting, err, q)
	}
	defer release()
	view.TellProgress(ctx, view.Progress{Phase: "at work on " + q.doing})
	set := settings{Lent: q.lent, Actor: q.actor, Read: q.read, MemoryBytes: min(grant.EngineBytes, p.limits.ChildBytes),
		SpillBytes: p.limits.SpillBytes}
	text, err := p.settingsOf(set)
	if err != nil {
		return nil, err
	}
	limited, stop := context.WithTimeoutCause(ctx, q.limit, errSlow)
	defer stop()
	asking, end := context.WithCancelCause(limited)
	defer end(nil)
	p.line.begin(place, func() { end(errWanted) })
	pieces := make(chan []byte)
	var asked sync.WaitGroup
	defer asked.Wait()
	ended := make(chan struct{})
	asked.Go(func() {
		defer close(ended)
		answer, err = p.slots.Ask(asking, sandbox.Question{
			Kind:  sandbox.Kind{Command: p.program(q.lent), Settings: text, Bare: !q.lent},
			Doing: "answering " + q.doing, Hint: hintOfDeath, Method: q.method, Args: q.args,
			Hear: func(hearing context.Context, piece []byte) error {
				if told, err := hear(ctx, piece); told || err != nil {
					return err
				}
				select {
				case pieces <- piece[1:]:
					return nil
				case <-hearing.Done():
				case <-asking.Done():
				}
				return context.Cause(asking)
			}})
	})
	if consume != nil {
		if broken := consume(&received{pieces: pieces, ended: ended}); broken != nil {
			why := p.why(ctx, asking, broken, q)
			end(nil)
			<-ended
			return nil, why
		}
	}
	<-ended
	return answer, p.why(ctx, asking, err, q)
}

const hintOfDeath = "nothing else has ended with it: ask for less at once, fewer rows and columns, or shorter values; " +
	"a run has more memory and time, in a node of type sql"

// refusal is why a child does not answer. Nobody gives it more memory than its limit, so whoever asks has to ask for less.
func (p *Pool) refusal(ctx context.Context, r *inspect.Refusal, opts inspect.QueryOptions) error {
	if r.Kind == fault.Environment {
		return &fault.Error{Kind: fault.Script, Message: r.Message, Hint: hintOfDeath, Detail: r.Detail}
	}
	return r.Fault(ctx, p.home, opts)
}

// settingsOf encodes what a child is told.
func (p *Pool) settingsOf(set settings) (json.RawMessage, error) {
	if set.Lent {
		set.Home = &homeSettings{}
		if err := json.Unmarshal(p.lent, set.Home); err != nil {
			return nil, fmt.Errorf("read the settings of children: %w", err)
		}
	}
	text, err := json.Marshal(set)
	if err != nil {
		return nil, fmt.Errorf("write the settings of a child: %w", err)
	}
	return text, nil
}

// Why a question is given up.
var (
	errBusy = errors.New("there is no memory for it")
	errSlow = errors.New("it takes too long")
	// errWanted ends what a run would wait for.
	errWanted = errors.New("a run needs its memory")
)

// why says what ended a question: its caller, a limit, or what it did itself.
func (p *Pool) why(ctx, limited context.Context, err error, q question) error {
	switch cause := context.Cause(limited); {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return &fault.Error{Kind: fault.Canceled, Message: q.doing + " was interrupted", Err: context.Cause(ctx)}
	case errors.Is(cause, errBusy):
		return &fault.Error{Kind: fault.Environment, Code: fault.TooMany, Retryable: true,
			Message: fmt.Sprintf("others have asked before, and runs have the memory: %s was not begun within %s", q.doing,
				p.limits.Wait), Hint: "ask again in a while"}
	case errors.Is(cause, errWanted):
		return &fault.Error{Kind: fault.Environment, Code: fault.TooMany, Retryable: true,
			Message: fmt.Sprintf("a run needs the memory: %s was ended", q.doing),
			Hint:    "ask again in a while, or for less: runs go before questions"}
	case errors.Is(cause, errSlow):
		return &fault.Error{Kind: fault.Script, Message: fmt.Sprintf("%s took longer than %s, and was ended", q.doing,
			q.limit), Hint: "ask for less at once; a run has more time, in a node of type sql"}
	}
	return err
}

// received reads what a child sends, until its answer.
type received struct {
	pieces <-chan []byte
	ended  <-chan struct{}
	left   []byte
}

// Read implements io.Reader.
func (r *received) Read(b []byte) (int, error) {
	for len(r.left) == 0 {
		select {
		case r.left = <-r.pieces:
		case <-r.ended:
			return 0, io.EOF
		}
	}
	n := copy(b, r.left)
	r.left = r.left[n:]
	return n, nil
}

// reads lists what a child has to be able to read for files of parts: the directories of their nodes, so that the same
// child can answer for other parts of them. Copies of parts lie together with those of others: then it is the files.
func (p *Pool) reads(paths []string) []string {
	out := slices.Clone(paths)
	if p.home.Parts.Properties().Local {
		for i, path := range out {
			out[i] = filepath.Dir(path)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
