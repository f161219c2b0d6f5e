package sources

import (
	"context"
	"path/filepath"

	"thalweg/internal/base/address"
)

// Texts are files that somebody has given as texts, by their absolute paths.
type Texts map[string]string

// Over returns what reads a text instead of the file at its path, and all else by read. Relative names are seen from
// dir.
func (t Texts) Over(dir string, read func(context.Context, string) ([]byte, error)) func(context.Context,
	string) ([]byte, error) {
	if len(t) == 0 {
		return read
	}
	return func(ctx context.Context, url string) ([]byte, error) {
		if !address.Remote(url) && !address.Database(url) {
			if path, err := address.LocalIn(dir, url); err == nil {
				if text, given := t[filepath.Clean(path)]; given {
					return []byte(text), nil
				}
			}
		}
		return read(ctx, url)
	}
}
