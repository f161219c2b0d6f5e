package remote

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"golang.org/x/sync/errgroup"

	"thalweg/internal/base/address"
	"thalweg/internal/base/fault"
)

// Multipart uploads.
const (
	partBytesMin   = 8 << 20
	partsMax       = 10_000 // S3's
	partsAtOnceMax = 4      // of one object
	// checksumKey names the object's metadata by which a completed upload is recognised.
	checksumKey = "thalweg-checksum"
)

// s3Staged is a multipart upload whose parts are all there: the object appears
// when it is completed.
type s3Staged struct {
	b     *s3Backend
	loc   address.Location
	u     Upload
	id    string
	parts []types.CompletedPart
	done  bool
}

func (b *s3Backend) stage(ctx context.Context, loc address.Location, u Upload) (_ Staged, err error) {
	f, err := openUpload(u)
	if err != nil {
		return nil, err
	}
	defer f.Close() // read only: nothing can be lost
	s := &s3Staged{b: b, loc: loc, u: u}
	begun, tried := time.Now(), false
	err = b.c.retry(ctx, loc, func(ctx context.Context) (bool, error) {
		if tried { // the server may have begun one and its answer been lost
			if err := b.abortUnnamed(ctx, loc, begun, u.Alone); err != nil {
				return false, err
			}
		}
		tried = true
		out, err := b.api.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: &loc.Bucket, Key: &loc.Path,
			Metadata: map[string]string{checksumKey: u.Checksum}})
		if err != nil {
			return false, s3Fault(err)
		}
		s.id = aws.ToString(out.UploadId)
		return false, nil
	})
	if err != nil {
		return nil, err
	}
	if u.Named != nil {
		err = u.Named(ctx, s.id)
	}
	if err == nil {
		err = s.send(ctx, f)
	}
	if err != nil {
		b.c.giveUp(ctx, s, loc)
		return nil, err
	}
	return s, nil
}

// send sends the parts, several at once.
func (s *s3Staged) send(ctx context.Context, f *os.File) error {
	partBytes := max(partBytesMin, (s.u.Bytes+partsMax-1)/partsMax)
	count := max((s.u.Bytes+partBytes-1)/partBytes, 1)
	s.parts = make([]types.CompletedPart, count)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(partsAtOnceMax)
	for i := range count {
		group.Go(func() error {
			from := i * partBytes
			return s.sendPart(ctx, int32(i), f, from, min(partBytes, s.u.Bytes-from))
		})
	}
	return group.Wait()
}

func (s *s3Staged) sendPart(ctx context.Context, i int32, f *os.File, from, bytes int64) error {
	return s.b.c.retry(ctx, s.loc, func(ctx context.Context) (bool, error) {
		out, err := s.b.api.UploadPart(ctx, &s3.UploadPartInput{Bucket: &s.loc.Bucket, Key: &s.loc.Path,
			UploadId:   &s.id,
			PartNumber: aws.Int32(i + 1), Body: io.NewSectionReader(f, from, bytes), ContentLength: &bytes})
		if err != nil {
			return false, s3Fault(err)
		}
		s.parts[i] = types.CompletedPart{ETag: out.ETag, PartNumber: aws.Int32(i + 1)}
		return false, nil
	})
}

// Publish completes the upload. An answer that was lost is looked up.
func (s *s3Staged) Publish(ctx context.Context) error {
	err := s.b.c.retry(ctx, s.loc, func(ctx context.Context) (bool, error) {
		_, err := s.b.api.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{Bucket: &s.loc.Bucket,
			Key: &s.loc.Path, UploadId: &s.id,
			MultipartUpload: &types.CompletedMultipartUpload{Parts: s.parts}})
		if err == nil {
			return false, nil
		}
		var gone *types.NoSuchUpload
		if errors.As(err, &gone) || httpStatus(err) == http.StatusNotFound {
			return false, s.published(ctx)
		}
		return false, s3Fault(err)
	})
	s.done = s.done || err == nil
	return err
}

// published reports whether the object is what this upload makes, after the
// service said that it knows the upload no more.
func (s *s3Staged) published(ctx context.Context) error {
	out, err := s.b.api.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &s.loc.Bucket, Key: &s.loc.Path})
	if err != nil {
		return s3Fault(err)
	}
	if aws.ToInt64(out.ContentLength) == s.u.Bytes && out.Metadata[checksumKey] == s.u.Checksum {
		return nil
	}
	return &fault.Error{Kind: fault.Environment, Message: "the service lost the upload",
		Hint: "look for a lifecycle rule that aborts uploads too early"}
}

func (s *s3Staged) Discard(ctx context.Context) error {
	if s.done {
		return nil
	}
	return s.b.abandon(ctx, s.loc, Leftover{Upload: s.id})
}

// clockSkewMax is the largest accepted lag of the server's clock: an upload that was begun longer before ours
// is somebody else's.
const clockSkewMax = 15 * time.Minute

// abandon ends the upload that somebody began, or those that may be it where
// nobody has heard its name.
func (b *s3Backend) abandon(ctx context.Context, loc address.Location, left Leftover) error {
	return b.c.retry(ctx, loc, func(ctx context.Context) (bool, error) {
		if left.Upload != "" {
			return false, b.abort(ctx, loc, left.Upload)
		}
		return false, b.abortUnnamed(ctx, loc, left.Begun, left.Alone)
	})
}

// abort ends an upload; one that is not there any more is fine.
func (b *s3Backend) abort(ctx context.Context, loc address.Location, id string) error {
	_, err := b.api.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: &loc.Bucket, Key: &loc.Path,
		UploadId: &id})
	var gone *types.NoSuchUpload
	if err == nil || errors.As(err, &gone) || httpStatus(err) == http.StatusNotFound {
		return nil
	}
	return s3Fault(err)
}

// abortUnnamed ends the uploads of this very object that were begun since.
func (b *s3Backend) abortUnnamed(ctx context.Context, loc address.Location, begun time.Time, alone Alone) error {
	found, err := b.unfinished(ctx, loc, begun)
	if err != nil || len(found) == 0 {
		return err
	}
	if err := alone.ask(ctx); err != nil {
		return err
	}
	for _, id := range found {
		if err := b.abort(ctx, loc, id); err != nil {
			return err
		}
	}
	return nil
}

// unfinished lists the uploads of this very object that were begun since. Who
// may not list uploads keeps them: they are invisible, and a lifecycle rule of
// the bucket removes them.
func (b *s3Backend) unfinished(ctx context.Context, loc address.Location, begun time.Time) (found []string, err error) {
	pages := s3.NewListMultipartUploadsPaginator(b.api, &s3.ListMultipartUploadsInput{Bucket: &loc.Bucket,
		Prefix: &loc.Path})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if status := httpStatus(err); status == http.StatusForbidden || status == http.StatusNotImplemented {
			b.c.cfg.Logger.Warn("an upload may stay at the server: listing uploads is not allowed", "url", loc.String())
			return found, nil
		}
		var none *types.NoSuchUpload
		if errors.As(err, &none) || httpStatus(err) == http.StatusNotFound {
			return found, nil
		}
		if err != nil {
			return nil, s3Fault(err)
		}
		for _, u := range page.Uploads {
			if aws.ToString(u.Key) == loc.Path && !aws.ToTime(u.Initiated).Before(begun.Add(-clockSkewMax)) {
				found = append(found, aws.ToString(u.UploadId))
			}
		}
	}
	return found, nil
}
