// Command thalweg turns raw files into customer-ready data: it runs scripts,
// shows what their runs did, and answers questions about their tables.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"thalweg/internal/app"
	"thalweg/internal/app/view"
	"thalweg/internal/base/fault"

	"github.com/alecthomas/kong"
)

// Exit codes. They are a promise: docs/commands.md lists them.
const (
	exitOK          = 0
	exitOurs        = 1   // a bug of ours, or the environment: disk, memory, permissions
	exitUsers       = 2   // the script, its parameters, its data or the command line
	exitWaiting     = 3   // the run waits for people
	exitStopped     = 4   // the run was stopped by others, or nobody works on it any more
	exitInterrupted = 130 // this command was: Ctrl-C, SIGTERM
)

// cli is the command line.
type cli struct {
	environmentFlags

	Validate validateCmd `cmd:"" group:"scripts" help:"Check a script without running it; list all problems at once."`
	Check    checkCmd    `cmd:"" group:"scripts" help:"Make a script's checks over the tables of a run that is there."`
	Test     testCmd     `cmd:"" group:"scripts" help:"Run the tests beside a script: rows in, rows out, node by node."`
	Init     initCmd     `cmd:"" group:"scripts" help:"Begin a project: a script that runs, with inputs and tests."`
	Infer    inferCmd    `cmd:"" group:"scripts" help:"Propose a script for data files, from all of their rows."`
	Explain  explainCmd  `cmd:"" group:"scripts" help:"Show how a script would be run: layouts, batches, memory, SQL."`
	Graph    graphCmd    `cmd:"" group:"scripts" help:"Draw a script: SVG or Graphviz DOT."`
	Fmt      fmtCmd      `cmd:"" group:"scripts" help:"Put scripts and parameters files into the canonical layout."`
	Schema   schemaCmd   `cmd:"" group:"scripts" help:"Print a JSON Schema for editors."`
	Dev      devCmd      `cmd:"" group:"scripts" help:"Develop a script on a page: what is wrong, what has changed, its tables."`

	Run    runCmd    `cmd:"" group:"run" help:"Run a script and show its progress."`
	Resume resumeCmd `cmd:"" group:"run" help:"Let a run go on, from the sources that it was begun with."`
	Retry  retryCmd  `cmd:"" group:"run" help:"Do again what failed in a run, or nodes and batches of it."`
	Attach attachCmd `cmd:"" group:"run" help:"Follow a run that others work on, until it is over."`

	History historyCmd `cmd:"" group:"look" help:"List the latest runs of a workspace."`
	Runs    runsCmd    `cmd:"" group:"look" help:"List all runs of a workspace."`
	Matrix  matrixCmd  `cmd:"" group:"look" help:"List what was run over values (run --matrix), and the cells of one."`
	Show    showCmd    `cmd:"" group:"look" help:"Show a run, a node or a batch: where the time went, what was tried."`
	Cost    costCmd    `cmd:"" group:"look" help:"Say what runs cost: worked, waited, lost and services apart."`
	Why     whyCmd     `cmd:"" group:"look" help:"Say in a sentence what a run waits for, or what is slow in it."`
	Events  eventsCmd  `cmd:"" group:"look" help:"Print what has happened to a run, an event a line, as JSON."`
	Audit   auditCmd   `cmd:"" group:"look" help:"List what people have ordered: who, when, what, why."`
	Nodes   nodesCmd   `cmd:"" group:"look" help:"List the nodes of a run: status, rows, time."`
	Batches batchesCmd `cmd:"" group:"look" help:"List the batches of a node, with each failure."`
	Checks  checksCmd  `cmd:"" group:"look" help:"List what the checks of a run found."`
	SQL     sqlCmd     `cmd:"" group:"look" name:"sql" help:"Query the tables of any run."`
	Diff    diffCmd    `cmd:"" group:"look" help:"Say how a table differs between two runs."`
	Trace   traceCmd   `cmd:"" group:"look" help:"Say what rows are made of, down to the lines of the input files."`
	Lineage lineageCmd `cmd:"" group:"look" help:"Say what a column is made of, and what is made of it."`

	Stop  stopCmd  `cmd:"" group:"decide" help:"Stop a run, whichever processes work on it."`
	Pause pauseCmd `cmd:"" group:"decide" help:"Let a run finish the batches that are at work, and begin no others."`
	Take  takeCmd  `cmd:"" group:"decide" help:"Say that you look after the failure of a run, until it goes on."`
	gateCmds
	Invalidate invalidateCmd `cmd:"" group:"decide" help:"Declare a run or nodes of it invalid: no run reads them."`
	Drop       dropCmd       `cmd:"" group:"decide" help:"Drop runs: nobody reads, continues or lists them any more."`
	Gc         gcCmd         `cmd:"" group:"decide" name:"gc" help:"Remove what nobody needs; drop old runs."`

	Serve      serveCmd      `cmd:"" group:"serve" help:"Serve the HTTP API over a state directory."`
	Worker     workerCmd     `cmd:"" group:"serve" help:"Take batches of every run of a state directory or a cluster."`
	Cluster    clusterCmd    `cmd:"" group:"serve" help:"Make what a cluster needs, and see who is there."`
	Slot       slotCmd       `cmd:"" hidden:"" help:"Execute batches for the worker that has started this process."`
	Peek       peekCmd       `cmd:"" hidden:"" help:"Answer questions about tables for a server."`
	Simulate   simulateCmd   `cmd:"" group:"serve" help:"Say how efficient fleets would be, and what limits them."`
	Bench      benchCmd      `cmd:"" group:"serve" help:"Measure stores, machines and pipelines."`
	Capacity   capacityCmd   `cmd:"" group:"serve" help:"Say what runs take and cost on other deployments."`
	Login      loginCmd      `cmd:"" group:"serve" help:"Get a token of a server, and keep it for --server."`
	TableIndex tableIndexCmd `cmd:"" name:"table-index" group:"serve" help:"Make the index of a finished table, which serve-table serves."`
	ServeTable serveTableCmd `cmd:"" name:"serve-table" group:"serve" help:"Serve a finished table to clients of Redis, from its index."`
	Scheduler  schedulerCmd  `cmd:"" group:"serve" help:"Begin runs by schedules and watches, and work on them."`
	Schedules  schedulesCmd  `cmd:"" group:"serve" help:"List schedules and watches: past, next, waiting, skipped."`
	Hooks      hooksCmd      `cmd:"" group:"serve" help:"Try the hooks that are told what happens to runs."`

	Doctor     doctorCmd     `cmd:"" group:"thalweg" help:"Say what is wrong with this machine or a cluster."`
	Completion completionCmd `cmd:"" group:"thalweg" help:"Print what bash, zsh or fish need to complete commands."`
	Complete   completeCmd   `cmd:"" name:"__complete" hidden:""`
	Version    versionCmd    `cmd:"" group:"thalweg" help:"Print the version; --version does, too."`
}

