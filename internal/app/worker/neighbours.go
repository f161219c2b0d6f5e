package worker

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"thalweg/internal/app/registry"
	"thalweg/internal/base/budget"
	"thalweg/internal/base/format"
)

// Sharers are workers of one machine with the same scratch directory: they divide one memory.
type Sharers struct {
	Host    string
	Scratch string
	Workers int
	Memory  int64 // that all have together: the least that one of them was told
}

// SharersOf says which workers that are there share their memory, those of one directory as one, by
// host. Workers of versions that do not tell are left out.
func SharersOf(workers []registry.WorkerEntry) (out []Sharers) {
	for _, w := range workers {
		if w.Gone || w.Scratch == "" {
			continue
		}
		i := slices.IndexFunc(out, func(s Sharers) bool { return s.Host == w.Host && s.Scratch == w.Scratch })
		if i < 0 {
			out = append(out, Sharers{Host: w.Host, Scratch: w.Scratch, Memory: w.Memory})
			i = len(out) - 1
		}
		out[i].Workers++
		out[i].Memory = min(out[i].Memory, w.Memory)
	}
	return out
}

// tellNeighbours says whom this worker shares its memory with, and warns where the workers of
// this machine that do not share would use more than it has.
func (s *Server) tellNeighbours(ctx context.Context, me registry.WorkerEntry) {
	workers, err := registry.Workers(ctx, s.Instance)
	if err != nil {
		s.opts.Logger.Debug("the other workers of this machine could not be looked at", "error", err)
		return
	}
	shared, tooMuch := neighboursOf(me, workers, budget.MachineBytes())
	if shared != "" {
		s.opts.Logger.Info(shared)
	}
	if tooMuch != "" {
		s.opts.Logger.Warn(tooMuch)
	}
}

// neighboursOf returns the messages to a worker that has come, about other workers of its machine;
// "": none.
func neighboursOf(me registry.WorkerEntry, workers []registry.WorkerEntry, machine int64) (shared, tooMuch string) {
	workers = append(slices.DeleteFunc(slices.Clone(workers), func(w registry.WorkerEntry) bool {
		return w.Owner == me.Owner ||
			w.Host != me.Host
	}), me)
	var others, all int64
	count := 0
	for _, s := range SharersOf(workers) {
		all += s.Memory
		switch {
		case s.Scratch != me.Scratch:
			others, count = others+s.Memory, count+s.Workers
		case s.Workers > 1:
			shared = fmt.Sprintf("%s of this machine divide %s of memory among themselves: they have the same "+
				"scratch directory", format.Counted(int64(s.Workers), "worker", "workers"), format.Size(s.Memory))
		}
	}
	if count > 0 && all > machine {
		tooMuch = fmt.Sprintf("%s of this machine with other scratch directories %s %s of memory; together %s of %s: "+
			"give each less ({{set memory}}, or worker: {memory: …}), or all the same directory (worker: {scratch: "+
			"…}), whose workers divide one memory",
			format.Counted(int64(count), "worker", "workers"), cmp.Or(map[bool]string{true: "has"}[count == 1], "have"),
			format.Size(others), format.Size(all), format.Size(machine))
	}
	return shared, tooMuch
}
