package parquetfile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
)

const (
	// headerReadBytes is read at once for a page's header: most are shorter.
	headerReadBytes = 1 << 10

	// maxHeaderBytes bounds a page's header, which may hold two long texts as
	// its statistics.
	maxHeaderBytes = 16 << 20
)

// Types of pages, and encodings.
const (
	pageData       = 0
	pageIndex      = 1
	pageDictionary = 2
	pageDataV2     = 3

	encodingPlain           = 0
	encodingPlainDict       = 2
	encodingRLEDict         = 8
	encodingByteStreamSplit = 9
)

// page is a page and where its bytes are.
type page struct {
	kind            int
	at              int64 // of the bytes behind the header
	raw, compressed int64
	crc             uint32
	checked         bool // has a checksum
	values          int64
	encoding        int
	nulls, rows     int64 // of version 2, as the next ones
	levelBytes      int64 // of repetition and definition
	repeatBytes     int64 // of repetition alone
	compressedData  bool
	strange         bool // its header has fields that the format does not know
}

// Pages describes the pages of a chunk.
type Pages struct {
	Start, End int64 // its bytes in the file
	DataAt     int64 // the first data page
	DictAt     int64 // 0: none
	Checked    int   // data pages with a checksum
	Unchecked  int   // data pages without
}

// walkChunk visits the pages of a chunk until they have as many values as the
// row group has rows. Nothing is visited that lies outside of the file's data.
func (f *Footer) walkChunk(ctx context.Context, r io.ReaderAt, g Group, c Chunk, visit func(page) error) (Pages,
	error) {
	col, total := f.described(c), g.Rows
	if c.nested {
		total = c.values
	}
	out := Pages{Start: c.dataAt, DataAt: c.dataAt}
	if err := f.plausible(g, c); err != nil {
		return out, err
	}
	if c.dictAt >= magicBytes && c.dictAt < c.dataAt {
		out.Start = c.dictAt
	}
	out.End = out.Start
	values := int64(0)
	for n := 0; values < total; n++ {
		if err := ctx.Err(); err != nil {
			return out, err
		}
		p, err := f.readHeader(r, out.End)
		if err == nil {
			err = col.checkPage(p, c, n, total-values)
		}
		if err == nil {
			err = visit(p)
		}
		if err != nil {
			return out, inPage(err, n)
		}
		switch p.kind {
		case pageDictionary:
			out.DictAt = out.End
		case pageData, pageDataV2:
			if values == 0 && out.DictAt > 0 {
				out.DataAt = out.End
			}
			if values += p.values; p.checked {
				out.Checked++
			} else {
				out.Unchecked++
			}
		}
		out.End = p.at + p.compressed
	}
	if values > 0 && out.DictAt >= out.DataAt { // without values there may be a dictionary and no data page
		return out, damaged("its dictionary lies behind its data")
	}
	return out, nil
}

func inPage(err error, n int) error {
	var d *DamagedError
	if errors.As(err, &d) {
		in := *d
		in.What = fmt.Sprintf("page %d: %s", n+1, d.What)
		return &in
	}
	return err
}

// described returns the column of a chunk's values. Within a nested column each may be missing.
func (f *Footer) described(c Chunk) Column {
	if !c.nested {
		return f.Columns[c.Column]
	}
	leaf := f.leaves[c.leaf]
	leaf.Required = false
	return leaf
}

// plausible compares what the footer says of a chunk with the rest of it.
func (f *Footer) plausible(g Group, c Chunk) error {
	col := f.described(c)
	switch {
	case c.encrypted:
		return unsupported("it is encrypted, which is not supported yet")
	case c.remote:
		return unsupported("its data is in another file, which is not supported")
	case c.codec == lzo, c.codec == oldLZ4:
		return unsupported("its codec %s is not supported",
			map[Codec]string{lzo: "LZO", oldLZ4: "LZ4 (the old one: LZ4_RAW is)"}[c.codec])
	case c.nested && c.values < g.Rows, !c.nested && c.values != g.Rows:
		return damaged("it has %d values, its row group %d rows", c.values, g.Rows)
	case c.raw < 0 || c.compressed < 0 || c.dictAt < 0:
		return damaged("it has a negative size")
	case g.Rows > 0 && (c.dataAt < magicBytes || c.dataAt >= f.dataEnd):
		return damaged("it says that it begins at byte %d, behind the file's data", c.dataAt)
	case col.Required && c.nullCount > 0:
		return damaged("it has NULLs, and the schema says that it has none")
	case c.nested:
	case c.histogram == 2 && col.Required, c.histogram == 1 && !col.Required, c.histogram > 2:
		return damaged("it has %d levels, which is not what the schema says", c.histogram)
	}
	return nil
}

