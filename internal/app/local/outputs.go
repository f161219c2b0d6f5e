package local

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"thalweg/internal/base/address"
	"thalweg/internal/base/document"
	"thalweg/internal/base/fault"
	"thalweg/internal/io/database"
	"thalweg/internal/io/files"
	"thalweg/internal/io/outfile"
	"thalweg/internal/io/remote"
	"thalweg/internal/lang/script"
)

// target is where a file is that a run reads or writes, in a form in which
// two names of one file are equal.
type target struct {
	node  *script.Node // nil: a file of the script itself
	shown string
	pos   document.Pos
	at    string         // one file: a path without symbolic links, or a remote address in parts
	other *regexp.Regexp // the forms of all files that the name stands for; nil: at is the only one
	local bool
	dir   bool // all that is below at, too
}

// meets reports whether two names may be of one file. Files that exist are
// compared as such, which sees through hard links and letters' case.
func (t target) meets(o target) bool {
	if t.local != o.local {
		return false
	}
	if t.dir && below(o.at, t.at) || o.dir && below(t.at, o.at) {
		return true
	}
	if t.at == o.at || t.other != nil && t.other.MatchString(o.at) || o.other != nil && o.other.MatchString(t.at) {
		return true
	}
	if !t.local {
		return false
	}
	a, err := os.Stat(t.at)
	if err != nil {
		return false
	}
	b, err := os.Stat(o.at)
	return err == nil && os.SameFile(a, b)
}

// below reports whether a path, or a pattern of some, is in a directory.
func below(at, dir string) bool { return strings.HasPrefix(at, strings.TrimSuffix(dir, "/")+"/") }

// targetAt puts an address into the form that can be compared.
func targetAt(name string) (at string, local bool, err error) {
	if !address.Remote(name) {
		name, err = address.Local(name)
		return filepath.ToSlash(resolved(name)), true, err
	}
	l, err := address.Parse(name)
	if err != nil {
		return "", false, err
	}
	switch l.Scheme {
	case "s3":
		return "s3 " + l.Bucket + " " + l.Path, false, nil
	case "sftp": // users of one host mostly see the same files
		return "sftp " + strings.ToLower(l.Host) + " " + path.Clean(l.Path), false, nil
	}
	return name, false, nil
}

// outputTarget is where a node writes: its name stands for files of all
// batches and runs.
func outputTarget(n *script.Node) (target, error) {
	return writtenTarget(n, n.Out.URL, n.Out.Dir())
}

// manifestTarget is where a node writes a manifest beside its files; a directory has its own inside.
func manifestTarget(n *script.Node) (t target, ok bool, err error) {
	if !n.Out.Manifest || n.Out.Dir() {
		return t, false, nil
	}
	t, err = writtenTarget(n, n.Out.ManifestURL(), false)
	return t, true, err
}

// writtenTargets are all files that a node writes.
func writtenTargets(n *script.Node) ([]target, error) {
	file, err := outputTarget(n)
	if err != nil {
		return nil, err
	}
	manifest, ok, err := manifestTarget(n)
	if err != nil || !ok {
		return []target{file}, err
	}
	return []target{file, manifest}, nil
}

func writtenTarget(n *script.Node, url string, dir bool) (target, error) {
	t := target{node: n, shown: address.Redact(url), pos: n.Out.Pos}
	at, local, err := targetAt(script.ExpandURL(url, 1, 0))
	if err != nil {
		return t, err
	}
	t.at, t.local, t.dir = at, local, dir
	if script.ExpandURL(url, 1, 0) == url {
		return t, nil
	}
	// What a number of many digits becomes is a number of any.
	const run, batch = 1_234_567_891, 1_234_567_892
	all, _, err := targetAt(script.ExpandURL(url, run, batch))
	if err != nil {
		return t, err
	}
	pattern := strings.NewReplacer(fmt.Sprint(run), "[0-9]+", fmt.Sprint(batch),
		"[0-9]{5,}").Replace(regexp.QuoteMeta(all))
	t.other, err = regexp.Compile("^" + pattern + "$")
	return t, err
}

