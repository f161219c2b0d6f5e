package remote

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Version tells one state of a remote file from another. Its JSON form is
// kept in state.
type Version struct {
	Bytes   int64     `json:"bytes"` // -1: the server does not say
	ETag    string    `json:"etag,omitempty"`
	ModTime time.Time `json:"mod_time,omitzero"`
	Sum     string    `json:"sum,omitempty"` // of the content, where the server gives no ETag and no time
}

// dated reports whether the server says anything by which a change shows.
func (v Version) dated() bool { return v.ETag != "" || !v.ModTime.IsZero() }

// same reports whether two versions are of the same content.
func (v Version) same(w Version) bool {
	if v.Bytes >= 0 && w.Bytes >= 0 && v.Bytes != w.Bytes {
		return false
	}
	switch {
	case v.ETag != "" && w.ETag != "":
		return v.ETag == w.ETag
	case !v.ModTime.IsZero() && !w.ModTime.IsZero():
		return v.ModTime.Equal(w.ModTime)
	}
	return v.Sum != "" && v.Sum == w.Sum
}

// identical reports whether nothing that the server says of two versions is different: the same
// content may have been written again.
func (v Version) identical(w Version) bool {
	return v.Bytes == w.Bytes && v.ETag == w.ETag && v.ModTime.Equal(w.ModTime)
}

// String is the version for people.
func (v Version) String() string {
	s := fmt.Sprintf("%d bytes", v.Bytes)
	if v.Bytes < 0 {
		s = "unknown size"
	}
	switch {
	case !v.ModTime.IsZero():
		s += " of " + v.ModTime.UTC().Format(time.RFC3339)
	case v.ETag != "":
		s += ", ETag " + v.ETag
	}
	return s
}

// Encode is the form that state keeps.
func (v Version) Encode() string {
	data, err := json.Marshal(v)
	if err != nil {
		return "" // numbers and texts only: cannot be
	}
	return string(data)
}

// decodeVersion reads what Encode wrote.
func decodeVersion(s string) (v Version, err error) {
	if err := json.Unmarshal([]byte(s), &v); err != nil {
		return v, fmt.Errorf("read the version of a remote file: %w", err)
	}
	return v, nil
}

// StrongTag gives the entity tag of an encoded version, by which the server
// promises the same bytes; "": it gives none, or only a weak one.
func StrongTag(version string) string {
	v, err := decodeVersion(version)
	if err != nil {
		return ""
	}
	return v.StrongTag()
}

// StrongTag is that of the version.
func (v Version) StrongTag() string {
	if strings.HasPrefix(v.ETag, "W/") {
		return ""
	}
	return v.ETag
}

// SumOf gives the checksum of an encoded version's content; "": it has none.
func SumOf(version string) string {
	v, err := decodeVersion(version)
	if err != nil {
		return ""
	}
	return v.Sum
}
