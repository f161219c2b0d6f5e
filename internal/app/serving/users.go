package serving

import (
	"context"
	"log/slog"
	"path/filepath"

	"thalweg/internal/app/access"
	"thalweg/internal/app/access/cassandra"
	"thalweg/internal/app/access/oidc"
	"thalweg/internal/app/access/sqlite"
	"thalweg/internal/app/instance"
	"thalweg/internal/app/sources"
	"thalweg/internal/base/fault"
	"thalweg/internal/base/settings"
	"thalweg/internal/ops/serveconfig"
)

// accessFile is the file of users and tokens in a state directory.
const accessFile = "access.db"

// Users is who may do what with an instance. The caller closes it.
type Users struct {
	*access.Service
	store access.Store
}

// Close closes the store.
func (u *Users) Close() error { return u.store.Close() }

// Config is the configuration of a server: see package serveconfig.
type Config = serveconfig.Config

// Words of it.
type (
	Workspace = serveconfig.Workspace
	Dev       = serveconfig.Dev
)

// Words of the texts of scripts: see package serveconfig.
type (
	TextWriter    = serveconfig.TextWriter
	TextCondition = serveconfig.Condition
)

// TextBytesMax bounds the text of a script that is read or written through a server.
const TextBytesMax = serveconfig.TextBytesMax

// CheckTextName refuses a name that no text of a script can have.
func CheckTextName(name string) error { return serveconfig.CheckTextName(name) }

// Default is the configuration of a server that is given none.
func Default() *Config { return &Config{Limits: serveconfig.DefaultLimits()} }

// Load reads the configuration of a server.
func Load(path string, opts settings.Options) (*Config, error) {
	cfg, diags, err := serveconfig.Load(path, opts)
	if err == nil && diags.HasErrors() {
		err = &sources.InvalidScriptError{Diagnostics: diags}
	}
	if err == nil {
		_, err = NewProvider(cfg)
	}
	return cfg, err
}

// Provider signs people in at a provider of identities: see package oidc.
type Provider = oidc.Provider

// ErrNotSignedIn is the failure of a sign-in that the provider does not vouch for.
var ErrNotSignedIn = oidc.ErrRefused

// NewProvider returns the provider of a configuration; nil: it has none.
func NewProvider(cfg *Config) (*Provider, error) {
	c := cfg.OIDC
	if c == nil {
		return nil, nil
	}
	groups := map[string][]access.Grant{}
	for name, grants := range c.Groups {
		for _, g := range grants {
			grant := access.Grant{Workspace: g.Workspace, Role: access.Role(g.Role), GateRoles: g.GateRoles}
			if err := grant.Check(); err != nil {
				f := *fault.Of(err)
				f.Place = cfg.Place("oidc.groups." + name)
				return nil, &f
			}
			groups[name] = append(groups[name], grant)
		}
	}
	return oidc.New(oidc.Config{Issuer: c.Issuer, ClientID: c.ClientID, ClientSecret: c.ClientSecret, Scopes: c.Scopes,
		GroupsClaim: c.GroupsClaim, Groups: groups}), nil
}

// Loopback reports whether a host is this machine and no other can reach it.
func Loopback(host string) bool { return serveconfig.Loopback(host) }

// CheckListen refuses what is no HOST:PORT.
func CheckListen(at string) error { return serveconfig.CheckListen(at) }

// OpenUsers opens the users and tokens of an instance.
func OpenUsers(ctx context.Context, home *instance.Instance, logger *slog.Logger) (*Users, error) {
	store, err := storeOf(ctx, home)
	if err != nil {
		return nil, err
	}
	return &Users{access.New(store, logger, nil), store}, nil
}

// storeOf opens the store beside the state: in Cassandra, or in the state's directory.
func storeOf(ctx context.Context, home *instance.Instance) (access.Store, error) {
	if home.Cassandra != nil {
		return cassandra.Open(ctx, home.Cassandra)
	}
	dir := home.Dir
	if c := home.Cluster(); c != nil {
		dir = c.State.Directory
	}
	return sqlite.Open(ctx, filepath.Join(dir, accessFile))
}