// readHeader reads the header of the page at an offset.
func (f *Footer) readHeader(file io.ReaderAt, at int64) (page, error) {
	for size := int64(headerReadBytes); ; size *= 16 {
		window := min(size, f.dataEnd-at, maxHeaderBytes)
		if window <= 0 {
			return page{}, damaged("it lies behind the file's data")
		}
		raw := make([]byte, window)
		if _, err := file.ReadAt(raw, at); err != nil {
			return page{}, err
		}
		r := &thriftReader{data: raw}
		p := decodePage(r)
		if errors.Is(r.err, errThriftShort) && window == size {
			continue
		}
		if r.err != nil {
			return page{}, &DamagedError{What: "its header cannot be decoded", Err: r.err}
		}
		p.at = at + window - int64(len(r.data))
		if p.raw < 0 || p.compressed < 0 || p.compressed > f.dataEnd-p.at {
			return page{}, damaged("it has %d bytes, which the file does not have", p.compressed)
		}
		return p, nil
	}
}

// decodePage reads a PageHeader.
func decodePage(r *thriftReader) page {
	p := page{kind: none, raw: -1, compressed: -1, values: -1, encoding: none, compressedData: true}
	seen := r.structure(func(id int64, t thriftType) bool {
		switch {
		case id == 1:
			p.kind = r.int(t)
		case id == 2:
			p.raw = int64(r.int(t))
		case id == 3:
			p.compressed = int64(r.int(t))
		case id == 4:
			p.crc, p.checked = uint32(r.int(t)), true
		case (id == 5 || id == 7) && t == thriftStruct:
			r.need(r.structure(func(id int64, t thriftType) bool { return p.decodeData(r, id, t) }), fields(1, 2))
		case id == 8 && t == thriftStruct:
			r.need(r.structure(func(id int64, t thriftType) bool { return p.decodeDataV2(r, id, t) }),
				fields(1, 2, 3, 4, 5, 6))
		default:
			p.strange = p.strange || id != 6
			return false
		}
		return true
	})
	r.need(seen, fields(1, 2, 3))
	header := map[int]uint64{pageData: fields(5), pageDictionary: fields(7), pageDataV2: fields(8)}[p.kind]
	r.need(seen, header)
	return p
}

// decodeData reads a field of DataPageHeader or DictionaryPageHeader.
func (p *page) decodeData(r *thriftReader, id int64, t thriftType) bool {
	switch id {
	case 1:
		p.values = int64(r.int(t))
	case 2:
		p.encoding = r.int(t)
	default:
		return false
	}
	return true
}

// decodeDataV2 reads a field of DataPageHeaderV2.
func (p *page) decodeDataV2(r *thriftReader, id int64, t thriftType) bool {
	switch id {
	case 1:
		p.values = int64(r.int(t))
	case 2:
		p.nulls = int64(r.int(t))
	case 3:
		p.rows = int64(r.int(t))
	case 4:
		p.encoding = r.int(t)
	case 5, 6:
		n := int64(r.int(t))
		if n < 0 {
			r.check(errors.New("its levels have a negative length"))
		}
		p.levelBytes += n
		if id == 6 {
			p.repeatBytes = n
		}
	case 7:
		p.compressedData = r.bool(t)
	default:
		return false
	}
	return true
}

// checkPage compares a page's header with what is known of its chunk: n is the
// page's number, left how many values the chunk still lacks.
func (col Column) checkPage(p page, c Chunk, n int, left int64) error {
	if p.raw > math.MaxInt32 || p.compressed > math.MaxInt32 {
		return damaged("it is larger than a page can be")
	}
	if c.codec == Uncompressed && p.raw != p.compressed {
		return damaged("it has %d bytes and %d, though it is not compressed", p.compressed, p.raw)
	}
	switch p.kind {
	case pageIndex:
		return nil
	case pageDictionary:
		if n > 0 || p.values < 0 || p.encoding != encodingPlain && p.encoding != encodingPlainDict {
			return damaged("it is no dictionary that the format allows")
		}
		return col.checkWidth(p.values, p.raw)
	case pageData:
	case pageDataV2:
		if p.rows != p.values && !c.nested || p.nulls < 0 || p.nulls > p.values || p.levelBytes > p.raw ||
			p.levelBytes > p.compressed || col.Required && p.levelBytes+p.nulls > 0 {
			return damaged("its header contradicts itself or the schema")
		}
		if !p.compressedData && p.raw != p.compressed {
			return damaged("it has %d bytes and %d, though it is not compressed", p.compressed, p.raw)
		}
	default:
		return damaged("it is of a type that the format does not have")
	}
	if p.values < 0 || p.values > left {
		return damaged("it has %d values where %d are left", p.values, left)
	}
	if p.encoding == encodingByteStreamSplit && col.Physical == FixedBytes {
		return unsupported("its encoding BYTE_STREAM_SPLIT of FIXED_LEN_BYTE_ARRAY is not supported")
	}
	switch {
	case p.encoding != encodingPlain, c.nested:
	case p.kind == pageDataV2:
		return col.checkWidth(p.values-p.nulls, p.raw-p.levelBytes)
	case col.Required: // else levels take an unknown part of the bytes
		return col.checkWidth(p.values, p.raw)
	}
	return nil
}

// checkWidth compares the bytes of plain values with their number.
func (col Column) checkWidth(values, bytes int64) error {
	width := map[Physical]int64{Int32: 4, Int64: 8, Old96: 12, Float32: 4, Float64: 8,
		FixedBytes: int64(col.Length)}[col.Physical]
	if width > 0 && values*width != bytes {
		return damaged("it has %d bytes for %d values", bytes, values)
	}
	return nil
}
