package plan

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"thalweg/internal/base/fault"
	"thalweg/internal/base/sqltext"
	"thalweg/internal/io/files"
	"thalweg/internal/lang/expr"
)

// orderStride separates parts in a computed order column: a part has fewer rows.
const orderStride = 1 << 40

// PartSlice is a range of a part's rows. Part is where the part was in the
// manifest when the work was planned; work that is stored names it, because what
// is done again behind it may have other neighbours.
type PartSlice struct {
	Part int    `json:"part"`
	Key  string `json:"key,omitempty"` // "": in work of earlier versions, which had the index only
	From int64  `json:"from,omitempty"`
	To   int64  `json:"to,omitempty"` // exclusive; 0: to the end

	buckets *bucketSpan // of its rows, only those of these buckets are read; nil: of any
}

// name gives the slices that work is stored with the keys of their parts.
func (w *Work) name(in Inputs) {
	w.inside(in, func(inner *Work, in Inputs) { inner.name(in) })
	for i, s := range w.Parts {
		w.Parts[i].Key = in.sliced().Parts[s.Part].Key
	}
}

// Locate finds the parts that stored work names, in the tables as they are now.
func (w *Work) Locate(in Inputs) (err error) {
	w.inside(in, func(inner *Work, in Inputs) { err = errors.Join(err, inner.Locate(in)) })
	if err != nil || len(w.Parts) == 0 {
		return err
	}
	t := in.sliced()
	at := make(map[string]int, len(t.Parts))
	for i, p := range t.Parts {
		at[p.Key] = i
	}
	for i, s := range w.Parts {
		part, ok := at[s.Key]
		switch {
		case s.Key == "" && s.Part < len(t.Parts):
			continue
		case !ok:
			return &fault.Error{Kind: fault.Environment,
				Message: fmt.Sprintf("part %s of table %s, which the work was planned to read, is not in the "+
					"table any more", cmp.Or(s.Key, fmt.Sprint(s.Part)), t.Name()),
				Hint: "the table was written again: begin a new run"}
		}
		w.Parts[i].Part = part
	}
	return nil
}

// wholeTable slices all of t.
func wholeTable(t *Table) []PartSlice {
	out := make([]PartSlice, len(t.Parts))
	for i := range t.Parts {
		out[i] = PartSlice{Part: i}
	}
	return out
}

// scan reads a table.
type scan struct {
	table  *Table
	slices []PartSlice
	fields []string // the fields wanted
	order  bool     // add the order columns
	placed bool     // add files.FileColumn and files.RowColumn: see Table.positions
	paths  Paths

	key expr.Order // what cut is about
	cut Cut        // of tables that lie in buckets of key, those wanted; none: all
}

// Paths gives the local path of a part.
type Paths map[string]string

// orderCols returns the number of order columns of the scan: one for a table in canonical order, whose
// position serves as such.
func (s scan) orderCols() int {
	if !s.order {
		return 0
	}
	return s.table.width()
}

// sql renders the scan as a SELECT of the stored column names. The rows come
// in the order of the slices.
func (s scan) sql() string {
	if s.table.inlined != nil {
		return s.inlined()
	}
	var pieces []string
	for start := 0; start < len(s.slices); {
		end := start + 1
		first := s.slices[start]
		if first.From == 0 && first.To == 0 && !s.placed {
			for end < len(s.slices) && s.slices[end].From == 0 && s.slices[end].To == 0 &&
				s.slices[end].Part == s.slices[end-1].Part+1 &&
				s.table.memberOf(s.slices[end].Part) == s.table.memberOf(first.Part) && s.alike(s.slices[end].Part) {
				end++
			}
		}
		pieces = append(pieces, s.piece(s.slices[start:end]))
		start = end
	}
	if len(pieces) == 0 {
		return s.empty()
	}
	return strings.Join(pieces, " UNION ALL ")
}

// alike reports whether a part and the one before it can be read in one go: both
// lie in buckets or neither, and what numbers their rows goes on.
func (s scan) alike(part int) bool {
	before, p := s.table.Parts[part-1], s.table.Parts[part]
	return asCame(before) == asCame(p) && (!asCame(p) || p.Batch == before.Batch+1 && s.table.rowsBefore(part-1) == 0)
}

// Scattered reports whether the rows of a table lie in its parts as they came,
// in another order each time: columns say their order, and their numbers mean nothing.
func (t *Table) Scattered() bool { return t.Layout.OrderCols > 0 }

// inOrder renders the scan as a SELECT in canonical order, order columns
// included where the rows had to be sorted by them.
func (s scan) inOrder() string {
	if !s.table.Scattered() {
		return s.sql()
	}
	s.order = true
	return fmt.Sprintf("SELECT * FROM (%s) ORDER BY %s", s.sql(), strings.Join(orderColumns(s.orderCols()), ", "))
}

// inlined renders the scan of an ephemeral table: all that its batch computes.
func (s scan) inlined() string {
	var cols []string
	for _, f := range s.fields {
		c, _ := s.table.Layout.column(f)
		cols = append(cols, sqltext.Ident(c.Stored()))
	}
	cols = append(cols, orderColumns(s.orderCols())...)
	if s.placed {
		cols = append(cols, files.FileColumn, files.RowColumn)
	}
	return fmt.Sprintf("SELECT %s FROM (%s) WHERE %s", strings.Join(append(cols, keepColumn), ", "),
		s.table.inlined.sql(s.placed), keepColumn)
}

