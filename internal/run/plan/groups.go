package plan

import (
	"encoding/json"
	"fmt"
	"slices"

	"thalweg/internal/io/parquetfile"
	"thalweg/internal/run/engine"
	"thalweg/internal/store/state"
)

// A batch often needs some row groups of a part: those of its buckets, or of its
// range of rows. Where parts are not on this machine, only these are to travel.
// So the manifest says where the row groups of a part are, and what their bytes
// sum up to.

// Groups limits.
const (
	// groupBytesMin is the least that is worth being fetched by itself: smaller
	// row groups are taken together with their neighbours.
	groupBytesMin = 64 << 10
	// groupedBytesMin is the size from which on a part's row groups are noted.
	groupedBytesMin = 256 << 10
)

// Groups is the manifest's list of the row groups of a part that is large enough. Its pieces cover the file,
// one behind the other from the first byte to the last. The last piece is the footer, which has no rows.
type Groups struct {
	Pieces []GroupPiece `json:"pieces"`
}

// GroupPiece is some neighbouring row groups.
type GroupPiece struct {
	Rows  int64 `json:"rows,omitempty"`
	Bytes int64 `json:"bytes"`
	// First and Last are the buckets between which those of its rows lie; 0 and
	// -1 where the file does not tell.
	First int    `json:"first,omitempty"`
	Last  int    `json:"last,omitempty"`
	Sum   string `json:"sum,omitempty"` // as parts.Info.Checksum, of its bytes; "" where readers have whole parts
}

// GroupsOf reads where the row groups of a part lie; nil if it is small, or has
// only one. sum gives the checksum of a range of the file; nil: none is noted.
func GroupsOf(path string, bytes int64, sum func(from, length int64) (string, error)) (json.RawMessage, error) {
	if bytes < groupedBytesMin {
		return nil, nil
	}
	footer, err := parquetfile.ReadFooter(path, func(name string) bool { return name == engine.BucketColumn })
	if err != nil {
		return nil, fmt.Errorf("look for the row groups of a part: %w", err)
	}
	pieces, ok := cutGroups(footer)
	if !ok {
		return nil, nil
	}
	pieces = append(pieces, GroupPiece{Bytes: bytes - footer.DataEnd(), Last: -1})
	at := int64(0)
	for i := range pieces {
		if sum == nil {
			break
		}
		if pieces[i].Sum, err = sum(at, pieces[i].Bytes); err != nil {
			return nil, err
		}
		at += pieces[i].Bytes
	}
	return json.Marshal(Groups{pieces})
}

// cutGroups puts a file's row groups together until they are worth it; ok is
// false if there is one piece only, or the groups do not follow one another.
func cutGroups(footer *parquetfile.Footer) (pieces []GroupPiece, ok bool) {
	column, _ := footer.Find(engine.BucketColumn)
	at, from := int64(0), int64(0) // the end of what was looked at, the beginning of the piece
	for i, g := range footer.Groups {
		if g.From < at || g.To <= g.From || g.To > footer.DataEnd() {
			return nil, false
		}
		at = g.To
		if i == len(footer.Groups)-1 {
			at = footer.DataEnd() // with whatever lies between
		}
		first, last := bucketsOf(g, column)
		if n := len(pieces); n > 0 && (pieces[n-1].Bytes < groupBytesMin || at-from < groupBytesMin) {
			pieces[n-1].join(GroupPiece{Rows: g.Rows, Bytes: at - from, First: first, Last: last})
		} else {
			pieces = append(pieces, GroupPiece{Rows: g.Rows, Bytes: at - from, First: first, Last: last})
		}
		from = at
	}
	return pieces, len(pieces) > 1
}

// join adds the row groups behind a piece to it.
func (p *GroupPiece) join(next GroupPiece) {
	p.Rows, p.Bytes = p.Rows+next.Rows, p.Bytes+next.Bytes
	if p.Last < 0 || next.Last < 0 {
		p.First, p.Last = 0, -1
		return
	}
	p.First, p.Last = min(p.First, next.First), max(p.Last, next.Last)
}

// bucketsOf gives the buckets of a row group's rows, 0 and -1 if it does not tell.
func bucketsOf(g parquetfile.Group, column int) (first, last int) {
	for _, c := range g.Chunks {
		if least, greatest, ok := c.Whole(); ok && c.Column == column && least >= 0 && greatest >= least {
			return int(least), int(greatest)
		}
	}
	return 0, -1
}

// ReadGroups reads what the manifest keeps of a part's row groups; nil if it
// keeps nothing that agrees with the part.
func ReadGroups(p state.Part) *Groups {
	var g Groups
	if len(p.Groups) == 0 || json.Unmarshal(p.Groups, &g) != nil {
		return nil
	}
	var rows, bytes int64
	for _, piece := range g.Pieces {
		if piece.Bytes <= 0 || piece.Rows < 0 {
			return nil
		}
		rows, bytes = rows+piece.Rows, bytes+piece.Bytes
	}
	if rows != p.Rows || bytes != p.Bytes {
		return nil
	}
	return &g
}

// Wanted tells for each piece of a part's file whether a reader of slices of the
// part needs it: the footer, and row groups that may have rows of one of them.
func (g *Groups) Wanted(read []PartSlice) []bool {
	wanted := make([]bool, len(g.Pieces))
	row := int64(0)
	for i, piece := range g.Pieces {
		from, to := row, row+piece.Rows
		row = to
		wanted[i] = piece.Rows == 0 || slices.ContainsFunc(read, func(s PartSlice) bool {
			inRows := s.To == 0 && s.From < to || s.From < to && s.To > from
			inBuckets := s.buckets == nil || piece.Last < 0 || piece.First <= s.buckets.last &&
				piece.Last >= s.buckets.first
			return inRows && inBuckets
		})
	}
	return wanted
}
