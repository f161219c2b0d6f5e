package api

import (
	"context"
	"strconv"

	"thalweg/internal/app"
	"thalweg/internal/app/view"
)

type listBatchesIn struct {
	OfNode
	Limit  int    `query:"limit" minimum:"1" maximum:"10000" doc:"Batches of a page; none: all batches."`
	Cursor string `query:"cursor" pattern:"^[1-9][0-9]{0,8}$" doc:"Next-Cursor of the page before."`
	Status string `query:"status" enum:"pending,claimed,succeeded,failed" doc:"Only those of this status."`
}

// batchesPage is a list of batches.
type batchesPage struct {
	Next string `header:"Next-Cursor" doc:"Cursor of the next page; none: this is the last one."`
	Body []view.Batch
}

func (s *Server) listBatches(ctx context.Context, by asker, in *listBatchesIn) (*batchesPage, error) {
	key, err := s.key(ctx, in.OfRun)
	if err != nil {
		return nil, err
	}
	from, err := cursorNumber(in.Cursor)
	if err != nil {
		return nil, err
	}
	batches, next, err := s.runs(by).BatchesPage(ctx, key, in.Node,
		app.BatchesPage{From: int(from), Limit: in.Limit, Status: view.Status(in.Status)})
	out := &batchesPage{Body: batches}
	if next > 0 {
		out.Next = strconv.Itoa(next)
	}
	return out, err
}

type timelineIn struct {
	OfNode
	From int `query:"from" minimum:"0" maximum:"1000000000" doc:"Number of the first batch."`
	To   int `query:"to" minimum:"0" maximum:"1000000000" doc:"Number of the batch behind the last one; 0: all."`
}

func (s *Server) timeline(ctx context.Context, by asker, in *timelineIn) (*reply[view.Timeline], error) {
	key, err := s.key(ctx, in.OfRun)
	if err != nil {
		return nil, err
	}
	return body(s.runs(by).Timeline(ctx, key, in.Node, in.From, in.To))
}
