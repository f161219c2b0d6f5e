package api

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"thalweg/internal/app"
	"thalweg/internal/app/access"
	"thalweg/internal/app/view"
)

func (s *Server) registerData() {
	const w = "/v1/workspaces/{workspace}"
	const t = w + "/runs/{run}/tables/{table}"
	read := func(id, method, path, summary string) operation {
		return operation{id: id, method: method, path: path, summary: summary, tag: "data", needs: access.Read}
	}
	add(s, read("list-rows", http.MethodGet, t+"/rows", "List rows of a table, in its order or another one."), s.listRows)
	add(s, read("list-bad-rows", http.MethodGet, w+"/runs/{run}/nodes/{node}/bad-rows",
		"List the rows that a node has put aside."), s.sideRows("bad"))
	add(s, read("list-failed-rows", http.MethodGet, w+"/runs/{run}/nodes/{node}/failed-rows",
		"List the rows of a node that failed its checks."), s.sideRows("failed"))
	columns := read("list-columns", http.MethodGet, t+"/columns", "List the columns of a table.")
	columns.needs = access.View
	add(s, columns, s.listColumns)
	add(s, read("column-lineage", http.MethodGet, t+"/columns/{column}/lineage",
		"Say what a column is made of, and what is made of it."), s.columnLineage)
	add(s, read("node-lineage", http.MethodGet, w+"/runs/{run}/nodes/{node}/lineage",
		"Say what the columns of a node are made of, and what is made of them."), s.nodeLineage)
	explain := read("explain-batch", http.MethodPost, w+"/runs/{run}/nodes/{node}/batches/{batch}/plans",
		"Say what SQL a batch executes, and by which plan of DuckDB: a job.")
	explain.status = http.StatusAccepted
	add(s, explain, s.explainBatch)
	add(s, read("profile", http.MethodGet, t+"/profile", "Say what is known of a table's columns without reading rows."),
		s.profile)
	add(s, read("distribution", http.MethodGet, t+"/columns/{column}/distribution",
		"Say which values a column has, and how often."), s.distribution)
	download := read("download", http.MethodGet, t+"/download", "Download a table: CSV, NDJSON, Parquet or XLSX.")
	download.media = slices.Sorted(maps.Values(mediaTypes))
	add(s, download, s.download)
	rows := read("download-query", http.MethodPost, w+"/downloads",
		"Download the rows of a query: CSV, NDJSON, Parquet or XLSX.")
	rows.media = download.media
	add(s, rows, s.downloadQuery)
	add(s, read("query", http.MethodPost, w+"/queries", "Query the tables of a workspace's runs with SQL."), s.query)
	begin := read("begin-query", http.MethodPost, w+"/query-jobs", "Query tables, as query does, in a job.")
	begin.status = http.StatusAccepted
	add(s, begin, s.beginQuery)
	file := read("begin-download", http.MethodPost, w+"/download-jobs", "Make a file of the rows of a query, in a job.")
	file.status = http.StatusAccepted
	add(s, file, s.downloadJob)
	diff := read("diff", http.MethodPost, w+"/diffs", "Say how a table differs between two runs: a job.")
	diff.status = http.StatusAccepted
	add(s, diff, s.diff)
	trace := read("trace", http.MethodPost, w+"/traces", "Say what rows of a table are made of: a job.")
	trace.status = http.StatusAccepted
	add(s, trace, s.trace)
}

// OfTable is the input of operations of a table.
type OfTable struct {
	OfRun
	Table string `path:"table" maxLength:"256" doc:"Name of the table; NAME__failed and NAME__bad are its side tables."`
}

// SelectRows says which rows of a table are meant.
type SelectRows struct {
	From    int64    `query:"from" minimum:"0" doc:"Number of the first row, from 0: next of the page before."`
	Limit   int      `query:"limit" minimum:"1" maximum:"1000" default:"100"`
	Columns []string `query:"columns,explode" maxItems:"1000" doc:"None: all."`
	Where   string   `query:"where" maxLength:"10000" doc:"A condition of SQL over the columns."`
	Sort    []string `query:"sort,explode" maxItems:"20" doc:"Columns; with - before it, from the greatest."`
}

