package remote

import (
	"context"
	"errors"
	"io/fs"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"thalweg/internal/address"
	"thalweg/internal/fault"
)

// Remove removes a file. One that is not there is fine.
func (c *Client) Remove(ctx context.Context, url string, secrets Secrets) error {
	loc, err := locate(url, secrets)
	if err != nil {
		return err
	}
	b, err := c.backend(ctx, loc)
	if err != nil {
		return placed(err, loc)
	}
	return placed(b.remove(ctx, loc), loc)
}

// remove has nothing that could be removed.
func (b *httpBackend) remove(context.Context, address.Location) error {
	return &fault.Error{Kind: fault.Script, Message: "files cannot be removed over http", Hint: "write to a local path, sftp:// or s3://"}
}

func (b *s3Backend) remove(ctx context.Context, loc address.Location) error {
	return b.c.retry(ctx, loc, func(ctx context.Context) (bool, error) {
		_, err := b.api.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &loc.Bucket, Key: &loc.Path}) // of what is not there it says the same
		if err != nil {
			return false, s3Fault(err)
		}
		return false, nil
	})
}

func (b *sftpBackend) remove(ctx context.Context, loc address.Location) error {
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
