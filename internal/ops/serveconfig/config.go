package serveconfig

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"thalweg/internal/base/allow"

	"thalweg/internal/base/address"

	"thalweg/internal/base/document"
	"thalweg/internal/base/fault"
	"thalweg/internal/base/settings"
)

// Limits.
const (
	fileBytesMax   = 1 << 20
	listMax        = 1_000 // entries of a list
	scriptsMax     = 10_000
	scriptDepthMax = 8 // directories below one that is named
)

// Config is the content of a serve.yaml. Paths are absolute.
type Config struct {
	Listen     string   // HOST:PORT; "": the command's
	Hosts      []string // names for which the server answers, beside those of Listen
	TLS        *TLS     // nil: none
	Proxies    []string // addresses of proxies that may say whom a request is from
	OIDC       *OIDC    // nil: no provider of identities
	Limits     Limits
	Workspaces map[string]Workspace
	kept       []string // what runs may not write

	places map[string]fault.Place
	name   string
}

// TLS names the files of a certificate and its key.
type TLS struct{ Certificate, Key string }

// Workspace says what people may do in a workspace through the server.
type Workspace struct {
	Scripts    []string      // directories whose scripts may be started
	Parameters bool          // whoever starts a script may give it parameters, and so choose what it reads and writes
	Places     *allow.Policy // of what its runs may open; nil: whatever the processes that work on them can
	Dev        *Dev          // none of a file; nil: none
}

// Dev says how one script of a workspace is seen, by who develops it, from where the server was started.
type Dev struct {
	Script     string // name
	Dir        string // that relative names are seen from
	ParamsPath string
	Params     map[string]string // for all that do not say otherwise
	Lenient    bool
}

// Place returns the place of a value, such as tls.certificate; else of the file.
func (c *Config) Place(key string) fault.Place {
	if at, ok := c.places[key]; ok {
		return at
	}
	return fault.Place{File: c.name}
}

// Load reads a configuration. name is how people call the file.
func Load(name string, opts settings.Options) (*Config, document.Diagnostics, error) {
	path, err := filepath.Abs(address.Seen(opts.Dir, name))
	if err != nil {
		return nil, nil, fmt.Errorf("find %s: %w", name, err)
	}
	is, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil, &fault.Error{Kind: fault.Script, Message: "there is no server configuration " + name, Err: err,
			Hint: "docs/serving.md shows what one looks like"}
	case err == nil && (is.IsDir() || is.Size() > fileBytesMax):
		return nil, nil, &fault.Error{Kind: fault.Script, Message: name + " is no server configuration",
			Hint: fmt.Sprintf("it is a file of %d MiB at most", fileBytesMax>>20)}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, nil,
			&fault.Error{Kind: fault.Environment, Message: "read the server configuration " + name, Err: err}
	}
	cfg, diags := Parse(name, path, string(text), opts)
	return cfg, diags, nil
}

// reader reads a configuration.
type reader struct {
	*settings.Reader
	cfg *Config
}

// Parse reads the text of a configuration that lies at path.
func Parse(name, path, text string, opts settings.Options) (*Config, document.Diagnostics) {
	r := &reader{settings.New(path, "a server configuration", opts),
		&Config{Limits: DefaultLimits(), Workspaces: map[string]Workspace{}, name: name}}
	r.cfg.places, r.cfg.kept = r.Places, []string{path}
	src := document.NewSource(name, text)
	root, syntax := document.Read(src)
	switch {
	case syntax != nil:
		r.AddSyntax(src, syntax)
	case root.Kind != document.Map:
		r.ErrorAt(root, "", "a server configuration is a map, not %s", root.Kind).Hint = "begin it with version: 1"
	default:
		r.root(root)
	}
	diags := r.Result(name, func(string) int { return 0 }, r.Known())
	if diags.HasErrors() {
		return nil, diags
	}
	return r.cfg, diags
}

