package schedule

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"thalweg/internal/base/address"
	"thalweg/internal/io/remote"
	"thalweg/internal/lang/script"
)

// Lister lists files of other machines: a *remote.Client.
type Lister interface {
	List(ctx context.Context, pattern string, most int) ([]remote.File, error)
}

// listingTimeout is the longest that listing the files of a watch may take.
const listingTimeout = 10 * time.Minute

// errListing ends a listing that takes too long.
var errListing = errors.New("listing takes too long")

// ask gives what the listing of a watch's files has brought; nil: it is under
// way, or not due. A server that is slow or away keeps nobody else waiting.
func (s *Service) ask(ctx context.Context, w script.Watch, wr *watcher, now time.Time) *view {
	if wr.asked == nil {
		if now.Before(wr.next) && wr.next.Sub(now) <= max(w.Every, retryMax) { // else the clock was put back
			return nil
		}
		asked := make(chan view, 1)
		wr.asked, wr.next = asked, now.Add(w.Every)
		s.listings.Go(func() { asked <- s.list(ctx, w, now) })
		return nil
	}
	select {
	case v := <-wr.asked:
		if wr.asked = nil; v.files != w.Files || v.marker != w.Marker {
			wr.next = now // the script was changed meanwhile
			return nil
		}
		return &v
	default:
		return nil
	}
}

// list lists the files of a watch and their markers: the markers first, so that
// they are not of later versions than those that are found.
func (s *Service) list(ctx context.Context, w script.Watch, began time.Time) (v view) {
	ctx, stop := context.WithTimeoutCause(ctx, listingTimeout, errListing)
	defer stop()
	v = view{files: w.Files, marker: w.Marker, began: began}
	defer func() {
		v.ended = s.cfg.Clock.Now()
		if v.err != nil && errors.Is(context.Cause(ctx), errListing) {
			v.err = fmt.Errorf("the files were not listed within %s: %w", listingTimeout, errListing)
		}
	}()
	if s.cfg.Remote == nil {
		v.err = errors.New("files of other machines cannot be listed here")
		return v
	}
	markers, behind := map[string]time.Time{}, ""
	if w.Marker != "" {
		behind = strings.TrimPrefix(w.Marker, script.FileRef)
		files, err := s.cfg.Remote.List(ctx, w.Files+address.QuoteGlob(behind), WatchedMax)
		if err != nil {
			v.err = err
			return v
		}
		if plain, err := url.PathUnescape(behind); err == nil && address.Scheme(w.Files) == "sftp" {
			behind = plain
		}
		for _, f := range files {
			markers[f.Path] = f.Version.ModTime
		}
	}
	files, err := s.cfg.Remote.List(ctx, w.Files, WatchedMax)
	if err != nil {
		v.err = err
		return v
	}
	marks := map[string]bool{}
	for _, f := range files {
		marks[f.Path+behind] = behind != ""
	}
	for _, f := range files {
		if marks[f.Path] {
			continue
		}
		at := f.Version
		one := found{name: f.URL, place: f.URL, path: f.Path, bytes: at.Bytes, changed: at.ModTime,
			marked: markers[f.Path+behind],
			version: digest(f.URL, strconv.FormatInt(at.Bytes, 10), at.ETag,
				strconv.FormatInt(at.ModTime.UnixNano(), 10))}
		if behind != "" {
			one.marker = f.URL + behind
		}
		v.found = append(v.found, one)
	}
	inOrder(v.found)
	return v
}
