package app

import (
	"context"
	"log/slog"

	"thalweg/internal/app/serving"
)

// Types of what a server is set up from.
type (
	Users   = serving.Users  // who may do what with an instance
	Serving = serving.Config // the configuration of a server
)

// LoadServing reads the configuration of a server. process.Known learns its secrets.
func LoadServing(path string, process Process) (*Serving, error) {
	return serving.Load(path, process.Settings())
}

// Loopback reports whether a host is this machine and no other can reach it.
func Loopback(host string) bool { return serving.Loopback(host) }

// OpenUsers opens the users and tokens of the instance.
func (a *App) OpenUsers(ctx context.Context, logger *slog.Logger) (*Users, error) {
	return serving.OpenUsers(ctx, a.home, logger)
}
