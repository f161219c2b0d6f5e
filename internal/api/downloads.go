package api

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"thalweg/internal/app"
	"thalweg/internal/app/access"
)

// downloadTimeout is how long a client may take for a download.
const downloadTimeout = 10 * time.Minute

// mediaTypes of downloads.
var mediaTypes = map[string]string{"csv": "text/csv; charset=utf-8", "ndjson": "application/x-ndjson",
	"parquet": "application/vnd.apache.parquet",
	"xlsx":    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"}

// warningHeader has a warning of a download's tables, with % before what no header has.
const warningHeader = "Thalweg-Warning"

type downloadQueryIn struct {
	OfWorkspace
	Body struct {
		SQL         string `json:"sql" minLength:"1" maxLength:"100000" doc:"One query that only reads. Tables are NAME, or runN.NAME."`
		Format      string `json:"format,omitempty" enum:"csv,ndjson,parquet,xlsx" doc:"None: csv."`
		Limit       int    `json:"limit,omitempty" minimum:"1" doc:"Rows; none: all."`
		Spreadsheet bool   `json:"spreadsheet,omitempty" doc:"Of CSV: texts that a spreadsheet would take for formulas get an apostrophe."`
	}
}

// download is what is asked for.
func (in *downloadQueryIn) download() app.Download {
	b := in.Body
	return app.Download{SQL: &app.PeekSQL{Workspace: in.Workspace, SQL: b.SQL, Rows: b.Limit},
		Format: app.DownloadFormat(cmp.Or(b.Format, string(app.DownloadCSV))), Spreadsheet: b.Spreadsheet}
}

func (s *Server) downloadQuery(ctx context.Context, by asker, in *downloadQueryIn) (*huma.StreamResponse, error) {
	return s.file(by, operation{id: "download-query"}, "query", in.Body.SQL, in.download()), nil
}

// file answers with a file while it is made. What fails before its first byte is a problem. Later what was sent is not
// all: the connection is cut, so that the client sees it. what is taken is noted before its first byte.
func (s *Server) file(by asker, o operation, name, what string, d app.Download) *huma.StreamResponse {
	return &huma.StreamResponse{Body: func(c huma.Context) {
		_ = c.SetReadDeadline(time.Time{}) // nothing more is read
		_, w := humago.Unwrap(c)
		out := http.NewResponseController(w)
		_ = out.SetWriteDeadline(time.Now().Add(downloadTimeout)) // else the server's is
		ctx, cancel := context.WithTimeout(c.Context(), downloadTimeout)
		defer cancel()
		d.Warned = func(warnings []string) {
			for _, text := range warnings {
				c.AppendHeader(warningHeader, url.PathEscape(text))
			}
		}
		to := &begun{to: c.BodyWriter(), begin: func() {
			s.note(ctx, by, access.RowsTaken, what, nil)
			c.SetHeader("Content-Type", mediaTypes[string(d.Format)])
			c.SetHeader("Content-Disposition", fmt.Sprintf(`attachment; filename="%s.%s"`, name, d.Format))
		}}
		err := s.app.Peek.Download(ctx, by.caller(), d, to)
		switch {
		case err == nil && !to.has: // no rows, and a form without a head
			to.begin()
		case err != nil && !to.has:
			s.refuse(c, s.failed(ctx, o, err))
		case err != nil:
			s.failed(ctx, o, err)
			_ = out.SetWriteDeadline(time.Unix(1, 0))
		}
	}}
}

// begun is a writer that calls begin before its first byte.
type begun struct {
	to    io.Writer
	begin func()
	has   bool
}

// Write implements io.Writer.
func (b *begun) Write(p []byte) (int, error) {
	if !b.has {
		b.has = true
		b.begin()
	}
	return b.to.Write(p)
}
