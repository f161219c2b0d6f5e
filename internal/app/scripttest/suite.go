package scripttest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"thalweg/internal/base/fault"
	"thalweg/internal/base/secret"
	"thalweg/internal/base/similar"
	lang "thalweg/internal/lang/script"
)

// Limits of a test file.
const (
	suiteBytesMax = 16 << 20
	casesMax      = 10_000
	rowsMax       = 100_000 // of one table in a case
)

// Suite is a test file.
type Suite struct {
	Path   string
	Script string            // path of the script
	Params map[string]*value // parameters for all cases
	Cases  []*Case

	read func(path string) ([]byte, error)
}

// Case is a test.
type Case struct {
	Name   string
	Line   int
	Nodes  []string
	Params map[string]*value // beside and instead of the suite's
	Given  []named           // tables, and inputs of nodes that read files
	Expect []named           // tables, and files that nodes write
	Error  string            // text that the failure contains; "": it must succeed
}

// named is a table's rows or a file's text under its name.
type named struct {
	name string
	*value
}

// value is a node of the document.
type value struct {
	suite *Suite
	*yaml.Node
}

func (v *value) fault(format string, args ...any) *fault.Error {
	f := fault.New(fault.Script, format, args...)
	f.Place = fault.Place{File: v.suite.Path, Line: int64(v.Line), Column: v.Column}
	return f
}

// PathFor returns the default path of the tests of a script: orders.test.yaml for orders.yaml.
func PathFor(script string) string {
	return strings.TrimSuffix(script, filepath.Ext(script)) + ".test.yaml"
}

// Load reads a test file. Without a key script it belongs to the given one.
func Load(path, script string, known *secret.Known) (*Suite, error) {
	return load(readLimited, path, script, known)
}

// Load reads a test file as tests with these options read what it names: as far as Policy allows, and from Texts.
func (o Options) Load(ctx context.Context, path, script string) (*Suite, error) {
	read := o.Texts.Over("", func(ctx context.Context, path string) ([]byte, error) {
		return lang.ReadLocal(ctx, o.Policy, path)
	})
	return load(func(path string) ([]byte, error) {
		text, err := read(ctx, path)
		if err != nil {
			f := *fault.Of(err)
			f.Place.File = path
			return nil, &f
		}
		return text, nil
	}, path, script, o.Known)
}

// load is Load that reads the test file, and files that it names, by a function.
func load(read func(path string) ([]byte, error), path, script string, known *secret.Known) (*Suite, error) {
	text, err := read(path)
	if err != nil {
		return nil, err
	}
	if len(text) > suiteBytesMax {
		return nil, tooLarge(path)
	}
	known.Learn(string(text))
	s := &Suite{Path: path, Script: script, read: read}
	var doc yaml.Node
	if err := yaml.Load(text, &doc); err != nil {
		f := fault.New(fault.Script, "not valid YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))
		f.Place.File = path
		return nil, f
	}
	if len(doc.Content) != 1 {
		return nil, &fault.Error{Kind: fault.Script, Place: fault.Place{File: path}, Message: "the test file is empty",
			Hint: "docs/testing.md shows how tests look"}
	}
	root := &value{s, doc.Content[0]}
	if err := root.equalKeys(); err != nil {
		return nil, err
	}
	keys, err := root.keys("script", "params", "tests")
	if err != nil {
		return nil, err
	}
	if v := keys["script"]; v != nil {
		if v.Kind != yaml.ScalarNode {
			return nil, v.fault("script is the name of a file")
		}
		s.Script = filepath.Join(filepath.Dir(path), v.Value)
	}
	if s.Params, err = keys["params"].params(); err != nil {
		return nil, err
	}
	tests := keys["tests"]
	if tests == nil || tests.Kind != yaml.SequenceNode || len(tests.Content) == 0 {
		return nil, root.fault("tests is missing: a list with a test each")
	}
	if len(tests.Content) > casesMax {
		return nil, tests.fault("there are more than %d tests", casesMax)
	}
	for _, n := range tests.Content {
		c, err := (&value{s, n}).test()
		if err != nil {
			return nil, err
		}
		s.Cases = append(s.Cases, c)
	}
	return s, nil
}

func readLimited(path string) ([]byte, error) {
	st, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &fault.Error{Kind: fault.Script, Place: fault.Place{File: path},
			Message: "the test file does not exist",
			Hint:    "tests of script.yaml are looked for in script.test.yaml; {{set tests}} names another file"}
	case err == nil && st.Size() > suiteBytesMax:
		return nil, tooLarge(path)
	}
	var text []byte
	if err == nil {
		text, err = os.ReadFile(path)
	}
	if err != nil {
		return nil, &fault.Error{Kind: fault.Environment, Place: fault.Place{File: path},
			Message: "cannot read the file", Err: err}
	}
	return text, nil
}

func tooLarge(path string) error {
	return &fault.Error{Kind: fault.Script, Place: fault.Place{File: path},
		Message: fmt.Sprintf("the file is larger than %d bytes", suiteBytesMax)}
}