// of returns the selection from a table as the service knows it.
func (in SelectRows) of(run view.RunKey, table string) app.PeekTable {
	q := app.PeekTable{Run: run, Table: table, Columns: in.Columns, Where: in.Where, From: in.From, Rows: in.Limit}
	for _, name := range in.Sort {
		column, desc := strings.CutPrefix(name, "-")
		q.Sort = append(q.Sort, app.PeekSortBy{Column: column, Desc: desc})
	}
	return q
}

type rowsIn struct {
	OfTable
	SelectRows
}

func (s *Server) listRows(ctx context.Context, by asker, in *rowsIn) (*reply[view.Page], error) {
	key, err := s.key(ctx, in.OfRun)
	if err != nil {
		return nil, err
	}
	page, err := s.app.Peek.Rows(ctx, by.caller(), in.of(key, in.Table))
	s.note(ctx, by, access.RowsSeen, rowsOf(in.OfTable), err)
	return body(page, err)
}

func (s *Server) profile(ctx context.Context, by asker, in *OfTable) (*reply[view.Profile], error) {
	key, err := s.key(ctx, in.OfRun)
	if err != nil {
		return nil, err
	}
	profile, err := s.app.Peek.Profile(ctx, by.caller(), key, in.Table)
	s.note(ctx, by, access.RowsSeen, rowsOf(*in), err)
	return body(profile, err)
}

type distributionIn struct {
	OfTable
	Column string `path:"column" maxLength:"256" doc:"Name of the column."`
}

func (s *Server) distribution(ctx context.Context, by asker, in *distributionIn) (*reply[view.Distribution], error) {
	key, err := s.key(ctx, in.OfRun)
	if err != nil {
		return nil, err
	}
	values, err := s.app.Peek.Distribution(ctx, by.caller(), key, in.Table, in.Column)
	s.note(ctx, by, access.RowsSeen, rowsOf(in.OfTable), err)
	return body(values, err)
}

type downloadIn struct {
	OfTable
	Format      string `query:"format" enum:"csv,ndjson,parquet,xlsx" default:"csv"`
	Spreadsheet bool   `query:"spreadsheet" doc:"Of CSV: texts that a spreadsheet would take for formulas get an apostrophe."`
}

func (s *Server) download(ctx context.Context, by asker, in *downloadIn) (*huma.StreamResponse, error) {
	key, err := s.key(ctx, in.OfRun)
	if err != nil {
		return nil, err
	}
	// A table that is not there is found before the answer begins.
	if _, err := s.app.Peek.Profile(ctx, by.caller(), key, in.Table); err != nil {
		return nil, err
	}
	name := fmt.Sprintf("run%d-table", key.Run)
	return s.file(by, operation{id: "download"}, name, rowsOf(in.OfTable), app.Download{
		Table: &app.PeekTable{Run: key, Table: in.Table}, Format: app.DownloadFormat(in.Format),
		Spreadsheet: in.Spreadsheet}), nil
}

type queryIn struct {
	OfWorkspace
	Body struct {
		SQL   string `json:"sql" minLength:"1" maxLength:"100000" doc:"One query that only reads. Tables are NAME, or runN.NAME."`
		Limit int    `json:"limit,omitempty" minimum:"1" maximum:"1000" doc:"Rows; none: 1,000."`
	}
}

func (s *Server) query(ctx context.Context, by asker, in *queryIn) (*reply[view.Page], error) {
	return body(s.queried(ctx, by, in))
}

// beginQuery is query for those who do not stay on the line: the job is cancelled as others are.
func (s *Server) beginQuery(_ context.Context, by asker, in *queryIn) (*reply[Job], error) {
	return s.job(by, operation{id: "query"}, func(ctx context.Context) (any, error) { return s.queried(ctx, by, in) })
}

