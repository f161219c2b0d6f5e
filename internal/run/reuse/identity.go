package reuse

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"thalweg/internal/base/address"
	"thalweg/internal/base/budget"
	"thalweg/internal/io/files"
	"thalweg/internal/lang/script"
	"thalweg/internal/run/engine"
	"thalweg/internal/run/plan"
	"thalweg/internal/run/python"
)

// Semantics is the version of what nodes mean: see the package's text.
const Semantics = 5

// Part is one thing that a node's rows follow from.
type Part struct {
	Name  string `json:"name"` // for people
	Value string `json:"value"`
}

// Identity lists all that determines a node's rows. It is kept in state. It is kept in state.
type Identity struct {
	Parts []Part `json:"parts,omitempty"`
	// Why says why no run may take the node over; "": any may.
	Why string `json:"why,omitempty"`
}

// Names of parts.
const (
	PartFiles  = "the input files"
	PartScript = "the node in the script, its parameters or its Python files"
)

// Digest identifies the node's rows; "" if they have no identity.
func (id Identity) Digest() string {
	if id.Why != "" {
		return ""
	}
	return digestOf(id.Parts)
}

// digestOf hashes values so that no two of them are written alike.
func digestOf(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return "" // texts only: cannot be
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// Decode reads an identity out of a node's plan; an empty one if there is none.
func Decode(record []byte) (Identity, error) {
	var id Identity
	if len(record) == 0 {
		return id, nil
	}
	if err := json.Unmarshal(record, &id); err != nil {
		return id, fmt.Errorf("read what a node's rows follow from: %w", err)
	}
	return id, nil
}

// Encode is the form that a plan keeps.
func (id Identity) Encode() json.RawMessage {
	text, err := json.Marshal(id)
	if err != nil {
		return nil // texts only: cannot be
	}
	return text
}

// Differs names the first part in which id differs from an earlier one; "" if
// none does.
func (id Identity) Differs(earlier Identity) string {
	was := map[string]string{}
	for _, p := range earlier.Parts {
		was[p.Name] = p.Value
	}
	for _, p := range id.Parts {
		if before, ok := was[p.Name]; !ok || before != p.Value {
			return p.Name
		}
		delete(was, p.Name)
	}
	if len(was) > 0 {
		return slices.Sorted(maps.Keys(was))[0]
	}
	return ""
}

// World is the environment in which a node is computed.
type World struct {
	Dir    string                       // that relative names of files are seen from
	Budget budget.Budget                // by which nodes are planned
	Python map[string]map[string]string // by node: see python.Pool.Check
}

// Of is the identity of a node that reads these tables. The input files are
// looked at as they are now. The error is that of looking at them.
func Of(ctx context.Context, n *script.Node, in plan.Inputs, w World) (Identity, error) {
	b := &builder{world: w}
	b.add("the version of Thalweg", fmt.Sprint(Semantics))
	b.add("the version of DuckDB", engine.Version)
	err := b.node(ctx, n, in, "")
	return b.id, err
}

type builder struct {
	world World
	id    Identity
}

func (b *builder) add(name, value string) { b.id.Parts = append(b.id.Parts, Part{name, value}) }

func (b *builder) refuse(format string, args ...any) {
	if b.id.Why == "" {
		b.id.Why = fmt.Sprintf(format, args...)
	}
}

// node adds a node, and behind its own parts those of the nodes that are
// computed inside it: of names these begin with the table.
func (b *builder) node(ctx context.Context, n *script.Node, in plan.Inputs, of string) error {
	b.add(of+PartScript, n.Fingerprint)
	b.refuseNode(n)
	if err := b.files(ctx, n, in, of); err != nil {
		return err
	}
	for _, t := range in.Tables(n) {
		name := of + "table " + t.Node.Table.Name
		if !t.Ephemeral() {
			b.add(name, t.Identity)
			continue
		}
		if err := b.node(ctx, t.Node, *t.Inner, name+": "); err != nil {
			return err
		}
	}
	if err := b.pythonFiles(ctx, n, in.Places.Dir, of); err != nil {
		return err
	}
	b.python(n, of)
	if n.PyTable != nil && n.PyTable.GroupBy == nil && !n.PyTable.Whole { // a call gets a batch
		b.add(of+"how its rows are cut into batches", fmt.Sprint(b.world.Budget.BatchBytes, b.world.Budget.SmallBytes,
			b.world.Budget.Slots))
	}
	return b.output(n)
}

// refuseNode says what of the node itself cannot be the same twice.
func (b *builder) refuseNode(n *script.Node) {
	if n.Reuse == script.ReuseNever {
		b.refuse("the script says reuse: false")
	}
	for _, c := range n.Checks {
		if c.Previous() || c.MaxAge > 0 {
			b.refuse("its check %q compares with an earlier run, or with the time of the run", c.Name)
		}
	}
}

// files adds the input files: which there are, and what each is known by.
func (b *builder) files(ctx context.Context, n *script.Node, in plan.Inputs, of string) error {
	readers := n.FileReaders()
	if len(readers) == 0 {
		return nil
	}
	all := make([][]files.Identity, len(readers))
	for i, r := range readers {
		var err error
		if all[i], err = b.look(ctx, r, in.Places); err != nil {
			return err
		}
	}
	b.add(of+PartFiles, digestOf(all))
	return nil
}

func (b *builder) look(ctx context.Context, r *script.FileReader, at files.Places) ([]files.Identity, error) {
	found, err := files.Identify(ctx, r, at)
	for _, f := range found {
		if f.Why != "" {
			b.refuse("input file %s: %s", f.URL, f.Why)
		}
	}
	return found, err
}

// pythonFiles adds the files that the script says its Python code reads.
func (b *builder) pythonFiles(ctx context.Context, n *script.Node, dir, of string) error {
	if len(n.ReuseFiles) == 0 {
		return nil
	}
	found, err := b.look(ctx, &script.FileReader{URLs: n.ReuseFiles}, files.Places{Dir: dir})
	if err == nil {
		b.add(of+"the files that its Python code reads", digestOf(found))
	}
	return err
}

// python adds what decides about the results of formulas beside their text.
func (b *builder) python(n *script.Node, of string) {
	if n.PyCalc == nil && n.PyTable == nil {
		return
	}
	found, ok := b.world.Python[n.Name]
	if !ok || len(found) == 0 {
		b.refuse("the Python interpreter has not been asked what its formulas import")
	}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		shown := name
		if name == python.Doubt {
			if n.Reuse != script.ReuseAlways {
				b.refuse("its Python code has %s, which may give something else each time; reuse: true says that "+
					"it does not", found[name])
			}
			continue
		}
		switch {
		case name == "python":
			shown = "the Python interpreter"
		case name == "packages":
			shown = "the installed Python packages"
		case strings.HasPrefix(name, "module "):
			shown = "Python " + name
		}
		b.add(of+shown, found[name])
	}
}

// output adds where files go.
func (b *builder) output(n *script.Node) error {
	if n.Out == nil {
		return nil
	}
	if script.ExpandURL(n.Out.URL, 1, 0) != script.ExpandURL(n.Out.URL, 2, 0) {
		b.refuse("the name of its file has the run's number")
	}
	if address.Remote(n.Out.URL) {
		b.refuse("what it writes is %s", address.Where(n.Out.URL))
		return nil
	}
	path, err := address.LocalIn(b.world.Dir, n.Out.URL)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	b.add("the place of its file", path)
	return err
}
