package files

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"thalweg/internal/io/parquetfile"
	"thalweg/internal/lang/script"
)

// Slice is the part of an input that one batch reads. Its JSON form is kept
// in state between planning and execution.
type Slice struct {
	File int    `json:"file"` // ordinal in urls, names with * replaced by the files
	Path string `json:"path"`
	URL  string `json:"url"` // without secrets
	// URL of an earlier one of the inputs that is the same file: its rows are read again.
	Again string `json:"again,omitempty"`

	// Of a remote file: which copy of which version of it is read. The copy's
	// place may differ from process to process.
	Copy    string `json:"copy,omitempty"`
	Version string `json:"version,omitempty"`

	// CSV: a byte range of whole records. The range of a file's first slice
	// starts at 0 and includes the header.
	Offset      int64 `json:"offset,omitempty"`
	Length      int64 `json:"length,omitempty"`
	FirstRecord int64 `json:"first_record,omitempty"` // 0-based data record at Offset
	FirstLine   int64 `json:"first_line,omitempty"`   // 1-based physical line at Offset

	// Parquet: rows [FirstRow, FirstRow+Rows) of the file; Rows -1 is all.
	FirstRow int64 `json:"first_row,omitempty"`
	Rows     int64 `json:"rows,omitempty"`

	Count int64 `json:"count"` // rows in this slice; -1: not known without reading it (CSV)
	Bytes int64 `json:"bytes"` // of the file that this slice stands for, uncompressed

	// What the file looked like when it was planned.
	FileBytes int64     `json:"file_bytes"`
	ModTime   time.Time `json:"mod_time"`
	Digest    string    `json:"digest,omitempty"` // of its beginning and end; "": not taken
}

// edgeShare is the largest distance between a wanted cut and the edge of a file at which the edge is taken
// instead. It is a fraction of a batch.
const edgeShare = 0.25

// PlanSlices cuts the inputs of r into the slices of batches: contiguous in
// the order of files and rows, about targetBytes each, at most maxBatches,
// none empty. Inputs that are all empty give one batch with all of them, so
// that reading them still checks their headers. The same inputs give the same
// plan.
//
// Parquet files are split between row groups. CSV files are split between
// records; only files that are split are read for it, from their start.
func PlanSlices(ctx context.Context, r *script.FileReader, targetBytes int64, maxBatches int) ([][]Slice, error) {
	return PlanSlicesBy(ctx, r, Places{}, func(int64) int64 { return targetBytes }, maxBatches)
}