func (r *reader) root(v *document.Value) {
	there := r.Fields(v, "", settings.Key("version", r.version), settings.Key("listen", r.listen),
		settings.Key("hosts",
			r.listTo(&r.cfg.Hosts, hostName, "a name of a host, with a port unless it is the usual one")),
		settings.Key("tls", r.tls),
		settings.Key("proxies", r.listTo(&r.cfg.Proxies, nil, "")), settings.Key("workspaces", r.workspaces),
		settings.Key("oidc", r.oidc), settings.Key("limits", r.limits))
	if there["version"] == nil {
		r.ErrorAt(v, "version", "the version is missing").Hint = "write version: 1"
	}
	for _, p := range r.cfg.Proxies {
		if net.ParseIP(p) == nil {
			r.ErrorAt(there["proxies"], "proxies", "%s is not the address of a machine", document.Quote(p)).Hint =
				"write it in numbers, such as 10.0.0.7"
		}
	}
	if host, _, err := net.SplitHostPort(r.cfg.Listen); err == nil && !Loopback(host) && r.cfg.TLS == nil &&
		len(r.cfg.Proxies) == 0 && !r.HasErrors() {
		r.ErrorAt(there["listen"], "listen", "%s would answer other machines without encryption",
			document.Quote(r.cfg.Listen)).Hint = "name a certificate with tls, or a proxy that has one with proxies"
	}
}

// Loopback reports whether a host is this machine and no other can reach it.
func Loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func (r *reader) version(v *document.Value, path string) {
	if text := r.Text(v, path); text != "1" && text != "" {
		r.ErrorAt(v, path, "version %s is not known", document.Quote(text)).Hint = "this program knows version 1"
	}
}

// CheckListen refuses what is no HOST:PORT.
func CheckListen(at string) error {
	_, port, err := net.SplitHostPort(at)
	if err != nil {
		return err
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("%s is no port: ports are numbers from 0 to 65535", document.Quote(port))
	}
	return nil
}

func (r *reader) listen(v *document.Value, path string) {
	r.TextTo(&r.cfg.Listen)(v, path)
	if err := CheckListen(r.cfg.Listen); err != nil && r.cfg.Listen != "" {
		f := r.ErrorAt(v, path, "%s is no address: %v", document.Quote(r.cfg.Listen), err)
		f.Hint = "write HOST:PORT, such as 0.0.0.0:8431"
	}
}

func (r *reader) tls(v *document.Value, path string) {
	c := &TLS{}
	r.cfg.TLS = c
	there := r.Fields(v, path, settings.Key("certificate", r.PathTo(&c.Certificate)),
		settings.Key("key", r.PathTo(&c.Key)))
	for _, name := range []string{"certificate", "key"} {
		if there[name] == nil && v.Present() && v.Kind == document.Map {
			r.ErrorAt(v, path, "%s has no %s", path, name).Hint = "name a file in PEM"
		}
	}
}

