package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"thalweg/internal/app"
	"thalweg/internal/app/view"
	"thalweg/internal/base/fault"
)

// gcCmd removes what nobody needs any more.
type gcCmd struct {
	Keep      *int   `help:"Drop runs, but for the latest N of each script, parameters and nodes." placeholder:"N"`
	OlderThan *age   `help:"Drop runs that ended longer ago; with --keep: beyond both." placeholder:"D"`
	Reason    string `help:"Why runs are dropped: it is recorded." default:"retention" placeholder:"TEXT"`
	DryRun    bool   `help:"Only say what would be removed."`
	JSON      bool   `name:"json" help:"Print a JSON object."`
	stateFlags
	remoteFlags
}

// age is a time on the command line that may be in days.
type age time.Duration

// UnmarshalText reads 30d, 36h, 90m.
func (d *age) UnmarshalText(text []byte) error {
	if days, ok := strings.CutSuffix(string(text), "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		*d = age(time.Duration(n) * 24 * time.Hour)
		if err != nil {
			return fmt.Errorf("%q is no number of days", text)
		}
		return nil
	}
	one, err := time.ParseDuration(string(text))
	*d = age(one)
	if err != nil {
		return fmt.Errorf("%q is no time: write 30d, or 36h", text)
	}
	return nil
}

// Run implements kong's command.
func (c *gcCmd) Run(ctx context.Context, a *console) (err error) {
	limits, err := c.limits()
	if err != nil {
		return err
	}
	client, err := c.client(newLogger(a, false))
	if err != nil {
		return err
	}
	home, err := c.openHome(ctx, a, false, func(p *app.Process) { p.Remote = client })
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, home.Close()) }()
	would, err := home.Operations.PreviewCollection(ctx, c.Workspace, limits)
	if err != nil {
		return err
	}
	out := would.Would
	if !c.DryRun {
		if err := c.confirmRemoval(ctx, a, out); err != nil {
			return err
		}
		if out, err = home.Operations.Collect(ctx, a.caller(), c.Workspace, limits, c.Reason, would.Token); err != nil {
			return err
		}
	}
	if c.JSON {
		return printJSON(a.stdout, out)
	}
	c.print(a, out.Collection)
	return nil
}

// confirmRemoval asks before runs are dropped and what dropped ones have written is removed.
func (c *gcCmd) confirmRemoval(ctx context.Context, a *console, would view.Collected) error {
	var what []replaced
	for _, run := range would.Drops {
		what = append(what, replaced{What: fmt.Sprintf("run %d", run)})
	}
	if would.Dropped.Count > 0 {
		what = append(what, replaced{What: "parts of dropped runs", Note: size(would.Dropped.Bytes)})
	}
	return a.confirmTaking(ctx, "removes, for good,", what)
}

// limits reads which runs are dropped. One that is given is a limit: 0 would drop
// all, or none, and is not clear enough for either.
func (c *gcCmd) limits() (l app.Limits, err error) {
	wrong := func(what string) error {
		return &fault.Error{Kind: fault.Script, Message: what,
			Hint: "--keep is a number of runs from 1 on, --older-than a time such as 30d or 36h; drop RUN drops " +
				"those that it names"}
	}
	if c.Keep != nil {
		if l.Keep = *c.Keep; l.Keep < 1 {
			return l, wrong(fmt.Sprintf("--keep %d would keep no run", l.Keep))
		}
	}
	if c.OlderThan != nil {
		if l.OlderThan = time.Duration(*c.OlderThan); l.OlderThan <= 0 {
			return l, wrong("--older-than names no time")
		}
	}
	return l, nil
}

func (c *gcCmd) print(a *console, out view.Collection) {
	did, dropped := "removed", "dropped"
	if c.DryRun {
		did, dropped = "would be removed", "would be dropped"
	}
	if len(out.Drops) > 0 {
		runs := strings.Trim(strings.ReplaceAll(fmt.Sprint(out.Drops), " ", ", "), "[]")
		fmt.Fprintf(a.stdout, "%s: runs %s\n", dropped, runs)
	}
	if c.DryRun && len(out.Runs) > 0 {
		t := a.newTable("run", "", "why")
		rightAligned(t, 1)
		for _, v := range out.Runs {
			t.AppendRow([]any{v.Run, map[bool]string{true: "goes", false: "stays"}[v.Drops], plain(v.Why)})
		}
		t.Render()
	}
	t := a.newTable(did, "number", "bytes")
	rightAligned(t, 2, 3)
	var bytes int64
	for _, row := range []struct {
		what string
		of   view.Amount
	}{
		{"parts of dead attempts", out.Dead}, {"parts of what was done again", out.Withdrawn},
		{"parts of dropped runs", out.Dropped},
		{"temporary files and uploads", out.Unpublished}, {"copies of remote files", out.Copies},
	} {
		t.AppendRow([]any{row.what, count(row.of.Count), size(row.of.Bytes)})
		bytes += row.of.Bytes
	}
	t.AppendRow([]any{"records of nodes of dropped runs", count(out.Purged), ""})
	t.Render()
	if out.OnDisk { // what a service keeps is removed by it when it sees fit
		fmt.Fprintf(a.stdout, "%s of disk %s\n", size(bytes), map[bool]string{true: "would be given back",
			false: "given back"}[c.DryRun])
	}
	if out.Held.Count > 0 {
		fmt.Fprintf(a.stdout, "parts that stay because other runs read them: %s (%s)\n", count(out.Held.Count),
			size(out.Held.Bytes))
	}
	if out.Unknown.Count > 0 {
		fmt.Fprintf(a.stdout, "parts that stay because state knows nothing of them: %s (%s)\n",
			count(out.Unknown.Count), size(out.Unknown.Bytes))
	}
}
