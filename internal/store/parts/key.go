package parts

import (
	"fmt"
	"hash/crc32"
	"io"
	"strings"

	"thalweg/internal/base/fault"
)

// Limits of a key, in bytes.
const (
	MaxKeyBytes     = 512
	MaxSegmentBytes = 255 // what file systems bear
)

// CheckKey says why a key is not one, or nil.
func CheckKey(key string) error {
	if err := checkText(key); err != nil {
		return err
	}
	for segment := range strings.SplitSeq(key, "/") {
		if err := checkSegment(key, segment); err != nil {
			return err
		}
	}
	return nil
}

// CheckPrefix says why a text cannot be the beginning of a key, or nil. The
// empty prefix is the beginning of all keys.
func CheckPrefix(prefix string) error {
	if err := checkText(prefix); err != nil {
		return err
	}
	slash := strings.LastIndexByte(prefix, '/')
	if slash < 0 {
		return nil
	}
	return CheckKey(prefix[:slash])
}

func checkText(key string) error {
	if len(key) > MaxKeyBytes {
		return badKey(key[:MaxKeyBytes]+"…", fmt.Sprintf("is longer than %d bytes", MaxKeyBytes))
	}
	for i := range len(key) {
		switch c := key[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("_.=-/", c) >= 0:
		default:
			return badKey(key, fmt.Sprintf("has the byte %q, which is not one of A-Z a-z 0-9 _ . = - /", c))
		}
	}
	return nil
}

func checkSegment(key, segment string) error {
	switch {
	case segment == "":
		return badKey(key, "has an empty segment")
	case segment == "." || segment == "..":
		return badKey(key, "leads out of its directory")
	case len(segment) > MaxSegmentBytes:
		return badKey(key, fmt.Sprintf("has a segment of more than %d bytes", MaxSegmentBytes))
	}
	return nil
}

func badKey(key, why string) error {
	return fault.New(fault.Bug, "part key %q %s", key, why)
}

// Checksum reads r to its end and returns the checksum of its bytes in the
// form that Info has, and their number.
func Checksum(r io.Reader) (sum string, bytes int64, err error) {
	h := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	bytes, err = io.CopyBuffer(h, onlyReader{r}, make([]byte, checksumBufferBytes))
	if err != nil {
		return "", bytes, fmt.Errorf("compute checksum: %w", err)
	}
	return fmt.Sprintf("crc32c:%08x", h.Sum32()), bytes, nil
}

// checksumBufferBytes is large enough that the system calls do not show.
const checksumBufferBytes = 256 << 10

// onlyReader hides what else a reader can do, so that the buffer is used.
type onlyReader struct{ io.Reader }
