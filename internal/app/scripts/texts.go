package scripts

import (
	"context"
	"path/filepath"

	"thalweg/internal/app/sources"
	"thalweg/internal/base/address"
	"thalweg/internal/lang/script"
)

// TextsOf returns the texts of a script of this machine and of the files of this machine that it is made of, by their
// paths. A script that has mistakes has them, too, as far as they can be read.
func (s *Service) TextsOf(ctx context.Context, n Named) (Texts, error) {
	src := sources.New(nil, s.Dir, n.Path, n.ParamsPath)
	src.Params, src.Lenient = n.Params, n.Lenient
	out, read := Texts{}, src.Read
	src.Read = func(ctx context.Context, url string) ([]byte, error) {
		text, err := read(ctx, url)
		if err == nil && !address.Remote(url) {
			if path, perr := address.LocalIn(src.Dir, url); perr == nil {
				out[filepath.Clean(path)] = string(text)
			}
		}
		return text, err
	}
	_, diags := script.Load(ctx, src)
	if _, is := out[filepath.Clean(n.Path)]; !is {
		return nil, diags.Err()
	}
	return out, nil
}
