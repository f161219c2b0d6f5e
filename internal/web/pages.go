package web

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"io/fs"
	"net/http"
	"strconv"
	"strings"
)

// Places in the index, as it is built, that are filled in.
const (
	noncePlace = "__NONCE__"
	ownFiles   = `="./` // begins the addresses of the files
)

// nonceBytes of randomness are in a page's nonce.
const nonceBytes = 16

// immutable lets everybody keep a file for a year.
const immutable = "public, max-age=31536000, immutable"

// Prefix is where files have their addresses.
const Prefix = "/ui/"

// Pages answers browsers with the web application.
type Pages struct {
	base  string // address of the files
	index []byte // with addresses, without a nonce
	files map[string]*file
}

// New returns the application that is built into the program.
func New() (*Pages, error) {
	from, err := fs.Sub(dist, "dist")
	if err != nil {
		return nil, err
	}
	return newPages(from)
}

func newPages(from fs.FS) (*Pages, error) {
	index, files, digest, err := read(from)
	if err != nil {
		return nil, err
	}
	base := Prefix + digest + "/"
	return &Pages{base: base, files: files,
		index: bytes.ReplaceAll(index, []byte(ownFiles), []byte(`="`+base))}, nil
}

// ServeFile answers with a file of the application. It reports false, and answers nothing, if there is none at the
// path: the one who asks may be a page of another version.
func (p *Pages) ServeFile(w http.ResponseWriter, r *http.Request) bool {
	name, own := strings.CutPrefix(r.URL.Path, p.base)
	f := p.files[name]
	if !own || f == nil {
		return false
	}
	h := w.Header()
	h.Set("Cache-Control", immutable)
	h.Set("Content-Type", f.contentType)
	content := f.plain
	if f.packed != nil {
		h.Set("Vary", "Accept-Encoding")
		if takesGzip(r.Header.Values("Accept-Encoding")) {
			h.Set("Content-Encoding", "gzip")
			content = f.packed
		}
	}
	h.Set("Content-Length", strconv.Itoa(len(content)))
	_, _ = w.Write(content) // the client has gone
	return true
}

// ServePage answers with the application's page, which finds out by its address what it is to show.
func (p *Pages) ServePage(w http.ResponseWriter, _ *http.Request) {
	random := make([]byte, nonceBytes)
	_, _ = rand.Read(random) // never fails
	nonce := base64.StdEncoding.EncodeToString(random)
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", policy(nonce))
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("X-Frame-Options", "DENY")
	_, _ = w.Write(bytes.ReplaceAll(p.index, []byte(noncePlace), []byte(nonce))) // the client has gone
}

// policy is what a page with a nonce may do. Svelte alone makes elements of text, by a policy of trusted types.
func policy(nonce string) string {
	return "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-" + nonce + "'; img-src 'self' data:; " +
		"font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; " +
		"require-trusted-types-for 'script'; trusted-types svelte-trusted-html"
}

// takesGzip reports whether the values of Accept-Encoding allow gzip.
func takesGzip(accepted []string) bool {
	other := false
	for _, one := range strings.Split(strings.Join(accepted, ","), ",") {
		coding, weight, _ := strings.Cut(one, ";")
		_, q, weighed := strings.Cut(strings.ReplaceAll(weight, " ", ""), "q=")
		n, err := strconv.ParseFloat(q, 64)
		takes := !weighed || err == nil && n > 0
		switch strings.ToLower(strings.TrimSpace(coding)) {
		case "gzip":
			return takes
		case "*":
			other = takes
		}
	}
	return other
}