// piece reads consecutive whole parts, or a range of one.
func (s scan) piece(slices []PartSlice) string {
	paths := make([]string, len(slices))
	for i, sl := range slices {
		paths[i] = sqltext.Glob(s.paths[s.table.Parts[sl.Part].Key])
	}
	at := s.table.memberOf(slices[0].Part)
	m := s.table.each()[at]
	cols := s.memberFields(m)
	if s.order {
		cols = append(cols, s.memberOrder(at, slices[0].Part)...)
	}
	if s.placed {
		at := FirstRow(s.table, Work{Parts: slices}) - slices[0].From
		cols = append(cols, fmt.Sprintf("CAST(%d AS BIGINT) AS %s, file_row_number + %d AS %s", slices[0].Part,
			files.FileColumn, at, files.RowColumn))
	}
	if len(cols) == 0 {
		cols = []string{"1 AS __one"}
	}
	// Without hive_partitioning = false a directory called a=b would become a column.
	q := fmt.Sprintf("SELECT %s FROM read_parquet(%s, hive_partitioning = false, union_by_name = false)",
		strings.Join(cols, ", "), sqltext.Strings(paths))
	var where []string
	// row groups of others are not read: their statistics say so
	if span := (keyed{m.Table, s.key}).span(s.cut); span != nil && !asCame(s.table.Parts[slices[0].Part]) {
		where = append(where, span.sql())
	}
	if from := slices[0].From; from > 0 {
		where = append(where, fmt.Sprintf("file_row_number >= %d", from))
	}
	if to := slices[0].To; to > 0 {
		where = append(where, fmt.Sprintf("file_row_number < %d", to))
	}
	if len(where) > 0 {
		q += " WHERE " + strings.Join(where, " AND ")
	}
	return q
}

// empty is a scan of no parts: no rows of the right types.
func (s scan) empty() string {
	cols := make([]string, 0, len(s.fields)+1)
	types := s.table.Layout.types()
	for _, f := range s.fields {
		c, _ := s.table.Layout.column(f)
		cols = append(cols, fmt.Sprintf("CAST(NULL AS %s) AS %s", types[f].SQL(), sqltext.Ident(c.Stored())))
	}
	names := orderColumns(s.orderCols())
	if s.placed {
		names = append(names, files.FileColumn, files.RowColumn)
	}
	for _, name := range names {
		cols = append(cols, "CAST(NULL AS BIGINT) AS "+name)
	}
	if len(cols) == 0 {
		cols = []string{"1 AS __one"}
	}
	return "SELECT " + strings.Join(cols, ", ") + " WHERE false"
}

// columns tells compiled expressions how the fields of tables behind aliases
// are written.
type columns map[string]Layout

func (c columns) ref(r expr.Ref) string {
	if l, ok := c[r.Alias]; ok {
		if col, ok := l.column(r.Field); ok {
			return ident(r.Alias, col.Stored())
		}
	}
	return ident(r.Alias, r.Field)
}

// sliceParts cuts a table into about want contiguous groups of parts, balanced
// by bytes, splitting parts that are much larger than a group, but not into
// pieces of fewer than rowsMin rows.
func sliceParts(t *Table, want int, rowsMin int64) [][]PartSlice {
	total := t.Bytes()
	if len(t.Parts) == 0 || want < 1 {
		return nil
	}
	target := max(ceilDiv(total, int64(want)), 1)
	var groups [][]PartSlice
	var group []PartSlice
	var weight int64
	flush := func() {
		if len(group) > 0 {
			groups = append(groups, group)
			group, weight = nil, 0
		}
	}
	for i, p := range t.Parts {
		bytes := t.partBytes(i)
		pieces := int64(1)
		if bytes > target*3/2 {
			pieces = min(ceilDiv(bytes, target), ceilDiv(p.Rows, rowsMin))
		}
		if pieces <= 1 {
			if weight > 0 && weight+bytes > target*5/4 {
				flush()
			}
			group = append(group, PartSlice{Part: i})
			weight += bytes
		} else {
			flush()
			for k := range pieces {
				group = append(group, PartSlice{Part: i, From: p.Rows * k / pieces, To: p.Rows * (k + 1) / pieces})
				flush()
			}
		}
		if weight >= target {
			flush()
		}
	}
	flush()
	return groups
}

// rowRange cuts rows [from, to) of the table's manifest order out of it.
func rowRange(t *Table, from, to int64) []PartSlice {
	var out []PartSlice
	var at int64
	for i, p := range t.Parts {
		lo, hi := max(from-at, 0), min(to-at, p.Rows)
		if lo < hi {
			s := PartSlice{Part: i, From: lo, To: hi}
			if hi == p.Rows {
				s.To = 0
			}
			out = append(out, s)
		}
		at += p.Rows
	}
	return out
}

// end is the row of its part before which a slice ends.
func (t *Table) end(s PartSlice) int64 { return cmp.Or(s.To, t.Parts[s.Part].Rows) }

// sliceRows counts the rows of slices.
func sliceRows(t *Table, slices []PartSlice) (rows, bytes int64) {
	for _, s := range slices {
		p := t.Parts[s.Part]
		n := t.end(s) - s.From
		rows += n
		if p.Rows > 0 {
			bytes += int64(float64(t.partBytes(s.Part)) * float64(n) / float64(p.Rows))
		}
	}
	return rows, bytes
}
