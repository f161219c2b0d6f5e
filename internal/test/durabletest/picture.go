package durabletest

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"

	"thalweg/internal/base/durable"
)

// cutPower takes the picture; from then on nothing can be done.
func (d *Disk) cutPower(op durable.Op) error {
	d.cut, d.picture = true, map[string]pictured{}
	p := photographer{d: d, rng: rand.New(rand.NewPCG(d.plan.Seed, uint64(d.plan.At)))}
	d.err = errors.Join(d.err, p.directory(".", mustIdentify(d.root)))
	return &fs.PathError{Op: string(op.Step), Path: op.Path, Err: ErrCut}
}

func mustIdentify(path string) id {
	who, _, _ := identify(path) // a root that is gone has no names
	return who
}

// photographer takes one picture.
type photographer struct {
	d   *Disk
	rng *rand.Rand
	at  map[id]string // where what is there now is, by identity
}

func (p *photographer) chance() bool { return p.rng.IntN(2) == 0 }

// directory takes what may be in a directory: what was flushed, and of what was
// done since each thing or not.
func (p *photographer) directory(rel string, who id) error {
	if p.at == nil {
		if err := p.locate(); err != nil {
			return err
		}
	}
	before := p.d.dirs[who]
	now := map[string]id{}
	if path, ok := p.at[who]; ok {
		var err error
		if now, err = p.d.names(path); err != nil {
			return err
		}
	}
	all := maps.Clone(before)
	if all == nil {
		all = map[string]id{}
	}
	maps.Copy(all, now)
	trusted := map[string]id{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		was, had := before[name]
		is, has := now[name]
		path := filepath.Join(rel, name)
		if p.d.trusted(path) { // its name is flushed with its directory's, by whoever sees to it
			if has {
				trusted[path] = is
			}
			continue
		}
		chosen, there := is, has
		if (had != has || was != is) && p.chance() {
			chosen, there = was, had
		}
		if !there {
			continue
		}
		if err := p.entry(path, chosen); err != nil {
			return err
		}
	}
	return p.take(trusted)
}

// locate finds all that is there now.
func (p *photographer) locate() error {
	p.at = map[id]string{}
	return filepath.WalkDir(p.d.root, func(path string, _ fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if who, _, err := identify(path); err == nil {
			p.at[who] = path
		}
		return nil
	})
}

func (p *photographer) entry(path string, who id) error {
	mode := p.d.seen[who]
	if mode.IsDir() {
		p.d.picture[path] = pictured{mode: mode}
		return p.directory(path, who)
	}
	if !mode.IsRegular() {
		return nil
	}
	flushed, ok := p.d.files[who]
	now, err := []byte(nil), error(nil)
	if at, there := p.at[who]; there {
		if now, err = os.ReadFile(at); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	} else {
		now = flushed
	}
	if !ok || !bytes.Equal(flushed, now) {
		now = p.torn(flushed, now)
	}
	p.d.picture[path] = pictured{mode, now}
	return nil
}

// torn is a content of which some was not flushed.
func (p *photographer) torn(flushed, now []byte) []byte {
	switch p.rng.IntN(4) {
	case 0:
		return flushed
	case 1:
		return now[:p.rng.IntN(len(now)+1)]
	case 2:
		return make([]byte, len(now)) // its size came first
	}
	return now
}

// take takes files as they are together, at a moment at which nobody writes them.
func (p *photographer) take(together map[string]id) error {
	for range takeTries {
		before, err := p.look(together)
		if err != nil {
			return err
		}
		after, err := p.look(together)
		if err != nil {
			return err
		}
		if maps.EqualFunc(before, after, func(a, b pictured) bool { return bytes.Equal(a.content, b.content) }) {
			maps.Copy(p.d.picture, after)
			return nil
		}
	}
	return errors.New("files that see to themselves never rest")
}

// look reads files, without those that are gone.
func (p *photographer) look(together map[string]id) (map[string]pictured, error) {
	out := map[string]pictured{}
	for path, who := range together {
		content, err := os.ReadFile(p.at[who])
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		out[path] = pictured{p.d.seen[who], content}
	}
	return out, nil
}

// takeTries bounds how often a file is read again that is being written.
const takeTries = 100

// Restore puts the picture in the tree's place, after the power was cut and
// when nobody uses the tree any more.
func (d *Disk) Restore() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err != nil || !d.cut {
		return errors.Join(d.err, errors.New("the power has to be cut first"))
	}
	var gone []string
	err := filepath.WalkDir(d.root, func(path string, e fs.DirEntry, err error) error {
		if rel, rerr := filepath.Rel(d.root, path); rerr == nil && rel != "." {
			if p, ok := d.picture[rel]; !ok || p.mode.IsDir() != e.IsDir() {
				gone = append(gone, path)
			}
		}
		return err
	})
	for _, path := range gone {
		err = errors.Join(err, os.RemoveAll(path))
	}
	for _, path := range slices.Sorted(maps.Keys(d.picture)) { // directories before what is in them
		err = errors.Join(err, d.picture[path].restore(filepath.Join(d.root, path)))
	}
	return err
}

// restore puts one thing in place; a file that is the same stays as it is.
func (p pictured) restore(path string) error {
	if p.mode.IsDir() {
		if err := os.Mkdir(path, p.mode.Perm()); !errors.Is(err, fs.ErrExist) {
			return err
		}
		return nil
	}
	now, err := os.ReadFile(path)
	if err == nil && bytes.Equal(now, p.content) {
		return nil
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.WriteFile(path, p.content, p.mode.Perm())
}
