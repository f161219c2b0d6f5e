package pagesum

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
)

// LogSuffix of SQLite's write-ahead log.
const LogSuffix = "-wal"

// The log's format: https://www.sqlite.org/fileformat2.html#walformat
const (
	logHeaderBytes   = 32
	frameHeaderBytes = 24
	logMagic         = 0x377f0682 // the last bit says in which order sums take bytes
	logTries         = 100        // readings of a log that others are writing, each of which finds another place
)

// ErrLogDamaged says that there are commits in the log behind a place that
// cannot be read.
var ErrLogDamaged = errors.New("the write-ahead log is damaged")

// CheckLog looks for damage in the log of a database. SQLite takes the first
// frame that does not fit for the log's end, as it is where a process has
// died: whatever was committed behind it would be forgotten in silence. A
// process that dies leaves at most one commit behind such a frame, of which
// nobody has been told. Damage in the last commit looks like that and is not
// noticed: then that commit has not happened.
//
// A log with anything of such a commit is unfinished: what is committed from now
// on is written over the place, and what is left of it stays behind. It has to
// begin anew before the next power cut completes what is left to a second commit,
// which would look like damage.
//
// Others may be writing the log meanwhile: a frame that is half written when it
// is read, or a log that begins anew, looks like that, too. Both have gone on when
// it is read again; damage is where it was.
func CheckLog(path string) (unfinished bool, err error) {
	var before damage
	for range logTries {
		found, err := checkLog(path + LogSuffix)
		if err != nil || found == (damage{}) {
			return false, err
		}
		if found == before {
			break
		}
		before = found
	}
	if before.frame >= 0 && before.commits <= commitsUntold {
		return true, nil // some of one commit, with its end or without
	}
	return false, fmt.Errorf("%w: %s", ErrLogDamaged, before)
}

// commitsUntold is the number of commits that a process may have written before it died without seeing their
// end. SQLite has one writer at a time.
const commitsUntold = 1

// damage describes a log that is damaged, unfinished, or being written; the zero value: none of it.
type damage struct {
	salt    [8]byte // of the log: another one each time that it begins anew
	frame   int64   // -1: the log's header
	content uint32  // checksum of the frame, or the header, as it was read
	commits int     // behind the frame; 0 if there is only some of one
}

func (d damage) String() string {
	if d.frame < 0 {
		return "its header"
	}
	return fmt.Sprintf("frame %d, with %d commits behind it", d.frame, d.commits)
}

func checkLog(path string) (found damage, err error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return found, nil
	}
	if err != nil {
		return found, fmt.Errorf("open the write-ahead log: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	var header [logHeaderBytes]byte
	if _, err := f.ReadAt(header[:], 0); err != nil || header == [logHeaderBytes]byte{} {
		if err == nil || errors.Is(err, io.EOF) {
			return found, nil // nothing was ever committed to it
		}
		return found, fmt.Errorf("read the write-ahead log: %w", err)
	}
	l := log{}
	if !l.begin(header[:]) {
		return damage{frame: -1, content: crc32.ChecksumIEEE(header[:])}, nil
	}
	return l.scan(f)
}

// log is the state of the reading of one.
type log struct {
	order      binary.ByteOrder
	s0, s1     uint32
	salt       [8]byte
	bad        bool // a frame did not fit
	badFrame   int64
	badContent uint32
	left       bool // there is some of this log from there on
	commitsBad int  // commits of this log from there on
}

func (l *log) begin(header []byte) bool {
	l.order = binary.ByteOrder(binary.LittleEndian)
	magic := binary.BigEndian.Uint32(header)
	if magic&1 == 1 {
		l.order = binary.BigEndian
	}
	l.add(header[:24])
	copy(l.salt[:], header[16:24])
	return magic&^1 == logMagic && binary.BigEndian.Uint32(header[8:]) == PageBytes &&
		binary.BigEndian.Uint32(header[24:]) == l.s0 && binary.BigEndian.Uint32(header[28:]) == l.s1
}

// add continues the checksum.
func (l *log) add(data []byte) {
	for ; len(data) >= 8; data = data[8:] {
		l.s0 += l.order.Uint32(data) + l.s1
		l.s1 += l.order.Uint32(data[4:]) + l.s0
	}
}

func (l *log) scan(f io.ReaderAt) (damage, error) {
	const frameBytes = frameHeaderBytes + PageBytes
	frame := make([]byte, frameBytes)
	for n := int64(0); ; n++ {
		got, err := f.ReadAt(frame, logHeaderBytes+n*frameBytes)
		if err != nil && !errors.Is(err, io.EOF) {
			return damage{}, fmt.Errorf("read the write-ahead log: %w", err)
		}
		if got == 0 {
			break
		}
		clear(frame[got:]) // of a frame that is cut short: it does not fit
		l.frame(n, frame)
	}
	if l.bad && l.left {
		return damage{salt: l.salt, frame: l.badFrame, content: l.badContent, commits: l.commitsBad}, nil
	}
	return damage{}, nil
}

// frame looks at one. Frames of an earlier log, which this one has begun to
// overwrite, have other salts, in both halves: one that differs in a half is
// damaged.
func (l *log) frame(n int64, frame []byte) {
	salt := [8]byte(frame[8:16])
	if !l.bad {
		l.add(frame[:8])
		l.add(frame[frameHeaderBytes:])
		l.bad = salt != l.salt || binary.BigEndian.Uint32(frame[16:]) != l.s0 ||
			binary.BigEndian.Uint32(frame[20:]) != l.s1
		if l.badFrame = n; l.bad {
			l.badContent = crc32.ChecksumIEEE(frame)
		}
	}
	if !l.bad {
		return
	}
	if [4]byte(salt[:4]) == [4]byte(l.salt[:4]) || [4]byte(salt[4:]) == [4]byte(l.salt[4:]) {
		l.left = true
		if binary.BigEndian.Uint32(frame[4:]) != 0 {
			l.commitsBad++
		}
	}
	// A header that lies in two sectors may have come half.
	l.left = l.left || salt == [8]byte{} && [8]byte(frame[:8]) != [8]byte{}
}
