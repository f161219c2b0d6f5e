package project

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"thalweg/internal/base/document"
	"thalweg/internal/base/fault"
	"thalweg/internal/base/secret"
	"thalweg/internal/base/similar"
)

// DefaultName is the file's name in a project's directory.
const DefaultName = "thalweg.yaml"

// Limits of what is read.
const (
	fileBytesMax   = 1 << 20
	secretBytesMax = 64 << 10 // of a file with a secret
)

// Environment is one of a project.
type Environment struct {
	Name      string
	File      string // that it stands in
	Protected bool   // what replaces something asks first

	Flags  []Flag            // of commands, where the command line does not say others
	Values map[string]string // parameters, where the command line does not give others
	Env    []Variable        // of the script's environment values
}

// Flag is a value of a command's flag.
type Flag struct {
	Name, Value string
	At          *document.Value
}

// Variable is a value of a script's {env.NAME}.
type Variable struct {
	Name, Value string
	Secret      bool // it came from a variable or a file
}

// Options of Load.
type Options struct {
	Lookup func(name string) (string, bool) // of variables; nil: os.LookupEnv
	Known  *secret.Known                    // learns the secrets; may be nil
}

// Find finds the file: in a directory, or in the nearest of those above it. "" if there is none.
func Find(dir string) string {
	for {
		path := filepath.Join(dir, DefaultName)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path
		}
		up := filepath.Dir(dir)
		if up == dir {
			return ""
		}
		dir = up
	}
}

// Names lists the environments of a file; none if it cannot be read.
func Names(path string) (names []string) {
	all, _, err := read(path)
	if err != nil || all == nil {
		return nil
	}
	for _, e := range all.Entries {
		names = append(names, e.Name)
	}
	return names
}

// Load reads one environment of a file. The problems of the file are diagnostics; there is no environment
// beside errors.
func Load(path, name string, opts Options) (*Environment, document.Diagnostics, error) {
	if opts.Lookup == nil {
		opts.Lookup = os.LookupEnv
	}
	if opts.Known == nil {
		opts.Known = secret.New()
	}
	r := &reader{opts: opts, dir: filepath.Dir(path)}
	all, fail, err := read(path)
	if err != nil {
		return nil, nil, err
	}
	if fail != nil {
		r.AddSyntax(fail.src, fail.err)
		return nil, r.Result(path, rank, opts.Known), nil
	}
	var found *document.Value
	var names []string
	for _, e := range all.Entries {
		if names = append(names, e.Name); e.Name == name {
			found = e.Value
		}
	}
	if found == nil {
		return nil, nil, unknown(path, name, names)
	}
	env := &Environment{Name: name, File: path}
	r.environment(env, found)
	diags := r.Result(path, rank, opts.Known)
	if diags.HasErrors() {
		return nil, diags, nil
	}
	return env, diags, nil
}

func rank(string) int { return 0 }

// unreadable is a text that is no YAML.
type unreadable struct {
	src *document.Source
	err *document.SyntaxError
}

// read gives the map of environments of a file.
func read(path string) (all *document.Value, bad *unreadable, err error) {
	text, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil, &fault.Error{Kind: fault.Script, Message: "there is no file of environments " + path,
			Hint: "docs/environments.md shows what one looks like"}
	case err != nil:
		return nil, nil, &fault.Error{Kind: fault.Environment, Message: "read the environments in " + path, Err: err}
	case len(text) > fileBytesMax:
		return nil, nil, &fault.Error{Kind: fault.Script, Message: fmt.Sprintf("%s is larger than %d KiB", path,
			fileBytesMax>>10)}
	}
	src := document.NewSource(path, string(text))
	root, fail := document.Read(src)
	if fail != nil {
		return nil, &unreadable{src, fail}, nil
	}
	for _, e := range root.Entries {
		switch {
		case e.Name == "environments" && e.Value.Kind == document.Map:
			all = e.Value
		case e.Name != "environments":
			return nil, nil, &fault.Error{Kind: fault.Script, Message: fmt.Sprintf("%s: unknown key %s", path,
				document.Quote(e.Name)),
				Hint: "the file has one key, environments, and below it a map for each of them"}
		}
	}
	if all == nil {
		return nil, nil, &fault.Error{Kind: fault.Script, Message: path + " has no environments",
			Hint: "begin it with environments:, and below it a map for each of them: dev: {}"}
	}
	return all, nil, nil
}

