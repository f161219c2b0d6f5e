package runner

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"time"

	"thalweg/internal/app/runtime"
	"thalweg/internal/base/address"
	"thalweg/internal/base/calendar"
	"thalweg/internal/base/fault"
	"thalweg/internal/run/engine"
	"thalweg/internal/run/plan"
	"thalweg/internal/store/state"
)

// record is a new run as state keeps it, with the sources that it is made from.
func (r *runner) record(startNodes []string) (state.Run, []state.Blob, error) {
	run := state.Run{
		RunKey: state.RunKey{Workspace: r.opts.Workspace}, Script: r.identity,
		Token:      cmp.Or(r.opts.Token, r.opts.Caller.Mark("").OrderToken()),
		Sources:    r.opts.From,
		ScriptPath: address.Redact(r.opts.ScriptPath), ParamsPath: address.Redact(r.opts.ParamsPath),
		Fingerprint: r.script.Fingerprint, StartNodes: startNodes, Description: r.opts.Description,
		Parent: r.opts.Parent, Created: time.Now(),
		Actor: r.opts.Caller.Actor, Program: r.opts.Program, Engine: engine.Version, BucketHash: plan.KeyHash,
		Priority: r.opts.Priority,
	}
	var err error
	if run.Deadline, err = r.deadline(run.Created); err != nil {
		return run, nil, err
	}
	var blobs []state.Blob
	pin := func(kind, name string, content []byte) {
		blob := state.NewBlob(content)
		run.Pins = append(run.Pins, state.Pin{Kind: kind, Name: name, Digest: blob.Digest, Bytes: int64(len(content))})
		if len(content) <= state.BlobBytesMax {
			blobs = append(blobs, blob)
		}
	}
	for _, name := range r.script.Files() {
		text, _ := r.script.Text(name)
		pin(kindOfFile(name, run), name, []byte(text))
	}
	if len(r.opts.Params) > 0 {
		if said, err := json.Marshal(r.opts.Params); err == nil { // texts by name: nothing of it can fail
			pin(state.PinParams, "", said)
		}
	}
	said, err := json.Marshal(runtime.Settings{Dir: r.dir, Lenient: r.opts.Lenient, Literal: r.opts.Literal,
		Ephemeral: r.opts.Ephemeral, Reuse: r.opts.Reuse, Chosen: r.opts.chosen(r.script), Select: r.opts.Select, Budget: r.planning,
		Offered: r.opts.Offered, Given: r.script.Given, Python: runtime.Surroundings(r.python),
		Looked: runtime.Looked(r.script), Policy: r.opts.Policy,
		Via: string(r.opts.Caller.Via)})
	if err != nil {
		return run, nil, fmt.Errorf("encode the settings of a run: %w", err)
	}
	pin(runtime.PinSettings, "", said)
	own := slices.Clone(r.script.Notify)
	for i := range own {
		own[i].Policy = r.opts.Policy
	}
	if hooks := slices.Concat(own, r.opts.Hooks); len(hooks) > 0 {
		if said, err = json.Marshal(hooks); err != nil {
			return run, nil, fmt.Errorf("encode the hooks of a run: %w", err)
		}
		pin(runtime.PinHooks, "", said)
	}
	return run, blobs, nil
}

// deadline returns the time at which the run is to be over.
func (r *runner) deadline(created time.Time) (time.Time, error) {
	text := cmp.Or(r.opts.Deadline, r.script.Deadline)
	if text == "" {
		return time.Time{}, nil
	}
	d, err := calendar.ParseDeadline(text)
	var wrong *calendar.Error
	if errors.As(err, &wrong) {
		return time.Time{}, &fault.Error{Kind: fault.Script, Message: fmt.Sprintf("%q: %s", text, wrong.Message),
			Hint: wrong.Hint}
	}
	begin := r.opts.Nominal
	if begin.IsZero() {
		begin = created
	}
	return d.Of(begin), err
}

func kindOfFile(name string, run state.Run) string {
	switch {
	case name == run.ScriptPath:
		return state.PinScript
	case name == run.ParamsPath:
		return state.PinParams
	case path.Ext(name) == ".py":
		return state.PinFormula
	}
	return state.PinIncluded
}
