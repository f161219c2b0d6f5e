package serveconfig

import (
	"net/url"

	"thalweg/internal/base/document"
	"thalweg/internal/base/settings"
)

// OIDC names a provider of identities, and what its groups give.
type OIDC struct {
	Issuer       string
	ClientID     string
	ClientSecret string   // "": a public client
	Scopes       []string // beside openid, profile and email
	GroupsClaim  string
	Groups       map[string][]Grant
}

// Grant is what a group gives: see package access.
type Grant struct {
	Workspace, Role string
	GateRoles       []string
}

// groupsClaimDefault is the claim of a token that most providers put groups into.
const groupsClaimDefault = "groups"

func (r *reader) oidc(v *document.Value, path string) {
	c := &OIDC{GroupsClaim: groupsClaimDefault, Groups: map[string][]Grant{}}
	r.cfg.OIDC = c
	there := r.Fields(v, path, settings.Key("issuer", r.TextTo(&c.Issuer)),
		settings.Key("client_id", r.TextTo(&c.ClientID)), settings.Key("client_secret", r.PasswordTo(&c.ClientSecret)),
		settings.Key("scopes", r.listTo(&c.Scopes, nil, "")), settings.Key("groups_claim", r.TextTo(&c.GroupsClaim)),
		settings.Key("groups", func(v *document.Value, path string) { r.groups(c, v, path) }))
	for _, name := range []string{"issuer", "client_id", "groups"} {
		if there[name] == nil && v.Present() && v.Kind == document.Map {
			r.ErrorAt(v, path, "%s has no %s", path, name).Hint = "docs/serving.md shows what it looks like"
		}
	}
	u, err := url.Parse(c.Issuer)
	if c.Issuer != "" && (err != nil || u.Host == "" || u.RawQuery != "" || u.User != nil ||
		u.Scheme != "https" && (u.Scheme != "http" || !Loopback(u.Hostname()))) {
		r.ErrorAt(there["issuer"], settings.Join(path, "issuer"), "%s is no address of an issuer",
			document.Quote(c.Issuer)).Hint = "write it as the provider does, such as https://login.example.com"
	}
}

// groups reads the grants of each group.
func (r *reader) groups(c *OIDC, v *document.Value, path string) {
	if v.Present() && v.Kind != document.Map || len(v.Entries) > listMax {
		r.ErrorAt(v, path, "%s is a map of %d groups at most, not %s", path, listMax, v.Kind)
		return
	}
	for _, e := range v.Entries {
		at := settings.Join(path, e.Name)
		r.Note(e.Value, at)
		items := []*document.Value{e.Value}
		if e.Value.Present() && e.Value.Kind == document.List {
			items = e.Value.Items
		}
		for _, item := range items {
			var g Grant
			r.Fields(item, at, settings.Key("workspace", r.TextTo(&g.Workspace)), settings.Key("role", r.TextTo(&g.Role)),
				settings.Key("gate_roles", r.listTo(&g.GateRoles, nil, "")))
			c.Groups[e.Name] = append(c.Groups[e.Name], g)
		}
	}
}
