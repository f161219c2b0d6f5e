package s3

import (
	"context"
	"crypto/md5" //nolint:gosec // what the protocol names for damage on the way
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
	"golang.org/x/sync/errgroup"

	"thalweg/internal/base/fault"
	"thalweg/internal/io/remote"
	"thalweg/internal/store/parts"
)

// What an object's metadata are.
const (
	metaPut      = "thalweg-put" // which Put has made it
	metaChecksum = "thalweg-checksum"
)

const cleanupTimeout = 5 * time.Second

// sending is a Put that is carried out.
type sending struct {
	*Store
	key   string
	f     *os.File
	bytes int64
	meta  map[string]string
}

// Put implements parts.Backend.
func (s *Store) Put(ctx context.Context, key, path string) (parts.Info, error) {
	if err := check(ctx, key); err != nil {
		return parts.Info{}, err
	}
	f, err := os.Open(path)
	if err != nil {
		return parts.Info{}, diskFault(err)
	}
	defer f.Close() // only read from
	sum, bytes, err := parts.Checksum(f)
	if err != nil {
		return parts.Info{}, diskFault(err)
	}
	x := &sending{Store: s, key: key, f: f, bytes: bytes, meta: map[string]string{metaPut: rand.Text(),
		metaChecksum: sum}}
	if err := x.send(ctx); err != nil {
		return parts.Info{}, fmt.Errorf("put %s: %w", key, err)
	}
	s.cfg.Checkpoint(Done)
	if err := os.Remove(path); err != nil { // it is there; only the file stays
		return parts.Info{}, diskFault(err)
	}
	return parts.Info{Key: key, Bytes: bytes, Checksum: sum}, nil
}

func diskFault(err error) error {
	return &fault.Error{Kind: fault.Environment, Retryable: fault.Passes(err), Message: "read or remove a part's file",
		Err: err, Hint: "check the permissions and the free space of the directory"}
}

func (x *sending) send(ctx context.Context) error {
	single := int64(singleBytesMax)
	if x.cfg.PieceBytes > 0 {
		single = x.cfg.PieceBytes
	}
	if x.bytes <= single {
		return x.show(ctx, x.sendWhole)
	}
	return x.sendPieces(ctx)
}

// show makes the object visible, unless there is one: by a call that the
// service refuses then, or behind a look where it does not know such calls.
func (x *sending) show(ctx context.Context, call func(ctx context.Context, match *string) error) error {
	for {
		match := aws.String("*")
		if x.looks.Load() {
			match = nil
			if is, err := x.head(ctx, x.key); err != nil || is != nil {
				return x.mine(is, err)
			}
		}
		refused, unknown := false, false
		err := x.conn.Do(ctx, func(ctx context.Context) error {
			err := damaged(call(ctx, match))
			switch status := remote.S3Status(err); {
			case status == http.StatusPreconditionFailed, remote.S3Missing(err):
				// the upload may be gone because it is complete
				refused = true
				return nil
			case status == http.StatusConflict: // another one is putting it now
				return retryLater(err)
			case status == http.StatusNotImplemented && match != nil:
				unknown = true
				return nil
			}
			return err
		})
		switch {
		case unknown:
			x.looks.Store(true)
		case refused:
			return x.mine(x.head(ctx, x.key))
		default:
			return err
		}
	}
}

// mine says whether the object that is there is what this Put has made: its
// answer may have been lost.
func (x *sending) mine(is *s3.HeadObjectOutput, err error) error {
	switch {
	case err != nil:
		return err
	case is == nil:
		return &fault.Error{Kind: fault.Environment, Retryable: true, Message: "the service lost what was sent",
			Hint: "look for a lifecycle rule of the bucket that ends uploads too early"}
	case is.Metadata[metaPut] == x.meta[metaPut]:
		return nil
	}
	return parts.ErrExists
}

// damaged makes what the service refuses because its bytes are not those of the
// MD5 be sent again: a file does not change, a way damages now and then.
func damaged(err error) error {
	var api smithy.APIError
	if errors.As(err, &api) && api.ErrorCode() == "BadDigest" {
		return &fault.Error{Kind: fault.Environment, Retryable: true, Message: "what was sent was damaged on its way",
			Err: err, Hint: "check the network"}
	}
	return err
}

