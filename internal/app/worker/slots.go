package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"path/filepath"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"thalweg/internal/app/instance"
	"thalweg/internal/app/runtime"
	"thalweg/internal/base/budget"
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

// slotSettings hold the settings that a worker gives a slot's process.
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

// openSlots makes the slots of a worker that isolates, if there are none yet.
func (s *Server) openSlots() error {
	if s.opts.Isolate == nil || s.Slots != nil {
		return nil
	}
	client, err := json.Marshal(s.opts.Isolate.Client)
	if err != nil {
		return fmt.Errorf("write the settings of slots: %w", err)
	}
	settings, err := json.Marshal(slotSettings{Home: s.Instance.Dir, Beside: s.Instance.BaseDir,
		Parts:       s.Instance.PartsDir,
		Interpreter: s.opts.Interpreter, Keeper: s.opts.Keeper, RowTimeout: s.opts.RowTimeout,
		GroupTimeout: s.opts.GroupTimeout, Client: client})
	if err != nil {
		return fmt.Errorf("write the settings of slots: %w", err)
	}
	s.Slots = sandbox.New(sandbox.Config{Command: s.opts.Isolate.Command, Size: s.opts.inFlightMost(),
		WorkDir: s.WorkDir, Settings: settings, State: s.Store, Parts: s.Instance.Parts,
		Room: s.Shares.Room(), Logger: s.opts.Logger, Ended: s.opts.SlotEnded})
	return nil
}

// isolated is a run's job with its batches executed in slots, if they are processes, and in their turn.
func (s *Server) isolated(key state.RunKey, job *pipeline.Pipeline) job.Job {
	if s.Slots == nil {
		return limitedJob{Job: job, limiter: s.limiter}
	}
	return limitedJob{Job: s.Slots.Job(key, job, job), limiter: s.limiter, isolated: true}
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
			Runtime: &runtime.Runtime{Parent: &p, Instance: &instance.Instance{Dir: set.Home,
				State: p.State, Parts: p.Parts,
				BaseDir: set.Beside, PartsDir: set.Parts}, Store: instance.RedactingStore(p.State, known),
				WorkDir: p.WorkDir, Budget: b,
				Process: runtime.Process{Interpreter: set.Interpreter, Keeper: set.Keeper, RowTimeout: set.RowTimeout,
					GroupTimeout: set.GroupTimeout, Remote: client, Known: known, Logger: p.Logger},
				Engine: engine.NewInstances(filepath.Join(p.WorkDir, "engine"), p.WorkDir, set.Parts)}}
		p.Room = &restingRoom{Room: p.Room, pool: &host.Limits}
		return host, nil
	})
}

// slotHost opens runs in a slot's process.
type slotHost struct {
	*runtime.Runtime
	client *remote.Client
}

// Open implements sandbox.Host. Whether the run can be worked on here its worker
// has found out: its input files are not looked at again.
func (h *slotHost) Open(ctx context.Context, key state.RunKey) (sandbox.Run, error) {
	rec, err := h.RecallFrom(ctx, key, true)
	if err != nil {
		return nil, err
	}
	if runtime.NeedsPython(rec.Script.Nodes) {
		if err := h.OpenPool(); err != nil {
			return nil, err
		}
	}
	return h.Job(runtime.JobSpec{Policy: rec.Policy, Script: rec.Script, Sources: &rec.Sources, Run: key,
		Identity: h.Instance.IdentityOf(rec.Run),
		From:     rec.Run.Sources, Planning: rec.Budget, Ephemeral: rec.Ephemeral, Dir: rec.Dir, OwnCopies: true,
		Reuse: rec.Reuse, Chosen: rec.Chosen}), nil
}

// Close implements sandbox.Host.
func (h *slotHost) Close() error {
	err := h.Runtime.Close()
	h.client.Close()
	return err
}

// restAfter is the time that the interpreter of a slot stays when its batch has no memory.
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
