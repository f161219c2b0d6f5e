package plan

import (
	"slices"

	"thalweg/internal/lang/script"
	"thalweg/internal/store/state"
)

// A key that many left rows of a lookup have makes its bucket, which is one batch,
// larger than the others: one worker is at it while the others wait. The rows of
// a left table's buckets are known when the lookup is planned, from where the row
// groups of its parts lie. So such a bucket is shared out: each batch has some of
// its left rows, and all right ones. Each left row gives what it gives alone, in
// whichever batch it is, and order columns say where its rows belong.

// Limits of that.
const (
	// hotShare is the multiple of the average number of left rows from which a bucket is shared out.
	hotShare = 2
	// hotBatchesMax bounds the batches that read the same right rows.
	hotBatchesMax = 64
)

// spreadHot shares out buckets of a lookup's left rows that are far larger than
// the others.
func (p *Planner) spreadHot(n *script.Node, in Inputs, works []Work, sizes []size) ([]Work, []size) {
	left := leftSide(n, in)
	rows := left.cutRows(works)
	if rows == nil {
		return works, sizes
	}
	total := left.table.Rows()
	average := max(total/int64(len(works)), 1)
	var outWorks []Work
	var outSizes []size
	var before int64 // rows of the cuts so far
	for i, w := range works {
		from, to := before, before+rows[i]
		before = to
		bytes := left.table.Bytes() * rows[i] / max(total, 1)
		want := min(ceilDiv(rows[i], average), hotBatchesMax)
		groups := [][]PartSlice{nil}
		if rows[i] > hotShare*average && bytes > p.Budget.SmallBytes {
			groups = cutSlices(left.table, left.cutSlices(w.Cut), want)
		}
		right := sizes[i].bytes - left.table.Bytes()/int64(len(works))
		for k, g := range groups {
			n := int64(len(groups))
			share := (to-from)*int64(k+1)/n - (to-from)*int64(k)/n
			outWorks = append(outWorks, Work{Cut: w.Cut, Parts: g})
			outSizes = append(outSizes, size{share, bytes/n + right})
		}
	}
	if len(outWorks) == len(works) {
		return works, sizes
	}
	return outWorks, outSizes
}

// cutRows returns how many of the table's rows are in each of the cuts; the cuts share out all keys. It
// returns nil if that is not known.
func (k keyed) cutRows(works []Work) []int64 {
	t, cuts := k.table, len(works)
	if t.Ephemeral() || t.members != nil || cuts < 2 || !k.matches(keyHash) || t.Layout.Buckets < cuts ||
		slices.ContainsFunc(works, func(w Work) bool { return w.Range != nil }) {
		return nil
	}
	each := t.Layout.Buckets / cuts
	share := make([]float64, cuts)
	known := false
	spread := func(rows int64, first, last int) {
		for b := first; b <= last; b++ {
			share[b/each] += float64(rows) / float64(last-first+1)
		}
	}
	for _, p := range t.Parts {
		groups := bucketGroups(p)
		if groups == nil {
			spread(p.Rows, 0, t.Layout.Buckets-1)
			continue
		}
		for _, g := range groups.Pieces {
			if g.Rows == 0 {
				continue
			}
			known = true
			spread(g.Rows, g.First, min(g.Last, t.Layout.Buckets-1))
		}
	}
	if !known {
		return nil
	}
	rows := make([]int64, cuts)
	var sum float64
	var done int64
	for i, s := range share { // whole numbers whose sum is that of all
		sum += s
		upTo := int64(sum + 0.5)
		if i == cuts-1 {
			upTo = t.Rows()
		}
		rows[i], done = upTo-done, upTo
	}
	return rows
}

// cutSlices lists where the rows of a cut lie in the table's parts.
func (k keyed) cutSlices(c Cut) (out []PartSlice) {
	span := overlap(k.table.Layout.Buckets, c)
	for i, p := range k.table.Parts {
		groups := bucketGroups(p)
		if groups == nil {
			out = append(out, PartSlice{Part: i})
			continue
		}
		row := int64(0)
		for _, g := range groups.Pieces {
			from, to := row, row+g.Rows
			row = to
			switch last := len(out) - 1; {
			case g.Rows == 0 || g.First > span.last || g.Last < span.first:
			case last >= 0 && out[last].Part == i && out[last].To == from:
				out[last].To = to
			default:
				out = append(out, PartSlice{Part: i, From: from, To: to})
			}
		}
	}
	return out
}

// bucketGroups returns the row groups of a part whose buckets are known; nil unless all are.
func bucketGroups(p state.Part) *Groups {
	if asCame(p) {
		return nil
	}
	groups := ReadGroups(p)
	if groups == nil || slices.ContainsFunc(groups.Pieces,
		func(g GroupPiece) bool { return g.Rows > 0 && g.Last < 0 }) {
		return nil
	}
	return groups
}
