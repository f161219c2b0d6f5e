package local

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"thalweg/internal/base/fault"
	"thalweg/internal/run/engine"
	"thalweg/internal/run/plan"
	"thalweg/internal/run/python"
	"thalweg/internal/store/state"
)

// compatible refuses, in a cluster, runs that this program may not give the same
// bytes for: those of another engine or another hash of buckets.
func (s *server) compatible(run state.Run) error {
	if s.home.cluster == nil {
		return nil
	}
	for _, c := range []struct{ what, wanted, here string }{{"DuckDB", run.Engine, s.engineVersion()},
		{"bucket hash", run.BucketHash, plan.KeyHash}} {
		if c.wanted != "" && c.wanted != c.here {
			return &fault.Error{Kind: fault.Environment,
				Message: fmt.Sprintf("the run was begun with %s %s, and this worker has %s", c.what, c.wanted, c.here),
				Err:     errOther,
				Hint:    "keep a worker of that version until the run is over"}
		}
	}
	return nil
}

// engineVersion is that of this worker's DuckDB.
func (s *server) engineVersion() string { return cmp.Or(s.opts.Engine, engine.Version) }

// surroundings are the interpreter and the modules that the code of all nodes was tried with.
func surroundings(byNode map[string]map[string]string) map[string]string {
	if len(byNode) == 0 {
		return nil
	}
	out := map[string]string{}
	for _, found := range byNode {
		for name, value := range found {
			module, ok := strings.CutPrefix(name, "module ")
			_, versioned := found["version "+module]
			switch f := strings.Fields(value); {
			case name == python.Doubt, name == "packages", ok && versioned: // they say when and where it was installed, too
			case name == "python" && len(f) > 2: // without the moment and the compiler of its build
				out[name] = f[0] + " " + f[1] + " " + f[len(f)-1]
			default:
				out[name] = value
			}
		}
	}
	return out
}

// samePython refuses, in a cluster, runs whose code was tried with another
// interpreter, or with other modules, than this worker has.
func (s *server) samePython(begun settings, found map[string]map[string]string) error {
	if s.home.cluster == nil || len(begun.Python) == 0 || len(found) == 0 {
		return nil
	}
	here := surroundings(found)
	var differ []string
	for _, name := range slices.Sorted(maps.Keys(begun.Python)) {
		if wanted := begun.Python[name]; here[name] != wanted {
			differ = append(differ, fmt.Sprintf("%s %s here, %s where it began", name, cmp.Or(here[name], "not there"), wanted))
		}
	}
	if len(differ) == 0 {
		return nil
	}
	return &fault.Error{Kind: fault.Environment, Message: "Python is not as where the run was begun: " +
		strings.Join(differ, "; "), Err: errOther,
		Hint: "install the same versions, or name the interpreter that has them: worker --python"}
}
