package tableindex

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// Table is a file that is open for reading. Any number of goroutines may read it at once.
type Table struct {
	Meta Meta
	h    header
	// all is a copy of the file in memory of our own; nil: the file is read with each answer.
	all   []byte
	file  *os.File
	stamp Stamp
}

// Stamp tells the content of a file from another, without reading it.
type Stamp struct {
	device, inode uint64
	size          int64
	Written       time.Time
}

// StampOf returns the stamp of the file that a path leads to.
func StampOf(path string) (Stamp, error) {
	info, err := os.Stat(path)
	if err != nil {
		return Stamp{}, fmt.Errorf("look at index %s: %w", path, err)
	}
	return stampOf(info), nil
}

func stampOf(info os.FileInfo) Stamp {
	s := Stamp{size: info.Size(), Written: info.ModTime()}
	if system, ok := info.Sys().(*syscall.Stat_t); ok {
		s.device, s.inode = uint64(system.Dev), system.Ino
	}
	return s
}

// Options say how a file is opened.
type Options struct {
	// Cold reads from the file with each answer, instead of copying it: it may be larger than memory.
	Cold bool
	// Gently leaves the processors to others: one of them is used, for a moment at a time.
	Gently bool
}

// Open copies a file into memory, and verifies all of it. It refuses a file of which a bit is not as it was written.
func Open(ctx context.Context, path string) (*Table, error) { return OpenWith(ctx, path, Options{}) }

// OpenCold verifies a file, and reads from it with each answer: it may be larger than memory.
func OpenCold(ctx context.Context, path string) (*Table, error) {
	return OpenWith(ctx, path, Options{Cold: true})
}

// OpenWith is Open, or OpenCold, as options say.
func OpenWith(ctx context.Context, path string, o Options) (_ *Table, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("open index %s: %w", path, err)
		}
	}()
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	t := &Table{file: file}
	defer func() {
		if err != nil {
			t.Close()
		}
	}()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("it is no file")
	}
	t.stamp = stampOf(info)
	page := make([]byte, headerBytes)
	if info.Size() < headerBytes {
		return nil, fmt.Errorf("it is no index of a table")
	}
	if _, err := file.ReadAt(page, 0); err != nil {
		return nil, err
	}
	if t.h, err = decodeHeader(page, info.Size()); err != nil {
		return nil, err
	}
	if !o.Cold {
		if t.all, err = allocate(info.Size()); err != nil {
			return nil, err
		}
		copy(t.all, page)
	}
	if err := t.verify(ctx, o.Gently); err != nil {
		return nil, err
	}
	if err := t.readMeta(); err != nil {
		return nil, err
	}
	if t.Changed() {
		return nil, fmt.Errorf("it was written while it was read")
	}
	return t, nil
}

// allocate returns zeroed memory outside of Go's heap, on huge pages where the kernel gives them: a lookup goes to two
// random places, and with small pages most of its time was the search for theirs (decision 0072).
func allocate(size int64) ([]byte, error) {
	all, err := unix.Mmap(-1, 0, int(size), unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		return nil, fmt.Errorf("take %d bytes of memory: %w", size, err)
	}
	_ = unix.Madvise(all, unix.MADV_HUGEPAGE) // small ones do, too
	return all, nil
}

// Stamp returns the file's stamp as it was opened.
func (t *Table) Stamp() Stamp { return t.stamp }

// Changed reports whether somebody has written into the file since it was opened: then answers of a cold one may be
// wrong.
func (t *Table) Changed() bool {
	info, err := t.file.Stat()
	return err != nil || stampOf(info) != t.stamp
}

// Size is the size of a file in bytes, as far as its header tells; it is not verified.
func (t *Table) Size() int64 { return t.h.end() }

// Rows is the number of rows.
func (t *Table) Rows() int64 { return t.h.rows }

