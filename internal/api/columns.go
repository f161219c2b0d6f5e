package api

import (
	"context"

	"thalweg/internal/app/access"
	"thalweg/internal/app/view"
)

type sideRowsIn struct {
	OfNode
	SelectRows
}

// sideRows answers with the rows of a side table of a node: none, if it has put none aside.
func (s *Server) sideRows(side string) func(context.Context, asker, *sideRowsIn) (*reply[view.Page], error) {
	return func(ctx context.Context, by asker, in *sideRowsIn) (*reply[view.Page], error) {
		key, err := s.key(ctx, in.OfRun)
		if err != nil {
			return nil, err
		}
		table, has, err := s.app.Data.Side(ctx, key, in.Node, side)
		if err != nil || !has {
			return body(view.EmptyPage(), err)
		}
		page, err := s.app.Peek.Rows(ctx, by.caller(), in.of(key, table))
		s.note(ctx, by, access.RowsSeen, rowsOf(OfTable{OfRun: in.OfRun, Table: table}), err)
		return body(page, err)
	}
}

func (s *Server) listColumns(ctx context.Context, _ asker, in *OfTable) (*reply[view.TableColumns], error) {
	key, err := s.key(ctx, in.OfRun)
	if err != nil {
		return nil, err
	}
	return body(s.app.Data.Columns(ctx, key, in.Table))
}

// columnLineage shows expressions of the script, which may have values in them.
func (s *Server) columnLineage(ctx context.Context, _ asker, in *distributionIn) (*reply[view.ColumnLineage], error) {
	key, err := s.key(ctx, in.OfRun)
	if err != nil {
		return nil, err
	}
	return body(s.app.Operations.Lineage(ctx, key, in.Table+"."+in.Column))
}

func (s *Server) nodeLineage(ctx context.Context, _ asker, in *OfNode) (*reply[view.NodeLineage], error) {
	key, err := s.key(ctx, in.OfRun)
	if err != nil {
		return nil, err
	}
	return body(s.app.Data.NodeLineage(ctx, key, in.Node))
}
