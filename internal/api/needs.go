package api

import (
	"context"

	"thalweg/internal/app"
	"thalweg/internal/app/access"
	"thalweg/internal/app/view"
)

// needs says what needs people in a workspace: values of the data are for those who may read them.
func (s *Server) needs(ctx context.Context, by asker, in *OfWorkspace) (*reply[view.Needs], error) {
	return body(s.app.Fleet.Needs(ctx, app.NeedsAsker{Caller: by.caller(), Decides: by.may(access.Decide),
		Reads: by.may(access.Read), Runs: s.runs(by)}, in.Workspace))
}
