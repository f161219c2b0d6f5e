package outputs

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

	"thalweg/internal/app/instance"
	"thalweg/internal/app/sources"
	"thalweg/internal/base/address"
	"thalweg/internal/base/allow"
	"thalweg/internal/base/document"
	"thalweg/internal/base/fault"
	"thalweg/internal/io/database"
	"thalweg/internal/io/files"
	"thalweg/internal/io/outfile"
	"thalweg/internal/io/remote"
	"thalweg/internal/lang/script"
)

// Target is the place of a file that a run reads or writes, in a form in which two names of one
// file are equal.
type Target struct {
	Node  *script.Node // nil: a file of the script itself
	Shown string
	pos   document.Pos
	At    string         // one file: a path without symbolic links, or a remote address in parts
	Other *regexp.Regexp // the forms of all files that the name stands for; nil: at is the only one
	local bool
	dir   bool // all that is below at, too
}

// Meets reports whether two names may be of one file. Files that exist are
// compared as such, which sees through hard links and letters' case.
func (t Target) Meets(o Target) bool {
	if t.local != o.local {
		return false
	}
	if t.dir && below(o.At, t.At) || o.dir && below(t.At, o.At) {
		return true
	}
	if t.At == o.At || t.Other != nil && t.Other.MatchString(o.At) || o.Other != nil && o.Other.MatchString(t.At) {
		return true
	}
	if !t.local {
		return false
	}
	a, err := os.Stat(t.At)
	if err != nil {
		return false
	}
	b, err := os.Stat(o.At)
	return err == nil && os.SameFile(a, b)
}

// below reports whether a path, or a pattern of some, is in a directory.
func below(at, dir string) bool { return strings.HasPrefix(at, strings.TrimSuffix(dir, "/")+"/") }

