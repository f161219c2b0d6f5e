package runtime

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"thalweg/internal/base/allow"

	"thalweg/internal/app/instance"
	"thalweg/internal/app/sources"
	"thalweg/internal/base/address"
	"thalweg/internal/base/budget"
	"thalweg/internal/base/document"
	"thalweg/internal/base/fault"
	"thalweg/internal/lang/script"
	"thalweg/internal/store/state"
)

// PinSettings is the kind of the pin that has what else a run was begun with.
// The text is stored.
const PinSettings = "settings"

// PinHooks is the kind of the pin that has who is told of the run.
const PinHooks = "hooks"

// Settings hold the settings that a run was begun with, besides its sources. They are all that
// another process needs to plan and execute it to the same bytes.
type Settings struct {
	Dir       string           `json:"dir"` // that relative names of files are seen from
	Lenient   bool             `json:"lenient,omitempty"`
	Literal   bool             `json:"literal,omitempty"`
	Ephemeral bool             `json:"ephemeral,omitempty"` // see Options
	Reuse     bool             `json:"reuse,omitempty"`     // see Options
	Chosen    []string         `json:"chosen,omitempty"`    // nodes that it was told to start with: they are computed
	Select    script.Selection `json:"select,omitzero"`     // see Options
	Budget    budget.Budget    `json:"budget"`              // that its nodes are planned by, whatever a machine has

	Offered map[string]string `json:"offered,omitempty"` // see script.Sources
	Given   string            `json:"given,omitempty"`   // see script.Script
	Via     string            `json:"via,omitempty"`     // way in of who began it: see package caller
	// interpreter and modules that the code was tried with; see surroundings
	Python map[string]string `json:"python,omitempty"`

	// Policy says what the run may open; nil: whatever its processes can.
	Policy *allow.Policy `json:"policy,omitempty"`

	Looked [][]script.FileColumn `json:"looked,omitempty"` // see script.Script; none if they are too many
}

// lookedMax bounds the columns of input files that a run keeps: its settings must
// not become larger than what is pinned.
const lookedMax = 20_000

// Looked returns the columns of files that a run keeps, which its script has asked for; nil if they
// are too many.
func Looked(s *script.Script) [][]script.FileColumn {
	count := 0
	for _, columns := range s.Looked {
		count += len(columns)
	}
	if count > lookedMax {
		return nil
	}
	return s.Looked
}

// columns gives the columns of input files as they were when the run began, in
// the order in which its script asks for them; where they are not known, as next does.
func (s *Settings) columns(next func(context.Context, string, script.CSVReader, bool) ([]script.FileColumn,
	error)) func(context.Context, string, script.CSVReader, bool) ([]script.FileColumn, error) {
	asked := 0
	return func(ctx context.Context, url string, csv script.CSVReader, parquet bool) ([]script.FileColumn, error) {
		if asked++; asked > len(s.Looked) {
			return next(ctx, url, csv, parquet)
		}
		return s.Looked[asked-1], nil
	}
}

// SlotsOf returns the number of batches that a run was to work on at once where it began. If that
// is not known, it returns the number of this machine's cores.
func SlotsOf(ctx context.Context, h *instance.Instance, run state.Run) int {
	if set, err := SettingsOf(ctx, h.State, run); err == nil && set != nil && set.Budget.Slots > 0 {
		return set.Budget.Slots
	}
	return budget.Cores()
}

// pinned holds the settings, parameters and sources that a recorded run was begun with.
type pinned struct {
	Settings
	Params map[string]string // of the command line
	read   map[string][]byte
}

