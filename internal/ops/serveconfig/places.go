package serveconfig

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"thalweg/internal/base/address"
	"thalweg/internal/base/allow"
	"thalweg/internal/base/document"
	"thalweg/internal/base/settings"
)

var (
	variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)
	reachedHost  = regexp.MustCompile(`^(localhost|[A-Za-z0-9._-]+|\[[0-9a-fA-F:.]+\]|[0-9a-fA-F:]+)(:[0-9]{1,5})?$`)
)

// placesTo reads what the runs of a workspace may open.
func (r *reader) placesTo(to **allow.Policy) func(*document.Value, string) {
	return func(v *document.Value, path string) {
		p := &allow.Policy{}
		*to = p
		r.Fields(v, path, settings.Key("read", r.filesTo(&p.Read)), settings.Key("write", r.filesTo(&p.Write)),
			settings.Key("hosts", r.listTo(&p.Hosts, reachedHost, "a host, with a port or without")),
			settings.Key("databases", r.databasesTo(&p.Databases)),
			settings.Key("environment", r.listTo(&p.Environment, variableName, "a name of a variable")),
			settings.Key("commands", r.BoolTo(&p.Commands)))
	}
}

// filesTo reads directories and files of this machine, and beginnings of addresses. Of a path it keeps where its links
// lead, too: files are judged as they are named and as they are.
func (r *reader) filesTo(to *[]string) func(*document.Value, string) {
	return r.eachTo(to, func(item *document.Value, path, name string) []string {
		switch {
		case address.Database(name):
			r.ErrorAt(item, path, "%s is the address of a database", document.Quote(name)).Hint =
				"databases has those"
		case address.Remote(name):
			return []string{r.begins(item, path, name)}
		default:
			lexical := filepath.Clean(address.Seen(r.Dir, name))
			if real := address.Resolve(lexical); real != lexical {
				return []string{lexical, real}
			}
			return []string{lexical}
		}
		return nil
	})
}

// databasesTo reads beginnings of addresses of databases.
func (r *reader) databasesTo(to *[]string) func(*document.Value, string) {
	return r.eachTo(to, func(item *document.Value, path, name string) []string {
		if !address.Database(name) {
			r.ErrorAt(item, path, "%s is not the address of a database", document.Quote(name)).Hint =
				"write " + address.DatabaseForms
			return nil
		}
		if file, ok := strings.CutPrefix(address.DatabaseIn(r.Dir, name), "sqlite://"); ok {
			return []string{"sqlite://" + address.Resolve(file)}
		}
		return []string{r.begins(item, path, name)}
	})
}

// begins reports an address that none could begin with.
func (r *reader) begins(item *document.Value, path, name string) string {
	if !allow.Begins(name) {
		r.ErrorAt(item, path, "%s is no beginning of addresses", document.Quote(address.Redact(name))).Hint =
			"write it without a user, wildcards and steps up: https://HOST/in/, s3://BUCKET/in/, sftp://HOST/in/"
	}
	return name
}

// eachTo reads a text or a list of texts, each by a function.
func (r *reader) eachTo(to *[]string, read func(item *document.Value, path, text string) []string) func(*document.Value,
	string) {
	return func(v *document.Value, path string) {
		items := []*document.Value{v}
		if v.Present() && v.Kind == document.List {
			items = v.Items
		}
		if len(items) > listMax {
			r.ErrorAt(v, path, "%s has more than %d entries", path, listMax)
			return
		}
		for _, item := range items {
			if text := strings.TrimSpace(r.Text(item, path)); text != "" {
				*to = append(*to, read(item, path, text)...)
			}
		}
	}
}

// Policy says what the runs of a workspace may open; nil: whatever the processes that work on them can. Scripts may be
// read and not be written, and so may what the server is configured by.
func (c *Config) Policy(workspace string) *allow.Policy {
	w := c.Workspaces[workspace]
	if w.Places == nil {
		return nil
	}
	p := *w.Places
	p.Read = slices.Concat(p.Read, w.Scripts)
	p.Kept = slices.Concat(p.Kept, w.Scripts, c.kept)
	return &p
}
