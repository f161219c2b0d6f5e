package runtime

import (
	"strings"

	"thalweg/internal/run/python"
)

// Surroundings are the interpreter and the modules that the code of all nodes was tried with.
func Surroundings(byNode map[string]map[string]string) map[string]string {
	if len(byNode) == 0 {
		return nil
	}
	out := map[string]string{}
	for _, found := range byNode {
		for name, value := range found {
			module, ok := strings.CutPrefix(name, "module ")
			_, versioned := found["version "+module]
			switch f := strings.Fields(value); {
			case name == python.Doubt, name == "packages", ok && versioned:
				// they say when and where it was installed, too
			case name == "python" && len(f) > 2: // without the moment and the compiler of its build
				out[name] = f[0] + " " + f[1] + " " + f[len(f)-1]
			default:
				out[name] = value
			}
		}
	}
	return out
}
