package parquetfile

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/bits"
	"slices"

	"github.com/klauspost/compress/gzip"
)

const (
	// verifyBlockBytes is the size of the blocks in which a page is read.
	verifyBlockBytes = 128 << 10

	// packedBytesMax bounds a compressed page that is read as a whole: unpacking takes
	// its bytes one by one, which costs a sixth less from memory than from a file.
	packedBytesMax = 1 << 20
)

// VerifyChunk walks the pages of a chunk and verifies what checksums they
// have: a page's own, and where it has none, that of gzip, whose bytes DuckDB
// unpacks without a look at it.
func (f *Footer) VerifyChunk(ctx context.Context, r io.ReaderAt, group int, c Chunk) (Pages, error) {
	v := verifier{r: r, codec: c.codec, nested: c.nested, required: f.Columns[c.Column].Required}
	found, err := f.walkChunk(ctx, r, f.Groups[group], c, v.page)
	if err == nil && found.Checked > 0 {
		err = f.sealed(c, found, v)
	}
	var d *DamagedError
	if errors.As(err, &d) {
		in := *d
		in.What, in.Column = fmt.Sprintf("row group %d, %s", group+1, d.What), f.Columns[c.Column].Name
		return found, &in
	}
	return found, err
}

// sealed looks closer at chunks with checksums: who writes them knows the
// format, so that what the footer says twice must agree, and a page without
// one has lost it.
func (f *Footer) sealed(c Chunk, found Pages, v verifier) error {
	switch {
	case found.Unchecked > 0:
		return damaged("%d of its pages have a checksum and %d have none", found.Checked, found.Unchecked)
	case v.strange:
		return damaged("a page's header has fields that the format does not know")
	case found.End-found.Start != c.compressed:
		return damaged("its pages have %d bytes, the footer says %d", found.End-found.Start, c.compressed)
	case v.raw != c.raw-(found.End-found.Start-v.compressed):
		return damaged("its pages have %d bytes uncompressed, the footer says %d", v.raw, c.raw)
	case c.encodings != 0 && v.encodings&^c.encodings != 0:
		return damaged("a page has an encoding that the footer does not list")
	}
	return nil
}

// verifier collects what the pages of a chunk say.
type verifier struct {
	r               io.ReaderAt
	codec           Codec
	nested          bool // within a nested column
	required        bool
	block           []byte
	unpacker        *gzip.Reader // of the pages before
	packed          []byte       // the page that is unpacked
	raw, compressed int64
	encodings       uint32
	strange         bool
}

// page verifies a page.
func (v *verifier) page(p page) error {
	v.raw += p.raw
	v.compressed += p.compressed
	v.strange = v.strange || p.strange
	if p.encoding >= 0 && p.encoding < bits.UintSize/2 {
		v.encodings |= sameEncodings(p.encoding)
	}
	if v.block == nil {
		v.block = make([]byte, verifyBlockBytes)
	}
	body := io.NewSectionReader(v.r, p.at, p.compressed)
	switch {
	case p.checked:
		if err := v.checksum(p, body); err != nil || p.kind != pageDataV2 || v.required || v.nested {
			return err
		}
		return v.levels(p)
	case v.codec == Gzip && (p.kind == pageData || p.kind == pageDictionary):
		return v.gunzip(p.raw, body)
	case v.codec == Gzip && p.kind == pageDataV2 && p.compressedData && p.compressed > p.levelBytes:
		return v.gunzip(p.raw-p.levelBytes, io.NewSectionReader(v.r, p.at+p.levelBytes, p.compressed-p.levelBytes))
	}
	return nil
}

// sameEncodings is the bit of an encoding. The two names of dictionary indexes
// and the encodings of dictionaries are not told apart by all writers.
func sameEncodings(encoding int) uint32 {
	switch encoding {
	case encodingPlain, encodingPlainDict, encodingRLEDict:
		return 0
	}
	return 1 << encoding
}

