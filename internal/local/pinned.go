package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"thalweg/internal/address"
	"thalweg/internal/budget"
	"thalweg/internal/fault"
	"thalweg/internal/script"
	"thalweg/internal/state"
)

// pinSettings is the kind of the pin that has what else a run was begun with.
// The text is stored.
const pinSettings = "settings"

// settings are what a run was begun with besides its sources: all that another
// process needs to plan and execute it to the same bytes.
type settings struct {
	Dir       string        `json:"dir"` // that relative names of files are seen from
	Lenient   bool          `json:"lenient,omitempty"`
	Ephemeral bool          `json:"ephemeral,omitempty"` // see Options
	Budget    budget.Budget `json:"budget"`              // that its nodes are planned by, whatever a machine has
}

// pinned is what a recorded run was begun with.
type pinned struct {
	settings
	params map[string]string // of the command line
	read   map[string][]byte
}

// pinnedOf reads a run's pins; nil if it has none, or they are not all that it
// was begun with.
func pinnedOf(ctx context.Context, store state.Store, run state.Run) (*pinned, error) {
	p := &pinned{read: map[string][]byte{}}
	known := false
	for _, pin := range run.Pins {
		if pin.Redacted || pin.Bytes > state.BlobBytesMax {
			return nil, nil
		}
		text, err := store.Blob(ctx, pin.Digest)
		if err != nil {
			return nil, fmt.Errorf("read what run %d was made from: %w", run.Run, err)
		}
		switch {
		case pin.Kind == pinSettings:
			known, err = true, json.Unmarshal(text, &p.settings)
		case pin.Name == "":
			err = json.Unmarshal(text, &p.params)
		default:
			p.read[pin.Name] = text
		}
		if err != nil {
			return nil, fmt.Errorf("read the settings of run %d: %w", run.Run, err)
		}
	}
	if !known {
		return nil, nil
	}
	return p, nil
}

// settingsOf reads a recorded run's settings; nil if they were not recorded.
func settingsOf(ctx context.Context, store state.Store, run state.Run) (*settings, error) {
	for _, pin := range run.Pins {
		if pin.Kind != pinSettings {
			continue
		}
		text, err := store.Blob(ctx, pin.Digest)
		if err != nil {
			return nil, fmt.Errorf("read the settings of run %d: %w", run.Run, err)
		}
		var set settings
		if err := json.Unmarshal(text, &set); err != nil {
			return nil, fmt.Errorf("read the settings of run %d: %w", run.Run, err)
		}
		return &set, nil
	}
	return nil, nil
}

// notPinned says why a run cannot be worked on by those who did not begin it.
func notPinned(key state.RunKey) error {
	return &fault.Error{Kind: fault.Script, Message: fmt.Sprintf("what run %d was made from is not all in its state: it was begun by an earlier version, or its script or parameters have secrets in them", key.Run),
		Hint: "let secrets be values of the environment, or resume the run with its script"}
}

// load loads a recorded run's script from what was pinned. What it asks its
// surroundings for besides (environment values, the columns of its inputs) must
// be what it was.
func (p *pinned) load(ctx context.Context, run state.Run, src script.Sources) (*script.Script, error) {
	if _, err := os.Stat(p.Dir); err != nil {
		return nil, &fault.Error{Kind: fault.Script, Message: fmt.Sprintf("run %d was begun in %s: what it reads and writes is seen from there", run.Run, p.Dir), Err: err,
			Hint: "start the worker where it can read and write in that directory"}
	}
	src.Path, src.ParamsPath, src.Params, src.Lenient = run.ScriptPath, run.ParamsPath, p.params, p.Lenient
	src.Read = func(_ context.Context, url string) ([]byte, error) {
		if text, ok := p.read[address.Redact(url)]; ok {
			return text, nil
		}
		return nil, fmt.Errorf("run %d was not made from %s: %w", run.Run, address.Redact(url), fs.ErrNotExist)
	}
	s, diags := script.Load(ctx, src)
	if diags.HasErrors() {
		return nil, errors.Join(fmt.Errorf("load the script of run %d", run.Run), &InvalidScriptError{Diagnostics: diags})
	}
	if s.Fingerprint != run.Fingerprint {
		return nil, &fault.Error{Kind: fault.Script, Message: fmt.Sprintf("the script of run %d is another one when it is loaded here: values of the environment, or columns of its inputs, differ", run.Run),
			Hint: "give the worker the environment of the run"}
	}
	return s, nil
}
