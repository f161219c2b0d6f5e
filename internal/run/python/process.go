package python

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"thalweg/internal/base/awake"
	"thalweg/internal/base/fault"
	"thalweg/internal/base/keeper"
)

//go:embed worker.py
var workerSource string

// Descriptors of an interpreter, after the three standard ones.
const (
	requestsFD = 3 + iota
	responsesFD
	progressFD
	crashFD
)

// Words of the page shared with an interpreter.
const (
	slotRow = iota
	slotSequence
	slotAccusedRow
	slotAccusedSequence
)

// Values of slotRow that are not rows.
const (
	rowNone   = -1 // between rows: values are read or written
	rowImport = -2
)

// settings is the start message of worker.py.
type settings struct {
	RequestsFD  int   `json:"requests_fd"`
	ResponsesFD int   `json:"responses_fd"`
	ProgressFD  int   `json:"progress_fd"`
	CrashFD     int   `json:"crash_fd"`
	MemoryBytes int64 `json:"memory_bytes"`
}

// hello is an interpreter's first message.
type hello struct {
	Version        [3]int `json:"version"`
	Implementation string `json:"implementation"`
	Pid            int    `json:"pid"`
	Mapped         int64  `json:"mapped"` // address space, before its limit was set
	Limit          int64  `json:"limit"`  // of its address space; 0: none
	TooSmall       bool   `json:"too_small"`
}

// process is one interpreter. Its methods are called by one goroutine, the
// slot's; two of its own write requests and read answers, so that neither side
// waits for the other's pipe, and one waits for its end.
type process struct {
	guard    *keeper.Guard
	pid      int         // of the interpreter, once it has said hello
	signals  *os.Process // the interpreter
	logger   *slog.Logger
	started  time.Time
	hello    hello
	page     []byte
	crash    *os.File
	stdout   *output
	stderr   *output
	requests *os.File
	answers  *os.File

	outgoing chan [][]byte
	incoming chan incoming // closed at the end of the stream
	exited   chan struct{} // closed when the process and all that it has started have ended
	end      keeper.State  // how, then
	wg       sync.WaitGroup

	programs     map[[32]byte]*loadedProgram
	nextProgram  uint64
	useClock     uint64
	over         bool // finish was called
	limited      bool // has a memory limit
	firstBytes   int64
	peakBytes    int64
	cpuSeen      time.Duration // see spent
	starvedSeen  time.Duration // likewise
	memoryLooked time.Time
}

type incoming struct {
	kind    uint64
	payload []byte
	err     error // the stream is of no more use
}

type loadedProgram struct {
	number uint64
	used   uint64
}

// startProcess starts an interpreter; it has not said hello yet.
func startProcess(cfg *Config, path string) (_ *process, err error) {
	p := &process{
		logger:   cfg.Logger,
		started:  time.Now(),
		outgoing: make(chan [][]byte, maxQueuedMessages),
		incoming: make(chan incoming, 4),
		exited:   make(chan struct{}),
		programs: map[[32]byte]*loadedProgram{},
		limited:  cfg.MemoryBytes > 0,
	}
	var theirs []*os.File
	defer func() {
		for _, f := range theirs {
			f.Close() // the child has its own
		}
		if err != nil {
			p.release()
		}
	}()
	var theirRequests, theirAnswers, progress *os.File
	if theirRequests, p.requests, err = os.Pipe(); err != nil {
		return nil, fmt.Errorf("open a pipe to Python: %w", err)
	}
	theirs = append(theirs, theirRequests)
	if p.answers, theirAnswers, err = os.Pipe(); err != nil {
		return nil, fmt.Errorf("open a pipe from Python: %w", err)
	}
	theirs = append(theirs, theirAnswers)
	widenPipe(p.requests)
	widenPipe(p.answers)
	if progress, err = sharedFile("progress", pageBytes); err != nil {
		return nil, err
	}
	theirs = append(theirs, progress)
	if p.page, err = unix.Mmap(int(progress.Fd()), 0, pageBytes, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_SHARED); err != nil {
		return nil, fmt.Errorf("map the progress page of Python: %w", err)
	}
	p.setSlot(slotRow, rowNone)
	if p.crash, err = sharedFile("crash", 0); err != nil {
		return nil, err
	}
	if err := p.start(cfg, path, []*os.File{theirRequests, theirAnswers, progress, p.crash}); err != nil {
		return nil, err
	}
	return p, nil
}

