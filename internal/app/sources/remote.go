package sources

import (
	"context"

	"thalweg/internal/base/address"
	"thalweg/internal/base/document"
	"thalweg/internal/base/fault"
	"thalweg/internal/io/remote"
	"thalweg/internal/lang/script"
)

// CheckAddress refuses, before a run exists, what cannot be read or written.
func CheckAddress(ctx context.Context, client *remote.Client, s *script.Script, url string, pos document.Pos) error {
	var err error
	if address.Database(url) {
		_, err = address.Parse(url)
	} else if address.Remote(url) {
		err = client.Check(ctx, url, s)
	} else {
		_, err = address.Local(url)
	}
	if err == nil {
		return nil
	}
	f := *fault.Of(err)
	if f.Place.File != "" { // of what serves the address; faults of the address itself have it in their message
		f.Message = f.Place.File + ": " + f.Message
	}
	f.Place = fault.Place{File: pos.File, Line: int64(pos.Line), Column: pos.Col}
	return &f
}
