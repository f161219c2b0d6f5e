package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"thalweg/internal/run/plan"
	"thalweg/internal/store/parts"
)

// noteGroups gives what the manifest keeps of a part's row groups: where readers
// have whole parts at hand, only how many rows the buckets have.
func noteGroups(store parts.Store, layout plan.Layout, path string) (_ json.RawMessage, err error) {
	local := store.Properties().Local
	if local && layout.Buckets == 0 {
		return nil, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("look for the row groups of a part: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	st, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("look for the row groups of a part: %w", err)
	}
	if local {
		return plan.GroupsOf(path, st.Size(), nil)
	}
	return plan.GroupsOf(path, st.Size(), func(from, length int64) (string, error) {
		sum, _, err := parts.Checksum(io.NewSectionReader(f, from, length))
		return sum, err
	})
}

// pick decides which pieces of the part are fetched.
func (w *wantedPart) pick(store parts.Store) {
	w.pieces, w.bytes = nil, w.part.Bytes
	if _, ok := store.(parts.Pieced); !ok || len(w.slices) == 0 {
		return
	}
	groups := plan.ReadGroups(w.part)
	if groups == nil {
		return
	}
	var pieces []parts.Piece
	var at, bytes int64
	for i, wanted := range groups.Wanted(w.slices) {
		g := groups.Pieces[i]
		if wanted {
			pieces = append(pieces, parts.Piece{From: at, Bytes: g.Bytes, Checksum: g.Sum})
			bytes += g.Bytes
		}
		at += g.Bytes
	}
	if len(pieces) < len(groups.Pieces) {
		w.pieces, w.bytes = pieces, bytes
	}
}

// fetch makes what is wanted of the part local.
func (w wantedPart) fetch(ctx context.Context, store parts.Store) (path string, release func(), err error) {
	if pieced, ok := store.(parts.Pieced); ok && w.pieces != nil {
		return pieced.FetchPieces(ctx, parts.Info{Key: w.part.Key, Bytes: w.part.Bytes,
			Checksum: w.part.Checksum}, w.pieces)
	}
	return store.Fetch(ctx, w.part.Key, w.part.Checksum)
}
