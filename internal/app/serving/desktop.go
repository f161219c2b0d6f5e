package serving

import (
	"context"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"runtime"

	"thalweg/internal/base/keeper"
)

// desktopVariables are what programs of a desktop need to know of it.
var desktopVariables = []string{"BROWSER", "DBUS_SESSION_BUS_ADDRESS", "DESKTOP_SESSION", "DISPLAY", "HOME", "LANG",
	"LOGNAME", "PATH", "TMPDIR", "USER", "WAYLAND_DISPLAY", "XAUTHORITY", "XDG_CONFIG_DIRS", "XDG_CONFIG_HOME",
	"XDG_CURRENT_DESKTOP", "XDG_DATA_DIRS", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "XDG_SESSION_TYPE"}

// DesktopOpener returns the program that opens pages on this desktop; "": there is none.
func DesktopOpener(getenv func(string) string) string {
	name := "/usr/bin/open" // of macOS
	switch {
	case getenv("DISPLAY") != "" || getenv("WAYLAND_DISPLAY") != "":
		name = "xdg-open"
	case runtime.GOOS != "darwin" || getenv("SSH_TTY") != "":
		return ""
	}
	path, err := keeper.Find(name)
	if err != nil {
		return ""
	}
	return path
}

// OpenPage has the desktop open a page, and returns once the opener has ended. Whoever is on this machine sees the
// arguments of programs, and the address lets in: so they name a file in a private directory that leads to the page. A
// browser that was started stays.
func OpenPage(ctx context.Context, opener, private, page string) error {
	file := filepath.Join(private, "open.html")
	text := `<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0;url=` + html.EscapeString(page) +
		`"><title>Thalweg</title>`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return fmt.Errorf("write the page that leads to another: %w", err)
	}
	ended, err := keeper.Run(context.WithoutCancel(ctx), "", keeper.Program{Path: opener, Args: []string{file},
		Env: keeper.Some(desktopVariables...)})
	if err == nil && (ended.Err != nil || ended.Status != 0) {
		err = fmt.Errorf("%s: %s", opener, ended)
	}
	return err
}