func (s *Server) queried(ctx context.Context, by asker, in *queryIn) (view.Page, error) {
	page, err := s.app.Peek.Query(ctx, by.caller(),
		app.PeekSQL{Workspace: in.Workspace, SQL: in.Body.SQL, Rows: in.Body.Limit})
	s.note(ctx, by, access.RowsSeen, in.Body.SQL, err)
	return page, err
}

type diffIn struct {
	OfWorkspace
	Body struct {
		Table     string   `json:"table" maxLength:"256"`
		RunA      int64    `json:"run_a" minimum:"1"`
		RunB      int64    `json:"run_b" minimum:"1"`
		Key       []string `json:"key,omitempty" maxItems:"100" doc:"Columns that say which row is which; none: a key that both are known to have."`
		ByRows    bool     `json:"by_rows,omitempty" doc:"Rows are compared as they are, without a key."`
		Columns   []string `json:"columns,omitempty" maxItems:"1000"`
		Tolerance float64  `json:"tolerance,omitempty" minimum:"0"`
		Limit     int      `json:"limit,omitempty" minimum:"1" maximum:"1000" doc:"Rows of each kind that are given; none: 10."`
	}
}

// diffRowsDefault is the number of rows of each kind of difference.
const diffRowsDefault = 10

func (s *Server) diff(ctx context.Context, by asker, in *diffIn) (*reply[Job], error) {
	b := in.Body
	var keys [2]view.RunKey
	for i, n := range []int64{b.RunA, b.RunB} {
		run, err := s.app.Runs.Numbered(ctx, in.Workspace, n)
		if err != nil {
			return nil, err
		}
		keys[i] = run.RunKey
	}
	o := app.DiffOptions{Table: b.Table, Key: b.Key, ByRows: b.ByRows, Columns: b.Columns, Tolerance: b.Tolerance,
		RowsMax: b.Limit}
	if o.RowsMax == 0 {
		o.RowsMax = diffRowsDefault
	}
	return s.job(by, operation{id: "diff"}, func(ctx context.Context) (any, error) {
		found, err := s.app.Peek.Diff(ctx, by.caller(), keys, o)
		s.note(ctx, by, access.RowsSeen, fmt.Sprintf("table %s of run %d and %d", b.Table, b.RunA, b.RunB), err)
		if err != nil {
			return nil, err
		}
		return found.View(), nil
	})
}

// Rows that a trace follows where a request does not say: of the table, and of those that one is made of.
const traceRows = 10

type traceIn struct {
	OfWorkspace
	Body struct {
		Run    string `json:"run,omitempty" pattern:"^(last(~[0-9]{1,3})?|[1-9][0-9]{0,17})$" doc:"None: the latest that has the table."`
		Table  string `json:"table" minLength:"1" maxLength:"4096" doc:"NAME, or runN.NAME, or an output file."`
		Where  string `json:"where,omitempty" maxLength:"10000" doc:"A condition of SQL: the rows that are meant; none: all."`
		Limit  int    `json:"limit,omitempty" minimum:"1" maximum:"1000" doc:"Rows to follow; none: 10."`
		Sample int    `json:"sample,omitempty" minimum:"1" maximum:"1000" doc:"Of many rows that one is made of, how many are followed; none: 10."`
	}
}

func (s *Server) trace(ctx context.Context, by asker, in *traceIn) (*reply[Job], error) {
	o := app.TraceOptions{Workspace: in.Workspace, Name: in.Body.Table}
	if in.Body.Run != "" {
		key, err := s.key(ctx, OfRun{in.OfWorkspace, in.Body.Run})
		if err != nil {
			return nil, err
		}
		o.Run = key.Run
	}
	o.Trace.Where, o.Trace.Limit = in.Body.Where, cmp.Or(in.Body.Limit, traceRows)
	o.Trace.Sample = cmp.Or(in.Body.Sample, traceRows)
	return s.job(by, operation{id: "trace"}, func(ctx context.Context) (any, error) {
		tree, err := s.app.Peek.Trace(ctx, by.caller(), o)
		s.note(ctx, by, access.RowsSeen, fmt.Sprintf("table %s of run %s", in.Body.Table, in.Body.Run), err)
		return tree, err
	})
}
