package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"thalweg/internal/io/inputcache"

	"thalweg/internal/base/fault"
	"thalweg/internal/run/job"
	"thalweg/internal/run/sheet"
	"thalweg/internal/store/parts"
	"thalweg/internal/store/state"
)

// Command is the name of the command that is a child.
const Command = "slot"

// connectionFD is a child's end of the socket, after the three standard descriptors.
const connectionFD = 3

// Parent holds the services of the process that started the child. One that is bare has no state, parts, room, copies
// and log of it.
type Parent struct {
	Slot     int             // its number, from 1
	WorkDir  string          // the child's own; the parent removes it
	Settings json.RawMessage // see Config.Settings
	State    state.Store
	Parts    parts.Store
	Room     Room
	Copies   func(run state.RunKey) Copier
	Logger   *slog.Logger
}

// Host opens runs in a child.
type Host interface {
	Open(ctx context.Context, key state.RunKey) (Run, error)
	Close() error
}

// Run is a run that a child executes batches of.
type Run interface {
	Execute(ctx context.Context, c state.Claim) (job.Result, error)
	Close()
}

// Inherited is the connection of this process to the parent that has started it
// as a child.
func Inherited() (net.Conn, error) {
	closeOnExec(connectionFD) // or what it starts would keep it open
	conn, err := fileConn(os.NewFile(connectionFD, "parent"))
	if err != nil {
		return nil, &fault.Error{Kind: fault.Script, Message: "this command is started by {{do worker}} for itself",
			Err: err}
	}
	return conn, nil
}

// Serve is a child's life: it ends when the connection does. begin makes what
// opens runs, once.
func Serve(conn net.Conn, begin func(ctx context.Context, p Parent) (Host, error)) error {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	c := &child{peer: newPeer(conn), begin: begin, runs: map[state.RunKey]*openRun{},
		results: map[state.BatchKey]job.Result{}}
	c.peer.calls["hello"] = answers(c.hello)
	c.peer.calls["execute"] = answers(c.execute)
	c.peer.calls["publish"] = answers(c.publish)
	c.peer.calls["discard"] = answers(c.discard)
	c.peer.calls["ask"] = answers(c.ask)
	c.peer.tells["settled"] = hears(c.settled)
	c.life = ctx
	err := c.peer.run()
	stop()
	c.beats.Wait()
	return errors.Join(err, c.close())
}

// child is the state of this process.
type child struct {
	peer  *peer
	begin func(context.Context, Parent) (Host, error)
	life  context.Context //nolint:containedctx // of the connection
	beats sync.WaitGroup

	mu   sync.Mutex // held while a run is opened
	host Host
	runs map[state.RunKey]*openRun
	used int64 // clock of runs

	keeping sync.Mutex
	results map[state.BatchKey]job.Result // that are to be published or discarded
}

// openRun is a run that is open here.
type openRun struct {
	Run
	opening int64
	used    int64
}

// beat says that this process lives.
func (c *child) beat(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			c.peer.tell("beat", nil)
		}
	}
}

