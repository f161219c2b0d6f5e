package remote

import (
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"

	"thalweg/internal/base/address"
)

// S3 is a connection to an S3-compatible service for who keeps objects of its
// own there, with the credentials, certificates, timeouts and patience of
// transfers.
type S3 struct {
	API *s3.Client
	c   *Client
	b   *s3Backend
	loc address.Location
}

// OpenS3 gives a connection for a bucket; url is what errors name.
func OpenS3(ctx context.Context, cfg Config, url string) (*S3, error) {
	loc, err := address.Parse(url)
	if err != nil {
		return nil, err
	}
	c := New(cfg)
	roots, err := loadRoots(c.cfg.CAPath)
	if err != nil {
		return nil, err
	}
	b, err := newS3(ctx, c, roots)
	if err != nil {
		return nil, err
	}
	return &S3{API: b.api, c: c, b: b, loc: loc}, nil
}

// Close ends idle connections.
func (s *S3) Close() error { return s.b.close() }

// Do makes a call, again while its failure may pass; op has to begin anew each
// time.
func (s *S3) Do(ctx context.Context, op func(ctx context.Context) error) error {
	return s.c.retry(ctx, s.loc, func(ctx context.Context) (bool, error) {
		if err := op(ctx); err != nil {
			return false, s3Fault(err)
		}
		return false, nil
	})
}

// Body ends the reading of an object that stands still. ask makes the call with
// the context that it is given, once or more often.
func (s *S3) Body(ctx context.Context, ask func(ctx context.Context) (io.ReadCloser, error)) (io.ReadCloser, error) {
	ctx, watch := s.c.watch(ctx)
	body, err := ask(ctx)
	if err != nil || body == nil {
		watch.stop()
		return nil, err
	}
	return &watchedBody{body: body, watch: watch}, nil
}

type watchedBody struct {
	body  io.ReadCloser
	watch *watchdog
}

func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.body.Read(p)
	b.watch.feed()
	if err != nil && !errors.Is(err, io.EOF) {
		err = b.watch.explain(connectFault(err))
	}
	return n, err
}

func (b *watchedBody) Close() error {
	b.watch.stop()
	return b.body.Close()
}

// S3Status is the status of the answer that an error is, 0 if there was none.
func S3Status(err error) int { return httpStatus(err) }

// S3Missing reports whether an error says that there is no such object, or no
// such upload, in a bucket that is there as far as the answer says.
func S3Missing(err error) bool {
	var api smithy.APIError
	return httpStatus(err) == http.StatusNotFound && !(errors.As(err, &api) && api.ErrorCode() == noSuchBucket)
}

// noSuchBucket is the code of the service's answer. Answers without a body do not have it.
const noSuchBucket = "NoSuchBucket"
