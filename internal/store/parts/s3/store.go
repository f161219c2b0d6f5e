package s3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"thalweg/internal/base/address"
	"thalweg/internal/base/fault"
	"thalweg/internal/io/remote"
	"thalweg/internal/store/parts"
)

// Limits.
const (
	singleBytesMax = 16 << 20 // of a part that is sent by one request
	pieceBytesMin  = 8 << 20
	piecesMax      = 10_000  // S3's
	partBytesMax   = 5 << 40 // S3's
	sendsMax       = 8       // requests with bytes at once
)

// Point is a place in a Put at which a process may die.
type Point string

// The points.
const (
	Begun Point = "begun" // an upload is, no piece of it is there
	Sent  Point = "sent"  // all pieces are, the object is not
	Done  Point = "done"  // the part is there
)

// Config of a Store.
type Config struct {
	URL    string // s3://bucket/prefix
	Remote remote.Config
	// Checkpoint is called at each Point; tests die there. nil is allowed.
	Checkpoint func(Point)
	// PieceBytes is the least size of pieces, and the largest size of a part in one piece; 0: pieceBytesMin
	// and singleBytesMax.
	PieceBytes int64
}

// Store keeps parts in a bucket.
type Store struct {
	cfg    Config
	conn   *remote.S3
	bucket string
	prefix string // with a slash at its end, or empty
	sends  *parts.ResizableSemaphore
	looks  atomic.Bool // the service does not know If-None-Match
}

var (
	_ parts.Backend  = (*Store)(nil)
	_ parts.Leavings = (*Store)(nil)
)

// New returns a store. It opens nothing before it is used.
func New(ctx context.Context, cfg Config) (*Store, error) {
	loc, err := address.Parse(strings.TrimSuffix(cfg.URL, "/") + "/")
	if err == nil && loc.Scheme != "s3" {
		err = &fault.Error{Kind: fault.Environment, Message: cfg.URL + " is no address of a bucket",
			Hint: "write s3://bucket/prefix"}
	}
	if err != nil {
		return nil, err
	}
	conn, err := remote.OpenS3(ctx, cfg.Remote, cfg.URL)
	if err != nil {
		return nil, err
	}
	if cfg.Checkpoint == nil {
		cfg.Checkpoint = func(Point) {}
	}
	prefix := strings.Trim(loc.Path, "/")
	if prefix != "" {
		prefix += "/"
	}
	return &Store{cfg: cfg, conn: conn, bucket: loc.Bucket, prefix: prefix,
			sends: parts.NewResizableSemaphore(sendsMax)},
		nil
}

// Writers implements parts.Writing.
func (s *Store) Writers() *parts.ResizableSemaphore { return s.sends }

// Properties implements parts.Backend.
func (s *Store) Properties() parts.Properties {
	return parts.Properties{Concurrency: sendsMax, MaxPartBytes: partBytesMax}
}

// Close implements parts.Backend.
func (s *Store) Close() error { return s.conn.Close() }

// Check says why nothing can be kept in the bucket: it is not there, or may not
// be used, as far as the service says without being asked to keep something.
func (s *Store) Check(ctx context.Context) error {
	return s.conn.Do(ctx, func(ctx context.Context) error {
		_, err := s.conn.API.HeadBucket(ctx, &s3.HeadBucketInput{Bucket: &s.bucket})
		if remote.S3Status(err) == http.StatusNotFound {
			return &fault.Error{Kind: fault.Environment, Message: "there is no bucket " + s.bucket, Err: err,
				Hint: "make it, or check its name, and endpoint and region: parts: {s3: {url: s3://BUCKET/PREFIX, " +
					"endpoint: …, region: …}}"}
		}
		return err
	})
}

func check(ctx context.Context, key string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return parts.CheckKey(key)
}

func (s *Store) object(key string) *string { return aws.String(s.prefix + key) }

// head asks for an object; nil if there is none.
func (s *Store) head(ctx context.Context, key string) (out *s3.HeadObjectOutput, err error) {
	err = s.conn.Do(ctx, func(ctx context.Context) error {
		var err error
		if out, err = s.conn.API.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &s.bucket,
			Key: s.object(key)}); remote.S3Missing(err) {
			out, err = nil, nil
		}
		return err
	})
	return out, err
}

