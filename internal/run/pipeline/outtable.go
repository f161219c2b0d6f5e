package pipeline

import (
	"context"
	"fmt"
	"strings"

	"thalweg/internal/base/address"
	"thalweg/internal/io/database"
	"thalweg/internal/lang/script"
)

// sendRows brings the batch's rows into a transaction of their database, which the
// worker commits. Attempts of later orders are higher than those of earlier ones.
func (x *attempt) sendRows(ctx context.Context, digest string, rows int64) (staged, error) {
	run, err := x.p.cfg.Store.Run(ctx, x.claim.RunKey)
	if err != nil {
		return nil, fmt.Errorf("read run %d: %w", x.claim.Run, err)
	}
	const attemptBits = 24
	at, _, _ := strings.Cut(x.final, "#")
	t := DatabaseTarget(x.node, x.p.cfg.Script.Reveal(address.DatabaseIn(x.p.cfg.Dir, at)))
	c := database.Client{Roots: x.p.cfg.Remote.Roots, Hide: x.p.cfg.Script.Hide, Dir: x.p.cfg.Dir,
		Policy: x.p.cfg.Remote.Policy()}
	return c.Stage(ctx, t, database.Attempt{
		Run: fmt.Sprintf("%s/%d of %s", x.claim.Workspace, x.claim.Run,
			run.Created.UTC().Format("2006-01-02T15:04:05.000000Z")),
		Node: x.claim.Node, Batch: x.claim.Batch, Attempt: x.claim.Epoch<<attemptBits + int64(x.claim.Attempt),
		Digest: digest, Rows: rows, Begun: run.Created,
	}, x.batch.OutPath)
}

// DatabaseTarget is the table that a node writes, at an address.
func DatabaseTarget(n *script.Node, at string) database.Target {
	w := n.Out
	t := database.Target{URL: at, Table: w.Target.Table, Mode: w.Target.Mode, Key: w.Target.Key}
	for _, c := range w.Columns {
		t.Columns = append(t.Columns, database.TargetColumn{Name: c.Header, Type: c.Type.String(),
			Nullable: c.Nullable})
	}
	return t
}
