package remote

import (
	"crypto/x509"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"thalweg/internal/base/fault"
)

// addRoots adds the certificates of a PEM file or of all files of a directory.
func addRoots(roots *x509.CertPool, path string) error {
	st, err := os.Stat(path)
	if err != nil {
		return rootsFault(path, "cannot be read", err)
	}
	if !st.IsDir() {
		found, err := addFile(roots, path)
		if err == nil && !found {
			err = rootsFault(path, "has no PEM certificate in it", nil)
		}
		return err
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return rootsFault(path, "cannot be read", err)
	}
	any := false
	for _, e := range entries {
		name := filepath.Join(path, e.Name())
		if st, err := os.Stat(name); err != nil || !st.Mode().IsRegular() {
			continue // such directories hold links whose targets may be gone
		}
		found, err := addFile(roots, name)
		if err != nil {
			return err
		}
		any = any || found
	}
	if !any {
		return rootsFault(path, "has no file with PEM certificates in it", nil)
	}
	return nil
}

func addFile(roots *x509.CertPool, path string) (found bool, err error) {
	data, err := readLimited(path, caBytesMax)
	if err != nil {
		return false, rootsFault(path, "cannot be read", err)
	}
	return roots.AppendCertsFromPEM(data), nil
}

func rootsFault(path, what string, err error) error {
	return &fault.Error{Kind: fault.Environment, Message: fmt.Sprintf("the file of trusted certificates %s %s", path,
		what), Err: err,
		Hint: "name a PEM file, or a directory of such, with {{set ca-file}}"}
}

// readLimited reads a small local file.
func readLimited(path string, bytesMax int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() // read only: nothing can be lost
	data, err := io.ReadAll(io.LimitReader(f, bytesMax+1))
	if err == nil && int64(len(data)) > bytesMax {
		err = fmt.Errorf("it is larger than %d bytes", bytesMax)
	}
	return data, err
}
