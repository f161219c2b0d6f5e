package plan

import (
	"fmt"
	"strings"

	"thalweg/internal/io/files"
	"thalweg/internal/lang/script"
)

const (
	// pieceRowsMin is the least that a range of rows is cut into: few, because a
	// row of a lookup has all its matches.
	pieceRowsMin = 16
	// piecesOfWork is the number of pieces of a range of rows, and of a share of the keys. They are few,
	// because each piece of the keys may read all that the batch read. Two would be too few, because each
	// attempt that fails has cost time.
	piecesOfWork = 4
	// finerMax bounds how much finer than planned the keys are cut: what does
	// not fit then is one key's.
	finerMax = piecesOfWork * piecesOfWork * piecesOfWork * piecesOfWork
)

// Pieces cuts the work of a batch that writes rows of a table, for want of
// memory: the rows of the pieces, in this order, are those of the batch. nil:
// it cannot be cut.
func (p *Planner) Pieces(n *script.Node, in Inputs, w Work) []Work {
	var pieces []Work
	switch {
	case n.Query != nil && w.Parts == nil && w.Buckets > 1 && finer(n, w):
		return cutKeys(w)
	case n.Query != nil: // a query that is one batch may have to be
		for _, group := range cutSlices(in.Query, w.Parts, piecesOfWork) {
			pieces = append(pieces, Work{Parts: group, Scans: w.Scans})
		}
	case n.Out != nil, w.Check, w.BadCaps, w.Manifest, w.Ranged:
		return nil
	case n.Files != nil:
		for _, group := range cutFiles(w.Files, piecesOfWork) {
			pieces = append(pieces, Work{Files: group})
		}
	case in.Reader.Ephemeral() && n.Lookup == nil && n.Type != script.Distinct:
		name := in.Reader.Node.Table.Name
		for _, inner := range p.Pieces(in.Reader.Node, *in.Reader.Inner, *w.Inner[name]) {
			pieces = append(pieces, Work{Inner: map[string]*Work{name: &inner}})
		}
	case (w.Parts == nil || n.Lookup != nil) && finer(n, w):
		return cutKeys(w)
	case n.Lookup != nil && n.Lookup.Group && w.Buckets > 0 && !(joiner{n: n}).mixed():
		return nil // each piece would group the same right rows
	case n.Lookup != nil, w.Parts != nil && n.PyTable == nil:
		slices := w.Parts
		if slices == nil {
			slices = wholeTable(in.Reader)
		}
		for _, group := range cutSlices(in.Reader, slices, piecesOfWork) {
			pieces = append(pieces, Work{Cut: w.Cut, Parts: group, Inner: w.Inner, finer: w.finer})
		}
	}
	if len(pieces) < 2 {
		return nil
	}
	return pieces
}

// finer reports whether work that is cut by key can be cut more finely.
func finer(n *script.Node, w Work) bool {
	if w.Buckets == 0 || w.Hash != keyHash { // in work of earlier versions
		return false
	}
	if n.PyTable != nil && n.PyTable.GroupBy == nil { // its one call is of all rows
		return false
	}
	return w.finer < finerMax
}

// cutKeys shares the keys of a bucket out: buckets are the high bits of the
// hash, so those of a bucket have its number before their own. Rows that are cut
// by key say their order in columns.
func cutKeys(w Work) []Work {
	pieces := make([]Work, piecesOfWork)
	for i := range pieces {
		pieces[i] = w
		pieces[i].finer = max(w.finer, 1) * piecesOfWork
		pieces[i].Buckets, pieces[i].Bucket = w.Buckets*piecesOfWork, w.Bucket*piecesOfWork+i
	}
	return pieces
}

// cutSlices cuts slices of a table into at most so many groups with about the same number of rows.
func cutSlices(t *Table, slices []PartSlice, groups int64) [][]PartSlice {
	total, _ := sliceRows(t, slices)
	groups = min(groups, total/pieceRowsMin)
	var out [][]PartSlice
	var group []PartSlice
	var rows int64
	for _, s := range slices {
		from, to := s.From, t.end(s)
		for from < to {
			end := to
			if len(out) < int(groups)-1 { // the last group takes the rest
				end = min(to, from+total*int64(len(out)+1)/groups-rows)
			}
			group = append(group, PartSlice{Part: s.Part, Key: s.Key, From: from, To: end})
			rows += end - from
			from = end
			if len(out) < int(groups)-1 && rows == total*int64(len(out)+1)/groups {
				out, group = append(out, group), nil
			}
		}
	}
	if len(group) > 0 {
		out = append(out, group)
	}
	return out
}

// cutFiles cuts slices of files into at most so many groups of about the same
// bytes; a single one of Parquet into ranges of rows.
func cutFiles(slices []files.Slice, groups int64) [][]files.Slice {
	if len(slices) == 1 {
		return cutParquet(slices[0], groups)
	}
	var total, done int64
	for _, s := range slices {
		total += max(s.Bytes, 1)
	}
	var out [][]files.Slice
	var group []files.Slice
	for _, s := range slices {
		group = append(group, s)
		if done += max(s.Bytes, 1); done >= total*int64(len(out)+1)/groups {
			out, group = append(out, group), nil
		}
	}
	return out
}

// cutParquet cuts a slice of a Parquet file. The records of a CSV file would
// have to be looked for.
func cutParquet(s files.Slice, groups int64) [][]files.Slice {
	if s.Count < 0 || s.Length > 0 || s.Rows == 0 {
		return nil
	}
	groups = min(groups, s.Count/pieceRowsMin)
	var out [][]files.Slice
	for i := range groups {
		piece := s
		from, to := s.Count*i/groups, s.Count*(i+1)/groups
		piece.FirstRow, piece.Rows, piece.Count, piece.Bytes = s.FirstRow+from, to-from, to-from, s.Bytes/groups
		out = append(out, []files.Slice{piece})
	}
	return out
}

// RowsIn counts what work reads, -1 if that is not known.
func (w Work) RowsIn(in Inputs) int64 {
	if in.Reader.Ephemeral() {
		return -1
	}
	if len(w.Parts) > 0 {
		rows, _ := sliceRows(in.sliced(), w.Parts)
		return rows
	}
	if w.Buckets > 0 {
		return in.sliced().Rows() / int64(w.Buckets)
	}
	var rows int64
	for _, s := range w.Files {
		if s.Count < 0 {
			return -1
		}
		rows += s.Count
	}
	return rows
}

// HotKeySQL asks for the key with the most rows on the right side of a lookup's
// batch, as one text, and how many these are. "": the work is not cut by key.
func HotKeySQL(n *script.Node, in Inputs, w Work, paths Paths) string {
	if n.Lookup == nil || w.Buckets == 0 || in.Lookup.Ephemeral() {
		return ""
	}
	right := newSide(n, in, w, true, joinRefs(n), paths)
	keys := make([]string, len(right.key))
	for i := range keys {
		keys[i] = fmt.Sprintf("__k%d", i)
	}
	list := strings.Join(keys, ", ")
	return fmt.Sprintf("SELECT concat_ws(', ', %s), count(*) FROM (%s) GROUP BY %s ORDER BY 2 DESC, 1 LIMIT 1", list,
		right.sql(), list)
}
