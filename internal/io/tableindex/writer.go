package tableindex

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"strconv"

	"thalweg/internal/base/fault"
)

// Meta is what a file says of itself.
type Meta struct {
	Key     []string `json:"key"`     // columns that the key is made of
	Columns []string `json:"columns"` // of the values
	// Source says what the rows are, for people: a workspace, a run, a node.
	Source string `json:"source,omitempty"`
	Digest string `json:"digest,omitempty"` // of the table
}

// Writer writes a file. It holds 11 bytes a row in memory, and 1 MiB.
type Writer struct {
	file   *os.File
	meta   Meta
	h      header
	slots  []uint64
	buffer []byte // of the file from flushed on
	begun  int64  // where the buffer begins, counted from the end of the header
	sums   []byte
	block  uint32 // checksum of the block that is being written
	filled int64  // of that block
	most   int64  // rows that there may be
}

// ErrTooMany says that there are more rows than were announced.
var ErrTooMany = errors.New("more rows than were announced")

const writeBufferBytes = 1 << 20

// NewWriter writes into an empty file, at most a number of rows. The caller closes,
// flushes and names the file.
func NewWriter(file *os.File, rows int64, meta Meta) (*Writer, error) {
	if rows < 0 || rows > MaxRows {
		return nil, fault.New(fault.UserData, "an index of %d rows: there may be %d", rows, int64(MaxRows))
	}
	if len(meta.Columns) > MaxColumns {
		return nil, fault.New(fault.Script, "an index of %d columns: there may be %d", len(meta.Columns), MaxColumns)
	}
	if _, err := file.Seek(headerBytes, 0); err != nil {
		return nil, fmt.Errorf("write index: %w", err)
	}
	n := slotsFor(rows)
	return &Writer{file: file, meta: meta, h: header{slots: n, slotsBytes: n * slotBytes}, slots: make([]uint64, n),
		most: rows, buffer: make([]byte, 0, writeBufferBytes)}, nil
}

// WriterBytes is what a Writer of so many rows holds in memory.
func WriterBytes(rows int64) int64 {
	return slotsFor(rows)*slotBytes + writeBufferBytes + MaxKeyBytes + MaxRowBytes
}

// Frame appends a value as a RESP2 client gets it.
func Frame(to, value []byte) []byte {
	to = append(to, '$')
	to = strconv.AppendInt(to, int64(len(value)), 10)
	to = append(to, '\r', '\n')
	to = append(to, value...)
	return append(to, '\r', '\n')
}

// Null is the frame of a value that is NULL.
const Null = "$-1\r\n"

// CheckSize refuses a key and a row of so many bytes that no index takes them. Of key the beginning is enough.
func CheckSize(key []byte, keyBytes, rowBytes int64) error {
	var f *fault.Error
	switch {
	case keyBytes > MaxKeyBytes:
		f = fault.New(fault.UserData, "the key %s… has %d bytes: an index takes %d", shown(key), keyBytes, MaxKeyBytes)
		f.Hint = "choose another key"
	case rowBytes > MaxRowBytes:
		f = fault.New(fault.UserData, "the row of the key %s has %d bytes: an index takes %d", shown(key), rowBytes,
			MaxRowBytes)
		f.Hint = "leave columns out, or cut their texts off"
	default:
		return nil
	}
	return f
}

// Size is the size of a file of so many rows, whose keys and values take rowsBytes with their lengths before them.
func Size(rows, rowsBytes int64, meta Meta) (int64, error) {
	text, err := json.Marshal(meta)
	if err != nil {
		return 0, fmt.Errorf("measure an index: %w", err)
	}
	h := header{rowsBytes: rowsBytes, slotsBytes: slotsFor(rows) * slotBytes, metaBytes: int64(len(text))}
	h.sumsBytes = h.blocks() * sumBytes
	return h.end(), nil
}