// gateCmds are about runs that wait for people.
type gateCmds struct {
	Approve   approveCmd   `cmd:"" group:"decide" help:"Let a run pass a gate."`
	Reject    rejectCmd    `cmd:"" group:"decide" help:"End a run at a gate."`
	Approvals approvalsCmd `cmd:"" group:"decide" help:"List what waits for a decision."`
}

// stateFlags say whose state a command looks at.
type stateFlags struct {
	placeFlags
	Workspace string `help:"Workspace of runs and tables." default:"${workspace}" env:"THALWEG_WORKSPACE" placeholder:"NAME"`
}

// console holds the streams that commands read and write, and the choices of the command line.
type console struct {
	stdout, stderr io.Writer // what is written here has no secrets
	data           io.Writer // standard output for what is the user's own: rows, scripts
	screen         io.Writer // standard error for what moves
	known          *app.Secrets
	at             commandPlace             // see there
	away           commandPlace             // the same, for who reads elsewhere
	server         string                   // that is asked instead of a state directory or a cluster; "": none
	cluster        bool                     // the command looks at one: its workers go on with runs
	terminal       bool                     // stderr is one, and shows progress
	color          bool                     // of stdout
	talkColor      bool                     // of stderr
	width          int                      // columns of stdout's terminal; 0: it is none
	json           bool                     // failures are told as JSON
	environment    *app.Environment         // that is chosen; nil: none
	confirmed      bool                     // --yes has named it
	typed          map[string]bool          // flags of the command line itself, by name
	outlet         *outlet                  // standard output; nil: tests'
	commands       func() *kong.Application // all of them

	cancelQuery atomic.Pointer[context.CancelFunc] // Ctrl-C ends this, and not the command
	drain       chan struct{}                      // closed when SIGTERM asks a worker to drain
	polite      atomic.Bool                        // a worker drains when it is asked to end
	again       chan struct{}                      // has one for SIGHUP, if rereads
	rereads     atomic.Bool                        // SIGHUP asks to read something again, and ends nothing
}

// ownExecutable is this program, even if its file has been replaced since it began.
const ownExecutable = "/proc/self/exe"

func main() {
	if code, is := app.Kept(os.Args); is {
		os.Exit(code)
	}
	// A run goes on when nobody reads what it prints any more, other commands end
	// (outlet); a closed terminal stops a run as Ctrl-C does.
	signal.Ignore(syscall.SIGPIPE)
	ctx, stop := context.WithCancelCause(context.Background())
	defer stop(nil)
	a := newConsole(os.Stdout, os.Stderr)
	a.outlet.gone = func() { stop(errNobodyReads) }
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		for s := range signals {
			if cancel := a.cancelQuery.Load(); s == os.Interrupt && cancel != nil {
				(*cancel)()
				continue
			}
			if s == syscall.SIGHUP && a.rereads.Load() {
				select {
				case a.again <- struct{}{}:
				default: // it is going to
				}
				continue
			}
			signal.Stop(signals) // a second Ctrl-C ends the process at once
			if s == syscall.SIGTERM {
				if a.polite.Load() {
					close(a.drain)
					return
				}
				stop(app.ErrLeave)
				return
			}
			stop(context.Canceled)
			return
		}
	}()
	context.AfterFunc(ctx, func() { time.AfterFunc(interruptGrace, lastResort) })
	os.Exit(run(ctx, os.Args[1:], a))
}

