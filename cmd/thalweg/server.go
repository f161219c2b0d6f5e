package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"thalweg/internal/apiclient"
	"thalweg/internal/app"
	"thalweg/internal/base/fault"

	"github.com/alecthomas/kong"
	"golang.org/x/term"
)

// throughServer lists the commands that a server answers, too. All others work on what is here. Of commands that
// have flags for work that is done here, it lists the flags that go with a server.
var throughServer = map[string][]string{"history": nil, "cost": nil, "runs": nil, "show": nil, "why": nil,
	"events": nil, "audit": nil, "batches": nil, "nodes": nil, "checks": nil, "schedules": nil, "approvals": nil,
	"approve": nil,
	"reject":  nil, "stop": nil, "pause": nil, "take": nil, "invalidate": nil, "drop": nil, "gc": nil, "login": nil, "attach": nil,
	"run": {"param", "start", "fresh", "wait", "note", "deadline", "priority", "max-elapsed", "max-cost", "detach", "from",
		"dry-run", "json"},
	"sql": {"format", "limit", "json", "output", "overwrite"}, "matrix": nil, "status": {"json"}, "doctor": {"json"},
	"capacity explain": {"svg", "out", "overwrite", "json"},
	"diff":             {"key", "by-rows", "columns", "tolerance", "limit", "json"},
	"trace":            {"where", "limit", "sample", "run", "json"},
	"lineage":          {"graph", "run", "json"},
	"check":            {"param", "node", "limit", "run", "json"},
	"validate":         {"param", "json"},
	"explain":          {"param", "node", "ephemeral", "json"},
	"resume":           {"max-elapsed", "max-cost", "json"},
	"retry":            {"failed", "node", "batch", "max-elapsed", "max-cost", "dry-run", "json"}}

// answered reports whether a server answers a command.
func answered(command string) bool {
	_, is := throughServer[command]
	return is
}

// askedAs is the name of a command in throughServer: bench and capacity have commands that are named as others are.
func askedAs(n *kong.Node) string {
	if p := n.Parent; p != nil && (p.Name == "bench" || p.Name == "capacity") {
		return p.Name + " " + n.Name
	}
	return n.Name
}

// hereOnly lists flags of the other commands that need what is here.
var hereOnly = []string{"state", "cluster", "svg", "role"}

// settleServer settles whether the command asks a server, and refuses one that none answers.
func (f environmentFlags) settleServer(a *console, kctx *kong.Context) error {
	n := kctx.Selected()
	if f.Server == "" || n == nil || !a.typed["server"] && (a.typed["state"] || a.typed["cluster"]) {
		return nil // a place on the command line counts, not what the environment has for other commands
	}
	goes := throughServer[askedAs(n)]
	if !answered(askedAs(n)) {
		if state := hasFlag(n, "state"); !a.typed["server"] && !state {
			return nil // THALWEG_SERVER is for others
		}
		return worksHere(n)
	}
	for _, name := range slices.Sorted(maps.Keys(a.typed)) {
		if goes == nil && !slices.Contains(hereOnly, name) ||
			goes != nil && slices.Contains(append([]string{"server", "env", "yes", "workspace"}, goes...), name) {
			continue
		}
		return &fault.Error{Kind: fault.Script, Message: "--" + name + " does not go with --server",
			Hint: "the server has its own state, settings and roles; leave one of the two out"}
	}
	a.server = f.Server
	return nil
}

// worksHere refuses a server for a command that none answers.
func worksHere(n *kong.Node) error {
	return &fault.Error{Kind: fault.Script, Message: n.FullPath() + " works here, not through a server",
		Hint: "if it is meant to, leave --server out, unset THALWEG_SERVER, or choose an environment without server"}
}

// refusedServer is what is wrong first with a command line that names a server for a command that none answers,
// whatever else is. nil: it does not.
func refusedServer(err error) error {
	var wrong *kong.ParseError
	if !errors.As(err, &wrong) || wrong.Context == nil {
		return nil
	}
	n := wrong.Context.Selected()
	if n == nil || answered(askedAs(n)) || !typedFlags(wrong.Context)["server"] {
		return nil
	}
	return worksHere(n)
}

func hasFlag(n *kong.Node, name string) bool {
	for _, group := range n.AllFlags(true) {
		for _, flag := range group {
			if flag.Name == name {
				return true
			}
		}
	}
	return false
}

// elsewhereApp returns what a server answers.
func (a *console) elsewhereApp() (*app.App, error) {
	client, err := a.serverClient()
	if err != nil {
		return nil, err
	}
	return app.Elsewhere(client), nil
}

// serverClient returns what asks the server.
func (a *console) serverClient() (*apiclient.Client, error) {
	token, err := a.serverToken(a.server)
	if err != nil {
		return nil, err
	}
	a.known.Add(token, "{token}")
	client, err := apiclient.New(a.server, token)
	if err != nil {
		return nil, err
	}
	a.cluster = true // others work on its runs
	return client, nil
}

