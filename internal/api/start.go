package api

import (
	"crypto/sha256"
	_ "embed" // the page and its script
	"encoding/base64"
	"net/http"
	"strings"
)

// startPage takes the start token out of its own address, behind #, which no server and no log sees,
// and begins a session with it.
//
//go:embed start.html
var startPage string

// startPolicy allows the page's one script, and that it asks this server.
func startPolicy() string {
	_, rest, _ := strings.Cut(startPage, "<script>")
	script, _, _ := strings.Cut(rest, "</script>")
	sum := sha256.Sum256([]byte(script))
	return "default-src 'none'; script-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
		"'; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
}

func (s *Server) serveStart(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Security-Policy", startPolicy())
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write([]byte(startPage)) // the client has gone
}
