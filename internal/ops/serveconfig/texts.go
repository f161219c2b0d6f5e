package serveconfig

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"thalweg/internal/base/address"
	"thalweg/internal/base/document"
	"thalweg/internal/base/durable"
	"thalweg/internal/base/fault"
	"thalweg/internal/lang/project"
)

// Limits of texts.
const (
	TextBytesMax     = 1 << 20
	textNameBytesMax = 200
)

// formulaName is of the files beside scripts that have Python code.
var formulaName = regexp.MustCompile(`^[^.].*\.py$`)

// CheckTextName refuses a name that no text can have: it is a path below a directory of scripts.
func CheckTextName(name string) error {
	base := path.Base(name)
	if len(name) <= textNameBytesMax && filepath.IsLocal(name) && path.Clean(name) == name &&
		strings.Count(name, "/") <= scriptDepthMax && !strings.HasPrefix(name, ".") && !strings.Contains(name, "/.") &&
		!strings.ContainsAny(name, `\:*?[]{}<>"`) && !strings.ContainsFunc(name, notShown) &&
		(scriptName.MatchString(base) || formulaName.MatchString(base)) {
		return nil
	}
	return &fault.Error{Kind: fault.Script, Message: document.Quote(name) + " cannot be the name of a script",
		Hint: "write NAME.yaml or DIRECTORY/NAME.yaml, or with .yml, .json or .py"}
}

func notShown(r rune) bool { return !unicode.IsPrint(r) || r == utf8.RuneError }

// Text is a script, or a file beside one.
type Text struct {
	Text   string
	Digest string
}

// FirstDir is the directory of a workspace that texts are written to, and that those which are not written are seen
// from.
func (c *Config) FirstDir(workspace string) (string, error) {
	if dirs := c.Workspaces[workspace].Scripts; len(dirs) > 0 {
		return dirs[0], nil
	}
	return "", &fault.Error{Kind: fault.Script, Code: fault.Forbidden,
		Message: fmt.Sprintf("workspace %s has no directory of scripts", workspace),
		Hint:    "serve.yaml names the directories, under workspaces"}
}

// ReadText reads a script of a workspace, or a file beside it. Links are not followed.
func (c *Config) ReadText(workspace, name string) (Text, error) {
	text, _, err := c.findText(workspace, name)
	return text, err
}

// findText also says in which directory of the workspace it is.
func (c *Config) findText(workspace, name string) (Text, string, error) {
	if err := CheckTextName(name); err != nil {
		return Text{}, "", err
	}
	for _, dir := range c.Workspaces[workspace].Scripts {
		text, err := c.readIn(workspace, dir, name)
		if !errors.Is(err, fs.ErrNotExist) {
			return text, dir, err
		}
	}
	return Text{}, "", &fault.Error{Kind: fault.Script, Code: fault.NotFound, Err: fs.ErrNotExist,
		Message: fmt.Sprintf("workspace %s has no script %s", workspace, document.Quote(name)),
		Hint:    "serve.yaml names the directories, under workspaces"}
}

func (c *Config) readIn(workspace, dir, name string) (Text, error) {
	root, err := c.opened(workspace, dir, name)
	if err != nil {
		return Text{}, err
	}
	defer root.Close() // read only
	f, err := root.Open(name)
	if err != nil {
		return Text{}, textFault("read", name, err)
	}
	defer f.Close() // read only
	text, err := io.ReadAll(io.LimitReader(f, TextBytesMax+1))
	switch {
	case err != nil:
		return Text{}, textFault("read", name, err)
	case len(text) > TextBytesMax:
		return Text{}, tooLong(name)
	}
	return Text{string(text), digestOf(text)}, nil
}

// opened opens a directory of scripts in which a name leads through no link, to a regular file or nothing. What the
// name leads to later is still below the directory.
func (c *Config) opened(workspace, dir, name string) (_ *os.Root, err error) {
	if c.ofServer(filepath.Join(dir, name)) {
		return nil, &fault.Error{Kind: fault.Script, Code: fault.Forbidden,
			Message: document.Quote(name) + " belongs to the server", Hint: "give the script another name"}
	}
	if places := c.Policy(workspace); places != nil && places.WriteFile(filepath.Join(dir, name)) == nil {
		return nil, &fault.Error{Kind: fault.Script, Code: fault.Forbidden,
			Message: document.Quote(name) + " is where runs write: there are no scripts", Hint: "give another name"}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, textFault("open the directory of", name, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, root.Close())
		}
	}()
	at := ""
	for _, part := range strings.Split(name, "/") {
		at = path.Join(at, part)
		switch st, err := root.Lstat(at); {
		case errors.Is(err, fs.ErrNotExist) && at == name:
		case err != nil:
			return nil, textFault("look at", name, err)
		case at == name && !st.Mode().IsRegular(), at != name && !st.IsDir():
			return nil, &fault.Error{Kind: fault.Script, Code: fault.Forbidden,
				Message: document.Quote(name) + " is no file, or leads through a link", Hint: "give another name"}
		}
	}
	return root, nil
}