// keys opens a map that has only the known keys.
func (v *value) keys(known ...string) (map[string]*value, error) {
	if v.Kind != yaml.MappingNode {
		return nil, v.fault("expected a map with %s", strings.Join(known, ", "))
	}
	out := map[string]*value{}
	for i := 0; i+1 < len(v.Content); i += 2 {
		key, val := &value{v.suite, v.Content[i]}, &value{v.suite, v.Content[i+1]}
		if !slices.Contains(known, key.Value) {
			f := key.fault("there is no key %q here", key.Value)
			f.Hint = "known are " + strings.Join(known, ", ")
			if near := similar.Nearest(key.Value, known); near != "" {
				f.Hint = fmt.Sprintf("did you mean %q?", near)
			}
			return nil, f
		}
		out[key.Value] = val.resolved()
	}
	return out, nil
}

// equalKeys finds a key that is twice in one map, anywhere in the document: a
// row would not have one of its values.
func (v *value) equalKeys() error {
	first := map[string]int{}
	for i, n := range v.Content {
		if v.Kind == yaml.MappingNode && i%2 == 0 && n.ShortTag() != "!!merge" {
			if line := first[n.Value]; line > 0 {
				return (&value{v.suite, n}).fault("key %q occurs twice, first in line %d", n.Value, line)
			}
			first[n.Value] = n.Line
		}
		if err := (&value{v.suite, n}).equalKeys(); err != nil { // an alias has no content of its own
			return err
		}
	}
	return nil
}

// resolved follows an alias.
func (v *value) resolved() *value {
	if v.Kind == yaml.AliasNode {
		return &value{v.suite, v.Alias}
	}
	return v
}

func (v *value) params() (map[string]*value, error) {
	out := map[string]*value{}
	if v == nil {
		return out, nil
	}
	if v.Kind != yaml.MappingNode {
		return nil, v.fault("params is a map of names to values")
	}
	for i := 0; i+1 < len(v.Content); i += 2 {
		out[v.Content[i].Value] = (&value{v.suite, v.Content[i+1]}).resolved()
	}
	return out, nil
}

func (v *value) test() (*Case, error) {
	keys, err := v.keys("name", "node", "nodes", "params", "given", "expect", "expect_error")
	if err != nil {
		return nil, err
	}
	c := &Case{Line: v.Line}
	if name := keys["name"]; name != nil {
		c.Name = name.Value
	}
	switch node, nodes := keys["node"], keys["nodes"]; {
	case node != nil && nodes == nil && node.Kind == yaml.ScalarNode:
		c.Nodes = []string{node.Value}
	case nodes != nil && node == nil && nodes.Kind == yaml.SequenceNode && len(nodes.Content) > 0:
		for _, n := range nodes.Content {
			c.Nodes = append(c.Nodes, n.Value)
		}
	default:
		return nil, v.fault("a test names one node, or the nodes of a chain in a list")
	}
	if c.Name == "" {
		c.Name = strings.Join(c.Nodes, ", ")
	}
	if c.Params, err = keys["params"].params(); err != nil {
		return nil, err
	}
	if c.Given, err = keys["given"].named(""); err != nil {
		return nil, err
	}
	single := ""
	if len(c.Nodes) == 1 {
		single = c.Nodes[0]
	}
	if c.Expect, err = keys["expect"].named(single); err != nil {
		return nil, err
	}
	if e := keys["expect_error"]; e != nil {
		c.Error = e.Value
	}
	if (len(c.Expect) == 0) == (c.Error == "") {
		return nil, v.fault("a test has either expect or expect_error")
	}
	return c, nil
}

// named lists a map's values; anything else belongs to the only node there is.
func (v *value) named(single string) ([]named, error) {
	if v == nil {
		return nil, nil
	}
	if v.Kind != yaml.MappingNode {
		if single == "" {
			return nil, v.fault("expected a map of names of tables or nodes to rows or text")
		}
		return []named{{single, v}}, nil
	}
	var out []named
	for i := 0; i+1 < len(v.Content); i += 2 {
		out = append(out, named{v.Content[i].Value, (&value{v.suite, v.Content[i+1]}).resolved()})
	}
	return out, nil
}

// text reads a text, or the file that {file: NAME} names, beside the test file.
func (v *value) text() (string, error) {
	switch v.Kind {
	case yaml.ScalarNode:
		return v.Value, nil
	case yaml.MappingNode:
		keys, err := v.keys("file")
		if err != nil {
			return "", err
		}
		if keys["file"] != nil {
			text, err := v.suite.read(filepath.Join(filepath.Dir(v.suite.Path), keys["file"].Value))
			return string(text), err
		}
	}
	return "", v.fault("expected a text, or {file: NAME}")
}

// rows reads a list of rows, each a map of fields to values.
func (v *value) rows() ([]row, error) {
	if v.Kind != yaml.SequenceNode {
		return nil, v.fault("expected a list of rows, each a map of fields to values")
	}
	if len(v.Content) > rowsMax {
		return nil, v.fault("there are more than %d rows", rowsMax)
	}
	out := make([]row, len(v.Content))
	for i, n := range v.Content {
		r := (&value{v.suite, n}).resolved()
		if r.Kind != yaml.MappingNode {
			return nil, r.fault("expected a row: a map of fields to values")
		}
		out[i] = row{at: r, cells: map[string]*value{}}
		for k := 0; k+1 < len(r.Content); k += 2 {
			out[i].names = append(out[i].names, r.Content[k].Value)
			out[i].cells[r.Content[k].Value] = (&value{v.suite, r.Content[k+1]}).resolved()
		}
	}
	return out, nil
}

// row is a row of a test file.
type row struct {
	at    *value
	names []string
	cells map[string]*value
}
