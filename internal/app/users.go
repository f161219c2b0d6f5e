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

	ServedWorkspace = serving.Workspace // what people may do in a workspace through it
	Dev             = serving.Dev       // how a script is seen by who develops it
)

// Words of the texts of scripts: see package serving.
type (
	TextWriter    = serving.TextWriter
	TextCondition = serving.TextCondition
)

// TextBytesMax bounds the text of a script that is read or written through a server.
const TextBytesMax = serving.TextBytesMax

// CheckTextName refuses a name that no text of a script can have.
func CheckTextName(name string) error { return serving.CheckTextName(name) }

// LoadServing reads the configuration of a server. process.Known learns its secrets.
func LoadServing(path string, process Process) (*Serving, error) {
	return serving.Load(path, process.Settings())
}

// DefaultServing is the configuration of a server that is given none.
func DefaultServing() *Serving { return serving.Default() }

// ErrNotSignedIn is the failure of a sign-in that the provider of identities does not vouch for.
var ErrNotSignedIn = serving.ErrNotSignedIn

// DesktopOpener returns the program that opens pages on this desktop; "": there is none.
func DesktopOpener(getenv func(string) string) string { return serving.DesktopOpener(getenv) }

// OpenPage has the desktop open a page that lets in, by way of a file in a private directory.
func OpenPage(ctx context.Context, opener, private, page string) error {
	return serving.OpenPage(ctx, opener, private, page)
}

// Provider signs people in at a provider of identities.
type Provider = serving.Provider

// NewProvider returns the provider of a configuration; nil: it has none.
func NewProvider(cfg *Serving) (*Provider, error) { return serving.NewProvider(cfg) }

// Loopback reports whether a host is this machine and no other can reach it.
func Loopback(host string) bool { return serving.Loopback(host) }

// CheckListen refuses what is no HOST:PORT.
func CheckListen(at string) error { return serving.CheckListen(at) }

// OpenUsers opens the users and tokens of the instance.
func (a *App) OpenUsers(ctx context.Context, logger *slog.Logger) (*Users, error) {
	return serving.OpenUsers(ctx, a.home, logger)
}