// Add adds a row: the frames of its values one behind the other.
func (w *Writer) Add(key, frames []byte) error {
	if err := CheckSize(key, int64(len(key)), int64(len(frames))); err != nil {
		return err
	}
	if w.h.rows == w.most {
		return fmt.Errorf("write index: %w", ErrTooMany)
	}
	place := w.begun + int64(len(w.buffer)) + 1 // no place is 0: that is a free slot
	if place > maxPlace {
		return fault.New(fault.UserData, "an index has at most %d bytes of rows", int64(maxPlace))
	}
	hash := hashOf(key)
	at := firstSlot(hash, w.h.slots)
	for w.slots[at] != 0 {
		if w.slots[at]&^maxPlace == tag(hash) {
			same, err := w.hasKey(int64(w.slots[at]&maxPlace)-1, key)
			if err != nil {
				return err
			}
			if same {
				twice := fault.New(fault.UserData, "the key %s is in two rows: keys of an index are unique", shown(key))
				twice.Hint = "make them distinct in a node of type distinct_table, or choose another key"
				return twice
			}
		}
		if at++; at == w.h.slots {
			at = 0
		}
	}
	w.slots[at] = tag(hash) | uint64(place)
	w.h.rows++
	w.buffer = binary.AppendUvarint(w.buffer, uint64(len(key)))
	w.buffer = append(w.buffer, key...)
	w.buffer = binary.AppendUvarint(w.buffer, uint64(len(frames)))
	w.buffer = append(w.buffer, frames...)
	if len(w.buffer) >= writeBufferBytes {
		return w.flush()
	}
	return nil
}

// shown is a key in an error.
func shown(key []byte) string {
	const most = 100
	return strconv.Quote(string(key[:min(len(key), most)]))
}

// hasKey reports whether the row at a place has a key.
func (w *Writer) hasKey(place int64, key []byte) (bool, error) {
	want := append(binary.AppendUvarint(nil, uint64(len(key))), key...)
	if place >= w.begun {
		return string(w.buffer[place-w.begun:][:min(int64(len(want)), w.begun+int64(len(w.buffer))-place)]) ==
			string(want), nil
	}
	got := make([]byte, min(int64(len(want)), w.begun-place))
	if _, err := w.file.ReadAt(got, headerBytes+place); err != nil {
		return false, fmt.Errorf("write index: read a key again: %w", err)
	}
	return string(got) == string(want), nil
}

// flush writes what is in the buffer.
func (w *Writer) flush() error {
	if _, err := w.file.Write(w.buffer); err != nil {
		return fmt.Errorf("write index: %w", err)
	}
	w.begun += int64(len(w.buffer))
	for rest := w.buffer; len(rest) > 0; {
		n := min(int64(len(rest)), blockBytes-w.filled)
		w.block = crc32.Update(w.block, castagnoli, rest[:n])
		w.filled += n
		rest = rest[n:]
		if w.filled == blockBytes {
			w.endBlock()
		}
	}
	w.buffer = w.buffer[:0]
	return nil
}

func (w *Writer) endBlock() {
	w.sums = binary.LittleEndian.AppendUint32(w.sums, w.block)
	w.block, w.filled = 0, 0
}

// Finish writes what follows the rows, and then the header. The file is whole once it is flushed.
func (w *Writer) Finish() error {
	meta, err := json.Marshal(w.meta)
	if err != nil {
		return fmt.Errorf("write index: %w", err)
	}
	if len(meta) > MaxMetaBytes {
		return fault.New(fault.Script, "the names of an index have %d bytes: there may be %d", len(meta), MaxMetaBytes)
	}
	w.h.rowsBytes = w.begun + int64(len(w.buffer))
	for _, slot := range w.slots {
		w.buffer = binary.LittleEndian.AppendUint64(w.buffer, slot)
		if len(w.buffer) >= writeBufferBytes {
			if err := w.flush(); err != nil {
				return err
			}
		}
	}
	w.buffer = append(w.buffer, meta...)
	if err := w.flush(); err != nil {
		return err
	}
	if w.filled > 0 {
		w.endBlock()
	}
	w.h.metaBytes, w.h.sumsBytes = int64(len(meta)), int64(len(w.sums))
	w.h.sums = crc32.Checksum(w.sums, castagnoli)
	if _, err := w.file.Write(w.sums); err != nil {
		return fmt.Errorf("write index: %w", err)
	}
	if _, err := w.file.WriteAt(w.h.encode(), 0); err != nil {
		return fmt.Errorf("write index: %w", err)
	}
	return nil
}