func (p *process) start(cfg *Config, path string, files []*os.File) error {
	arg, err := json.Marshal(settings{requestsFD, responsesFD, progressFD, crashFD, cfg.MemoryBytes})
	if err != nil {
		return fmt.Errorf("encode the settings of Python: %w", err)
	}
	p.stdout = &output{logger: cfg.Logger, stream: "stdout"}
	p.stderr = &output{logger: cfg.Logger, stream: "stderr"}
	// No user site, no bytecode files; the worker's text comes on standard input,
	// which then is at its end for the user's code.
	if p.guard, err = keeper.Start(cfg.Keeper,
		keeper.Program{Path: path, Args: []string{"-s", "-B", "-X", "utf8", "-", string(arg)}, Env: environment(cfg),
			Dir: cfg.Dir, Stdin: strings.NewReader(workerSource), Stdout: p.stdout, Stderr: p.stderr, Files: files,
			WaitDelay: outputWait}); err != nil {
		f := fault.New(fault.Environment, "the Python interpreter %s cannot be started", path)
		f.Err, f.Hint = err, "install it, or name another one"
		return f
	}
	p.wg.Add(3)
	go p.write()
	go p.read(cfg.MaxResultBytes)
	go p.wait()
	return nil
}

// threadVariables keep libraries from starting a thread for each core in each of
// the processes, of which there is one for each core already.
var threadVariables = []string{"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS",
	"POLARS_MAX_THREADS"}

// environment is everything that an interpreter sees of ours.
func environment(cfg *Config) []string {
	env := make([]string, 0, 8+len(cfg.Env))
	env = append(append(env, keeper.Some("PATH", "HOME", "LANG")...), "TZ=UTC", "PYTHONHASHSEED=0")
	for _, name := range threadVariables {
		env = append(env, name+"=1")
	}
	if cfg.MemoryBytes > 0 {
		env = append(env, "PYPY_GC_MAX="+strconv.FormatInt(cfg.MemoryBytes, 10))
	}
	env = append(env, "PYPY_GC_NURSERY="+strconv.FormatInt(nurseryBytes(cfg), 10))
	return append(env, cfg.Env...)
}

// nurseryBytes is the room in which PyPy makes new objects. By itself it takes half
// of the machine's largest cache, which is more than some machines' share of memory
// for a process, and which each of the processes believes to be its own.
func nurseryBytes(cfg *Config) int64 {
	if cfg.MemoryBytes == 0 {
		return maxNurseryBytes
	}
	return min(max(cfg.MemoryBytes/nurseryShare, minNurseryBytes), maxNurseryBytes)
}

func (p *process) write() {
	defer p.wg.Done()
	broken := false
	for buffers := range p.outgoing {
		for _, b := range buffers {
			if broken {
				break
			}
			if _, err := p.requests.Write(b); err != nil {
				broken = true // its end is noticed by its reader
			}
		}
	}
}

func (p *process) read(maxBytes int64) {
	defer p.wg.Done()
	defer close(p.incoming)
	for {
		kind, payload, err := readMessage(p.answers, maxBytes)
		if errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return
		}
		p.incoming <- incoming{kind: kind, payload: payload, err: err}
		if err != nil {
			return
		}
	}
}

func (p *process) wait() {
	defer p.wg.Done()
	defer close(p.exited)
	p.end = p.guard.Wait()
	pid, _ := p.guard.Program()
	p.logger.Debug("python ended", "pid", pid, "how", p.end)
	if p.end.Left > 0 {
		p.logger.Warn("processes that formulas have started could not be ended", "processes", p.end.Left)
	}
}

// send queues a message, without waiting: there is room for all that may be there.
func (p *process) send(kind uint64, parts ...[]byte) {
	size := 0
	for _, b := range parts {
		size += len(b)
	}
	head := appendWord(appendWord(make([]byte, 0, messageHeaderBytes), kind), uint64(size))
	buffers := append([][]byte{head}, parts...)
	if size < joinBelowBytes {
		buffers = [][]byte{bytes.Join(buffers, nil)}
	}
	p.outgoing <- buffers
}

// sendChunk sends rows, and their program if the process does not know it.
func (p *process) sendChunk(prog *program, sequence uint64, rows int, columns []byte) {
	p.useClock++
	loaded := p.programs[prog.hash]
	if loaded == nil {
		p.forgetOne()
		p.nextProgram++
		loaded = &loadedProgram{number: p.nextProgram}
		p.programs[prog.hash] = loaded
		p.send(msgProgram, appendWord(nil, loaded.number), prog.spec)
	}
	loaded.used = p.useClock
	head := appendWord(appendWord(appendWord(nil, loaded.number), sequence), uint64(rows))
	p.send(msgChunk, head, columns)
}

// forgetOne makes room for a program.
func (p *process) forgetOne() {
	if len(p.programs) < maxProgramsInMemory {
		return
	}
	var oldest [32]byte
	var found *loadedProgram
	for hash, l := range p.programs {
		if found == nil || l.used < found.used {
			oldest, found = hash, l
		}
	}
	delete(p.programs, oldest)
	p.send(msgForget, appendWord(nil, found.number))
}

func (p *process) slot(i int) int64 { return atomic.LoadInt64(p.slotAddr(i)) }

