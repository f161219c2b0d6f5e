package pipeline

import (
	"path/filepath"
	"slices"
	"strings"

	"thalweg/internal/base/address"
	"thalweg/internal/lang/script"
	"thalweg/internal/store/state"
)

// Reach lists the directories of this machine that a script's files are in, as
// far as their addresses tell, relative ones seen from dir. It only saves work: see engine.Instances.
func Reach(s *script.Script, dir string, run state.RunKey) []string {
	var dirs []string
	add := func(url string) {
		if address.Remote(url) {
			return
		}
		path, err := address.LocalIn(dir, url)
		if err != nil {
			return
		}
		up := filepath.Dir(path)
		for strings.ContainsAny(up, "*?[") {
			up = filepath.Dir(up)
		}
		if up != "/" && !slices.Contains(dirs, up) {
			dirs = append(dirs, up)
		}
	}
	for _, n := range s.Nodes {
		if n.Files != nil {
			for _, f := range n.Files.URLs {
				add(f.URL)
			}
		}
		if n.Out != nil {
			add(script.ExpandURL(n.Out.URL, int(run.Run), 0))
		}
	}
	return dirs
}
