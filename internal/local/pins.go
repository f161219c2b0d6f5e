package local

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"path"
	"time"

	"thalweg/internal/address"
	"thalweg/internal/engine"
	"thalweg/internal/plan"
	"thalweg/internal/state"
)

// record is a new run as state keeps it, with the sources that it is made from.
func (r *runner) record(startNodes []string) (state.Run, []state.Blob, error) {
	run := state.Run{
		RunKey: state.RunKey{Workspace: r.opts.Workspace}, Token: rand.Text(), Script: r.identity, Sources: r.opts.From,
		ScriptPath: address.Redact(r.opts.ScriptPath), ParamsPath: address.Redact(r.opts.ParamsPath),
		Fingerprint: r.script.Fingerprint, StartNodes: startNodes, Description: r.opts.Description, Created: time.Now(),
		Actor: actor(), Program: r.opts.Program, Engine: engine.Version, BucketHash: plan.KeyHash,
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
	said, err := json.Marshal(settings{Dir: r.dir, Lenient: r.opts.Lenient, Ephemeral: r.opts.Ephemeral, Budget: r.planning})
	if err != nil {
		return run, nil, fmt.Errorf("encode the settings of a run: %w", err)
	}
	pin(pinSettings, "", said)
	return run, blobs, nil
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