var (
	hostName      = regexp.MustCompile(`^[A-Za-z0-9._-]+(:[0-9]{1,5})?$`)
	workspaceName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,47}$`)
)

// listTo reads a text or a list of texts, each of a form; nil: of any.
func (r *reader) listTo(to *[]string, form *regexp.Regexp, is string) func(*document.Value, string) {
	return r.eachTo(to, func(item *document.Value, path, text string) []string {
		if form != nil && !form.MatchString(text) {
			r.ErrorAt(item, path, "%s is not %s", document.Quote(text), is)
		}
		return []string{text}
	})
}

func (r *reader) workspaces(v *document.Value, path string) {
	if v.Present() && v.Kind != document.Map {
		r.ErrorAt(v, path, "%s is a map, not %s", path, v.Kind)
		return
	}
	for _, e := range v.Entries {
		at := settings.Join(path, e.Name)
		if _, twice := r.cfg.Workspaces[e.Name]; twice || !workspaceName.MatchString(e.Name) {
			r.ErrorAt(e.Key, at, "%s is there twice, or is no name of a workspace", document.Quote(e.Name))
			continue
		}
		var w Workspace
		r.Fields(e.Value, at, settings.Key("scripts", r.directoriesTo(&w.Scripts)),
			settings.Key("parameters", r.BoolTo(&w.Parameters)), settings.Key("places", r.placesTo(&w.Places)))
		r.cfg.Workspaces[e.Name] = w
	}
}

// directoriesTo reads directories that are there.
func (r *reader) directoriesTo(to *[]string) func(*document.Value, string) {
	return func(v *document.Value, path string) {
		items := []*document.Value{v}
		if v.Present() && v.Kind == document.List {
			items = v.Items
		}
		for _, item := range items {
			var dir string
			r.PathTo(&dir)(item, path)
			if dir == "" {
				continue
			}
			resolved, err := filepath.EvalSymlinks(dir)
			if is, statErr := os.Stat(dir); err != nil || statErr != nil || !is.IsDir() {
				r.ErrorAt(item, path, "%s is no directory", document.Quote(dir)).Hint = "name one that has scripts"
				continue
			}
			*to = append(*to, resolved)
		}
	}
}

// Script is a script that may be started.
type Script struct {
	Name string `json:"name"` // path below its directory, unique in the workspace
	Path string `json:"-"`

	dir string
}

// Text returns the script's text. A link that has been put there since it was listed leads nowhere.
func (s Script) Text() (string, error) {
	f, err := os.OpenInRoot(s.dir, s.Name)
	if err != nil {
		return "", textFault("read", s.Name, err)
	}
	defer f.Close() // read only
	text, err := io.ReadAll(io.LimitReader(f, TextBytesMax+1))
	if err == nil && len(text) > TextBytesMax {
		err = tooLong(s.Name)
	}
	return string(text), err
}

// ScriptsOf lists the scripts of a workspace by name. Links are not followed: what is started lies where the
// configuration says. What runs may write is left out: they could write scripts.
func (c *Config) ScriptsOf(workspace string) ([]Script, error) {
	found := map[string]Script{}
	places := c.Policy(workspace)
	for _, dir := range c.Workspaces[workspace].Scripts {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return fmt.Errorf("list the scripts in %s: %w", dir, err)
			}
			rel, err := filepath.Rel(dir, path)
			switch {
			case err != nil:
				return err
			case places != nil && places.WriteFile(path) == nil: // what runs write is no script
				if d.IsDir() {
					return filepath.SkipDir
				}
				return nil
			case d.IsDir() && (strings.HasPrefix(d.Name(), ".") && rel != "." ||
				strings.Count(rel, string(filepath.Separator)) >= scriptDepthMax):
				return filepath.SkipDir
			case !d.Type().IsRegular() || !scriptName.MatchString(d.Name()):
				return nil
			case len(found) >= scriptsMax:
				return fmt.Errorf("%s has more than %d scripts", dir, scriptsMax)
			}
			if _, twice := found[rel]; !twice {
				found[rel] = Script{rel, path, dir}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	out := []Script{}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		out = append(out, found[name])
	}
	return out, nil
}

// scriptName is of files that can be scripts: what is beside them for tests, parameters and environments is none.
var scriptName = regexp.MustCompile(`^[^.].*\.(ya?ml|json)$`)

// ScriptOf finds a script that may be started in a workspace.
func (c *Config) ScriptOf(workspace, name string) (Script, error) {
	all, err := c.ScriptsOf(workspace)
	if err != nil {
		return Script{}, err
	}
	names := make([]string, len(all))
	for i, s := range all {
		if names[i] = s.Name; s.Name == name {
			return s, nil
		}
	}
	f := &fault.Error{Kind: fault.Script, Code: fault.NotFound,
		Message: fmt.Sprintf("workspace %s has no script %s that may be started here", workspace, document.Quote(name)),
		Hint:    "serve.yaml names the directories, under workspaces"}
	if registered := namedByPath(name, names); registered != "" {
		f.Hint = "it is started by its name, which is " + document.Quote(registered) + ", not by a path"
		return Script{}, f
	}
	return Script{}, f.Suggest(name, names)
}

// namedByPath finds the name that a path ends with, the longest; "": none.
func namedByPath(file string, names []string) (longest string) {
	file = "/" + path.Clean(filepath.ToSlash(file))
	for _, name := range names {
		if strings.HasSuffix(file, "/"+name) && len(name) > len(longest) {
			longest = name
		}
	}
	return longest
}