// unknown says that there is no environment of a name.
func unknown(path, name string, names []string) error {
	err := &fault.Error{Kind: fault.Script,
		Message: fmt.Sprintf("%s has no environment %s", path, document.Quote(name)),
		Hint:    "it has " + strings.Join(names, ", ")}
	if near := similar.Nearest(name, names); near != "" {
		err.Hint = "did you mean " + near + "? " + err.Hint
	}
	return err
}

// reader reads one environment.
type reader struct {
	document.Report
	opts Options
	dir  string // that relative paths are seen from
}

// keys are those of an environment.
var keys = []string{"protected", "state", "cluster", "server", "workspace", "params", "values", "env", "flags"}

func (r *reader) environment(env *Environment, v *document.Value) {
	if v.Kind == document.Null {
		return
	}
	if v.Kind != document.Map {
		r.ErrorAt(v, env.Name, "an environment is a map, not %s", v.Kind)
		return
	}
	there := map[string]bool{}
	for _, e := range v.Entries {
		path := "environments." + env.Name + "." + e.Name
		there[e.Name] = true
		switch e.Name {
		case "protected":
			if env.Protected = strings.EqualFold(e.Value.Text, "true"); e.Value.Kind != document.Bool {
				r.ErrorAt(e.Value, path, "protected is true or false")
			}
		case "state", "cluster", "params":
			if text, ok := r.text(e.Value, path); ok {
				env.Flags = append(env.Flags, Flag{e.Name, r.seenFrom(text), e.Value})
			}
		case "workspace", "server":
			if text, ok := r.text(e.Value, path); ok {
				env.Flags = append(env.Flags, Flag{e.Name, text, e.Value})
			}
		case "values":
			env.Values = r.values(e.Value, path)
		case "env":
			env.Env = r.variables(e.Value, path)
		case "flags":
			env.Flags = append(env.Flags, r.flags(e.Value, path)...)
		default:
			r.ErrorAt(e.Key, path, "unknown key %s", document.Quote(e.Name)).Hint = document.DidYouMean(e.Name, keys)
		}
	}
	if there["state"] && there["cluster"] || there["server"] && (there["state"] || there["cluster"]) {
		r.ErrorAt(v, "environments."+env.Name, "an environment has a state directory, a cluster or a server, not both")
	}
}

// seenFrom makes a path of the file one that can be opened here.
func (r *reader) seenFrom(path string) string {
	if filepath.IsAbs(path) || strings.Contains(path, "://") {
		return path
	}
	return filepath.Join(r.dir, path)
}

func (r *reader) text(v *document.Value, path string) (string, bool) {
	if !v.Present() || !v.Scalar() || strings.TrimSpace(v.Text) == "" {
		d := r.ErrorAt(v, path, "%s must be a text", path)
		if strings.HasSuffix(path, ".params") {
			d.Hint = "it is the name of a file; parameters by name are below the key values"
		}
		return "", false
	}
	return v.Text, true
}

// entries gives the entries of a map.
func (r *reader) entries(v *document.Value, path string) []*document.Entry {
	if v.Kind != document.Map {
		r.ErrorAt(v, path, "%s is a map of names, not %s", path, v.Kind)
		return nil
	}
	return v.Entries
}

// values are parameters; of a list its items with commas, as the command line has them.
func (r *reader) values(v *document.Value, path string) map[string]string {
	out := map[string]string{}
	for _, e := range r.entries(v, path) {
		if e.Value.Kind != document.List {
			if e.Value.Scalar() {
				out[e.Name] = e.Value.Text
				r.noSecret(e.Name, e.Value, path)
				continue
			}
			r.ErrorAt(e.Value, path+"."+e.Name, "a parameter is a text, a number, a truth value or a list of texts")
			continue
		}
		var items []string
		for _, item := range e.Value.Items {
			if !item.Scalar() || strings.Contains(item.Text, ",") {
				r.ErrorAt(item, path+"."+e.Name, "an item of a list is a text without commas")
				continue
			}
			items = append(items, item.Text)
		}
		out[e.Name] = strings.Join(items, ",")
	}
	return out
}

