package remote

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"thalweg/internal/address"
)

// journal notes an upload that the server keeps until it is completed or
// aborted, so that somebody can abort it after the process that began it died.
// It is written before the upload is asked for, without Upload, and again when
// the server has named it: a process that dies in between has begun an upload
// whose name nobody knows, which is then looked for at the server.
type journal struct {
	Bucket string    `json:"bucket"`
	Key    string    `json:"key"`
	Begun  time.Time `json:"begun,omitzero"`
	Upload string    `json:"upload,omitempty"`
}

// clockSkewMax is how far the server's clock may be behind ours: an upload that
// was begun longer before the journal is somebody else's.
const clockSkewMax = 15 * time.Minute

func (j journal) location() address.Location {
	return address.Location{Scheme: "s3", Bucket: j.Bucket, Path: j.Key, URL: "s3://" + j.Bucket + "/" + j.Key}
}

const journalBytesMax = 64 << 10

// readJournal gives the zero journal if there is none.
func readJournal(path string) (j journal, err error) {
	data, err := readLimited(path, journalBytesMax)
	if errors.Is(err, fs.ErrNotExist) {
		return j, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &j)
	}
	if err != nil {
		return j, fmt.Errorf("read what an earlier attempt left at the server: %w", err)
	}
	return j, nil
}

// write replaces the journal as a whole.
func (j journal) write(path string) error {
	data, err := json.Marshal(j)
	if err == nil {
		err = writeWhole(path, data)
	}
	if err != nil {
		return localFault("note what is being sent", err)
	}
	return nil
}

// writeWhole writes a small file so that it is there whole or not at all.
func writeWhole(path string, data []byte) (err error) {
	temp := path + ".new"
	f, err := os.OpenFile(temp, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(temp, path)
}

func removeJournal(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return localFault("remove the note of what was sent", err)
	}
	return nil
}
