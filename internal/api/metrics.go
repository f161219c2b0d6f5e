package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"thalweg/internal/app/access"
	"thalweg/internal/base/fault"
)

// registerMetrics answers those who collect metrics. They are of all workspaces: who asks has to see all.
func (s *Server) registerMetrics() {
	add(s, operation{id: "metrics", method: http.MethodGet, path: "/metrics", tag: "fleet", needs: access.View,
		summary: "Give the metrics of this process in the format of Prometheus.", missing: true,
		media: []string{"text/plain", "application/vnd.google.protobuf"}}, s.showMetrics)
}

func (s *Server) showMetrics(context.Context, asker, *none) (*huma.StreamResponse, error) {
	if s.metrics == nil {
		return nil, &fault.Error{Kind: fault.Script, Code: fault.NotFound, Message: "this server measures nothing"}
	}
	return &huma.StreamResponse{Body: func(c huma.Context) {
		r, w := humago.Unwrap(c)
		s.metrics.ServeHTTP(w, r)
	}}, nil
}