// flags are values of commands' flags.
func (r *reader) flags(v *document.Value, path string) (out []Flag) {
	for _, e := range r.entries(v, path) {
		if slices.Contains([]string{"state", "cluster", "server", "workspace", "params", "param", "env", "yes", "json"}, e.Name) {
			r.ErrorAt(e.Key, path+"."+e.Name, "%s is not among the flags of an environment",
				e.Name).Hint = "state, cluster, server, workspace, params and values are keys of the environment itself"
			continue
		}
		if text, ok := r.text(e.Value, path+"."+e.Name); ok {
			out = append(out, Flag{e.Name, text, e.Value})
			r.noSecret(e.Name, e.Value, path)
		}
	}
	return out
}

// variables are the values of a script's {env.NAME}.
func (r *reader) variables(v *document.Value, path string) (out []Variable) {
	for _, e := range r.entries(v, path) {
		one := Variable{Name: e.Name}
		at := path + "." + e.Name
		if e.Value.Kind != document.Map {
			text, ok := r.text(e.Value, at)
			if one.Value = text; ok && r.noSecret(e.Name, e.Value, path) {
				out = append(out, one)
			}
			continue
		}
		if value, ok := r.secret(e.Value, at); ok {
			one.Value, one.Secret = value, true
			r.opts.Known.Add(value, "{env."+e.Name+"}")
			out = append(out, one)
		}
	}
	return out
}

// secret reads where a secret comes from: {variable: NAME} or {file: PATH}.
func (r *reader) secret(v *document.Value, path string) (string, bool) {
	const hint = "write {variable: NAME} or {file: PATH}"
	if len(v.Entries) != 1 || !v.Entries[0].Value.Scalar() {
		r.ErrorAt(v, path, "%s says where its value comes from", path).Hint = hint
		return "", false
	}
	e := v.Entries[0]
	switch e.Name {
	case "variable":
		value, ok := r.opts.Lookup(e.Value.Text)
		if !ok || value == "" {
			r.ErrorAt(e.Value, path, "the environment has no variable %s",
				e.Value.Text).Hint = "set it where the command is started: export " + e.Value.Text + "=…"
			return "", false
		}
		return value, true
	case "file":
		return r.secretFile(e.Value, path)
	}
	r.ErrorAt(e.Key, path, "unknown key %s", document.Quote(e.Name)).Hint = hint
	return "", false
}

func (r *reader) secretFile(v *document.Value, path string) (string, bool) {
	name := r.seenFrom(v.Text)
	text, err := os.ReadFile(name)
	if err == nil && len(text) > secretBytesMax {
		err = fmt.Errorf("it is larger than %d KiB", secretBytesMax>>10)
	}
	if err != nil {
		var p *fs.PathError
		if errors.As(err, &p) {
			err = p.Err
		}
		r.ErrorAt(v, path, "the file with the value cannot be read: %v", err).Hint = name +
			" is seen from the directory of the file of environments"
		return "", false
	}
	value := strings.TrimRight(string(text), "\r\n")
	if value == "" {
		r.ErrorAt(v, path, "the file with the value is empty")
		return "", false
	}
	return value, true
}

// noSecret refuses a value that stands in the file and looks like a secret.
func (r *reader) noSecret(name string, v *document.Value, path string) bool {
	k := secret.New()
	k.LearnArgument(name + "=" + v.Text)
	k.Learn(v.Text)
	if k.Text(v.Text) == v.Text {
		return true
	}
	r.opts.Known.Add(v.Text, "xxxxx")
	r.ErrorAt(v, path+"."+name, "the value of %s is a secret: it does not belong in a file that is shared",
		name).Hint = "environment values come from elsewhere: env: {" + name +
		": {variable: NAME}} or {file: PATH}; scripts have them as {env." + name + "}"
	return false
}

// Params are the parameters as --param has them.
func (e *Environment) Params() []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(e.Values)) {
		out = append(out, name+"="+e.Values[name])
	}
	return out
}
