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

	"thalweg/internal/address"
	"thalweg/internal/fault"
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
	j, err := readJournal(u.Journal)
	if err != nil {
		return nil, err
	}
	if j.Key != "" {
		if err := b.clear(ctx, j); err != nil {
			return nil, err
		}
	}
	f, err := openUpload(u)
	if err != nil {
		return nil, err
	}
	defer f.Close() // read only: nothing can be lost
	s := &s3Staged{b: b, loc: loc, u: u}
	j = journal{Bucket: loc.Bucket, Key: loc.Path, Begun: time.Now().UTC()}
	if err := j.write(u.Journal); err != nil {
		return nil, err
	}
	tried := false
	err = b.c.retry(ctx, loc, func(ctx context.Context) (bool, error) {
		if tried { // the server may have begun one and its answer been lost
			if err := b.abortUnnamed(ctx, j); err != nil {
				return false, err
			}
		}
		tried = true
		out, err := b.api.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: &loc.Bucket, Key: &loc.Path, Metadata: map[string]string{checksumKey: u.Checksum}})
		if err != nil {
			return false, s3Fault(err)
		}
		s.id = aws.ToString(out.UploadId)
		return false, nil
	})
	if err != nil {
		return nil, err
	}
	j.Upload = s.id
	if err := j.write(u.Journal); err != nil {
		b.c.giveUp(ctx, s, loc)
		return nil, err
	}
	if err := s.send(ctx, f); err != nil {
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
		out, err := s.b.api.UploadPart(ctx, &s3.UploadPartInput{Bucket: &s.loc.Bucket, Key: &s.loc.Path, UploadId: &s.id,
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
		_, err := s.b.api.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{Bucket: &s.loc.Bucket, Key: &s.loc.Path, UploadId: &s.id,
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
	if err != nil {
		return err
	}
	s.done = true
	return removeJournal(s.u.Journal)
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
	return &fault.Error{Kind: fault.Environment, Message: "the service lost the upload", Hint: "continue with --resume; look for a lifecycle rule that aborts uploads too early"}
}

func (s *s3Staged) Discard(ctx context.Context) error {
	if s.done {
		return nil
	}
	if err := s.b.abort(ctx, journal{Bucket: s.loc.Bucket, Key: s.loc.Path, Upload: s.id}); err != nil {
		return err
	}
	return removeJournal(s.u.Journal)
}

// clear ends what the journal tells of.
func (b *s3Backend) clear(ctx context.Context, j journal) error {
	if j.Upload != "" {
		return b.abort(ctx, j)
	}
	return b.c.retry(ctx, j.location(), func(ctx context.Context) (bool, error) { return false, b.abortUnnamed(ctx, j) })
}

// abort ends an upload.
func (b *s3Backend) abort(ctx context.Context, j journal) error {
	return b.c.retry(ctx, j.location(), func(ctx context.Context) (bool, error) { return false, b.abortOnce(ctx, j) })
}

// abortOnce is abort without trying again; an upload that is not there any more
// is fine.
func (b *s3Backend) abortOnce(ctx context.Context, j journal) error {
	_, err := b.api.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: &j.Bucket, Key: &j.Key, UploadId: &j.Upload})
	var gone *types.NoSuchUpload
	if err == nil || errors.As(err, &gone) || httpStatus(err) == http.StatusNotFound {
		return nil
	}
	return s3Fault(err)
}

// abortUnnamed ends the uploads of this very object that were begun since the
// journal was written. Who may not list uploads keeps them: they are invisible,
// and a lifecycle rule of the bucket removes them.
func (b *s3Backend) abortUnnamed(ctx context.Context, j journal) error {
	pages := s3.NewListMultipartUploadsPaginator(b.api, &s3.ListMultipartUploadsInput{Bucket: &j.Bucket, Prefix: &j.Key})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if status := httpStatus(err); status == http.StatusForbidden || status == http.StatusNotImplemented {
			b.c.cfg.Logger.Warn("an upload may stay at the server: listing uploads is not allowed", "url", j.location().String())
			return nil
		}
		var none *types.NoSuchUpload
		if errors.As(err, &none) || httpStatus(err) == http.StatusNotFound {
			return nil
		}
		if err != nil {
			return s3Fault(err)
		}
		for _, u := range page.Uploads {
			if aws.ToString(u.Key) != j.Key || aws.ToTime(u.Initiated).Before(j.Begun.Add(-clockSkewMax)) {
				continue
			}
			j.Upload = aws.ToString(u.UploadId)
			if err := b.abortOnce(ctx, j); err != nil {
				return err
			}
		}
	}
	return nil
}