// Open implements parts.Backend.
func (s *Store) Open(ctx context.Context, key string, offset, length int64) (io.ReadCloser, int64, error) {
	if err := check(ctx, key); err != nil {
		return nil, 0, err
	}
	if length != 0 {
		body, total, err := s.get(ctx, key, offset, length)
		if body != nil || err != nil {
			return body, total, err
		}
	}
	is, err := s.head(ctx, key) // no bytes are wanted, or there are none
	if err != nil {
		return nil, 0, err
	}
	if is == nil {
		return nil, 0, fmt.Errorf("open part %s: %w", key, parts.ErrNotFound)
	}
	return io.NopCloser(strings.NewReader("")), aws.ToInt64(is.ContentLength), nil
}

// get asks for a range; no body and no error if it has no bytes.
func (s *Store) get(ctx context.Context, key string, offset, length int64) (body io.ReadCloser, total int64,
	err error) {
	in := &s3.GetObjectInput{Bucket: &s.bucket, Key: s.object(key), Range: aws.String(fmt.Sprintf("bytes=%d-", offset))}
	if length > 0 {
		in.Range = aws.String(fmt.Sprintf("bytes=%d-%d", offset, offset+length-1))
	}
	body, err = s.conn.Body(ctx, func(ctx context.Context) (body io.ReadCloser, err error) {
		err = s.conn.Do(ctx, func(ctx context.Context) error {
			out, err := s.conn.API.GetObject(ctx, in)
			switch {
			case remote.S3Status(err) == http.StatusRequestedRangeNotSatisfiable:
				return nil
			case remote.S3Missing(err):
				return notFound(key)
			case err != nil:
				return err
			}
			if body, total = out.Body, totalOf(out); total < 0 {
				return &fault.Error{Kind: fault.Environment,
					Message: "the service does not send the range that was asked for",
					Err:     out.Body.Close(), Hint: "check the endpoint: parts need a service with ranges"}
			}
			return nil
		})
		return body, err
	})
	if errors.Is(err, parts.ErrNotFound) {
		return nil, 0, fmt.Errorf("open part %s: %w", key, parts.ErrNotFound)
	}
	return body, total, err
}

// notFound returns the error for a missing part; it is not retryable.
func notFound(key string) error {
	return &fault.Error{Kind: fault.Environment, Message: "there is no part " + key, Err: parts.ErrNotFound}
}

// totalOf is the size of the whole object, -1 if the answer is no range.
func totalOf(out *s3.GetObjectOutput) int64 {
	_, size, ok := strings.Cut(aws.ToString(out.ContentRange), "/")
	total, err := strconv.ParseInt(size, 10, 64)
	if !ok || err != nil {
		return -1
	}
	return total
}

// Delete implements parts.Backend.
func (s *Store) Delete(ctx context.Context, key string) error {
	if err := check(ctx, key); err != nil {
		return err
	}
	return s.conn.Do(ctx, func(ctx context.Context) error {
		_, err := s.conn.API.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &s.bucket, Key: s.object(key)})
		if remote.S3Missing(err) {
			return nil
		}
		return err
	})
}

// List implements parts.Backend.
func (s *Store) List(ctx context.Context, prefix, after string) iter.Seq2[parts.Info, error] {
	in := &s3.ListObjectsV2Input{Bucket: &s.bucket, Prefix: s.object(prefix), EncodingType: types.EncodingTypeUrl}
	if after != "" {
		in.StartAfter = s.object(after)
	}
	return s.pages(ctx, prefix, after, func(ctx context.Context) (page []parts.Info, more bool, err error) {
		out, err := s.conn.API.ListObjectsV2(ctx, in)
		if err != nil {
			return nil, false, err
		}
		for _, o := range out.Contents {
			page = append(page, parts.Info{Key: s.keyOf(o.Key, out.EncodingType), Bytes: aws.ToInt64(o.Size)})
		}
		in.ContinuationToken = out.NextContinuationToken
		return page, aws.ToBool(out.IsTruncated), nil
	})
}