// PinnedOf reads a run's pins; nil if it has none, or they are not all that it
// was begun with.
func PinnedOf(ctx context.Context, store state.Store, run state.Run) (*pinned, error) {
	p := &pinned{read: map[string][]byte{}}
	known := false
	for _, pin := range run.Pins {
		if pin.Kind == PinHooks {
			continue
		}
		if pin.Redacted || pin.Bytes > state.BlobBytesMax {
			return nil, nil
		}
		text, err := pinText(ctx, store, run, pin)
		if err != nil {
			return nil, err
		}
		switch {
		case pin.Kind == PinSettings:
			known, err = true, json.Unmarshal(text, &p.Settings)
		case pin.Name == "":
			err = json.Unmarshal(text, &p.Params)
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

// PinnedText is a text that a run was made from.
type PinnedText struct {
	state.Pin
	Text []byte
}

// PinnedTexts returns the script of a run, and the files that it includes and uses, as they were when it began. Those
// with secrets, or that are too large, were not kept; that the script itself was not is an error.
func PinnedTexts(ctx context.Context, store state.Store, run state.Run) (out []PinnedText, err error) {
	script := false
	for _, pin := range run.Pins {
		switch {
		case pin.Redacted, pin.Bytes > state.BlobBytesMax,
			pin.Kind != state.PinScript && pin.Kind != state.PinIncluded && pin.Kind != state.PinFormula:
			continue
		}
		text, err := pinText(ctx, store, run, pin)
		if err != nil {
			return nil, err
		}
		out, script = append(out, PinnedText{pin, text}), script || pin.Kind == state.PinScript
	}
	if !script {
		return nil, &fault.Error{Kind: fault.Script, Code: fault.NotFound,
			Message: fmt.Sprintf("the text of the script of run %d was not kept", run.Run),
			Hint:    "it has secrets in it, is very large, or the run was begun by an earlier version"}
	}
	return out, nil
}

// pinText reads what was pinned of a run, and refuses what is not that any more.
func pinText(ctx context.Context, store state.Store, run state.Run, pin state.Pin) ([]byte, error) {
	text, err := store.Blob(ctx, pin.Digest)
	if err != nil {
		return nil, fmt.Errorf("read what run %d was made from: %w", run.Run, err)
	}
	if state.NewBlob(text).Digest == pin.Digest {
		return text, nil
	}
	what := cmp.Or(address.Redact(pin.Name), "its "+pin.Kind)
	return nil, &fault.Error{Kind: fault.Environment,
		Message: fmt.Sprintf("what run %d was made from was changed in its state: %s is not what was stored", run.Run,
			what),
		Hint: "somebody who may write to the state has changed it, or a disk has: find out who, do not work on the " +
			"run, and begin it again from its script"}
}

// SettingsOf reads a recorded run's settings; nil if they were not recorded.
func SettingsOf(ctx context.Context, store state.Store, run state.Run) (*Settings, error) {
	for _, pin := range run.Pins {
		if pin.Kind != PinSettings {
			continue
		}
		text, err := pinText(ctx, store, run, pin)
		if err != nil {
			return nil, err
		}
		var set Settings
		if err := json.Unmarshal(text, &set); err != nil {
			return nil, fmt.Errorf("read the settings of run %d: %w", run.Run, err)
		}
		return &set, nil
	}
	return nil, nil
}

// PinnedRun is a run as it was begun.
type PinnedRun struct {
	*pinned
	Run      state.Run
	Script   *script.Script
	Sources  script.Sources // that it was loaded from
	Warnings document.Diagnostics
}

// Recall loads a run from what was pinned of it.
func (t *Runtime) Recall(ctx context.Context, key state.RunKey) (rec PinnedRun, err error) {
	return t.RecallFrom(ctx, key, false)
}

// RecallFrom is recall for those who only look at a run: its input files need not be there.
func (t *Runtime) RecallFrom(ctx context.Context, key state.RunKey, onlyLooks bool) (rec PinnedRun, err error) {
	if rec.Run, err = t.Store.Run(ctx, key); err != nil {
		return rec, fmt.Errorf("read run %d: %w", key.Run, err)
	}
	if rec.pinned, err = PinnedOf(ctx, t.Store, rec.Run); err != nil {
		return rec, err
	}
	if rec.pinned == nil {
		return rec, notPinned(rec.Run)
	}
	src := t.Process.Sources(rec.Policy, rec.Dir, rec.Run.ScriptPath, rec.Run.ParamsPath)
	src.Known = t.Process.Known
	if onlyLooks {
		src.Columns = rec.columns(src.Columns)
	}
	rec.Sources = rec.from(rec.Run, src)
	rec.Script, rec.Warnings, err = rec.load(ctx, rec.Run, rec.Sources)
	return rec, err
}

// notPinned says why a run cannot be worked on by those who did not begin it.
func notPinned(run state.Run) error {
	return &fault.Error{Kind: fault.Script,
		Message: fmt.Sprintf("what run %d was made from is not all in its state: it was begun by an earlier version, "+
			"or its script or parameters have secrets in them", run.Run),
		Hint: "go on with its script: " + run.Do("run", "script", run.ScriptPath, "resume", "").String() +
			", with the parameters that it was begun with; secrets that are values of the environment need " +
			"none of this"}
}

// from gives the sources of a recorded run: what was pinned of it.
func (p *pinned) from(run state.Run, src script.Sources) script.Sources {
	src.Path, src.ParamsPath, src.Params, src.Offered, src.Lenient = run.ScriptPath, run.ParamsPath, p.Params,
		p.Offered, p.Lenient
	src.Literal = p.Literal
	src.Read = func(_ context.Context, url string) ([]byte, error) {
		if text, ok := p.read[address.Redact(url)]; ok {
			return text, nil
		}
		return nil, fmt.Errorf("run %d was not made from %s: %w", run.Run, address.Redact(url), fs.ErrNotExist)
	}
	return src
}

// load loads a recorded run's script from what was pinned. What it asks its
// surroundings for besides (environment values, the columns of its inputs) must
// be what it was.
func (p *pinned) load(ctx context.Context, run state.Run, src script.Sources) (*script.Script,
	document.Diagnostics, error) {
	if _, err := os.Stat(p.Dir); err != nil {
		return nil, nil, &fault.Error{Kind: fault.Script,
			Message: fmt.Sprintf("run %d was begun in %s: what it reads and writes is seen from there", run.Run, p.Dir),
			Err:     err,
			Hint:    "work on it where that directory can be read and written"}
	}
	s, diags := script.Load(ctx, src)
	if diags.HasErrors() {
		return nil, diags, errors.Join(fmt.Errorf("load the script of run %d", run.Run),
			&sources.InvalidScriptError{Diagnostics: diags})
	}
	if s.Fingerprint != run.Fingerprint {
		return nil, nil, &fault.Error{Kind: fault.Script,
			Message: fmt.Sprintf("the script of run %d is another one when it is loaded here: values of the "+
				"environment, or columns of its inputs, differ", run.Run),
			Hint: "work on it with the environment that the run was begun in"}
	}
	return s, diags.Warnings(), nil
}