// Close releases the file. Nobody may be reading it.
func (t *Table) Close() error {
	if t.all != nil {
		// piece by piece: one call would keep others of this process from their memory
		for rest := t.all; len(rest) > 0; rest = rest[min(len(rest), releaseBytes):] {
			_ = unix.Madvise(rest[:min(len(rest), releaseBytes)], unix.MADV_DONTNEED)
		}
		if err := unix.Munmap(t.all); err != nil {
			return fmt.Errorf("release index: %w", err)
		}
		t.all = nil
	}
	return t.file.Close()
}

const releaseBytes = 16 << 20

// read reads bytes of the file into a buffer, whether it has been copied or not.
func (t *Table) read(at, n int64, buffer []byte) ([]byte, error) {
	if int64(cap(buffer)) < n {
		buffer = make([]byte, n)
	}
	buffer = buffer[:n]
	_, err := t.file.ReadAt(buffer, at)
	return buffer, err
}

// section returns bytes of the file, read into buffer where it has not been copied.
func (t *Table) section(at, n int64, buffer []byte) ([]byte, error) {
	if t.all != nil {
		return t.all[at : at+n], nil
	}
	return t.read(at, n, buffer)
}

// verify reads all bytes, to where they are kept if they are, and compares them with their checksums.
func (t *Table) verify(ctx context.Context, gently bool) error {
	if err := t.verifySums(ctx); err != nil {
		return err
	}
	var next atomic.Int64
	work, ctx := errgroup.WithContext(ctx)
	workers := runtime.GOMAXPROCS(0)
	if gently {
		workers = 1
	}
	for range workers {
		work.Go(func() error {
			buffer := make([]byte, blockBytes)
			for ctx.Err() == nil {
				b := next.Add(1) - 1
				if b >= t.h.blocks() {
					return nil
				}
				if err := t.verifyBlock(b, buffer); err != nil {
					return err
				}
				if gently {
					runtime.Gosched()
				}
			}
			return ctx.Err()
		})
	}
	return work.Wait()
}

// verifySums compares the checksums with theirs, a piece at a time: how many there are is only what the header says.
func (t *Table) verifySums(ctx context.Context) error {
	sum, buffer := uint32(0), make([]byte, blockBytes)
	for at := t.h.sumsAt(); at < t.h.end() && ctx.Err() == nil; at += blockBytes {
		piece, err := t.read(at, min(blockBytes, t.h.end()-at), buffer)
		if err != nil {
			return err
		}
		sum = crc32.Update(sum, castagnoli, piece)
	}
	if ctx.Err() == nil && sum != t.h.sums {
		return fmt.Errorf("its checksums are damaged")
	}
	return ctx.Err()
}

func (t *Table) verifyBlock(b int64, buffer []byte) error {
	at := headerBytes + b*blockBytes
	n := min(blockBytes, t.h.sumsAt()-at)
	var sum [sumBytes]byte
	if _, err := t.file.ReadAt(sum[:], t.h.sumsAt()+b*sumBytes); err != nil {
		return err
	}
	if t.all != nil {
		buffer = t.all[at : at+n : at+n]
	}
	block, err := t.read(at, n, buffer)
	if err != nil {
		return err
	}
	if crc32.Checksum(block, castagnoli) != binary.LittleEndian.Uint32(sum[:]) {
		return fmt.Errorf("its bytes from %d on are damaged", at)
	}
	return nil
}

func (t *Table) readMeta() error {
	text, err := t.read(t.h.metaAt(), t.h.metaBytes, nil)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &t.Meta); err != nil {
		return fmt.Errorf("what it says of itself: %w", err)
	}
	return nil
}