// inputTargets are the files that a name in a script's urls stands for: those
// that match now, and those that a pattern would match later.
func inputTargets(ctx context.Context, n *script.Node, u script.FileURL) ([]target, error) {
	t := target{node: n, shown: address.Redact(u.URL), pos: u.Pos}
	var err error
	if files.RemotePattern(u.URL) {
		p, err := address.ParsePattern(strings.NewReplacer(`\`, `\\`, "[", `\[`).Replace(u.URL))
		if err != nil {
			return nil, err
		}
		if t.at = "s3 " + p.Bucket + " "; p.Scheme == "sftp" {
			t.at = "sftp " + strings.ToLower(p.Host) + " "
		}
		t.at += p.Glob
		t.other, err = regexp.Compile("^" + globPattern(t.at) + "$")
		return []target{t}, err
	}
	if t.at, t.local, err = targetAt(u.URL); err != nil {
		return nil, err
	}
	if !t.local || !strings.ContainsAny(u.URL, "*?") {
		return []target{t}, nil
	}
	if t.other, err = regexp.Compile("^" + globPattern(t.at) + "$"); err != nil {
		return nil, err
	}
	out := []target{t}
	matched, err := files.Expand(ctx, files.Places{}, []script.FileURL{u})
	if err != nil {
		return out, nil // that nothing matches yet is said when the node begins
	}
	for _, m := range matched {
		one := t
		if one.at, _, err = targetAt(m.URL); err != nil {
			return nil, err
		}
		one.other = nil
		out = append(out, one)
	}
	return out, nil
}

// bothAdd reports whether two nodes may write one table of a database.
func bothAdd(a, b *script.Node) bool {
	return a.Out.Target != nil && b.Out.Target != nil && a.Out.Target.Mode != database.Replace &&
		b.Out.Target.Mode != database.Replace
}

// globPattern writes * and ? of a path as a regular expression. As in
// files.Expand they do not stand for a dot at the beginning of a name.
func globPattern(at string) string {
	parts := address.EachLevel(strings.Split(at, "/"))
	for i, part := range parts {
		if part == address.AnyLevels {
			parts[i] = "(?:[^/.][^/]*/)*" // and no / behind it
			continue
		}
		quoted := strings.NewReplacer(`\*`, "[^/]*", `\?`, "[^/]").Replace(regexp.QuoteMeta(part))
		if rest, ok := strings.CutPrefix(quoted, "[^/]*"); ok {
			quoted = "(?:[^/.][^/]*)?" + rest
		} else if rest, ok := strings.CutPrefix(quoted, "[^/]"); ok {
			quoted = "[^/.]" + rest
		}
		parts[i] = quoted
	}
	return strings.ReplaceAll(strings.Join(parts, "/"), "(?:[^/.][^/]*/)*/", "(?:[^/.][^/]*/)*")
}

// checkFiles refuses, before a run exists, files of schemes that cannot be
// used here, and what checkOutputs refuses.
func (h *Instance) checkFiles(ctx context.Context, client *remote.Client, s *script.Script,
	nodes []*script.Node) error {
	for _, n := range nodes {
		for _, r := range n.FileReaders() {
			for _, u := range r.URLs {
				if err := checkAddress(ctx, client, s, u.URL, u.Pos); err != nil {
					return err
				}
			}
		}
		if n.Out != nil {
			if err := checkAddress(ctx, client, s, n.Out.URL, n.Out.Pos); err != nil {
				return err
			}
		}
	}
	return checkOutputs(ctx, s, nodes, h.owns)
}

// CheckOutputs refuses what a run of a script would refuse of its outputs, wherever its state is.
func CheckOutputs(ctx context.Context, s *script.Script) error {
	nodes, err := s.Affected(nil)
	if err != nil {
		return nil //nolint:nilerr // there is nothing that a run would begin with
	}
	return checkOutputs(ctx, s, nodes, func(string) bool { return false })
}

// checkOutputs refuses outputs that would replace a file that the run reads or one of
// the state directory, and two nodes that would write the same file.
func checkOutputs(ctx context.Context, s *script.Script, nodes []*script.Node, owned func(path string) bool) error {
	inputs, err := inputsOf(ctx, s, nodes)
	if err != nil {
		return err
	}
	var outputs []target
	for _, n := range nodes {
		if n.Out == nil {
			continue
		}
		written, err := writtenTargets(n)
		if err != nil {
			f := *fault.Of(err)
			f.Place = fault.Place{File: n.Out.Pos.File, Line: int64(n.Out.Pos.Line), Column: n.Out.Pos.Col}
			return &f
		}
		for _, out := range written {
			if err := checkOutput(out, inputs, outputs, owned); err != nil {
				return err
			}
			outputs = append(outputs, out)
		}
	}
	return nil
}

// checkOutput holds a file that is written against those that are read, and those that other
// nodes write.
func checkOutput(out target, inputs, outputs []target, owned func(path string) bool) error {
	for _, other := range outputs {
		if out.meets(other) && !bothAdd(out.node, other.node) {
			return out.refuse(fmt.Sprintf("nodes %s and %s write the same file %s", other.node.Name, out.node.Name, out.shown),
				"give them different url_templates")
		}
	}
	for _, in := range inputs {
		if in.node != nil && out.meets(in) {
			return out.refuse(fmt.Sprintf("node %s writes %s, which node %s reads in the same run as %s", out.node.Name,
				out.shown, in.node.Name, in.shown),
				"write to another place, or run the two nodes one after the other with --start")
		}
		if in.node == nil && out.meets(in) {
			return out.refuse(fmt.Sprintf("node %s would replace %s, which is part of the script", out.node.Name, in.shown),
				"write to another place")
		}
	}
	if out.local && owned(out.at) {
		return out.refuse(fmt.Sprintf("node %s writes %s into the state directory", out.node.Name, out.shown),
			"write to another place, or choose another state directory with --state")
	}
	return out.replaceable()
}

// replaceable refuses an output that exists and is no regular file, through
// symbolic links too: the file that is renamed to its name would take the place
// of the device, the pipe or the directory.
func (t target) replaceable() error {
	if t.dir {
		if err := outfile.Replaceable(filepath.FromSlash(t.at)); err != nil {
			f := fault.Of(err)
			return t.refuse(fmt.Sprintf("node %s: %s", t.node.Name, f.Message), f.Hint)
		}
		return nil
	}
	st, err := os.Stat(filepath.FromSlash(t.at))
	if !t.local || err != nil || st.Mode().IsRegular() {
		return nil // what cannot be looked at cannot be written either, which the writing says
	}
	what := map[fs.FileMode]string{fs.ModeDir: "a directory", fs.ModeNamedPipe: "a pipe",
		fs.ModeSocket: "a socket"}[st.Mode().Type()]
	return t.refuse(fmt.Sprintf("node %s would replace %s, which is %s", t.node.Name, t.shown, cmp.Or(what, "a device")),
		"an output is a regular file, or does not exist yet: write to another place")
}

func (t target) refuse(message, hint string) error {
	return &fault.Error{Kind: fault.Script, Place: fault.Place{File: t.pos.File, Line: int64(t.pos.Line),
		Column: t.pos.Col}, Message: message, Hint: hint}
}

// inputsOf lists what a run of these nodes reads: their files, and the script's.
func inputsOf(ctx context.Context, s *script.Script, nodes []*script.Node) ([]target, error) {
	var out []target
	for _, name := range s.Files() {
		if at, local, err := targetAt(name); err == nil && local {
			out = append(out, target{shown: name, at: at, local: true})
		}
	}
	for _, n := range nodes {
		for _, r := range n.FileReaders() {
			for _, u := range r.URLs {
				found, err := inputTargets(ctx, n, u)
				if ctx.Err() != nil {
					return nil, context.Cause(ctx)
				}
				if err == nil { // else whoever reads it says what is wrong with its address
					out = append(out, found...)
				}
			}
		}
	}
	return out, nil
}