// pages yields what next gives, in the order of keys, until there is no more.
func (s *Store) pages(ctx context.Context, prefix, after string, next func(ctx context.Context) ([]parts.Info, bool,
	error)) iter.Seq2[parts.Info, error] {
	return func(yield func(parts.Info, error) bool) {
		err := parts.CheckPrefix(prefix)
		if err == nil {
			err = ctx.Err()
		}
		for last, more := after, true; more && err == nil; {
			var page []parts.Info
			err = s.conn.Do(ctx, func(ctx context.Context) (err error) {
				page, more, err = next(ctx)
				return err
			})
			slices.SortFunc(page, func(a, b parts.Info) int { return strings.Compare(a.Key, b.Key) })
			for _, info := range page {
				if parts.CheckKey(info.Key) != nil || info.Key <= after || info.Key == last {
					// somebody else's, or listed twice
					continue
				}
				if info.Key < last {
					err = &fault.Error{Kind: fault.Environment,
						Message: "the service does not list objects in the order of their keys",
						Hint: "check the endpoint: parts need a service that does, as S3 does for all buckets but " +
							"directory buckets"}
					break
				}
				if last = info.Key; !yield(info, nil) {
					return
				}
			}
		}
		if err != nil {
			yield(parts.Info{}, err)
		}
	}
}

// keyOf is the part's key of an object.
func (s *Store) keyOf(object *string, encoding types.EncodingType) string {
	text := aws.ToString(object)
	if encoding == types.EncodingTypeUrl {
		if plain, err := url.QueryUnescape(text); err == nil {
			text = plain
		}
	}
	return strings.TrimPrefix(text, s.prefix)
}

// Unfinished implements parts.Leavings.
func (s *Store) Unfinished(ctx context.Context, prefix, after string) iter.Seq2[parts.Info, error] {
	in := &s3.ListMultipartUploadsInput{Bucket: &s.bucket, Prefix: s.object(prefix)}
	if after != "" {
		in.KeyMarker = s.object(after)
	}
	return s.pages(ctx, prefix, after, func(ctx context.Context) (page []parts.Info, more bool, err error) {
		out, err := s.conn.API.ListMultipartUploads(ctx, in)
		switch status := remote.S3Status(err); {
		case status == http.StatusForbidden, status == http.StatusNotImplemented, remote.S3Missing(err):
			return nil, false, nil // who may not look leaves them to a rule of the bucket
		case err != nil:
			return nil, false, err
		}
		for _, u := range out.Uploads {
			page = append(page, parts.Info{Key: strings.TrimPrefix(aws.ToString(u.Key), s.prefix)})
		}
		in.KeyMarker, in.UploadIdMarker = out.NextKeyMarker, out.NextUploadIdMarker
		return page, aws.ToBool(out.IsTruncated), nil
	})
}

// Abandon implements parts.Leavings.
func (s *Store) Abandon(ctx context.Context, key string) error {
	if err := check(ctx, key); err != nil {
		return err
	}
	var ids []string
	err := s.conn.Do(ctx, func(ctx context.Context) error {
		ids = nil
		pages := s3.NewListMultipartUploadsPaginator(s.conn.API, &s3.ListMultipartUploadsInput{Bucket: &s.bucket,
			Prefix: s.object(key)})
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			if remote.S3Missing(err) {
				return nil
			}
			if err != nil {
				return err
			}
			for _, u := range page.Uploads {
				if aws.ToString(u.Key) == s.prefix+key {
					ids = append(ids, aws.ToString(u.UploadId))
				}
			}
		}
		return nil
	})
	for _, id := range ids {
		if err == nil {
			err = s.abort(ctx, key, id)
		}
	}
	return err
}

func (s *Store) abort(ctx context.Context, key, id string) error {
	return s.conn.Do(ctx, func(ctx context.Context) error {
		_, err := s.conn.API.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: &s.bucket,
			Key: s.object(key), UploadId: &id})
		if remote.S3Missing(err) {
			return nil
		}
		return err
	})
}
