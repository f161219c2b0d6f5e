package outfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"thalweg/internal/base/fault"
	"thalweg/internal/lang/script"
)

// manifestBytesMax bounds the manifest of a directory that is to be replaced.
const manifestBytesMax = 64 << 20

// Replaceable refuses a directory in which there is anything else than what its manifest
// lists: nobody's files are replaced. One that is not there, or empty, is fine.
func Replaceable(dir string) error {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return foreign(fmt.Sprintf("%s cannot be replaced by a directory of files", dir), err)
	case len(entries) == 0:
		return nil
	}
	listed, err := listedIn(dir)
	if err != nil {
		return err
	}
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil || entry.IsDir() || listed[filepath.ToSlash(name)] {
			return err
		}
		return foreign(fmt.Sprintf("directory %s is replaced as a whole, but has the file %s in it, which is none of "+
			"those that %s lists", dir, name, script.DirManifest), nil)
	})
}

// listedIn are the files that a directory's manifest lists, and itself.
func listedIn(dir string) (map[string]bool, error) {
	path := filepath.Join(dir, script.DirManifest)
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil,
			foreign(fmt.Sprintf("directory %s is replaced as a whole, but was not written by Thalweg: it has no %s",
				dir, script.DirManifest), nil)
	}
	var m Manifest
	if err == nil && info.Size() > manifestBytesMax {
		err = errors.New("it is too large")
	}
	if err == nil {
		var text []byte
		if text, err = os.ReadFile(path); err == nil {
			err = json.Unmarshal(text, &m)
		}
	}
	if err == nil && m.Format != ManifestFormat {
		err = errors.New("it is no manifest of this version")
	}
	if err != nil {
		return nil, foreign("the manifest "+path+" of a directory that is to be replaced cannot be read", err)
	}
	listed := map[string]bool{script.DirManifest: true}
	for _, f := range m.Files {
		listed[f.Name] = true
	}
	return listed, nil
}

func foreign(message string, err error) error {
	return &fault.Error{Kind: fault.Script, Message: message, Err: err,
		Hint: "write to another directory, or remove this one by hand"}
}
