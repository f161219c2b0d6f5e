package instance

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"thalweg/internal/base/address"

	"thalweg/internal/base/action"
	"thalweg/internal/base/settings"

	"thalweg/internal/app/sources"
	"thalweg/internal/base/durable"
	"thalweg/internal/base/fault"
	"thalweg/internal/ops/clusterconfig"
	"thalweg/internal/store/parts/cache"
	partslocal "thalweg/internal/store/parts/local"
	"thalweg/internal/store/state/sqlite"
)

// LoadCluster reads the configuration of a cluster.
func LoadCluster(name string, opts settings.Options) (*clusterconfig.Config, error) {
	cfg, diags, err := clusterconfig.Load(name, opts)
	if err != nil {
		return nil, err
	}
	if diags.HasErrors() {
		return nil, &sources.InvalidScriptError{Diagnostics: diags}
	}
	return cfg, nil
}

// OpenCluster opens a cluster's state and parts. What a machine keeps for itself
// is below the scratch directory.
func OpenCluster(ctx context.Context, cfg *clusterconfig.Config, opts ClusterOptions) (_ *Instance, err error) {
	scratch, err := ScratchOf(cfg)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(scratch, 0o700); err != nil {
		return nil, scratchFault(cfg, scratch, err)
	}
	if err := makeSubs(scratch); err != nil {
		return nil, scratchFault(cfg, scratch, err)
	}
	h := &Instance{Clock: &Clock{}, tmp: &workDir{}, Dir: scratch, ClusterConfig: cfg, HooksIn: cfg.Dir(),
		observers: opts.Observers}
	defer func() {
		if err != nil {
			err = errors.Join(err, h.Close())
		}
	}()
	if err := sweepTmp(filepath.Join(scratch, "tmp")); err != nil {
		return nil, scratchFault(cfg, scratch, err)
	}
	if err := h.openState(ctx); err != nil {
		return nil, err
	}
	if cfg.Queue != nil {
		if h.fleet, err = fleetOf(ctx, h.State); err != nil {
			return nil, err
		}
	}
	return h, h.openParts(ctx, opts.Keep)
}

// openState opens the state that the configuration names.
func (h *Instance) openState(ctx context.Context) error {
	dir := h.ClusterConfig.State.Directory
	if dir == "" {
		return h.openCassandra(ctx)
	}
	if _, err := os.Stat(filepath.Join(dir, "state.db")); errors.Is(err, fs.ErrNotExist) {
		return noCluster(h.ClusterConfig, "there is no state in "+dir, "state.directory")
	}
	if err := makeSubs(dir); err != nil {
		return Fault(dir, "make the state directory", err)
	}
	store, err := sqlite.Open(ctx, filepath.Join(dir, "state.db"))
	if err != nil {
		return err
	}
	h.State, h.BaseDir, h.Liveness = store, filepath.Dir(dir), fileLocks{dir, &sync.Mutex{}}
	return nil
}

// noCluster is said where init was not run.
func noCluster(cfg *clusterconfig.Config, what, key string) error {
	return Wrong(cfg, what, initHint(cfg), nil, key)
}

func initHint(cfg *clusterconfig.Config) string {
	return action.Do("cluster-init", "cluster", cfg.Path).String() + " makes what a cluster needs"
}

// openParts opens the parts that the configuration names.
func (h *Instance) openParts(ctx context.Context, keep bool) error {
	if dir := h.ClusterConfig.PartsDirectory(); dir != "" {
		store, err := partslocal.OpenOn(durable.FS{}, dir)
		if err != nil {
			return WrongFile(h.ClusterConfig, Fault(dir, "open the parts", err),
				"name a directory, or one that can be made", "parts.directory", "state.directory")
		}
		h.Parts, h.PartsDir = store, dir
		return nil
	}
	backend, err := h.openBackend(ctx)
	if err != nil {
		return err
	}
	if h.observers.Parts != nil {
		backend = h.observers.Parts(backend)
	}
	dir, err := h.copiesDir(keep)
	if err != nil {
		return errors.Join(err, backend.Close())
	}
	store, err := cache.Open(cache.Config{Backend: backend, Dir: dir, LimitBytes: h.ClusterConfig.Worker.Cache,
		Keep: keep, Observer: h.observers.Cache})
	if err != nil {
		return errors.Join(err, backend.Close())
	}
	h.Parts, h.PartsDir = store, dir
	return nil
}

// copiesDir returns the directory for copies of parts: with keep, the one where an earlier process
// has left its own.
func (h *Instance) copiesDir(keep bool) (dir string, err error) {
	if !keep {
		work, err := h.WorkDir()
		return filepath.Join(work, "parts"), err
	}
	if dir, h.copies, err = TakeCopies(filepath.Join(h.Dir, "copies")); err != nil {
		return "", scratchFault(h.ClusterConfig, h.Dir, err)
	}
	return dir, nil
}

// ScratchOf is the directory that the machine has for itself: processes of one
// user share it, each with a directory of its own in it.
func ScratchOf(cfg *clusterconfig.Config) (string, error) {
	switch {
	case cfg.Worker.Scratch != "":
		return cfg.Worker.Scratch, nil
	case cfg.State.Directory != "":
		return cfg.State.Directory, nil
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", &fault.Error{Kind: fault.Environment, Message: "there is no directory for temporary files",
			Hint: "name one in the cluster's configuration: worker: {scratch: PATH}", Err: err}
	}
	return filepath.Join(dir, "thalweg", strconv.Itoa(os.Getuid())), nil
}

func scratchFault(cfg *clusterconfig.Config, dir string, err error) error {
	return WrongFile(cfg, &fault.Error{Kind: fault.Environment,
		Message: fmt.Sprintf("make the scratch directory %s", dir), Err: err,
		Hint: "check permissions and free space, or name another one in the cluster's configuration: worker: " +
			"{scratch: PATH}"},
		"name a directory, or one that can be made: worker: {scratch: PATH}", "worker.scratch", "state.directory")
}

// Owns reports whether a path is in one of the directories that are kept here.
func (h *Instance) Owns(path string) bool {
	own := []string{h.Dir, h.PartsDir}
	if h.ClusterConfig != nil && h.ClusterConfig.State.Directory != "" {
		own = append(own, h.ClusterConfig.State.Directory)
	}
	for _, dir := range own {
		if rel, err := filepath.Rel(address.Resolve(dir), path); err == nil && filepath.IsLocal(rel) {
			return true
		}
	}
	return false
}
