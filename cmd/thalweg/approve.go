package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"thalweg/internal/app/control"
	"thalweg/internal/app/runtime"
	"thalweg/internal/base/fault"
	"thalweg/internal/run/gate"
	"thalweg/internal/store/state"
)

// decideFlags are those of approve and reject.
type decideFlags struct {
	Ref     runRef `arg:"" name:"run" help:"Run: its number, or last."`
	Gate    string `arg:"" help:"Gate: the name of the node or table that it is at."`
	Comment string `help:"Why, for the record." placeholder:"TEXT"`
	Role    string `help:"As whom; one of those that the gate names, if it does." placeholder:"ROLE"`
	Digest  string `help:"Of what was looked at, as approvals prints it: if the gate shows something else by now, nothing is decided." placeholder:"DIGITS"`
	JSON    bool   `name:"json" help:"Print a JSON object."`
	stateFlags
}

// approveCmd lets a run pass a gate.
type approveCmd struct {
	decideFlags
	Answer []string `help:"Answer to what the gate asks for; others are the defaults. May be repeated." placeholder:"NAME=VALUE" sep:"none"`
	remoteFlags
}

// rejectCmd fails a run at a gate.
type rejectCmd struct {
	decideFlags
}

// decidedRow is the JSON form of a decision that stands.
type decidedRow struct {
	Workspace string            `json:"workspace"`
	Run       int64             `json:"run"`
	Gate      string            `json:"gate"`
	Approved  bool              `json:"approved"`
	Role      string            `json:"role,omitempty"`
	Comment   string            `json:"comment,omitempty"`
	Answers   map[string]string `json:"answers,omitempty"`
	Digest    string            `json:"digest"`
	Shows     []gate.Shown      `json:"shows"`
	AtWork    bool              `json:"at_work"` // a process works on the run, and goes on by itself
}

func (c *approveCmd) Run(ctx context.Context, a *app) error {
	answers, err := c.answers()
	if err != nil {
		return err
	}
	client, err := c.client(nil)
	if err != nil {
		return err
	}
	defer client.Close()
	return c.decide(ctx, a, control.DecisionRequest{Approve: true, Answers: answers,
		Process: runtime.Process{Caller: a.caller(), Remote: client}})
}

// answers reads what is answered, each once.
func (c *approveCmd) answers() (map[string]string, error) {
	out := map[string]string{}
	for _, text := range c.Answer {
		name, value, ok := strings.Cut(text, "=")
		if name = strings.TrimSpace(name); !ok || name == "" {
			return nil, &fault.Error{Kind: fault.Script, Message: fmt.Sprintf("--answer %s has no value", text),
				Hint: "write --answer NAME=VALUE"}
		}
		if before, twice := out[name]; twice {
			return nil, &fault.Error{Kind: fault.Script, Message: fmt.Sprintf("--answer %s is given twice, as %s and as %s",
				name, before, value), Hint: "answer it once"}
		}
		out[name] = value
	}
	return out, nil
}

func (c *rejectCmd) Run(ctx context.Context, a *app) error {
	if strings.TrimSpace(c.Comment) == "" {
		return &fault.Error{Kind: fault.Script, Message: "a rejection needs a reason", Hint: "add --comment TEXT"}
	}
	return c.decide(ctx, a, control.DecisionRequest{})
}

func (f *decideFlags) decide(ctx context.Context, a *app, w control.DecisionRequest) error {
	home, run, err := f.Ref.open(ctx, a, f.stateFlags)
	if err != nil {
		return err
	}
	defer home.Close()
	w.Run, w.Gate, w.Comment, w.Digest, w.Known = run.RunKey, f.Gate, a.known.Text(f.Comment), f.Digest, a.known
	w.Caller = a.caller(a.known.Text(f.Role))
	w.Shown = func(r gate.Record) {
		if !f.JSON {
			a.printRecord(a.stdout, run.Workspace, gate.Asked{Run: run.Run, Record: r}, time.Now())
			fmt.Fprintf(a.stdout, "  digest of what is decided on: %s\n", r.Digest)
		}
	}
	out, err := control.Decide(ctx, home, w)
	if err != nil {
		return err
	}
	if f.JSON {
		row := decidedRow{Workspace: run.Workspace, Run: run.Run, Gate: out.Record.Gate, Approved: w.Approve,
			Role:    a.known.Text(f.Role),
			Comment: w.Comment,
			Digest:  out.Record.Digest, Shows: out.Record.Shows, AtWork: out.AtWork}
		if w.Approve {
			row.Answers = out.Answers
		}
		return printJSON(a.stdout, row)
	}
	printDecided(a, run.RunKey, w, out)
	return nil
}

// printDecided says what was decided, and how the run goes on.
func printDecided(a *app, key state.RunKey, w control.DecisionRequest, out control.Decided) {
	verb := a.paint("rejected", red)
	if w.Approve {
		verb = a.paint("approved", green)
	}
	fmt.Fprintf(a.stdout, "gate %s of run %d is %s", out.Record.Gate, key.Run, verb)
	if w.Approve {
		fmt.Fprint(a.stdout, answersText(out.Answers))
	}
	fmt.Fprintln(a.stdout)
	switch {
	case w.Approve && out.Paused:
		fmt.Fprintf(a.stdout, "  the run is paused: `%s` lets it go on\n", a.command(key.Do("resume")))
	case !w.Approve:
		fmt.Fprintf(a.stdout, "  the run has failed; `%s` asks again\n", a.command(key.Do("retry")))
	case out.AtWork:
		fmt.Fprintln(a.stdout, "  a process works on the run, and goes on")
	case a.cluster:
		fmt.Fprintf(a.stdout, "  a worker of the cluster goes on with it; `%s` follows it\n",
			a.command(key.Do("attach")))
	default:
		fmt.Fprintf(a.stdout, "  nobody works on the run now: `%s` goes on with it, or a worker or `run --wait` that is "+
			"there\n", a.command(key.Do("resume")))
	}
}

// answersText says what was answered, in the order of the names.
func answersText(answers map[string]string) string {
	text := ""
	for i, name := range slices.Sorted(maps.Keys(answers)) {
		text += [...]string{" with ", ", "}[min(i, 1)] + name + " = " + answers[name]
	}
	return text
}
