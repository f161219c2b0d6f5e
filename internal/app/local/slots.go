package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"thalweg/internal/base/budget"
	"thalweg/internal/base/fault"
	"thalweg/internal/base/keeper"
	"thalweg/internal/base/secret"
	"thalweg/internal/io/remote"
	"thalweg/internal/run/engine"
	"thalweg/internal/run/job"
	"thalweg/internal/run/pipeline"
	"thalweg/internal/run/python"
	"thalweg/internal/run/sandbox"
	"thalweg/internal/store/state"
)

// Isolation has a worker's batches executed in processes of their own, one a slot.
type Isolation struct {
	Command func() keeper.Program // makes one: what calls ServeSlot
	Client  any                   // what ServeSlot makes its remote.Client of; as JSON
}

// slotSettings are what a slot's process is told of its worker.
type slotSettings struct {
	Home         string          `json:"home"`   // see Home.Dir
	Beside       string          `json:"beside"` // see Home
	Parts        string          `json:"parts"`  // see Home
	Interpreter  string          `json:"interpreter"`
	Keeper       string          `json:"keeper"`
	RowTimeout   time.Duration   `json:"row_timeout"`
	GroupTimeout time.Duration   `json:"group_timeout"`
	Client       json.RawMessage `json:"client"`
}

// shareProcesses is share for slots that are processes.
func shareProcesses(total int64, cores int, python bool) (budget.Budget, error) {
	if cores == 0 {
		cores = budget.Cores()
	}
	b, err := budget.SplitProcesses(total, cores, python)
	if err != nil {
		return b, &fault.Error{Kind: fault.Script, Message: err.Error(), Hint: "give more with --memory"}
	}
	return b, nil
}

// openSlots makes the slots of a worker that isolates, if there are none yet.
func (s *server) openSlots() error {
	if s.opts.Isolate == nil || s.slots != nil {
		return nil
	}
	client, err := json.Marshal(s.opts.Isolate.Client)
	if err != nil {
		return fmt.Errorf("write the settings of slots: %w", err)
	}
	settings, err := json.Marshal(slotSettings{Home: s.home.Dir, Beside: s.home.beside, Parts: s.home.partsDir,
		Interpreter: s.opts.Interpreter, Keeper: s.opts.Keeper, RowTimeout: s.opts.RowTimeout,
		GroupTimeout: s.opts.GroupTimeout, Client: client})
	if err != nil {
		return fmt.Errorf("write the settings of slots: %w", err)
	}
	s.slots = sandbox.New(sandbox.Config{Command: s.opts.Isolate.Command, Size: s.opts.inFlightMost(), WorkDir: s.work,
		Settings: settings, State: s.store, Parts: s.home.Parts,
		Room: s.shares.Room(), Logger: s.opts.Logger, Ended: s.opts.SlotEnded})
	return nil
}

// isolated is a run's job with its batches executed in slots, if they are processes, and in their turn.
func (s *server) isolated(key state.RunKey, job *pipeline.Pipeline) job.Job {
	if s.slots == nil {
		return pacedJob{Job: job, pace: s.pace}
	}
	return pacedJob{Job: s.slots.Job(key, job, job), pace: s.pace, isolated: true}
}

// ServeSlot is the life of a worker's slot: it executes batches until the
// connection to its worker ends. connect makes the client of Isolation.Client.
func ServeSlot(conn net.Conn, connect func(client json.RawMessage, p sandbox.Parent) (*remote.Client, error)) error {
	sandbox.YieldMemory()
	return sandbox.Serve(conn, func(_ context.Context, p sandbox.Parent) (sandbox.Host, error) {
		var set slotSettings
		if err := json.Unmarshal(p.Settings, &set); err != nil {
			return nil, fmt.Errorf("read the settings of a slot: %w", err)
		}
		client, err := connect(set.Client, p)
		if err != nil {
			return nil, err
		}
		b := p.Room.Budget()
		debug.SetMemoryLimit(b.ProcessGoBytes())
		b.Interpreters = min(b.Interpreters, 1) // the others are those of other slots
		known := secret.New()
		host := &slotHost{client: client,
			tools: &tools{lent: &p, home: &Instance{Dir: set.Home, State: p.State, Parts: p.Parts,
				beside: set.Beside, partsDir: set.Parts}, store: redactingStore{p.State, known}, work: p.WorkDir, budget: b,
				opts: Process{Interpreter: set.Interpreter, Keeper: set.Keeper, RowTimeout: set.RowTimeout,
					GroupTimeout: set.GroupTimeout, Remote: client, Known: known, Logger: p.Logger},
				engine: engine.NewInstances(filepath.Join(p.WorkDir, "engine"), p.WorkDir, set.Parts)}}
		p.Room = &restingRoom{Room: p.Room, pool: &host.limits}
		return host, nil
	})
}

// slotHost opens runs in a slot's process.
type slotHost struct {
	*tools
	client *remote.Client
}

// Open implements sandbox.Host. Whether the run can be worked on here its worker
// has found out: its input files are not looked at again.
func (h *slotHost) Open(ctx context.Context, key state.RunKey) (sandbox.Run, error) {
	rec, err := h.recallFrom(ctx, key, true)
	if err != nil {
		return nil, err
	}
	if needsPython(rec.script.Nodes) {
		if err := h.openPool(); err != nil {
			return nil, err
		}
	}
	return h.job(jobOf{script: rec.script, sources: &rec.sources, run: key, identity: h.home.identityOf(rec.run),
		from: rec.run.Sources, planning: rec.Budget, ephemeral: rec.Ephemeral, dir: rec.Dir, ownCopies: true,
		reuse: rec.Reuse, chosen: rec.Chosen}), nil
}

// Close implements sandbox.Host.
func (h *slotHost) Close() error {
	err := errors.Join(h.close())
	h.client.Close()
	return err
}

// restAfter is how long the interpreter of a slot stays when its batch has no memory.
const restAfter = time.Second

// restingRoom ends a slot's interpreter while its batches have no memory: the
// worker has counted on as many as it has batches with memory.
type restingRoom struct {
	pipeline.Room
	pool *atomic.Pointer[python.Pool]

	mu    sync.Mutex
	timer *time.Timer // nil: a batch has memory
}

// Take implements pipeline.Room.
func (r *restingRoom) Take(ctx context.Context, share budget.Share) (budget.Grant, func(), error) {
	r.rest()
	g, release, err := r.Room.Take(ctx, share)
	if err != nil {
		return g, nil, err
	}
	r.wake()
	return g, func() {
		r.rest()
		release()
	}, nil
}

func (r *restingRoom) rest() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.timer != nil {
		return
	}
	var mine *time.Timer
	mine = time.AfterFunc(restAfter, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.timer == mine {
			r.limit(0)
		}
	})
	r.timer = mine
}

func (r *restingRoom) wake() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.timer.Stop()
	r.timer = nil
	r.limit(1)
}

func (r *restingRoom) limit(n int) {
	if pool := r.pool.Load(); pool != nil {
		pool.Limit(n)
	}
}
