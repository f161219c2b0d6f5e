package api

import (
	"context"
	"time"

	"thalweg/internal/app"
	"thalweg/internal/app/view"
)

type samplesIn struct {
	OfRun
	From   time.Time `query:"from" doc:"Only what was used behind then; none: from the beginning of the run."`
	To     time.Time `query:"to" doc:"Only what was used before then; none: until the run ended."`
	Points int       `query:"points" minimum:"1" maximum:"1000" default:"360" doc:"Samples of a worker; of more, neighbours are put together."`
}

func (s *Server) samples(ctx context.Context, by asker, in *samplesIn) (*reply[view.Samples], error) {
	run, err := s.app.Runs.Find(ctx, in.Workspace, in.Run)
	if err != nil {
		return nil, err
	}
	return body(s.runs(by).Samples(ctx, run, app.SamplesOptions{From: in.From, To: in.To, Points: in.Points}))
}
