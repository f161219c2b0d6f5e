package pipeline

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"thalweg/internal/store/state"
)

// Keys of parts say whose they are, so that a part that no manifest lists can be
// judged by what state says of the attempt that has made it.

// PartsPrefix is the beginning of the keys of a workspace's parts.
func PartsPrefix(workspace string) string { return workspace + "/" }

// PartsDir is the beginning of the keys of a node's parts, and of no other's.
func PartsDir(n state.Node) string {
	return fmt.Sprintf("%s%05d/%02d-%s/", PartsPrefix(n.Workspace), n.Run, n.Ordinal, safeName(n.Name))
}

func partName(batch, attempt, seq int, side string) string {
	name := fmt.Sprintf("b%05d-a%d-%04d", batch, attempt, seq)
	if side != "" {
		name += "-" + side
	}
	return name + ".parquet"
}

// partNamed takes the key of a part apart: workspace, run, node, batch, attempt.
var partNamed = regexp.MustCompile(
	`^([^/]+)/([0-9]{5,})/([^/]+)/b([0-9]{5,})-a([0-9]+)-[0-9]{4,}(?:-[a-z]+)?\.parquet$`)

// PartOf returns the attempt that a part belongs to, by its key: the run, the directory of the node, the
// batch and the attempt. ok is false for what no attempt has named.
func PartOf(key string) (run state.RunKey, dir string, batch, attempt int, ok bool) {
	m := partNamed.FindStringSubmatch(key)
	if m == nil {
		return run, "", 0, 0, false
	}
	number, err1 := strconv.ParseInt(m[2], 10, 64)
	batch, err2 := strconv.Atoi(m[4])
	attempt, err3 := strconv.Atoi(m[5])
	run = state.RunKey{Workspace: m[1], Run: number}
	return run, key[:strings.LastIndexByte(key, '/')+1], batch, attempt, err1 == nil && err2 == nil && err3 == nil
}

// safeName keeps what a part's key may contain.
func safeName(s string) string {
	const nameBytesMax = 60
	clean := strings.Map(func(r rune) rune {
		if r < 128 && (r == '_' || r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z') {
			return r
		}
		return '_'
	}, s)
	return clean[:min(len(clean), nameBytesMax)]
}
