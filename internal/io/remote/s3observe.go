package remote

import (
	"context"
	"time"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/smithy-go/middleware"
)

// observed tells of each request, as the service's interface calls it, until its
// answer begins to come.
func observed(tell func(request string, took time.Duration, err error)) func(*middleware.Stack) error {
	return func(s *middleware.Stack) error {
		return s.Initialize.Add(middleware.InitializeMiddlewareFunc("thalweg:observe",
			func(ctx context.Context, in middleware.InitializeInput,
				next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
				began := time.Now()
				out, data, err := next.HandleInitialize(ctx, in)
				tell(awsmiddleware.GetOperationName(ctx), time.Since(began), err)
				return out, data, err
			}), middleware.After)
	}
}
