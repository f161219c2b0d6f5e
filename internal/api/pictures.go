package api

import (
	"bytes"
	"context"

	"github.com/danielgtaylor/huma/v2"

	"thalweg/internal/app"
	"thalweg/internal/app/view"
)

type drawIn struct {
	OfRun
	Color  string `query:"color" enum:"status,root,none" default:"status" doc:"What colours say: status, or the node that rows come from. none: the script alone is drawn."`
	Fields bool   `query:"fields" doc:"List the fields of tables."`
}

const pictureType = "image/svg+xml"

func (s *Server) drawRun(ctx context.Context, by asker, in *drawIn) (*huma.StreamResponse, error) {
	key, err := s.key(ctx, in.OfRun)
	if err != nil {
		return nil, err
	}
	d, err := s.runs(by).Show(ctx, key)
	if err != nil {
		return nil, err
	}
	script, _, err := s.app.Data.ScriptOf(ctx, key)
	if err != nil {
		return nil, err
	}
	o := app.DrawOptions{Roots: in.Color == "root", Plain: in.Color == "none", Fields: in.Fields}
	var picture bytes.Buffer
	if err := app.Draw(&picture, script, d, o); err != nil {
		return nil, err
	}
	return &huma.StreamResponse{Body: func(c huma.Context) {
		c.SetHeader("Content-Type", pictureType)
		_, _ = picture.WriteTo(c.BodyWriter()) // the client has gone
	}}, nil
}

type graphIn struct {
	OfRun
	Fields bool `query:"fields" doc:"List the fields of tables."`
}

func (s *Server) graph(ctx context.Context, by asker, in *graphIn) (*reply[view.Graph], error) {
	run, err := s.app.Runs.Find(ctx, in.Workspace, in.Run)
	if err != nil {
		return nil, err
	}
	return body(s.runs(by).Graph(ctx, run, in.Fields))
}

type matrixIn struct {
	SelectRuns
	Limit int `query:"limit" minimum:"1" maximum:"100" default:"20" doc:"Runs of a page."`
}

func (s *Server) matrix(ctx context.Context, by asker, in *matrixIn) (*reply[view.RunMatrix], error) {
	page, err := in.page(in.Limit)
	if err != nil {
		return nil, err
	}
	return body(s.runs(by).Matrix(ctx, in.Workspace, page))
}
