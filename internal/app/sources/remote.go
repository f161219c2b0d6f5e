package sources

import (
	"context"
	"strings"

	"thalweg/internal/base/address"
	"thalweg/internal/base/document"
	"thalweg/internal/base/fault"
	"thalweg/internal/io/remote"
	"thalweg/internal/lang/script"
)

// CheckAddress refuses, before a run exists, what cannot be read, or written, and what the client's policy does not
// allow. What is not there yet is judged when it is opened.
func CheckAddress(ctx context.Context, client *remote.Client, s *script.Script, url string, writes bool,
	pos document.Pos) error {
	err := checkAddress(ctx, client, s, url, writes)
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

func checkAddress(ctx context.Context, client *remote.Client, s *script.Script, url string, writes bool) error {
	policy := client.Policy()
	switch {
	case address.Database(url):
		loc, err := address.Parse(url)
		if err != nil || policy == nil {
			return err
		}
		c := Databases(client, s.Dir, s)
		at, _, _ := strings.Cut(loc.URL, "#")
		return c.May(s.Reveal(at))
	case address.Remote(url):
		if err := client.Check(ctx, url, s); err != nil || policy == nil || !writes {
			return err
		}
		loc, err := address.Parse(s.Reveal(url))
		if loc.Hide = s.Hide; err != nil {
			return err
		}
		return policy.WriteAddress(loc)
	}
	path, err := address.LocalIn(s.Dir, url)
	switch {
	case err != nil || policy == nil:
		return err
	case writes:
		return policy.MayWrite(path)
	case strings.ContainsAny(url, "*?"): // each file that matches is judged
		return nil
	}
	return policy.MayRead(path)
}
