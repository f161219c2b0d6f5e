package runtime

import (
	"context"
	"fmt"
	"strings"

	"thalweg/internal/app/registry"
	"thalweg/internal/base/fault"
	"thalweg/internal/lang/script"
	"thalweg/internal/run/python"
)

// unmetMost is the most packages named that are not as they should be.
const unmetMost = 10

// CheckRequirements refuses an interpreter that has not the packages that the
// script's requirements name.
func (t *Runtime) CheckRequirements(ctx context.Context, s *script.Script) error {
	if len(s.Requirements) == 0 {
		return nil
	}
	found, err := python.Installed(ctx, t.Process.Interpreter, t.Process.Keeper)
	if err != nil {
		return err
	}
	has := make(map[string]string, len(found))
	for name, version := range found {
		has[script.PackageName(name)] = version
	}
	var wrong []string
	at := ""
	for _, need := range s.Requirements {
		if text := need.Unmet(has[need.Name]); text != "" {
			if wrong = append(wrong, text); at == "" {
				at = need.At
			}
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	text := strings.Join(wrong[:min(len(wrong), unmetMost)], "; ")
	if more := len(wrong) - unmetMost; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return &fault.Error{Kind: fault.Script,
		Message: fmt.Sprintf("%s: Python is not as the script requires: %s", at, text), Err: registry.ErrOther,
		Hint: "install them for the interpreter, or name one that has them with {{set python}}; nothing is " +
			"installed by itself"}
}
