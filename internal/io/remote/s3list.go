package remote

import (
	"context"
	"net/url"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"thalweg/internal/base/address"
	"thalweg/internal/base/fault"
)

// pageEntriesMin is the least that a page counts for: the entries of a full one.
const pageEntriesMin = 1000

// list lists the objects and common beginnings of keys one level below dir.
func (b *s3Backend) list(ctx context.Context, loc address.Location, dir, begin string, l *lister) (out []entry,
	err error) {
	// Keys may have characters that XML cannot have: they are asked for escaped.
	in := &s3.ListObjectsV2Input{Bucket: &loc.Bucket, Prefix: aws.String(dir + begin), Delimiter: aws.String("/"),
		EncodingType: types.EncodingTypeUrl}
	for {
		page, err := b.api.ListObjectsV2(ctx, in)
		if err != nil {
			return nil, s3Fault(err)
		}
		name := func(key *string) string {
			text := aws.ToString(key)
			if page.EncodingType == types.EncodingTypeUrl {
				if plain, err := url.QueryUnescape(text); err == nil {
					text = plain
				}
			}
			return strings.TrimPrefix(text, dir)
		}
		for _, o := range page.Contents {
			out = append(out, entry{name: name(o.Key), version: Version{Bytes: aws.ToInt64(o.Size),
				ETag: aws.ToString(o.ETag), ModTime: aws.ToTime(o.LastModified)}})
		}
		for _, p := range page.CommonPrefixes {
			out = append(out, entry{name: strings.TrimSuffix(name(p.Prefix), "/"), dir: true})
		}
		// Pages without anything count, too: else a service could keep us for ever.
		if err := l.came(max(len(page.Contents)+len(page.CommonPrefixes), pageEntriesMin)); err != nil {
			return nil, err
		}
		if !aws.ToBool(page.IsTruncated) {
			return out, nil
		}
		if in.ContinuationToken = page.NextContinuationToken; aws.ToString(in.ContinuationToken) == "" {
			return nil, &fault.Error{Kind: fault.Environment,
				Message: "the service lists a part of the files, and does not say where it goes on",
				Hint:    "check {{set s3-endpoint}}"}
		}
	}
}
