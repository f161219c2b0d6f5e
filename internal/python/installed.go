package python

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"thalweg/internal/fault"
)

// installedTimeout bounds the question which packages an interpreter has.
const installedTimeout = 30 * time.Second

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

// Installed lists the packages that an interpreter can import, with their
// versions. "" is python3.
func Installed(ctx context.Context, interpreter string) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, installedTimeout)
	defer cancel()
	name := cmp.Or(interpreter, "python3")
	cmd := exec.CommandContext(ctx, name, "-s", "-B", "-X", "utf8", "-c", installedSource)
	cmd.Env = environment(&Config{})
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	out := map[string]string{}
	if err == nil {
		err = json.Unmarshal(stdout.Bytes(), &out)
	}
	if err != nil {
		lines := strings.Split(strings.TrimSpace(stderr.String()), "\n")
		text := fmt.Sprintf("the interpreter %s does not say which packages it has: %s", name, lines[len(lines)-1])
		return nil, &fault.Error{Kind: fault.Environment, Message: text, Err: err, Hint: "name another one with --python"}
	}
	return out, nil
}