// PlanSlicesBy is PlanSlices for callers whose target depends on the bytes of
// all inputs together. Bytes are uncompressed, as DuckDB will have to hold them.
func PlanSlicesBy(ctx context.Context, r *script.FileReader, at Places, targetOf func(totalBytes int64) int64,
	maxBatches int) ([][]Slice, error) {
	if !r.Parquet {
		if err := csvDialect(r); err != nil {
			return nil, err
		}
	}
	inputs, err := inspectAll(ctx, r, at)
	if err != nil || len(inputs) == 0 {
		return nil, err
	}
	again := namedBefore(inputs)
	wanted := wantedCuts(inputs, targetOf, maxBatches)
	pieces := make([][]Slice, len(inputs))
	err = eachInOrder(ctx, len(inputs), func(ctx context.Context, i int) error {
		var err error
		pieces[i], err = cutFile(ctx, r, i, inputs[i], wanted[i].inside)
		for n := range pieces[i] {
			pieces[i][n].Again = again[i]
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return group(pieces, wanted), nil
}

// namedBefore gives of each input the URL of one before it that is the same file: named
// twice, matched by two patterns, or by one that matches a link to it as well.
func namedBefore(inputs []inspected) []string {
	out := make([]string, len(inputs))
	seen := make(map[string]string, len(inputs))
	for i, in := range inputs {
		file := in.URL
		if in.Copy.Key == "" {
			file = in.Path
		}
		if first, ok := seen[file]; ok {
			out[i] = first
			continue
		}
		seen[file] = in.URL
	}
	return out
}

// fileCuts are the batch borders that concern a file.
type fileCuts struct {
	before bool    // a batch starts with this file
	inside []int64 // byte offsets near which a batch starts inside it
}

// wantedCuts spreads the borders evenly over the bytes of all inputs.
func wantedCuts(inputs []inspected, targetOf func(int64) int64, maxBatches int) []fileCuts {
	total := int64(0)
	for _, in := range inputs {
		total += in.RawBytes
	}
	cuts := make([]fileCuts, len(inputs))
	targetBytes := max(targetOf(total), 1)
	batches := min((total+targetBytes-1)/targetBytes, int64(max(maxBatches, 1)))
	if batches < 2 {
		return cuts
	}
	share := float64(total) / float64(batches)
	file, start := 0, int64(0)
	for k := int64(1); k < batches; k++ {
		border := int64(float64(k) * share)
		for file < len(inputs)-1 && start+inputs[file].RawBytes <= border {
			start += inputs[file].RawBytes
			file++
		}
		near := int64(share * edgeShare)
		left, right := border-start, start+inputs[file].RawBytes-border
		switch {
		case left <= near && left <= right:
			cuts[file].before = true
		case right <= near && file+1 < len(inputs):
			cuts[file+1].before = true
		case right <= near: // the end of the last file
		default:
			cuts[file].inside = append(cuts[file].inside, left)
		}
	}
	return cuts
}

// cutFile makes the slices of one file.
func cutFile(ctx context.Context, r *script.FileReader, i int, in inspected, inside []int64) ([]Slice, error) {
	whole := Slice{File: i, Path: in.Path, URL: in.URL, Copy: in.Copy.Key, Version: in.Copy.Version, Count: in.Rows,
		Bytes: in.RawBytes, FileBytes: in.Bytes, ModTime: in.ModTime.UTC()}
	var err error
	if whole.Digest, err = digestEdges(in.Path, in.Bytes); err != nil {
		return nil, in.source().unread(err)
	}
	if r.Parquet {
		whole.Rows = -1
		return cutParquet(whole, in.footer, inside), nil
	}
	whole.Length, whole.FirstLine = in.Bytes, 1
	if len(inside) == 0 {
		return []Slice{whole}, nil
	}
	return cutCSV(ctx, r, whole, inside)
}

// cutParquet cuts between the row groups nearest to the wanted offsets.
func cutParquet(whole Slice, f *parquetfile.Footer, inside []int64) []Slice {
	if len(inside) == 0 || len(f.Groups) < 2 {
		return []Slice{whole}
	}
	out := []Slice{}
	from, at := 0, int64(0) // first group of the open slice; compressed bytes before group g
	closeAt := func(g int) {
		s := whole
		s.Rows, s.Bytes, s.Count = 0, 0, 0
		for _, rg := range f.Groups[from:g] {
			s.Rows += rg.Rows
			s.Bytes += rg.RawBytes
			s.Count += rg.Rows
		}
		s.FirstRow = f.Groups[from].FirstRow
		out = append(out, s)
		from = g
	}
	for g := range f.Groups {
		for len(inside) > 0 && inside[0] < at+f.Groups[g].RawBytes/2 {
			inside = inside[1:]
			if g > from {
				closeAt(g)
			}
		}
		at += f.Groups[g].RawBytes
	}
	closeAt(len(f.Groups))
	if len(out) == 1 {
		return []Slice{whole}
	}
	return out
}

// cutCSV scans the file from its first data record for records that start
// near the wanted offsets.
func cutCSV(ctx context.Context, r *script.FileReader, whole Slice, inside []int64) ([]Slice, error) {
	head, err := readHead(r, whole.source())
	if err != nil {
		return nil, err
	}
	f, err := whole.source().open()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	scan := whole.source().scan(f, head.start, whole.Length-head.start, r.CSV.Separator, head.fields, nil)
	// nothing behind the last wanted cut matters here
	scan.targets, scan.stopAtCut, scan.stopAtBad = slices.Clone(inside), true, !r.Tolerant
	for len(scan.targets) > 0 && scan.targets[0] <= head.start {
		scan.targets = scan.targets[1:]
	}
	if err := scan.run(ctx); err != nil {
		return nil, err
	}
	if bad := scan.found.bad; bad != nil && !r.Tolerant {
		c := csvSlice{Slice: whole, r: r, head: head}
		return nil, c.scanned(ctx, *bad)
	}
	out := []Slice{}
	open := whole
	for _, c := range scan.cuts {
		if c.Offset >= whole.Length || c.Records == open.FirstRecord {
			continue // nothing behind it, or nothing but blank lines before it
		}
		open.Length = c.Offset - open.Offset
		open.Bytes = open.Length
		out = append(out, open)
		open.Offset, open.FirstRecord, open.FirstLine = c.Offset, c.Records, head.lines+c.Lines+1
	}
	open.Length = whole.Length - open.Offset
	open.Bytes = open.Length
	return append(out, open), nil
}

// group lists slices into batches: a batch starts where a border is wanted
// before a file, and with each slice inside a file but its first.
func group(pieces [][]Slice, cuts []fileCuts) [][]Slice {
	var out [][]Slice
	var open []Slice
	bytes := int64(0)
	flush := func() {
		out = append(out, open)
		open, bytes = nil, 0
	}
	for i, list := range pieces {
		for k, s := range list {
			if len(open) > 0 && bytes > 0 && (k > 0 || cuts[i].before) {
				flush()
			}
			open = append(open, s)
			bytes += s.Bytes
		}
	}
	// Empty files at the end join the batch before them.
	if bytes == 0 && len(out) > 0 {
		out[len(out)-1] = append(out[len(out)-1], open...)
		return out
	}
	flush()
	return out
}

// At is the slice of a copy that lies at path in this process.
func (s Slice) At(path string) (Slice, error) {
	resolved, err := filepath.EvalSymlinks(path)
	if err != nil {
		return s, s.source().unread(err)
	}
	st, err := os.Stat(resolved)
	if err != nil {
		return s, s.source().unread(err)
	}
	s.Path, s.ModTime = resolved, st.ModTime().UTC()
	return s, nil
}

// Repeated tells of the files that slices read again, each where it begins.
func Repeated(slices []Slice) []string {
	var out []string
	for _, s := range slices {
		switch {
		case s.Again == "" || s.Offset > 0 || s.FirstRow > 0:
		case s.Again == s.URL:
			out = append(out, "input file "+s.URL+" is named twice, or matches two patterns: its rows are read again")
		default:
			out = append(out, "input file "+s.URL+" is the same file as "+s.Again+": its rows are read again")
		}
	}
	return out
}

// String names the slice in logs.
func (s Slice) String() string {
	switch {
	case s.Rows > 0:
		return fmt.Sprintf("%s rows %d to %d", s.URL, s.FirstRow, s.FirstRow+s.Rows-1)
	case s.Length < s.FileBytes:
		return fmt.Sprintf("%s bytes %d to %d", s.URL, s.Offset, s.Offset+s.Length-1)
	}
	return s.URL
}