// Lookup returns the frames of the values of a key's row. They are valid until Close, or,
// of a cold file, until the buffer is used again, which it returns, as long as it was needed.
func (t *Table) Lookup(key, buffer []byte) (frames, used []byte, found bool, err error) {
	hash := hashOf(key)
	at := firstSlot(hash, t.h.slots)
	for range t.h.slots {
		slot, err := t.slot(at)
		if err != nil {
			return nil, buffer, false, err
		}
		if slot == 0 {
			return nil, buffer, false, nil
		}
		if slot&^maxPlace == tag(hash) {
			frames, buffer, found, err = t.row(int64(slot&maxPlace)-1, key, buffer)
			if found || err != nil {
				return frames, buffer, found, err
			}
		}
		if at++; at == t.h.slots {
			at = 0
		}
	}
	return nil, buffer, false, nil
}

// Place returns the slot at which the lookup of a key begins, for Touch.
func (t *Table) Place(key []byte) uint64 { return uint64(firstSlot(hashOf(key), t.h.slots)) }

// Touch reads where lookups that begin at places will, so that the processor waits for all of them at once. What it
// returns says nothing. It uses places up.
func (t *Table) Touch(places []uint64) (sum byte) {
	if t.all == nil {
		return 0
	}
	slots := t.all[t.h.slotsAt():]
	for i, place := range places {
		places[i] = binary.LittleEndian.Uint64(slots[place*slotBytes:])
	}
	rows := t.all[headerBytes : headerBytes+t.h.rowsBytes]
	for _, slot := range places {
		if place := slot & maxPlace; place-1 < uint64(len(rows)) { // an empty slot has none
			sum += rows[place-1]
		}
	}
	return sum
}

func (t *Table) slot(at int64) (uint64, error) {
	place := t.h.slotsAt() + at*slotBytes
	if t.all != nil {
		return binary.LittleEndian.Uint64(t.all[place:]), nil
	}
	var slot [slotBytes]byte
	if _, err := t.file.ReadAt(slot[:], place); err != nil {
		return 0, fmt.Errorf("read index: %w", err)
	}
	return binary.LittleEndian.Uint64(slot[:]), nil
}

// coldBytes is what is read of a row at once.
const coldBytes = 1 << 10

// row returns the frames of the row at a place, if it has the key.
func (t *Table) row(place int64, key, buffer []byte) (frames, used []byte, found bool, err error) {
	if place < 0 || place >= t.h.rowsBytes {
		return nil, buffer, false, fmt.Errorf("read index: a row at %d of %d", place, t.h.rowsBytes)
	}
	row := t.all[min(int64(len(t.all)), headerBytes+place):]
	if t.all != nil {
		row = row[:t.h.rowsBytes-place]
	} else {
		n := min(t.h.rowsBytes-place, int64(coldBytes+len(key)))
		if row, err = t.section(headerBytes+place, n, buffer); err != nil {
			return nil, buffer, false, fmt.Errorf("read index: %w", err)
		}
		buffer = row
	}
	size, n := binary.Uvarint(row)
	if n <= 0 || size != uint64(len(key)) || uint64(len(row)-n) < size || string(row[n:][:size]) != string(key) {
		return nil, buffer, false, nil
	}
	rest := row[n+int(size):]
	size, n = binary.Uvarint(rest)
	if n <= 0 || size > uint64(t.h.rowsBytes) {
		return nil, buffer, false, fmt.Errorf("read index: the row at %d has no end", place)
	}
	if uint64(len(rest)-n) < size { // only of a cold file: the rest of the row is read
		whole := int64(len(row)-len(rest)+n) + int64(size)
		if place+whole > t.h.rowsBytes {
			return nil, buffer, false, fmt.Errorf("read index: the row at %d has no end", place)
		}
		if row, err = t.section(headerBytes+place, whole, buffer); err != nil {
			return nil, buffer, false, fmt.Errorf("read index: %w", err)
		}
		return row[whole-int64(size):], row, true, nil
	}
	return rest[n : n+int(size)], buffer, true, nil
}

// SizeOf returns what a file needs in memory, in bytes, without opening it.
func SizeOf(path string) (int64, error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, fmt.Errorf("open index %s: %w", path, err)
	}
	return info.Size(), nil
}