// targetAt puts an address into the form that can be compared. Relative names are seen from dir.
func targetAt(dir, name string) (at string, local bool, err error) {
	if !address.Remote(name) {
		name, err = address.LocalIn(dir, name)
		return filepath.ToSlash(address.Resolve(name)), true, err
	}
	name = address.DatabaseIn(dir, name)
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

// outputTarget returns the target that a node writes: its name stands for files of all batches and
// runs.
func outputTarget(dir string, n *script.Node) (Target, error) {
	return writtenTarget(dir, n, n.Out.URL, n.Out.Dir())
}

// manifestTarget returns the target of the manifest that a node writes beside its files; a
// directory has its own inside.
func manifestTarget(dir string, n *script.Node) (t Target, ok bool, err error) {
	if !n.Out.Manifest || n.Out.Dir() {
		return t, false, nil
	}
	t, err = writtenTarget(dir, n, n.Out.ManifestURL(), false)
	return t, true, err
}

// WrittenTargets returns all files that a node writes, whose relative names are seen from dir.
func WrittenTargets(dir string, n *script.Node) ([]Target, error) {
	file, err := outputTarget(dir, n)
	if err != nil {
		return nil, err
	}
	manifest, ok, err := manifestTarget(dir, n)
	if err != nil || !ok {
		return []Target{file}, err
	}
	return []Target{file, manifest}, nil
}

func writtenTarget(dir string, n *script.Node, url string, whole bool) (Target, error) {
	t := Target{Node: n, Shown: address.Redact(url), pos: n.Out.Pos}
	at, local, err := targetAt(dir, script.ExpandURL(url, 1, 0))
	if err != nil {
		return t, err
	}
	t.At, t.local, t.dir = at, local, whole
	if script.ExpandURL(url, 1, 0) == url {
		return t, nil
	}
	// What a number of many digits becomes is a number of any.
	const run, batch = 1_234_567_891, 1_234_567_892
	all, _, err := targetAt(dir, script.ExpandURL(url, run, batch))
	if err != nil {
		return t, err
	}
	pattern := strings.NewReplacer(fmt.Sprint(run), "[0-9]+", fmt.Sprint(batch),
		"[0-9]{5,}").Replace(regexp.QuoteMeta(all))
	t.Other, err = regexp.Compile("^" + pattern + "$")
	return t, err
}

// inputTargets are the files that a name in a script's urls stands for: those
// that match now, and those that a pattern would match later.
func inputTargets(ctx context.Context, at files.Places, n *script.Node, u script.FileURL) ([]Target, error) {
	t := Target{Node: n, Shown: address.Redact(u.URL), pos: u.Pos}
	var err error
	if files.RemotePattern(u.URL) {
		p, err := address.ParsePattern(strings.NewReplacer(`\`, `\\`, "[", `\[`).Replace(u.URL))
		if err != nil {
			return nil, err
		}
		if t.At = "s3 " + p.Bucket + " "; p.Scheme == "sftp" {
			t.At = "sftp " + strings.ToLower(p.Host) + " "
		}
		t.At += p.Glob
		t.Other, err = regexp.Compile("^" + globPattern(t.At) + "$")
		return []Target{t}, err
	}
	if t.At, t.local, err = targetAt(at.Dir, u.URL); err != nil {
		return nil, err
	}
	if !t.local || !strings.ContainsAny(u.URL, "*?") {
		return []Target{t}, nil
	}
	if t.Other, err = regexp.Compile("^" + globPattern(t.At) + "$"); err != nil {
		return nil, err
	}
	out := []Target{t}
	matched, err := files.Expand(ctx, at, []script.FileURL{u})
	if err != nil {
		return out, nil // that nothing matches yet is said when the node begins
	}
	for _, m := range matched {
		one := t
		if one.At, _, err = targetAt(at.Dir, m.URL); err != nil {
			return nil, err
		}
		one.Other = nil
		out = append(out, one)
	}
	return out, nil
}

// BothAdd reports whether two nodes may write one table of a database.
func BothAdd(a, b *script.Node) bool {
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

// CheckFiles refuses, before a run exists, files of schemes that cannot be
// used here, and what checkOutputs refuses.
func CheckFiles(ctx context.Context, h *instance.Instance, client *remote.Client, s *script.Script,
	nodes []*script.Node) error {
	for _, n := range nodes {
		for _, r := range n.FileReaders() {
			for _, u := range r.URLs {
				if err := sources.CheckAddress(ctx, client, s, u.URL, false, u.Pos); err != nil {
					return err
				}
			}
		}
		if n.Out != nil {
			if err := sources.CheckAddress(ctx, client, s, script.ExpandURL(n.Out.URL, 1, 0), true, n.Out.Pos); err != nil {
				return err
			}
		}
	}
	return checkOutputs(ctx, client.Policy(), s, nodes, h.Owns)
}

// CheckOutputs refuses what a run of a script would refuse of its outputs, wherever its state is.
func CheckOutputs(ctx context.Context, client *remote.Client, s *script.Script) error {
	nodes, err := s.Affected(nil)
	if err != nil {
		return nil //nolint:nilerr // there is nothing that a run would begin with
	}
	return checkOutputs(ctx, client.Policy(), s, nodes, func(string) bool { return false })
}

// checkOutputs refuses outputs that would replace a file that the run reads or one of
// the state directory, and two nodes that would write the same file.
func checkOutputs(ctx context.Context, policy *allow.Policy, s *script.Script, nodes []*script.Node,
	owned func(path string) bool) error {
	inputs, err := inputsOf(ctx, policy, s, nodes)
	if err != nil {
		return err
	}
	var outputs []Target
	for _, n := range nodes {
		if n.Out == nil {
			continue
		}
		written, err := WrittenTargets(s.Dir, n)
		if err != nil {
			f := *fault.Of(err)
			f.Place = fault.Place{File: n.Out.Pos.File, Line: int64(n.Out.Pos.Line), Column: n.Out.Pos.Col}
			return &f
		}
		for _, out := range written {
			if err := checkOutput(out, inputs, outputs, owned); err != nil {
				return err
			}
			if out.local && policy.MayWrite(filepath.FromSlash(out.At)) != nil { // nor is said what is there
				continue
			}
			if err := out.replaceable(); err != nil {
				return err
			}
			outputs = append(outputs, out)
		}
	}
	return nil
}

// checkOutput holds a file that is written against those that are read, and those that other
// nodes write.
func checkOutput(out Target, inputs, outputs []Target, owned func(path string) bool) error {
	for _, other := range outputs {
		if out.Meets(other) && !BothAdd(out.Node, other.Node) {
			return out.Refuse(fmt.Sprintf("nodes %s and %s write the same file %s", other.Node.Name,
				out.Node.Name, out.Shown),
				"give them different url_templates")
		}
	}
	for _, in := range inputs {
		if in.Node != nil && out.Meets(in) {
			return out.Refuse(fmt.Sprintf("node %s writes %s, which node %s reads in the same run as %s", out.Node.Name,
				out.Shown, in.Node.Name, in.Shown),
				"write to another place, or run the two nodes one after the other with {{set start}}")
		}
		if in.Node == nil && out.Meets(in) {
			return out.Refuse(fmt.Sprintf("node %s would replace %s, which is part of the script",
				out.Node.Name, in.Shown),
				"write to another place")
		}
	}
	if out.local && owned(out.At) {
		return out.Refuse(fmt.Sprintf("node %s writes %s into the state directory", out.Node.Name, out.Shown),
			"write to another place, or choose another state directory with {{set state}}")
	}
	return nil
}

// replaceable refuses an output that exists and is no regular file, through
// symbolic links too: the file that is renamed to its name would take the place
// of the device, the pipe or the directory.
func (t Target) replaceable() error {
	if t.dir {
		if err := outfile.Replaceable(filepath.FromSlash(t.At)); err != nil {
			f := fault.Of(err)
			return t.Refuse(fmt.Sprintf("node %s: %s", t.Node.Name, f.Message), f.Hint)
		}
		return nil
	}
	st, err := os.Stat(filepath.FromSlash(t.At))
	if !t.local || err != nil || st.Mode().IsRegular() {
		return nil // what cannot be looked at cannot be written either, which the writing says
	}
	what := map[fs.FileMode]string{fs.ModeDir: "a directory", fs.ModeNamedPipe: "a pipe",
		fs.ModeSocket: "a socket"}[st.Mode().Type()]
	return t.Refuse(fmt.Sprintf("node %s would replace %s, which is %s", t.Node.Name, t.Shown,
		cmp.Or(what, "a device")),
		"an output is a regular file, or does not exist yet: write to another place")
}

func (t Target) Refuse(message, hint string) error {
	return &fault.Error{Kind: fault.Script, Place: fault.Place{File: t.pos.File, Line: int64(t.pos.Line),
		Column: t.pos.Col}, Message: message, Hint: hint}
}

// inputsOf lists what a run of these nodes reads: their files, and the script's.
func inputsOf(ctx context.Context, policy *allow.Policy, s *script.Script, nodes []*script.Node) ([]Target, error) {
	var out []Target
	for _, name := range s.Files() {
		if at, local, err := targetAt(s.Dir, name); err == nil && local {
			out = append(out, Target{Shown: name, At: at, local: true})
		}
	}
	for _, n := range nodes {
		for _, r := range n.FileReaders() {
			for _, u := range r.URLs {
				found, err := inputTargets(ctx, files.Places{Dir: s.Dir, Policy: policy}, n, u)
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
