package remote

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/logging"

	"thalweg/internal/base/address"
	"thalweg/internal/base/fault"
)

// regionDefault is used where nobody names a region: S3-compatible services
// mostly do not care.
const regionDefault = "us-east-1"

type s3Backend struct {
	c         *Client
	api       *s3.Client
	transport *http.Transport
}

// newS3 takes credentials, region and profile from where the AWS tools take
// them: environment, shared files, single sign-on, the machine's role.
func newS3(ctx context.Context, c *Client, roots *x509.CertPool) (*s3Backend, error) {
	ours := newTransport(c, roots)
	client := awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.TLSClientConfig =
			ours.TLSClientConfig
	})
	options := []func(*config.LoadOptions) error{config.WithHTTPClient(client), config.WithDefaultRegion(regionDefault),
		config.WithLogger(logging.Nop{}),
		config.WithRetryer(func() aws.Retryer { return aws.NopRetryer{} })}
	if c.cfg.S3Region != "" {
		options = append(options, config.WithRegion(c.cfg.S3Region))
	}
	if c.cfg.S3Profile != "" {
		options = append(options, config.WithSharedConfigProfile(c.cfg.S3Profile))
	}
	if c.cfg.S3AccessKey != "" {
		options = append(options,
			config.WithCredentialsProvider(aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
				return aws.Credentials{AccessKeyID: c.cfg.S3AccessKey, SecretAccessKey: c.cfg.S3SecretKey}, nil
			})))
	}
	cfg, err := config.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return nil, &fault.Error{Kind: fault.Environment, Message: "the AWS configuration cannot be used", Err: err,
			Hint: "check AWS_PROFILE, AWS_CA_BUNDLE and ~/.aws/config"}
	}
	if built, ok := cfg.HTTPClient.(*awshttp.BuildableClient); ok {
		ours.TLSClientConfig = built.GetTransport().TLSClientConfig // with AWS_CA_BUNDLE
	}
	// A redirect would go to another host with a signature for this one.
	cfg.HTTPClient = &http.Client{Transport: ours,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	api := s3.NewFromConfig(cfg, func(o *s3.Options) {
		if c.cfg.S3Endpoint != "" {
			o.BaseEndpoint = aws.String(c.cfg.S3Endpoint)
		}
		own := o.BaseEndpoint != nil
		o.UsePathStyle = own
		if c.cfg.S3PathStyle != nil {
			o.UsePathStyle = *c.cfg.S3PathStyle
		}
		if own && os.Getenv("AWS_REQUEST_CHECKSUM_CALCULATION") == "" {
			// Many services refuse the checksums that AWS's own takes.
			o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
		}
		if c.cfg.S3Observe != nil {
			o.APIOptions = append(o.APIOptions, observed(c.cfg.S3Observe))
		}
		o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired // ranges have none
	})
	return &s3Backend{c: c, api: api, transport: ours}, nil
}

func (b *s3Backend) close() error {
	b.transport.CloseIdleConnections()
	return nil
}

func (b *s3Backend) get(ctx context.Context, loc address.Location, offset int64, since Version, to sink) error {
	in := &s3.GetObjectInput{Bucket: &loc.Bucket, Key: &loc.Path}
	if offset > 0 && since.ETag != "" && offset < since.Bytes {
		in.Range, in.IfMatch = aws.String(fmt.Sprintf("bytes=%d-", offset)), &since.ETag
	}
	out, err := b.api.GetObject(ctx, in)
	if in.Range != nil && httpStatus(err) == http.StatusPreconditionFailed {
		in.Range, in.IfMatch = nil, nil
		out, err = b.api.GetObject(ctx, in)
	}
	if err != nil {
		return s3Fault(err)
	}
	defer out.Body.Close() // read only: nothing can be lost
	v := Version{Bytes: aws.ToInt64(out.ContentLength), ETag: aws.ToString(out.ETag),
		ModTime: aws.ToTime(out.LastModified)}
	start := int64(0)
	if out.ContentRange != nil {
		if start, v.Bytes, err = contentRange(*out.ContentRange); err != nil {
			return err
		}
	}
	if err := to.begin(v, start); err != nil {
		return err
	}
	if _, err := io.Copy(to, out.Body); err != nil {
		return connectFault(err)
	}
	return nil
}

