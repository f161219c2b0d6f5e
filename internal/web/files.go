package web

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// dist is made by `make ui`.
//
//go:embed all:dist
var dist embed.FS

// Names of files that browsers do not ask for.
const (
	indexName     = "index.html"
	sourcesSuffix = ".sha256"
	packedSuffix  = ".gz"
)

// digestBytes of the files' digest are in their addresses.
const digestBytes = 12

// types of files by how their names end.
var types = map[string]string{
	".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml",
	".png": "image/png", ".woff2": "font/woff2", ".md": "text/markdown; charset=utf-8",
}

// file is a file with its bytes as they are, and compressed.
type file struct {
	contentType   string
	plain, packed []byte // packed is nil if there is none
}

// read reads all files, and makes their digest.
func read(from fs.FS) (index []byte, files map[string]*file, digest string, err error) {
	files = map[string]*file{}
	sum := sha256.New()
	err = fs.WalkDir(from, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(from, name)
		if err != nil {
			return err
		}
		fmt.Fprintf(sum, "%s %d\n%s", name, len(data), data)
		switch {
		case name == indexName:
			index = data
		case strings.HasSuffix(name, sourcesSuffix), strings.HasSuffix(name, packedSuffix):
		default:
			return addFile(from, files, name, data)
		}
		return nil
	})
	if err == nil && !bytes.Contains(index, []byte(noncePlace)) {
		err = fmt.Errorf("%s is missing, or has no place for a nonce", indexName)
	}
	if err != nil {
		return nil, nil, "", fmt.Errorf("read the files of the web application: %w", err)
	}
	return index, files, hex.EncodeToString(sum.Sum(nil)[:digestBytes]), nil
}

// addFile adds a file with what it is compressed.
func addFile(from fs.FS, files map[string]*file, name string, data []byte) error {
	f := &file{contentType: types[path.Ext(name)], plain: data}
	if f.contentType == "" {
		return fmt.Errorf("%s has no known type", name)
	}
	if packed, err := fs.ReadFile(from, name+packedSuffix); err == nil {
		f.packed = packed
	}
	files[name] = f
	return nil
}
