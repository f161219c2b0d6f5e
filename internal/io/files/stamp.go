package files

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"thalweg/internal/base/fault"
)

// edgeBytes is the size of each end of a file that goes into its digest. That covers all of a small file, and
// the footer of a Parquet file, which holds the place and size of everything.
const edgeBytes = 64 << 10

// digestEdges identifies the beginning and the end of a file of so many bytes.
func digestEdges(path string, bytes int64) (_ string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	h := sha256.New()
	if _, err := io.Copy(h, io.NewSectionReader(f, 0, edgeBytes)); err != nil {
		return "", err
	}
	if bytes > edgeBytes {
		from := max(bytes-edgeBytes, edgeBytes)
		if _, err := io.Copy(h, io.NewSectionReader(f, from, bytes-from)); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:digestBytes]), nil
}

// digestBytes of a digest are kept: enough that no two files have the same by chance.
const digestBytes = 16

// sameTime compares two times of a file, of which one may have been kept in
// state, which keeps whole milliseconds.
func sameTime(a, b time.Time) bool {
	cutA, cutB := a.Truncate(time.Millisecond), b.Truncate(time.Millisecond)
	return a.Equal(b) || cutA.Equal(cutB) && (cutA.Equal(a) || cutB.Equal(b))
}

// Stamp identifies the content of a file of this machine.
type Stamp struct {
	Bytes   int64     `json:"bytes"`
	ModTime time.Time `json:"mod_time"`
	Digest  string    `json:"digest"` // of its beginning and end
}

// StampOf looks at a file; u is its name for people.
func StampOf(path, u string) (s Stamp, err error) {
	src := source{url: u, path: path}
	st, err := os.Stat(path)
	if err != nil {
		return s, src.unread(err)
	}
	if !st.Mode().IsRegular() {
		return s, src.irregular(st)
	}
	s.Bytes, s.ModTime = st.Size(), st.ModTime().UTC()
	s.Digest, err = digestEdges(path, s.Bytes)
	return s, src.unread(err)
}

// Encode is the form that state keeps.
func (s Stamp) Encode() string {
	data, err := json.Marshal(s)
	if err != nil {
		return "" // the year of its time is beyond 9999
	}
	return string(data)
}

// DecodeStamp reads what Encode wrote.
func DecodeStamp(text string) (s Stamp, err error) {
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return s, fmt.Errorf("read what an input file was like: %w", err)
	}
	return s, nil
}

// Changed says that a file is not what it was.
func (s Stamp) Changed(u string, now Stamp) error {
	src := source{url: u}
	if s.Bytes == now.Bytes && sameTime(s.ModTime, now.ModTime) {
		return src.changed(sameLook)
	}
	return src.changed("%s; now %s", looked(s.ModTime, s.Bytes), looked(now.ModTime, now.Bytes))
}

// unchanged refuses a file that is not what was planned.
func (s Slice) unchanged() error {
	src := s.source()
	st, err := os.Stat(s.Path)
	if err != nil {
		return src.unread(err)
	}
	if st.Size() != s.FileBytes || !sameTime(st.ModTime(), s.ModTime) {
		return src.changed("%s; now %s", looked(s.ModTime, s.FileBytes), looked(st.ModTime(), st.Size()))
	}
	if s.Digest == "" { // planned by an earlier version
		return nil
	}
	now, err := digestEdges(s.Path, s.FileBytes)
	if err == nil && now != s.Digest {
		return src.changed(sameLook)
	}
	return src.unread(err)
}

// looked returns the time and size of a file, for messages: they are compared first.
func looked(at time.Time, bytes int64) string {
	return fmt.Sprintf("%s, %d bytes", at.UTC().Format(time.RFC3339Nano), bytes)
}

// sameLook is said of a file of which only the contents have changed.
const sameLook = "its size and time are the same, its contents are not"

// changed says that the file is not what was planned.
func (s source) changed(format string, args ...any) *fault.Error {
	f := s.bad("the input file changed after the run planned it ("+format+")", args...)
	f.Hint = "what this run has read of the file does not belong to the rest: {{do retry run=RUN}}, or a run without " +
		"{{set resume}}, begins a new one, which takes over what has not changed; with {{set fresh}} it " +
		"computes everything"
	return f
}

// Unchanged refuses slices of files that are not what was planned: the first
// of them is the error. Each file is looked at once.
func Unchanged(slices []Slice) error {
	seen := map[string]bool{}
	for _, s := range slices {
		if seen[s.Path] {
			continue
		}
		seen[s.Path] = true
		if err := s.unchanged(); err != nil {
			return err
		}
	}
	return nil
}

// SameFile reports whether two plans of a file saw the same of it.
func (s Slice) SameFile(other Slice) bool {
	return s.FileBytes == other.FileBytes && sameTime(s.ModTime, other.ModTime) &&
		(s.Digest == other.Digest || s.Digest == "" || other.Digest == "")
}

// ChangedSince says that a file is not what another node of the run was planned with.
func (s Slice) ChangedSince(node string, planned Slice) error {
	return s.source().changed("node %s has read it as it was at %s with %d bytes; now %s, %d bytes", node,
		planned.ModTime.Format(time.RFC3339Nano), planned.FileBytes, s.ModTime.Format(time.RFC3339Nano), s.FileBytes)
}

// Gone reports whether there is nothing any more where the file was.
func (s Slice) Gone() bool {
	_, err := os.Stat(s.Path)
	return errors.Is(err, fs.ErrNotExist)
}
