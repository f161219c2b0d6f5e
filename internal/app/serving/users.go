package serving

import (
	"context"
	"log/slog"
	"path/filepath"

	"thalweg/internal/app/access"
	"thalweg/internal/app/access/cassandra"
	"thalweg/internal/app/access/sqlite"
	"thalweg/internal/app/instance"
	"thalweg/internal/app/sources"
	"thalweg/internal/base/secret"
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

// Load reads the configuration of a server. known learns its secrets.
func Load(path string, known *secret.Known) (*Config, error) {
	cfg, diags, err := serveconfig.Load(path, settings.Options{Known: known})
	if err == nil && diags.HasErrors() {
		err = &sources.InvalidScriptError{Diagnostics: diags}
	}
	return cfg, err
}

// Loopback reports whether a host is this machine and no other can reach it.
func Loopback(host string) bool { return serveconfig.Loopback(host) }

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
