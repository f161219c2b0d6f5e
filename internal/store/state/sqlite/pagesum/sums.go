package pagesum

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
)

// PageBytes is the size of a page: SQLite's default, which state files have.
const PageBytes = 4096

// An entry has a page's CRC-32C and a mark: without the mark there is none.
const (
	entryBytes = 8
	entryMark  = 0x53_4d_31_54 // "T1MS"
)

// fileMode of the checksums: they say nothing of what is in the pages.
const fileMode = 0o644

// sums are the checksums of a file's pages, which are numbered from 0.
type sums struct {
	f     *os.File
	table *crc32.Table
}

func openSums(path string) (*sums, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, fileMode)
	if err != nil {
		return nil, fmt.Errorf("open the checksums of the state file: %w", err)
	}
	return &sums{f: f, table: crc32.MakeTable(crc32.Castagnoli)}, nil
}

// of is a page's checksum. Its number is part of it, so that no page passes
// for another.
func (s *sums) of(page int64, data []byte) uint32 {
	var number [8]byte
	binary.LittleEndian.PutUint64(number[:], uint64(page))
	return crc32.Update(crc32.Checksum(number[:], s.table), s.table, data)
}

// matches reports whether a page is what was written. short says that the
// file ends before or in it.
func (s *sums) matches(page int64, data []byte, short bool) bool {
	var entry [entryBytes]byte
	_, err := s.f.ReadAt(entry[:], page*entryBytes)
	if err != nil && !errors.Is(err, io.EOF) {
		return false
	}
	if err != nil || entry == [entryBytes]byte{} {
		return true // not known
	}
	if short || binary.LittleEndian.Uint32(entry[4:]) != entryMark {
		return false
	}
	return binary.LittleEndian.Uint32(entry[:4]) == s.of(page, data)
}

// note records a page that was written.
func (s *sums) note(page int64, data []byte) error {
	var entry [entryBytes]byte
	binary.LittleEndian.PutUint32(entry[:4], s.of(page, data))
	binary.LittleEndian.PutUint32(entry[4:], entryMark)
	_, err := s.f.WriteAt(entry[:], page*entryBytes)
	return err
}

func (s *sums) truncate(pages int64) error {
	st, err := s.f.Stat()
	if err != nil || st.Size() <= pages*entryBytes {
		return err
	}
	return s.f.Truncate(pages * entryBytes)
}

func (s *sums) sync() error  { return s.f.Sync() }
func (s *sums) close() error { return s.f.Close() }
