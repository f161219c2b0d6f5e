package api

import (
	"net/http"
	"path"
	"slices"
	"strings"

	"thalweg/internal/base/fault"
)

// Pages is the web application: see package web.
type Pages interface {
	// ServeFile answers with a file of the application. It reports false, and answers nothing, if there is none.
	ServeFile(w http.ResponseWriter, r *http.Request) bool
	// ServePage answers with the application's page, whatever the path.
	ServePage(w http.ResponseWriter, r *http.Request)
}

// filesPath is where the application's files are.
const filesPath = "/ui/"

// notPages are the first parts of paths that the application has none of.
var notPages = []string{"v1", "ui", "start", "oidc", "healthz", "readyz", "metrics"}

// isPage reports whether a browser asks for a path that the application answers. Names in a path may hold anything, encoded.
func (s *Server) isPage(r *http.Request) bool {
	asked := r.URL.EscapedPath()
	clean := path.Clean(asked)
	first, _, _ := strings.Cut(strings.TrimPrefix(clean, "/"), "/")
	return s.pages != nil && (r.Method == http.MethodGet || r.Method == http.MethodHead) &&
		(clean == asked || clean+"/" == asked) && !slices.Contains(notPages, first) &&
		strings.Contains(strings.Join(r.Header.Values("Accept"), ","), "text/html")
}

// serveFile answers with a file of the application. A tab that was opened before the program was renewed asks for those
// of the old one, which are gone.
func (s *Server) serveFile(w http.ResponseWriter, r *http.Request) {
	if s.pages.ServeFile(w, r) {
		return
	}
	writeProblem(w, problem(&fault.Error{Kind: fault.Script, Code: fault.NotFound,
		Message: "this version of the pages has no such file", Hint: "load the page again"}, s.known.Text))
}