// interruptGrace is the time that an interrupted command has to end by itself. The executor of a
// run needs less: see executor.GraceDefault.
const interruptGrace = 1500 * time.Millisecond

// lastResort ends the process although something has not come back: a call into
// DuckDB that looks for interrupts too seldom, a system call on a dead disk.
// State is written in transactions, so this loses no more than kill -9 does,
// after which --resume goes on.
func lastResort() {
	fmt.Fprintln(os.Stderr, "thalweg: interrupted; what was being done did not stop in time and was cut off")
	os.Exit(exitInterrupted)
}

// run parses args, executes the command and returns the exit code.
func run(ctx context.Context, args []string, a *console) int {
	a.discreet(args)
	a.json = asksJSON(args)
	args, err := rewritten(args)
	if err != nil {
		return a.report(ctx, err)
	}
	kctx, env, exited, err := a.parse(ctx, args)
	if exited >= 0 {
		return a.written(exited)
	}
	if err != nil {
		return a.report(ctx, err)
	}
	if a.outlet != nil && goesOnUnread(kctx) {
		a.outlet.keepsOn()
	}
	err = env.settle(a, kctx)
	if err == nil {
		err = env.settleServer(a, kctx)
	}
	if err == nil {
		err = checkNumbers(kctx)
	}
	if err == nil {
		var at commandPlace
		at, err = settlePlace(a, kctx, args)
		at.server = a.server != ""
		a.place(at, kctx)
	}
	if err == nil {
		err = kctx.Run()
	}
	return a.written(a.report(ctx, err))
}

// discreet keeps secrets out of the streams: those of the arguments, and those that
// scripts will turn out to have.
func (a *console) discreet(args []string) {
	a.known = app.NewSecrets()
	for _, arg := range args {
		a.known.LearnArgument(arg)
	}
	for _, name := range secretEnvironment {
		if value := os.Getenv(name); value != "" {
			a.known.Add(value, "{"+name+"}")
		}
	}
	for _, name := range []string{"HTTPS_PROXY", "HTTP_PROXY", "https_proxy", "http_proxy", "THALWEG_S3_ENDPOINT",
		"AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "OPENLINEAGE_URL"} {
		a.known.Learn(os.Getenv(name))
	}
	a.data, a.screen = a.stdout, a.stderr
	a.stdout, a.stderr = a.known.Writer(a.data), a.known.Writer(a.screen)
}

// caller returns who types this command: the user of this process, in roles of
// their own account.
func (a *console) caller(roles ...string) app.Caller { return app.ProcessCaller(roles...) }

// secretEnvironment are variables that other tools read their secrets from.
var secretEnvironment = []string{"AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"}

// errReported ends a command whose failure has been printed; code is its exit code.
type errReported struct{ code int }

func (e errReported) Error() string { return fmt.Sprintf("exit %d", e.code) }

// report prints a failure and gives its exit code. What fails after it was
// interrupted fails because of that, whatever the failure says of itself: it
// may be the last of a chain of layers that knew nothing of it.
func (a *console) report(ctx context.Context, err error) int {
	var done errReported
	switch reported := errors.As(err, &done); {
	case err == nil:
		return exitOK
	case a.unread(), a.outlet.isFailureOf(err): // written tells of the latter
		return exitOK
	case ctx.Err() != nil:
		if done.code != exitInterrupted && done.code != exitStopped {
			a.sayInterrupted()
		}
		return exitInterrupted
	case reported:
		return done.code
	}
	f := fault.Of(err)
	code := exitCode(f.Kind)
	var invalid *app.InvalidScriptError
	switch errors.As(err, &invalid); {
	case a.json:
		failed := view.FailedOf(err, code)
		if invalid != nil {
			failed.Diagnostics = invalid.Diagnostics
		}
		a.printTwin(failed)
	case invalid != nil:
		a.printDiagnostics(invalid.Diagnostics)
	default:
		a.printFailure(err.Error(), f.Place, f.Hint, f.Detail)
	}
	return code
}

// exitCode maps a failure's kind to the exit code.
func exitCode(k fault.Kind) int {
	switch k {
	case fault.UserData, fault.Script:
		return exitUsers
	case fault.Canceled:
		return exitInterrupted
	}
	return exitOurs
}
