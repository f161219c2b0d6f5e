package sandbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"thalweg/internal/io/inputcache"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"thalweg/internal/base/budget"
	"thalweg/internal/base/fault"
	"thalweg/internal/base/keeper"
	"thalweg/internal/run/job"
	"thalweg/internal/run/sandbox"
	"thalweg/internal/store/parts"
	"thalweg/internal/store/parts/cache"
	"thalweg/internal/store/state"
	"thalweg/internal/test/partstest"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == sandbox.Command {
		os.Exit(actor())
	}
	goleak.VerifyTestMain(m)
}

// actor makes the test binary a child that does what the names of nodes say.
func actor() int {
	conn, err := sandbox.Inherited()
	if err == nil {
		err = sandbox.Serve(conn, func(_ context.Context, p sandbox.Parent) (sandbox.Host, error) {
			var how string
			if err := json.Unmarshal(p.Settings, &how); err != nil {
				return nil, err
			}
			switch how {
			case "die":
				fmt.Fprintln(os.Stderr, "no such luck")
				os.Exit(3)
			case "refuse":
				return nil, fault.New(fault.Environment, "it does not want to")
			}
			p.Logger.Warn("begun", "work_dir", p.WorkDir)
			return &stage{p}, nil
		})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

type stage struct{ sandbox.Parent }

func (s *stage) Open(context.Context, state.RunKey) (sandbox.Run, error) {
	return &play{Parent: s.Parent}, nil
}
func (s *stage) Close() error { return nil }

type play struct {
	sandbox.Parent
	held [][]byte
}

func (p *play) Close() {}

// Execute plays the scenes that the claim's node names, one after the other.
func (p *play) Execute(ctx context.Context, c state.Claim) (job.Result, error) {
	res := job.Result{Outcome: state.Outcome{Stats: state.Stats{RowsOut: int64(c.Batch)}}}
	for scene := range strings.FieldsSeq(c.Node) {
		if err := p.scene(ctx, scene, c, &res); err != nil {
			return res, err
		}
	}
	return res, nil
}

func (p *play) scene(ctx context.Context, scene string, c state.Claim, res *job.Result) error {
	switch scene {
	case "room":
		_, release, err := p.Room.Take(ctx, budget.OneSlot)
		if err == nil {
			defer release()
		}
		return err
	case "hold":
		_, _, err := p.Room.Take(ctx, budget.AllSlots)
		return err
	case "part":
		return p.part(ctx, c, res)
	case "copies":
		_, err := p.Copies(c.RunKey).EnsureAll(ctx, []inputcache.Want{{URL: "https://h/x", Version: "1"}})
		return err
	case "announce":
		return p.State.Announce(ctx, c, []state.Publication{{Temp: "x"}}, c.Lease)
	case "file":
		res.Publish = func(context.Context) error {
			return os.WriteFile(filepath.Join(p.place(), "out"), []byte("file"), 0o600)
		}
		before := res.Discard
		res.Discard = func() {
			p.say("discarded")
			if before != nil {
				before()
			}
		}
	case "publish-dies":
		res.Publish = func(context.Context) error { return p.end("kill") }
	case "publish-fails":
		res.Publish = func(context.Context) error { return fault.New(fault.Environment, "no place") }
		res.Discard = func() { p.say("discarded") }
	case "pid":
		res.Outcome.Stats.RowsIn = int64(os.Getpid())
	case "wait":
		p.say("waiting")
		<-ctx.Done()
		return &fault.Error{Kind: fault.Canceled, Message: "it was told to", Err: ctx.Err()}
	case "deaf":
		p.say("waiting")
		select {}
	case "fault":
		return &fault.Error{Kind: fault.UserData, Message: "bad", Hint: "mend it", Detail: "long",
			Place: fault.Place{File: "f", Line: 7, Table: "t"},
			Err:   fmt.Errorf("below: %w", os.ErrNotExist)}
	case "plain":
		return errors.New("plain")
	case "panic":
		panic("no such luck")
	default:
		return p.end(scene)
	}
	return nil
}

// end ends the process in one of the ways there are.
func (p *play) end(how string) error {
	send := func(s syscall.Signal) error {
		if err := syscall.Kill(os.Getpid(), s); err != nil {
			return err
		}
		select {} // it may come to another thread
	}
	switch how {
	case "kill":
		return send(syscall.SIGKILL)
	case "stop":
		return send(syscall.SIGSTOP)
	case "abort":
		fmt.Fprintln(os.Stderr, "terminate called after throwing an instance of 'std::bad_function'")
		return send(syscall.SIGABRT)
	case "exit":
		os.Exit(7)
	case "oom":
		const bytesMax = 4 << 30
		if err := unix.Setrlimit(unix.RLIMIT_AS, &unix.Rlimit{Cur: bytesMax, Max: bytesMax}); err != nil {
			return err
		}
		for all := [][]byte{}; ; p.held = all {
			all = append(all, make([]byte, bytesMax/4))
		}
	}
	return fmt.Errorf("there is no scene %q", how)
}

// place returns the directory in which a test observes its children.
func (p *play) place() string { return filepath.Dir(p.WorkDir) }

func (p *play) say(name string) { _ = os.WriteFile(filepath.Join(p.place(), name), nil, 0o600) }

// part puts a part, reads it and leaves it to be discarded.
func (p *play) part(ctx context.Context, c state.Claim, res *job.Result) error {
	st, err := p.Parts.Stage(ctx)
	if err != nil {
		return err
	}
	path, err := st.File(ctx)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, []byte("rows"), 0o600); err != nil {
		return err
	}
	key := fmt.Sprintf("t/%d-%d", c.Batch, c.Attempt)
	info, err := p.Parts.Put(ctx, key, path)
	if err != nil {
		return err
	}
	if _, _, err := p.Parts.Fetch(ctx, key, info.Checksum); err != nil { // it is never released
		return err
	}
	res.Outcome.Parts = []state.Part{{Key: key, Bytes: info.Bytes, Checksum: info.Checksum}}
	res.Discard = func() { _ = p.Parts.Delete(context.Background(), key) }
	return nil
}

// bench is a parent.
type bench struct {
	t     testing.TB
	dir   string
	slots *sandbox.Slots
	parts parts.Store
	room  *budget.Room
	state *announced
	job   job.Job
	run   state.RunKey

	attempts int
}

// announced is the state of these tests: they only announce.
type announced struct {
	state.Store
	err    error
	forgot int
}

func (a *announced) Announce(context.Context, state.Claim, []state.Publication, time.Time) error {
	return a.err
}

func (a *announced) Forget(context.Context, state.BatchKey, int) error {
	a.forgot++
	return nil
}

type copier struct{ wants []inputcache.Want }

func (c *copier) EnsureAll(_ context.Context, wants []inputcache.Want) ([]inputcache.Copy, error) {
	c.wants = append(c.wants, wants...)
	return []inputcache.Copy{{Path: "p", Version: "1"}}, nil
}

func newBench(t testing.TB, change func(*sandbox.Config)) *bench {
	t.Helper()
	store, err := cache.New(&partstest.Memory{}, t.TempDir(), 1<<20)
	require.NoError(t, err)
	b := &bench{t: t, dir: t.TempDir(), parts: store,
		room: budget.NewRoom(budget.Budget{Slots: 1, SlotEngineBytes: 1 << 20}), state: &announced{},
		run: state.RunKey{Workspace: "w", Run: 1}}
	cfg := sandbox.Config{WorkDir: b.dir, Size: 1, Settings: json.RawMessage(`""`), State: b.state, Parts: b.parts,
		Room: b.room,
		Command: func() keeper.Program {
			return keeper.Program{Path: os.Args[0], Args: []string{sandbox.Command}, Env: keeper.All()}
		}}
	if change != nil {
		change(&cfg)
	}
	b.slots = sandbox.New(cfg)
	b.job = b.slots.Job(b.run, nil, &copier{})
	t.Cleanup(func() { require.NoError(t, b.slots.Close()) })
	return b
}

func (b *bench) claim(scenes string) state.Claim {
	b.attempts++
	return state.Claim{BatchKey: state.BatchKey{NodeKey: state.NodeKey{RunKey: b.run, Node: scenes}, Batch: 3},
		Attempt: b.attempts}
}

func (b *bench) execute(scenes string) (job.Result, error) {
	return b.job.Execute(context.Background(), b.claim(scenes))
}