// ofServer reports whether a file configures the server, or those who use the program beside it.
func (c *Config) ofServer(file string) bool {
	return filepath.Base(file) == project.DefaultName || slices.ContainsFunc(c.kept, func(kept string) bool {
		return kept == file || address.Resolve(kept) == address.Resolve(file)
	})
}

// Condition says what a text must be, that is replaced. One of both is set.
type Condition struct {
	Is  func(digest string) bool // it is a text of this digest
	New bool                     // nothing is there
}

// TextWriter writes texts of scripts, one after the other. The zero value can be used.
type TextWriter struct{ mu sync.Mutex }

// Write writes a text below the first directory of a workspace if what is there is as expected, and returns its
// digest. Whoever reads it sees all of the old text or all of the new one.
func (w *TextWriter) Write(c *Config, workspace, name, text string, expect Condition) (digest string, err error) {
	first, err := c.FirstDir(workspace)
	if err == nil {
		err = checkText(name, text)
	}
	if err != nil {
		return "", err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	is, dir, err := c.findText(workspace, name)
	switch {
	case err == nil && expect.New:
		return "", conflict(name + " is there already")
	case errors.Is(err, fs.ErrNotExist) && !expect.New:
		return "", conflict(name + " is not there any more")
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return "", err
	case err == nil && !expect.Is(is.Digest):
		return "", conflict(name + " has changed since it was read")
	case err == nil && dir != first:
		return "", &fault.Error{Kind: fault.Script, Code: fault.Forbidden,
			Message: fmt.Sprintf("%s is in a directory that is not written to", document.Quote(name)),
			Hint:    "scripts are written to the first directory of the workspace only"}
	}
	root, err := c.opened(workspace, first, name)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	return digestOf([]byte(text)), writeIn(root, first, name, text, expect.New)
}

// writeIn replaces a file by one that is complete, or adds it if there is none.
func writeIn(root *os.Root, dir, name, text string, add bool) (err error) {
	temp := path.Join(path.Dir(name), ".thalweg-"+rand.Text())
	f, err := root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return textFault("write", name, err)
	}
	_, err = io.WriteString(f, text)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		if add { // another server may have added it: a link replaces nothing
			err = root.Link(temp, name)
		} else {
			err = root.Rename(temp, name)
		}
	}
	if add || err != nil {
		err = errors.Join(err, root.Remove(temp))
	}
	switch {
	case errors.Is(err, fs.ErrExist):
		return conflict(name + " is there already")
	case err != nil:
		return textFault("write", name, err)
	}
	return durable.FS{}.SyncDir(filepath.Join(dir, path.Dir(name)))
}

// checkText refuses a text that is neither a script nor anything that scripts have beside them.
func checkText(name, text string) error {
	switch {
	case len(text) > TextBytesMax:
		return tooLong(name)
	case !utf8.ValidString(text) || bytes.ContainsRune([]byte(text), 0):
		return &fault.Error{Kind: fault.Script, Message: document.Quote(name) + " is not text in UTF-8"}
	case path.Ext(name) == ".py":
		return nil
	}
	src := document.NewSource(name, text)
	root, syntax := document.Read(src)
	if syntax != nil {
		r := &document.Report{}
		r.AddSyntax(src, syntax)
		return r.Result(name, func(string) int { return 0 }, nil).Err()
	}
	if root.Kind != document.Map {
		return fault.New(fault.Script, "%s is neither a script nor a file beside one: it is no map",
			document.Quote(name))
	}
	return nil
}

func digestOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

func conflict(what string) error {
	return &fault.Error{Kind: fault.Script, Code: fault.Conflict, Message: "nothing was written: " + what,
		Hint: "read it again, and write it again"}
}

func tooLong(name string) error {
	return fault.New(fault.Script, "%s has more than %d bytes", document.Quote(name), TextBytesMax)
}

// textFault says what could not be done with a text. A place of this machine is not in it.
func textFault(do, name string, err error) error {
	f := &fault.Error{Kind: fault.Environment, Message: "cannot " + do + " " + document.Quote(name), Err: err}
	if pathErr := (*fs.PathError)(nil); errors.As(err, &pathErr) {
		f.Err = pathErr.Err
	}
	if errors.Is(err, fs.ErrNotExist) {
		f.Kind, f.Code, f.Hint = fault.Script, fault.NotFound, "its directory must be there"
	}
	return f
}