func retryLater(err error) error {
	return &fault.Error{Kind: fault.Environment, Retryable: true, Message: "another request was changing the object",
		Err: err}
}

// sendWhole sends the part by one request.
func (x *sending) sendWhole(ctx context.Context, match *string) error {
	if err := x.sends.Acquire(ctx); err != nil {
		return err
	}
	defer x.sends.Release()
	sum, err := x.md5(0, x.bytes)
	if err != nil {
		return err
	}
	_, err = x.conn.API.PutObject(ctx, &s3.PutObjectInput{Bucket: &x.bucket, Key: x.object(x.key), Metadata: x.meta,
		IfNoneMatch: match,
		Body:        io.NewSectionReader(x.f, 0, x.bytes), ContentLength: &x.bytes, ContentMD5: &sum})
	return err
}

func (x *sending) md5(from, bytes int64) (string, error) {
	h := md5.New() //nolint:gosec // see above
	if n, err := io.Copy(h, io.NewSectionReader(x.f, from, bytes)); err != nil || n != bytes {
		return "", diskFault(errors.Join(err, io.ErrUnexpectedEOF))
	}
	return base64.StdEncoding.EncodeToString(h.Sum(nil)), nil
}

// sendPieces sends the part in pieces, which the service puts together.
func (x *sending) sendPieces(ctx context.Context) error {
	var id string
	err := x.conn.Do(ctx, func(ctx context.Context) error {
		out, err := x.conn.API.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: &x.bucket,
			Key: x.object(x.key), Metadata: x.meta})
		if err == nil {
			id = aws.ToString(out.UploadId)
		}
		return err
	})
	if err != nil {
		return err
	}
	x.cfg.Checkpoint(Begun)
	pieces, err := x.pieces(ctx, id)
	if err == nil {
		x.cfg.Checkpoint(Sent)
		err = x.show(ctx, func(ctx context.Context, match *string) error {
			_, err := x.conn.API.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{Bucket: &x.bucket,
				Key: x.object(x.key), UploadId: &id,
				MultipartUpload: &types.CompletedMultipartUpload{Parts: pieces}, IfNoneMatch: match})
			return err
		})
	}
	if err != nil { // what cannot be ended now is found by Unfinished
		ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
		defer stop()
		_ = x.abort(ctx, x.key, id)
	}
	return err
}

func (x *sending) pieces(ctx context.Context, id string) ([]types.CompletedPart, error) {
	size := int64(pieceBytesMin)
	if x.cfg.PieceBytes > 0 {
		size = x.cfg.PieceBytes
	}
	size = max(size, (x.bytes+piecesMax-1)/piecesMax)
	out := make([]types.CompletedPart, (x.bytes+size-1)/size)
	group, ctx := errgroup.WithContext(ctx)
	for i := range out {
		if err := x.sends.Acquire(ctx); err != nil {
			return nil, errors.Join(group.Wait(), err)
		}
		group.Go(func() (err error) {
			defer x.sends.Release()
			out[i], err = x.piece(ctx, id, int32(i+1), int64(i)*size, min(size, x.bytes-int64(i)*size))
			return err
		})
	}
	return out, group.Wait()
}

func (x *sending) piece(ctx context.Context, id string, number int32, from, bytes int64) (types.CompletedPart, error) {
	done := types.CompletedPart{PartNumber: &number}
	sum, err := x.md5(from, bytes)
	if err != nil {
		return done, err
	}
	err = x.conn.Do(ctx, func(ctx context.Context) error {
		out, err := x.conn.API.UploadPart(ctx, &s3.UploadPartInput{Bucket: &x.bucket,
			Key: x.object(x.key), UploadId: &id, PartNumber: &number,
			Body: io.NewSectionReader(x.f, from, bytes), ContentLength: &bytes, ContentMD5: &sum})
		if err == nil {
			done.ETag, done.ChecksumCRC32 = out.ETag, out.ChecksumCRC32
		}
		return damaged(err)
	})
	return done, err
}