func (v *verifier) checksum(p page, body io.Reader) error {
	sum := crc32.NewIEEE()
	if _, err := io.CopyBuffer(onlyWriter{sum}, body, v.block); err != nil {
		return err
	}
	if sum.Sum32() != p.crc {
		return damaged("its checksum is %08x, the bytes have %08x", p.crc, sum.Sum32())
	}
	return nil
}

// levels compares the definition levels of a page of version 2, which are not
// compressed, with its header, which no checksum covers: if that tells a wrong
// length, the values begin at the wrong byte.
func (v *verifier) levels(p page) error {
	raw := make([]byte, p.levelBytes)
	if _, err := v.r.ReadAt(raw, p.at); err != nil {
		return err
	}
	// Of a flat column there are no repeated values. Some writers say so for
	// each value, in runs of levels that take no bits: only their heads are there.
	if repeats := p.repeatBytes; repeats > 0 {
		if err := noRepeats(raw[:repeats], p.values); err != nil {
			return err
		}
		raw = raw[repeats:]
	}
	values, nulls := int64(0), int64(0)
	for len(raw) > 0 && values < p.values {
		head, n := binary.Uvarint(raw)
		if n <= 0 {
			return damaged("its levels are not complete")
		}
		raw = raw[n:]
		if head&1 == 0 { // a run of one level
			count := int64(min(head>>1, uint64(p.values-values)))
			if len(raw) == 0 {
				return damaged("its levels are not complete")
			}
			if raw[0] == 0 {
				nulls += count
			}
			values, raw = values+count, raw[1:]
			continue
		}
		for groups := head >> 1; groups > 0; groups-- { // eight levels in a byte
			if len(raw) == 0 {
				return damaged("its levels are not complete")
			}
			count := min(8, p.values-values)
			nulls += count - int64(bits.OnesCount8(raw[0]&byte(1<<count-1)))
			values, raw = values+count, raw[1:]
		}
	}
	if len(raw) > 0 || values != p.values || nulls != p.nulls {
		return damaged("its levels are of %d values and %d NULLs, its header says %d and %d", values, nulls,
			p.values, p.nulls)
	}
	return nil
}

// noRepeats reads the repetition levels of a flat column.
func noRepeats(raw []byte, values int64) error {
	left := uint64(values)
	for len(raw) > 0 && left > 0 {
		head, n := binary.Uvarint(raw)
		if n <= 0 {
			break
		}
		raw = raw[n:]
		count := head >> 1
		if head&1 == 1 { // groups of eight
			count = min(count, left) * 8
		}
		left -= min(count, left)
	}
	if len(raw) > 0 || left > 0 {
		return damaged("its repetition levels are not those of %d values", values)
	}
	return nil
}

// gunzip unpacks a page for its checksum.
func (v *verifier) gunzip(raw int64, body *io.SectionReader) error {
	packed, err := v.load(body)
	if err != nil {
		return err
	}
	if v.unpacker == nil {
		v.unpacker = new(gzip.Reader)
	}
	if err := v.unpacker.Reset(packed); err != nil {
		return &DamagedError{What: "it is not gzip", Err: err}
	}
	n, err := io.CopyBuffer(onlyWriter{io.Discard}, io.LimitReader(v.unpacker, raw+1), v.block)
	switch {
	case err != nil:
		return &DamagedError{What: "it cannot be unpacked", Err: err}
	case n != raw:
		return damaged("it has %d bytes unpacked, its header says %d", n, raw)
	}
	return nil
}

// load reads a page's bytes, or leaves that to who reads them if they are many.
func (v *verifier) load(body *io.SectionReader) (io.Reader, error) {
	size := body.Size()
	if size > packedBytesMax {
		return body, nil
	}
	v.packed = slices.Grow(v.packed[:0], int(size))[:size]
	if _, err := io.ReadFull(body, v.packed); err != nil {
		return nil, err
	}
	return bytes.NewReader(v.packed), nil
}

// onlyWriter hides io.ReaderFrom, which would not use the buffer.
type onlyWriter struct{ io.Writer }