func (p *process) setSlot(i int, v int64) { atomic.StoreInt64(p.slotAddr(i), v) }

func (p *process) slotAddr(i int) *int64 {
	return (*int64)(unsafe.Pointer(&p.page[i*wordBytes])) // a mapping begins at a page: aligned
}

// askToStop raises an exception in a row, if it is still running then.
func (p *process) askToStop(sequence uint64, row int64) {
	p.setSlot(slotAccusedSequence, int64(sequence))
	p.setSlot(slotAccusedRow, row)
	p.signal(unix.SIGUSR1)
}

func (p *process) signal(s syscall.Signal) {
	if p.signals == nil {
		return
	}
	if err := p.signals.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.logger.Debug("signal python", "pid", p.pid, "signal", s, "error", err)
	}
}

// identify learns which process the interpreter is: the one that was started, or
// one that it has started, if the interpreter's name is that of a script.
func (p *process) identify() {
	started, _ := p.guard.Program()
	if started == 0 {
		return // its keeper was killed: so is it
	}
	p.pid = started
	if keeper.Below(started, p.hello.Pid) {
		p.pid = p.hello.Pid
	}
	p.signals, _ = os.FindProcess(p.pid) // never fails: who has ended is told by Signal
}

// kill ends the process and what it has started, and waits until all is over.
func (p *process) kill() { p.finish(0) }

// stop lets an idle process end by itself, for some time.
func (p *process) stop() { p.finish(stopGrace) }

// finish gives the process some time, then kills it, and says whether it has ended
// by itself. It may be called again: then it does nothing.
func (p *process) finish(grace time.Duration) (byItself bool) {
	if p.over {
		return false
	}
	p.over = true
	p.requests.Close() // also ends a write that waits for the pipe
	close(p.outgoing)
	if grace > 0 {
		patience, stop := awake.WithTimeout(noContext, grace)
		select {
		case <-p.exited:
			byItself = true
		case <-patience.Done():
		}
		stop()
	}
	p.guard.Kill()
	<-p.exited
	p.answers.Close()      // a child in a group of its own might keep the other end
	for range p.incoming { // what its reader still has to get rid of
	}
	p.wg.Wait()
	return byItself
}

// release frees what outlives the process: finish was called, or start was not.
func (p *process) release() {
	if p.signals != nil {
		_ = p.signals.Release() // a handle; what is wrong with it hurts nobody
	}
	for _, f := range []*os.File{p.requests, p.answers, p.crash} {
		if f != nil {
			f.Close()
		}
	}
	if p.page != nil {
		if err := unix.Munmap(p.page); err != nil {
			p.logger.Debug("unmap python's progress page", "error", err)
		}
		p.page = nil
	}
}

// crashLog returns the end of the crash log, which shows where the process was when it ended.
func (p *process) crashLog() string {
	info, err := p.crash.Stat()
	if err != nil {
		return ""
	}
	from := max(info.Size()-maxCrashLogBytes, 0)
	b, err := io.ReadAll(io.NewSectionReader(p.crash, from, maxCrashLogBytes))
	if err != nil {
		p.logger.Debug("read python's crash log", "error", err)
	}
	return string(bytes.ToValidUTF8(b, []byte("?")))
}

// memory returns what the process holds, and updates its peak. It looks at most
// every memoryInterval, unless asked to; 0 is unknown or not looked.
func (p *process) memory(look bool) int64 {
	now := time.Now()
	if !look && now.Sub(p.memoryLooked) < memoryInterval {
		return 0
	}
	p.memoryLooked = now
	rss, peak := memoryOf(p.pid)
	p.peakBytes = max(p.peakBytes, peak, rss)
	return rss
}

// spent is the processor time that the process has used since it was asked before, and the time for which it waited for
// a processor.
func (p *process) spent() (cpu, starved time.Duration) {
	now, waited := cpuOf(p.pid), starvedOf(p.pid)
	cpu, starved = max(now-p.cpuSeen, 0), max(waited-p.starvedSeen, 0)
	p.cpuSeen, p.starvedSeen = max(p.cpuSeen, now), max(p.starvedSeen, waited)
	return cpu, starved
}

// usable says what is wrong with the interpreter, after its hello.
func (p *process) usable(path string) error {
	if h := p.hello; h.TooSmall {
		f := fault.New(fault.Environment,
			"the Python interpreter %s cannot work with %s of address space: it has mapped %s before it has "+
				"done anything", path, mebibytes(h.Limit), mebibytes(h.Mapped))
		f.Hint = hintRoom
		return f
	}
	v := p.hello.Version
	if v[0] > oldestMajor || v[0] == oldestMajor && v[1] >= oldestMinor {
		return nil
	}
	f := fault.New(fault.Environment, "%s is Python %d.%d", path, v[0], v[1])
	f.Hint = fmt.Sprintf("Python %d.%d or later is needed", oldestMajor, oldestMinor)
	return f
}
