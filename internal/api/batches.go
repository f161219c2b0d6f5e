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

type listAttemptsIn struct {
	OfNode
	Limit  int    `query:"limit" minimum:"1" maximum:"1000" default:"100" doc:"Tries of a page."`
	Cursor string `query:"cursor" pattern:"^[1-9][0-9]{0,17}$" doc:"Next-Cursor of the page before: the batch with which this one begins."`
}

// attemptsPage is a list of tries.
type attemptsPage struct {
	Next string `header:"Next-Cursor" doc:"Cursor of the next page; none: this is the last one."`
	Body []view.ListedTry
}

func (s *Server) listAttempts(ctx context.Context, by asker, in *listAttemptsIn) (*attemptsPage, error) {
	key, err := s.key(ctx, in.OfRun)
	if err != nil {
		return nil, err
	}
	from, err := cursorNumber(in.Cursor)
	if err != nil {
		return nil, err
	}
	tries, next, err := s.runs(by).Attempts(ctx, key, in.Node, from, in.Limit)
	out := &attemptsPage{Body: tries}
	if next > 0 {
		out.Next = strconv.FormatInt(next, 10)
	}
	return out, err
}

// explainBatch answers with SQL, which names files and has values of the script in it.
func (s *Server) explainBatch(_ context.Context, by asker, in *OfBatch) (*reply[Job], error) {
	return s.job(by, operation{id: "explain-batch"}, func(ctx context.Context) (any, error) {
		key, err := s.key(ctx, in.OfRun)
		if err != nil {
			return nil, err
		}
		return s.app.Data.ExplainBatch(ctx, by.caller(),
			view.BatchKey{NodeKey: view.NodeKey{RunKey: key, Node: in.Node}, Batch: in.Batch})
	})
}
