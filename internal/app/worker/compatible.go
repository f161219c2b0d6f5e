package worker

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"thalweg/internal/app/registry"
	"thalweg/internal/app/runtime"
	"thalweg/internal/base/fault"
	"thalweg/internal/run/engine"
	"thalweg/internal/run/plan"
	"thalweg/internal/store/state"
)

// compatible refuses, in a cluster, runs that this program may not give the same
// bytes for: those of another engine or another hash of buckets.
func (s *Server) compatible(run state.Run) error {
	if s.Instance.ClusterConfig == nil {
		return nil
	}
	for _, c := range []struct{ what, wanted, here string }{{"DuckDB", run.Engine, s.engineVersion()},
		{"bucket hash", run.BucketHash, plan.KeyHash}} {
		if c.wanted != "" && c.wanted != c.here {
			return &fault.Error{Kind: fault.Environment,
				Message: fmt.Sprintf("the run was begun with %s %s, and this worker has %s", c.what, c.wanted, c.here),
				Err:     registry.ErrOther,
				Hint:    "keep a worker of that version until the run is over"}
		}
	}
	return nil
}

// engineVersion is that of this worker's DuckDB.
func (s *Server) engineVersion() string { return cmp.Or(s.opts.Engine, engine.Version) }

// samePython refuses, in a cluster, runs whose code was tried with another
// interpreter, or with other modules, than this worker has.
func (s *Server) samePython(begun runtime.Settings, found map[string]map[string]string) error {
	if s.Instance.ClusterConfig == nil || len(begun.Python) == 0 || len(found) == 0 {
		return nil
	}
	here := runtime.Surroundings(found)
	var differ []string
	for _, name := range slices.Sorted(maps.Keys(begun.Python)) {
		if wanted := begun.Python[name]; here[name] != wanted {
			differ = append(differ, fmt.Sprintf("%s %s here, %s where it began", name,
				cmp.Or(here[name], "not there"), wanted))
		}
	}
	if len(differ) == 0 {
		return nil
	}
	return &fault.Error{Kind: fault.Environment, Message: "Python is not as where the run was begun: " +
		strings.Join(differ, "; "), Err: registry.ErrOther,
		Hint: "install the same versions, or name the interpreter that has them: worker {{set python}}"}
}
