package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"thalweg/internal/app"
	"thalweg/internal/app/view"
	"thalweg/internal/base/fault"
)

// decideFlags are those of approve and reject.
type decideFlags struct {
	Ref     runRef `arg:"" name:"run" help:"Run: its number, or last."`
	Gate    string `arg:"" help:"Gate: the name of the node or table that it is at."`
	Comment string `help:"Why, for the record." placeholder:"TEXT"`
	Role    string `help:"As whom; one of those that the gate names, if it does." placeholder:"ROLE"`
	Digest  string `help:"As approvals prints it; decide only if the gate still shows that." placeholder:"DIGITS"`
	JSON    bool   `name:"json" help:"Print a JSON object."`
	stateFlags
}

// approveCmd lets a run pass a gate.
type approveCmd struct {
	decideFlags
	Answer []string `help:"One answer to what the gate asks for; may be repeated." placeholder:"NAME=VALUE" sep:"none"`
	remoteFlags
}

// rejectCmd fails a run at a gate.
type rejectCmd struct {
	decideFlags
}

func (c *approveCmd) Run(ctx context.Context, a *console) error {
	answers, err := c.answers()
	if err != nil {
		return err
	}
	client, err := c.client(nil)
	if err != nil {
		return err
	}
	return c.decide(ctx, a, client, app.DecisionRequest{Approve: true, Answers: answers})
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
			return nil, &fault.Error{Kind: fault.Script,
				Message: fmt.Sprintf("--answer %s is given twice, as %s and as %s",
					name, before, value), Hint: "answer it once"}
		}
		out[name] = value
	}
	return out, nil
}

func (c *rejectCmd) Run(ctx context.Context, a *console) error {
	if strings.TrimSpace(c.Comment) == "" {
		return &fault.Error{Kind: fault.Script, Message: "a rejection needs a reason", Hint: "add --comment TEXT"}
	}
	return c.decide(ctx, a, nil, app.DecisionRequest{})
}

func (f *decideFlags) decide(ctx context.Context, a *console, client *app.Remote, w app.DecisionRequest) error {
	home, run, err := f.Ref.open(ctx, a, f.stateFlags, func(p *app.Process) { p.Remote = client })
	if err != nil {
		return err
	}
	defer home.Close()
	w.Run, w.Gate, w.Comment, w.Digest = run.RunKey, f.Gate, a.known.Text(f.Comment), f.Digest
	w.Shown = func(r view.GateRecord) {
		if !f.JSON {
			a.printRecord(a.stdout, run.Workspace, view.GateAsked{Run: run.Run, Record: r}, time.Now())
			fmt.Fprintf(a.stdout, "  digest of what is decided on: %s\n", r.Digest)
		}
	}
	out, err := home.Operations.Decide(ctx, a.caller(a.known.Text(f.Role)), w)
	if err != nil {
		return err
	}
	if f.JSON {
		row := view.Decided{Workspace: run.Workspace, Run: run.Run, Gate: out.Record.Gate, Approved: w.Approve,
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
func printDecided(a *console, key view.RunKey, w app.DecisionRequest, out app.Decided) {
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
		fmt.Fprintf(a.stdout, "  nobody works on the run now: `%s` goes on with it, or a worker or `run --wait` that "+
			"is there\n", a.command(key.Do("resume")))
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
