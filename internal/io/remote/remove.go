package remote

import (
	"context"
	"errors"
	"io/fs"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"thalweg/internal/base/address"
	"thalweg/internal/base/fault"
)

// Look gives the version of a file, as the server tells it; nil: there is no such file.
func (c *Client) Look(ctx context.Context, url string, secrets Secrets) (*Version, error) {
	loc, err := locate(url, secrets)
	if err != nil {
		return nil, err
	}
	v, err := c.stat(ctx, loc)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, placed(err, loc)
	}
	return &v, nil
}

// RemoveVersion removes a file if it is still what Look gave. One that is not there is fine, and
// another one stays.
func (c *Client) RemoveVersion(ctx context.Context, url string, was Version, secrets Secrets) error {
	loc, err := locate(url, secrets)
	if err != nil {
		return err
	}
	if err := c.policy.WriteAddress(loc); err != nil {
		return placed(err, loc)
	}
	b, err := c.backend(ctx, loc)
	if err != nil {
		return placed(err, loc)
	}
	now, err := c.stat(ctx, loc)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !now.identical(was) {
		return nil
	}
	if err != nil {
		return placed(err, loc)
	}
	return placed(b.remove(ctx, loc, now), loc)
}

// remove has nothing that could be removed.
func (b *httpBackend) remove(context.Context, address.Location, Version) error {
	return &fault.Error{Kind: fault.Script, Message: "files cannot be removed over http",
		Hint: "write to a local path, sftp:// or s3://"}
}

// remove asks the service to look at the entity tag again. Some do, of others the request is like any.
func (b *s3Backend) remove(ctx context.Context, loc address.Location, v Version) error {
	return b.c.retry(ctx, loc, func(ctx context.Context) (bool, error) {
		in := &s3.DeleteObjectInput{Bucket: &loc.Bucket, Key: &loc.Path}
		if v.ETag != "" {
			in.IfMatch = &v.ETag
		}
		_, err := b.api.DeleteObject(ctx, in) // of what is not there it says the same
		if status := httpStatus(err); status == http.StatusPreconditionFailed || status == http.StatusNotFound {
			return false, nil
		} else if status == http.StatusNotImplemented && in.IfMatch != nil {
			_, err = b.api.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &loc.Bucket, Key: &loc.Path})
		}
		if err != nil {
			return false, s3Fault(err)
		}
		return false, nil
	})
}

func (b *sftpBackend) remove(ctx context.Context, loc address.Location, _ Version) error {
	return b.c.retry(ctx, loc, func(ctx context.Context) (bool, error) {
		ctx, watch := b.c.watch(ctx)
		defer watch.stop()
		return false, watch.explain(b.with(ctx, loc, func(c *sftpConn) error {
			if err := c.Remove(loc.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return named(err, "remove the file")
			}
			return nil
		}))
	})
}