// throughOptions returns the options of a run that a server starts: it names its scripts by their paths below the
// directories that it knows, and parameters that an environment only offers stay here.
func throughOptions(o app.RunOptions) (app.RunOptions, error) {
	if !o.Select.Empty() {
		return o, &fault.Error{Kind: fault.Script, Message: "--from NODE does not go with --server",
			Hint: "--start names the nodes that a run starts with; --from N names runs"}
	}
	o.ScriptPath = filepath.ToSlash(filepath.Clean(o.ScriptPath))
	o.Params = maps.Clone(o.Params)
	maps.DeleteFunc(o.Params, func(name, _ string) bool { return strings.HasPrefix(name, app.SpareParam) })
	return o, nil
}

// ofServer explains a server's answer that it has no such script, where there is one here.
func (a *console) ofServer(o app.RunOptions, err error) error {
	f := (*fault.Error)(nil)
	if a.server == "" || o.Resume || !errors.As(err, &f) || f.Code != fault.NotFound {
		return err
	}
	if _, here := os.Stat(o.ScriptPath); here != nil {
		return err
	}
	return &fault.Error{Kind: fault.Script, Code: fault.NotFound, Err: err,
		Message: o.ScriptPath + " is here, and a server starts only scripts that it has",
		Hint:    "put it into a directory that the server's configuration names, or run it here, without --server"}
}

// tokensFileBytesMax limits the file of tokens.
const tokensFileBytesMax = 1 << 20

// tokensFile is where tokens are kept, by the address of their server.
func tokensFile() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", &fault.Error{Kind: fault.Environment, Message: "there is no place for tokens", Err: err,
			Hint: "set HOME, or give the token in THALWEG_TOKEN"}
	}
	return filepath.Join(dir, "thalweg", "tokens.json"), nil
}

func readTokens() (map[string]string, string, error) {
	path, err := tokensFile()
	if err != nil {
		return nil, "", err
	}
	out := map[string]string{}
	is, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return out, path, nil
	case err == nil && (is.Mode().Perm()&0o077 != 0 || is.Size() > tokensFileBytesMax):
		return nil, path, &fault.Error{Kind: fault.Script, Message: path + " can be read by others, or is too large",
			Hint: "chmod 600 it, or remove it and log in again"}
	}
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	if err != nil {
		return nil, path, &fault.Error{Kind: fault.Environment, Message: "read the tokens", Err: err,
			Hint: "remove the file and log in again"}
	}
	return out, path, nil
}

// serverToken finds the token for a server.
func (a *console) serverToken(server string) (string, error) {
	if token := os.Getenv("THALWEG_TOKEN"); token != "" {
		return token, nil
	}
	tokens, _, err := readTokens()
	if err == nil && tokens[server] == "" {
		err = &fault.Error{Kind: fault.Script, Message: "there is no token for " + server,
			Hint: "`thalweg login --server " + server + "` makes one; or give one in THALWEG_TOKEN"}
	}
	return tokens[server], err
}

// loginCmd gets a token of a server and keeps it.
type loginCmd struct {
	User string `help:"Name of the user; default: it is asked." placeholder:"NAME"`
	Days int    `help:"How long the token lives." default:"30" placeholder:"N"`
}

// Run implements kong's command.
func (c *loginCmd) Run(ctx context.Context, a *console) error {
	if a.server == "" {
		return &fault.Error{Kind: fault.Script, Message: "login needs a server", Hint: "add --server https://HOST:PORT"}
	}
	tokens, path, err := readTokens()
	if err != nil {
		return err
	}
	in := bufio.NewReader(os.Stdin)
	name := c.User
	if name == "" {
		fmt.Fprint(a.screen, "user: ")
		if name, err = in.ReadString('\n'); err != nil {
			return &fault.Error{Kind: fault.Script, Message: "no user was named", Hint: "add --user NAME"}
		}
	}
	password, err := askPassword(a, in)
	if err != nil {
		return err
	}
	a.known.Add(password, "{password}")
	host, _ := os.Hostname()
	token, err := apiclient.Login(ctx, a.server, strings.TrimSpace(name), password, "login at "+cmp.Or(host, "a machine"),
		c.Days)
	if err != nil {
		return err
	}
	tokens[a.server] = token
	text, err := json.MarshalIndent(tokens, "", "  ")
	if err == nil {
		err = writePrivate(path, text)
	}
	if err != nil {
		return &fault.Error{Kind: fault.Environment, Message: "keep the token", Err: err}
	}
	fmt.Fprintf(a.stderr, "signed in at %s for %d days; the token is in %s\n", a.server, c.Days, path)
	return nil
}

// askPassword reads a password: from a terminal without showing it, else a line.
func askPassword(a *console, in *bufio.Reader) (string, error) {
	if fd := int(os.Stdin.Fd()); term.IsTerminal(fd) {
		fmt.Fprint(a.screen, "password: ")
		text, err := term.ReadPassword(fd)
		fmt.Fprintln(a.screen)
		return string(text), err
	}
	text, err := in.ReadString('\n')
	if text = strings.TrimRight(text, "\r\n"); text == "" {
		return "", &fault.Error{Kind: fault.Script, Message: "no password was given", Err: err,
			Hint: "it is the line behind the user's name, if there is no terminal"}
	}
	return text, nil
}

// writePrivate replaces a file that nobody else may read.
func writePrivate(path string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".tokens-*") // for its user only
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