func (b *s3Backend) stat(ctx context.Context, loc address.Location) (Version, error) {
	out, err := b.api.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &loc.Bucket, Key: &loc.Path})
	if err != nil {
		return Version{}, s3Fault(err)
	}
	return Version{Bytes: aws.ToInt64(out.ContentLength), ETag: aws.ToString(out.ETag),
		ModTime: aws.ToTime(out.LastModified)}, nil
}

// httpStatus of an error, 0 if there was no answer.
func httpStatus(err error) int {
	var r *awshttp.ResponseError
	if errors.As(err, &r) && r.Response != nil {
		return r.HTTPStatusCode()
	}
	return 0
}

// s3Fault classifies the service's errors.
func s3Fault(err error) error {
	var known *fault.Error
	if errors.As(err, &known) {
		return err
	}
	var api smithy.APIError
	code, message := "", ""
	if errors.As(err, &api) {
		code, message = api.ErrorCode(), api.ErrorMessage()
	}
	status := httpStatus(err)
	switch {
	case code == noSuchBucket:
		f := missing("the service answered NoSuchBucket")
		f.Hint = "check the bucket's name, the region and {{set s3-endpoint}}"
		return f
	case code == "NoSuchKey", code == "NotFound", status == http.StatusNotFound:
		return missing("the bucket has no such object")
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		f := denied("the service answered %s%s", code, colon(message))
		f.Hint = "check the AWS credentials (AWS_PROFILE, AWS_ACCESS_KEY_ID …) and what they allow; without " +
			"permission to list the bucket this also means that there is no such object"
		return f
	case status == http.StatusMovedPermanently || status == http.StatusTemporaryRedirect ||
		code == "AuthorizationHeaderMalformed":
		return &fault.Error{Kind: fault.Environment, Message: "the bucket is in another region" +
			colon(bucketRegion(err)), Hint: "set AWS_REGION to the bucket's region"}
	case status >= 400 && status < 500 && !mayPass(err, status):
		return &fault.Error{Kind: fault.Environment, Message: fmt.Sprintf("the service answered %s%s", code,
			colon(message)),
			Hint: "check the address and {{set s3-endpoint}}"}
	case status != 0:
		return broken(nil, "the service answered %d %s%s", status, code, colon(message))
	}
	var signing interface{ CanceledError() bool }
	if errors.As(err, &signing) && signing.CanceledError() {
		return broken(nil, "the call was canceled")
	}
	var send interface{ ConnectionError() bool }
	if errors.As(err, &send) {
		return connectFault(cause(err))
	}
	return &fault.Error{Kind: fault.Environment, Message: "no request to the service could be made",
		Detail: cause(err).Error(),
		Hint: "give AWS credentials: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE; public objects can " +
			"be read by their https address"}
}

// mayPass reports 4xx answers that may pass by themselves.
func mayPass(err error, status int) bool {
	return status == http.StatusRequestTimeout || status == http.StatusTooManyRequests ||
		retry.IsErrorRetryables(retry.DefaultRetryables).IsErrorRetryable(err) == aws.TrueTernary
}

func bucketRegion(err error) string {
	var r *awshttp.ResponseError
	if errors.As(err, &r) && r.Response != nil {
		return r.Response.Header.Get("X-Amz-Bucket-Region")
	}
	return ""
}

// cause takes the layers off that only repeat the name of the operation.
func cause(err error) error {
	var op *smithy.OperationError
	if errors.As(err, &op) {
		return op.Err
	}
	return err
}

func colon(s string) string {
	if s == "" {
		return ""
	}
	return ": " + s
}
