package python

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"thalweg/internal/base/awake"
	"thalweg/internal/base/fault"
	"thalweg/internal/base/keeper"
)

// Limits of questions to an interpreter.
const (
	installedTimeout = 30 * time.Second // which packages it has
	versionTimeout   = 10 * time.Second // which one it is
)

// installedSource prints names and versions of all packages.
const installedSource = `
import importlib.metadata, json, sys
sys.path[:] = [folder for folder in sys.path if folder]
found = {}
for each in importlib.metadata.distributions():
    if each.metadata["Name"]:
        found.setdefault(each.metadata["Name"], each.version)
json.dump(found, sys.stdout)
`

// versionSource prints what an interpreter is.
const versionSource = `import platform; print(platform.python_implementation(), platform.python_version())`

// Installed lists the packages that an interpreter can import, with their
// versions. "" is python3.
func Installed(ctx context.Context, interpreter, self string) (map[string]string, error) {
	ctx, cancel := awake.WithTimeout(ctx, installedTimeout)
	defer cancel()
	text, err := ask(ctx, interpreter, self, installedSource, "which packages it has")
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	if err := json.Unmarshal(text, &out); err != nil {
		return nil, unsaid(interpreter, "which packages it has", "it prints something else", err)
	}
	return out, nil
}

// Version returns the name and version of an interpreter: "CPython 3.11.2". "" is python3. "" is python3.
func Version(ctx context.Context, interpreter, self string) (string, error) {
	ctx, cancel := awake.WithTimeout(ctx, versionTimeout)
	defer cancel()
	text, err := ask(ctx, interpreter, self, versionSource, "its version")
	return strings.TrimSpace(string(text)), err
}

// ask has an interpreter print something, in the environment that formulas have, too.
func ask(ctx context.Context, interpreter, self, source, what string) ([]byte, error) {
	path, err := Find(interpreter)
	if err != nil {
		return nil, err
	}
	var stdout, stderr bytes.Buffer
	end, err := keeper.Run(ctx, self, keeper.Program{Path: path, Args: []string{"-s", "-B", "-X", "utf8", "-c", source},
		Env:    environment(&Config{}),
		Stdout: &stdout, Stderr: &stderr, WaitDelay: outputWait})
	if err == nil {
		err = end.Err
	}
	switch {
	case ctx.Err() != nil:
		return nil, unsaid(interpreter, what, "it takes too long", ctx.Err())
	case err != nil:
		return nil, unsaid(interpreter, what, "it cannot be started", err)
	case !end.Status.Exited() || end.Status.ExitStatus() != 0:
		lines := strings.Split(strings.TrimSpace(stderr.String()), "\n")
		return nil, unsaid(interpreter, what, or(lines[len(lines)-1], end.String()), nil)
	}
	return stdout.Bytes(), nil
}

func unsaid(interpreter, what, why string, err error) error {
	return &fault.Error{Kind: fault.Environment, Message: fmt.Sprintf("the interpreter %s does not say %s: %s",
		or(interpreter, "python3"), what, why),
		Err: err, Hint: "name another one with {{set python}}"}
}