func (c *child) hello(ctx context.Context, h hello) (any, error) {
	if h.Protocol != protocol {
		return helloAnswer{Protocol: protocol},
			fault.New(fault.Bug, "the worker speaks version %d of the slots' protocol, its child version %d",
				h.Protocol, protocol)
	}
	c.beats.Go(func() { c.beat(c.life, h.Beat) })
	parent := Parent{Slot: h.Slot, WorkDir: h.WorkDir, Settings: h.Settings, Logger: slog.New(slog.DiscardHandler)}
	if !h.Bare {
		if err := c.borrow(ctx, &parent, h); err != nil {
			return nil, err
		}
	}
	host, err := c.begin(ctx, parent)
	if err != nil {
		return nil, err
	}
	out := helloAnswer{Protocol: protocol, HeldBytes: residentBytes()}
	if noting, ok := host.(Noting); ok {
		out.Notes = noting.Notes()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.host = host
	return out, nil
}

// borrow adds what the parent lends.
func (c *child) borrow(ctx context.Context, p *Parent, h hello) (err error) {
	room := &farRoom{peer: c.peer}
	room.last.Store(&h.Budget)
	if p.Parts, err = newPartStore(ctx, c.peer); err != nil {
		return err
	}
	p.State, p.Room = newStoreOf(c.peer), room
	p.Copies = func(run state.RunKey) Copier { return farCopier{c.peer, run} }
	p.Logger = slog.New(&farLog{peer: c.peer, level: h.Level})
	return nil
}

func (c *child) execute(ctx context.Context, a executeArgs) (any, error) {
	run, err := c.run(ctx, a.Claim.RunKey, a.Opening)
	if err != nil {
		return nil, err
	}
	var res job.Result
	err = fault.Guard(fmt.Sprintf("executing batch %d of node %s", a.Claim.Batch, a.Claim.Node), func() (err error) {
		res, err = run.Execute(job.WithThreads(ctx, a.Threads), a.Claim)
		return err
	})
	c.keeping.Lock()
	c.results[a.Claim.BatchKey] = res
	c.keeping.Unlock()
	return executeAnswer{Outcome: res.Outcome, Publications: res.Publications, Publish: res.Publish != nil,
		Discard: res.Discard != nil, HeldBytes: residentBytes(), Collector: sheet.Collector()}, err
}

// run opens a run, or gives it as it was opened before.
func (c *child) run(ctx context.Context, key state.RunKey, opening int64) (Run, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.host == nil {
		return nil, fault.New(fault.Bug, "the child was given a batch before it was told how to work")
	}
	c.used++
	if r := c.runs[key]; r != nil && r.opening == opening {
		r.used = c.used
		return r, nil
	}
	c.forget(key)
	for len(c.runs) >= openRunsMax {
		oldest := key
		for k, r := range c.runs {
			if oldest == key || r.used < c.runs[oldest].used {
				oldest = k
			}
		}
		c.forget(oldest)
	}
	r, err := c.host.Open(ctx, key)
	if err != nil {
		return nil, err
	}
	c.runs[key] = &openRun{Run: r, opening: opening, used: c.used}
	return r, nil
}

func (c *child) forget(key state.RunKey) {
	if r := c.runs[key]; r != nil {
		r.Close()
		delete(c.runs, key)
	}
}

// result takes what an execution has left.
func (c *child) result(key state.BatchKey, keep bool) (job.Result, bool) {
	c.keeping.Lock()
	defer c.keeping.Unlock()
	res, ok := c.results[key]
	if !keep {
		delete(c.results, key)
	}
	return res, ok
}

func (c *child) publish(ctx context.Context, key state.BatchKey) (any, error) {
	res, ok := c.result(key, true)
	if !ok || res.Publish == nil {
		return nil, fault.New(fault.Bug, "batch %d of node %s has nothing to publish", key.Batch, key.Node)
	}
	return nil, fault.Guard(fmt.Sprintf("publishing batch %d of node %s", key.Batch, key.Node),
		func() error { return res.Publish(ctx) })
}

func (c *child) discard(_ context.Context, key state.BatchKey) (any, error) {
	if res, ok := c.result(key, false); ok && res.Discard != nil {
		return nil, fault.Guard("discarding", func() error { res.Discard(); return nil })
	}
	return nil, nil
}

// settled hears that nothing of a result is wanted from here any more.
func (c *child) settled(key state.BatchKey) { c.result(key, false) }

func (c *child) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key := range c.runs {
		c.forget(key)
	}
	if c.host == nil {
		return nil
	}
	return c.host.Close()
}

// farCopier is the parent's of a run.
type farCopier struct {
	peer *peer
	run  state.RunKey
}

// EnsureAll implements Copier.
func (f farCopier) EnsureAll(ctx context.Context, wants []inputcache.Want) ([]inputcache.Copy, error) {
	if len(wants) == 0 {
		return nil, nil
	}
	return ask[[]inputcache.Copy](ctx, f.peer, "copies", copiesArgs{f.run, wants})
}
