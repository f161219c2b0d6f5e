package instance

import (
	"context"
	"slices"
	"time"

	"thalweg/internal/base/secret"
	"thalweg/internal/store/state"
)

// RedactingStore keeps secrets out of the texts that are stored for people. What
// a run itself needs (plans, parts) has none: it is made of references.
type RedactingStore struct {
	state.Store
	Known *secret.Known
}

// CreateRun implements state.Store.
func (d RedactingStore) CreateRun(ctx context.Context, run state.Run, nodes []state.NodeSpec,
	blobs ...state.Blob) (state.RunKey, error) {
	run.ScriptPath, run.ParamsPath, run.Description = d.Known.Stored(run.ScriptPath), d.Known.Stored(run.ParamsPath),
		d.Known.Text(run.Description)
	run.Pins, blobs = slices.Clone(run.Pins), slices.Clone(blobs)
	for i, blob := range blobs {
		text := d.Known.Stored(string(blob.Content))
		if text == string(blob.Content) {
			continue
		}
		blobs[i] = state.NewBlob([]byte(text))
		for j, p := range run.Pins {
			if p.Digest == blob.Digest {
				run.Pins[j].Digest, run.Pins[j].Bytes, run.Pins[j].Redacted = blobs[i].Digest, int64(len(text)), true
			}
		}
	}
	for i := range run.Pins {
		run.Pins[i].Name = d.Known.Stored(run.Pins[i].Name)
	}
	return d.Store.CreateRun(ctx, run, nodes, blobs...)
}

// BeginOrder implements state.Store.
func (d RedactingStore) BeginOrder(ctx context.Context, key state.RunKey, o state.Order) error {
	o.Reason, o.Cause = d.Known.Text(o.Reason), d.failure(o.Cause)
	return d.Store.BeginOrder(ctx, key, o)
}

// FlipPlan implements state.Store.
func (d RedactingStore) FlipPlan(ctx context.Context, key state.NodeKey, f state.Flip) (string, error) {
	f.Rest = d.piece(f.Rest)
	return d.Store.FlipPlan(ctx, key, f)
}

// StagePlan implements state.Store.
func (d RedactingStore) StagePlan(ctx context.Context, key state.NodeKey, digest string, piece state.PlanPiece) error {
	return d.Store.StagePlan(ctx, key, digest, d.piece(piece))
}

func (d RedactingStore) piece(p state.PlanPiece) state.PlanPiece {
	p.Inputs = slices.Clone(p.Inputs)
	for i := range p.Inputs {
		p.Inputs[i].Address = d.Known.Stored(p.Inputs[i].Address)
	}
	return p
}

// MoveNode implements state.Store.
func (d RedactingStore) MoveNode(ctx context.Context, key state.NodeKey, m state.Move) error {
	m.Failure = d.failure(m.Failure)
	if m.Gate != nil {
		m.Gate = []byte(d.Known.Stored(string(m.Gate)))
	}
	return d.Store.MoveNode(ctx, key, m)
}

// Announce implements state.Store.
func (d RedactingStore) Announce(ctx context.Context, c state.Claim, publications []state.Publication,
	lease time.Time) error {
	publications = slices.Clone(publications)
	for i := range publications {
		publications[i].Address, publications[i].Temp = d.Known.Stored(publications[i].Address),
			d.Known.Stored(publications[i].Temp)
	}
	return d.Store.Announce(ctx, c, publications, lease)
}

// Retry implements state.Store.
func (d RedactingStore) Retry(ctx context.Context, c state.Claim, failure state.Failure, stats state.Stats, notBefore,
	now time.Time) error {
	return d.Store.Retry(ctx, c, *d.failure(&failure), d.outcome(state.Outcome{Stats: stats}).Stats, notBefore, now)
}

// PutNote implements state.Store.
func (d RedactingStore) PutNote(ctx context.Context, workspace string, n state.Note) error {
	n.Data = []byte(d.Known.Stored(string(n.Data)))
	return d.Store.PutNote(ctx, workspace, n)
}

// Commit implements state.Store.
func (d RedactingStore) Commit(ctx context.Context, c state.Claim, out state.Outcome, now time.Time) error {
	return d.Store.Commit(ctx, c, d.outcome(out), now)
}

// Fail implements state.Store.
func (d RedactingStore) Fail(ctx context.Context, c state.Claim, failure state.Failure, out state.Outcome,
	now time.Time) error {
	return d.Store.Fail(ctx, c, *d.failure(&failure), d.outcome(out), now)
}

func (d RedactingStore) failure(f *state.Failure) *state.Failure {
	if f == nil {
		return nil
	}
	out := *f
	out.Place = d.Known.Place(f.Place)
	out.Message, out.Hint, out.Detail = d.Known.Text(f.Message), d.Known.Text(f.Hint), d.Known.Text(f.Detail)
	return &out
}

func (d RedactingStore) outcome(out state.Outcome) state.Outcome {
	out.Files = append([]state.File(nil), out.Files...)
	for i := range out.Files {
		out.Files[i].URL = d.Known.Stored(out.Files[i].URL)
	}
	out.Checks = append([]state.CheckResult(nil), out.Checks...)
	for i := range out.Checks {
		out.Checks[i].Message = d.Known.Text(out.Checks[i].Message)
	}
	out.Stats.Warnings = append([]string(nil), out.Stats.Warnings...)
	for i, w := range out.Stats.Warnings {
		out.Stats.Warnings[i] = d.Known.Text(w)
	}
	out.Stats.Repeats = append([]state.Repeat(nil), out.Stats.Repeats...)
	for i, r := range out.Stats.Repeats {
		out.Stats.Repeats[i].First = d.Known.Text(r.First)
	}
	return out
}
