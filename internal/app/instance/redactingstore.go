package instance

import (
	"context"
	"slices"

	"thalweg/internal/base/secret"
	"thalweg/internal/store/state"
)

// redacting takes secrets out of the arguments of calls.
type redacting struct{ known *secret.Known }

// RedactingStore returns a store that keeps secrets out of the texts that s stores for people. What
// a run itself needs (plans, parts) has none: it is made of references.
func RedactingStore(s state.Store, known *secret.Known) state.Store {
	d := redacting{known}
	return state.Around(s, func(ctx context.Context, op state.Op, call func(context.Context) error) error {
		switch op.Method {
		case state.OpCreateRun:
			d.run(state.Pointer[state.Run](op.Args), state.Pointer[[]state.Blob](op.Args))
		case state.OpApplyCommand, state.OpRemoveNote: // of what is stored already, and named as it is
		default:
			for _, arg := range op.Args {
				d.argument(arg)
			}
		}
		return call(ctx)
	})
}

func (d redacting) run(run *state.Run, blobs *[]state.Blob) {
	run.ScriptPath, run.ParamsPath, run.Description = d.known.Stored(run.ScriptPath), d.known.Stored(run.ParamsPath),
		d.known.Text(run.Description)
	run.Pins, *blobs = slices.Clone(run.Pins), slices.Clone(*blobs)
	for i, blob := range *blobs {
		text := d.known.Stored(string(blob.Content))
		if text == string(blob.Content) {
			continue
		}
		redacted := state.NewBlob([]byte(text))
		(*blobs)[i] = redacted
		for j, p := range run.Pins {
			if p.Digest == blob.Digest {
				run.Pins[j].Digest, run.Pins[j].Bytes, run.Pins[j].Redacted = redacted.Digest, int64(len(text)), true
			}
		}
	}
	for i := range run.Pins {
		run.Pins[i].Name = d.known.Stored(run.Pins[i].Name)
	}
}

// argument takes secrets out of what a pointer points to. What is behind that, others may have: it is copied.
func (d redacting) argument(pointer any) {
	switch arg := pointer.(type) {
	case *state.Command:
		arg.Reason, arg.Cause = d.known.Text(arg.Reason), d.failure(arg.Cause)
	case *state.Adoption:
		d.argument(&arg.Rest)
	case *state.PlanPiece:
		arg.Inputs = slices.Clone(arg.Inputs)
		for i := range arg.Inputs {
			arg.Inputs[i].Address = d.known.Stored(arg.Inputs[i].Address)
		}
	case *state.Move:
		arg.Failure = d.failure(arg.Failure)
		if arg.Gate != nil {
			arg.Gate = []byte(d.known.Stored(string(arg.Gate)))
		}
	case *[]state.Publication:
		*arg = slices.Clone(*arg)
		for i, p := range *arg {
			(*arg)[i].Address, (*arg)[i].Temp = d.known.Stored(p.Address), d.known.Stored(p.Temp)
		}
	case *state.Failure:
		*arg = *d.failure(arg)
	case *state.Stats:
		*arg = d.stats(*arg)
	case *state.Outcome:
		*arg = d.outcome(*arg)
	case *state.Note:
		arg.Data = []byte(d.known.Stored(string(arg.Data)))
	}
}

func (d redacting) failure(f *state.Failure) *state.Failure {
	if f == nil {
		return nil
	}
	out := *f
	out.Place = d.known.Place(f.Place)
	out.Message, out.Hint, out.Detail = d.known.Text(f.Message), d.known.Text(f.Hint), d.known.Text(f.Detail)
	return &out
}

func (d redacting) outcome(out state.Outcome) state.Outcome {
	out.Files = append([]state.File(nil), out.Files...)
	for i := range out.Files {
		out.Files[i].URL = d.known.Stored(out.Files[i].URL)
	}
	out.Checks = append([]state.CheckResult(nil), out.Checks...)
	for i := range out.Checks {
		out.Checks[i].Message = d.known.Text(out.Checks[i].Message)
	}
	out.Stats = d.stats(out.Stats)
	return out
}

func (d redacting) stats(out state.Stats) state.Stats {
	out.Warnings = append([]string(nil), out.Warnings...)
	for i, w := range out.Warnings {
		out.Warnings[i] = d.known.Text(w)
	}
	out.Repeats = append([]state.Repeat(nil), out.Repeats...)
	for i, r := range out.Repeats {
		out.Repeats[i].First = d.known.Text(r.First)
	}
	return out
}
