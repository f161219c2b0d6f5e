package generate

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	"thalweg/internal/base/fault"
)

// Names of files with a fixed name.
const (
	paramsName    = "params.json"
	markerName    = "portfolio.json"
	pricesName    = "prices.csv"
	companiesName = "companies.csv"
	outName       = "out"
)

// ownName matches whatever Portfolio puts into a directory, and the results
// that the example script puts into its out folder there.
var ownName = regexp.MustCompile(
	`^(accounts\.(csv|parquet)|(txns|holdings)_\d{3,}\.(csv|parquet)|prices\.csv|companies\.csv|params\.json|portfolio\.json|out)$`)

// marker is portfolio.json: it tells our own output from anything else.
type marker struct {
	Kind    string       `json:"kind"`
	Version int          `json:"version"`
	Options markedOption `json:"options"`
	Summary Summary      `json:"summary"`
}

// markerKind and markerVersion identify the layout and content of the output;
// the version grows whenever the same options would give other bytes.
const (
	markerKind    = "thalweg-portfolio"
	markerVersion = 1
)

// markedOption is Options without the directory, which may be moved.
type markedOption struct {
	Accounts     int    `json:"accounts"`
	Format       string `json:"format"`
	TxnFiles     int    `json:"txn_files"`
	HoldingFiles int    `json:"holding_files"`
	Seed         uint64 `json:"seed"`
}

func (o Options) marked() markedOption {
	return markedOption{o.Accounts, o.Format, o.TxnFiles, o.HoldingFiles, o.Seed}
}

// Existing reports whether o.Dir already holds what Portfolio would make with
// o, so that a caller in a hurry can use it as it is. It trusts the marker and
// does not read the data files.
func Existing(o Options) (Summary, bool, error) {
	o, err := o.withDefaults()
	if err != nil {
		return Summary{}, false, err
	}
	m, err := readMarker(o.Dir)
	if err != nil || m == nil || m.Version != markerVersion || m.Options != o.marked() {
		return Summary{}, false, err
	}
	m.Summary.Params = o.paramsPath()
	var p Params
	text, err := os.ReadFile(m.Summary.Params)
	if err != nil {
		return Summary{}, false, &fault.Error{Kind: fault.Environment, Message: "reading the generated parameters",
			Err: err}
	}
	if err := json.Unmarshal(text, &p); err != nil || p.DirOut != filepath.Join(o.Dir, outName) {
		return Summary{}, false, nil // moved or edited: its URLs point elsewhere
	}
	return m.Summary, true, nil
}

// readMarker returns nil without an error when dir is not our output.
func readMarker(dir string) (*marker, error) {
	text, err := os.ReadFile(filepath.Join(dir, markerName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, &fault.Error{Kind: fault.Environment, Message: "looking for an earlier output in " + dir, Err: err}
	}
	var m marker
	if json.Unmarshal(text, &m) != nil || m.Kind != markerKind {
		return nil, nil
	}
	return &m, nil
}

// replaceable says why dir must not be replaced, or nil.
func replaceable(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return &fault.Error{Kind: fault.Environment, Message: "looking into " + dir, Err: err}
	}
	if len(entries) == 0 {
		return nil
	}
	m, err := readMarker(dir)
	if err != nil {
		return err
	}
	refusal := func(what string) error {
		f := fault.New(fault.Script, "%s is not empty and %s", dir, what)
		f.Hint = "choose another directory, or empty this one"
		return f
	}
	if m == nil {
		return refusal("is not an earlier output of this generator")
	}
	for _, e := range entries {
		if !ownName.MatchString(e.Name()) {
			return refusal(fmt.Sprintf("holds %q, which this generator did not write", e.Name()))
		}
	}
	return nil
}

// stage is the unfinished copy of a directory, beside the place where it goes.
type stage struct{ dir, final string }

func newStage(final string) (*stage, error) {
	parent, base := filepath.Split(final)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return nil, &fault.Error{Kind: fault.Environment, Message: "making the parent directory of " + final, Err: err}
	}
	dir, err := os.MkdirTemp(parent, "."+base+".unfinished-*")
	if err != nil {
		return nil, &fault.Error{Kind: fault.Environment, Message: "making a temporary directory beside " +
			final, Err: err}
	}
	// MkdirTemp keeps others out, which is not meant for the result.
	if err := os.Chmod(dir, 0o755); err != nil {
		return nil, errors.Join(&fault.Error{Kind: fault.Environment, Message: "opening up " + dir, Err: err},
			os.RemoveAll(dir))
	}
	return &stage{dir: dir, final: final}, nil
}

func (s *stage) path(name string) string { return filepath.Join(s.dir, name) }

// publish puts the stage into its place. What was there is checked once more,
// because making the data took a while.
func (s *stage) publish() error {
	if err := replaceable(s.final); err != nil {
		return err
	}
	// The old directory moves aside first: a rename does not replace one
	// that has files in it.
	old := s.dir + ".old"
	err := os.Rename(s.final, old)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return &fault.Error{Kind: fault.Environment, Message: "moving the earlier output aside", Err: err}
	}
	if err := os.Rename(s.dir, s.final); err != nil {
		return &fault.Error{Kind: fault.Environment, Message: "putting the generated files into place", Err: err}
	}
	if err := os.RemoveAll(old); err != nil {
		return &fault.Error{Kind: fault.Environment, Message: "removing the earlier output", Err: err}
	}
	return nil
}

// discard removes an unpublished stage.
func (s *stage) discard() error { return os.RemoveAll(s.dir) }
