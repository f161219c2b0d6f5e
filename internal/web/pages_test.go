package web

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

func get(t *testing.T, p *Pages, path, encoding string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, path, nil)
	if encoding != "" {
		r.Header.Set("Accept-Encoding", encoding)
	}
	if !p.ServeFile(w, r) {
		w.WriteHeader(http.StatusNotFound)
	}
	return w
}

// The page names files that are there, and its policy has the nonce of this answer only.
func TestPage(t *testing.T) {
	p, err := New()
	require.NoError(t, err)
	answer := func() (string, http.Header) {
		w := httptest.NewRecorder()
		p.ServePage(w, httptest.NewRequest(http.MethodGet, "/w/main", nil))
		return w.Body.String(), w.Header()
	}
	page, header := answer()
	nonce := regexp.MustCompile(`nonce="([A-Za-z0-9+/=]{24})"`).FindStringSubmatch(page)
	require.NotNil(t, nonce, page)
	require.Contains(t, header.Get("Content-Security-Policy"), "'nonce-"+nonce[1]+"'")
	require.NotContains(t, page, noncePlace)
	require.Equal(t, "no-store", header.Get("Cache-Control"))
	again, _ := answer()
	require.NotContains(t, again, nonce[1])

	linked := regexp.MustCompile(`(?:src|href)="(/[^"]+)"`).FindAllStringSubmatch(page, -1)
	require.GreaterOrEqual(t, len(linked), 2, "a script and styles")
	for _, one := range linked {
		require.Equal(t, http.StatusOK, get(t, p, one[1], "").Code, one[1])
	}
	require.NotContains(t, page, `="./`)
	require.NotRegexp(t, `<script>|<style| style=| on[a-z]+=`, page, "the policy allows nothing inside the page")
}

// Each file is the same packed and unpacked, and is kept by browsers.
func TestFiles(t *testing.T) {
	p, err := New()
	require.NoError(t, err)
	require.Contains(t, p.files, "app.js")
	for name, f := range p.files {
		w := get(t, p, p.base+name, "br, gzip;q=0.5")
		require.Equal(t, immutable, w.Header().Get("Cache-Control"))
		require.Equal(t, f.contentType, w.Header().Get("Content-Type"))
		plain := w.Body.Bytes()
		if f.packed != nil {
			require.Equal(t, "gzip", w.Header().Get("Content-Encoding"))
			require.Equal(t, "Accept-Encoding", w.Header().Get("Vary"))
			z, err := gzip.NewReader(w.Body)
			require.NoError(t, err)
			require.Zero(t, z.ModTime)
			require.Empty(t, z.Name)
			plain, err = io.ReadAll(z)
			require.NoError(t, err)
		}
		require.True(t, bytes.Equal(f.plain, plain), name)
		require.NotContains(t, string(plain), "sourceMappingURL", name)
		require.Equal(t, f.plain, get(t, p, p.base+name, "gzip;q=0, *").Body.Bytes(), name)
	}
	for _, path := range []string{"/ui/", "/ui/000000000000000000000000/app.js", p.base, p.base + "index.html",
		p.base + "app.js.gz", p.base + "sources.sha256", p.base + "../" + p.base + "app.js"} {
		require.Equal(t, http.StatusNotFound, get(t, p, path, "").Code, path)
	}
}

func TestTakesGzip(t *testing.T) {
	for value, want := range map[string]bool{"": false, "gzip": true, "br, GZIP": true, "gzip;q=0": false,
		"gzip; q=0.001": true, "*": true, "*;q=0": false, "gzip;q=0, *": false, "identity": false, "gzip;q=x": false} {
		require.Equal(t, want, takesGzip(strings.Split(value, "|")), value)
	}
}

// Files that are not whole are an error, and other bytes are at another address.
func TestBrokenFiles(t *testing.T) {
	whole := func() fstest.MapFS {
		return fstest.MapFS{"index.html": {Data: []byte(noncePlace)}, "app.js": {Data: []byte("1")}}
	}
	p, err := newPages(whole())
	require.NoError(t, err)
	altered := whole()
	altered["app.js"].Data = []byte("2")
	other, err := newPages(altered)
	require.NoError(t, err)
	require.NotEqual(t, p.base, other.base)

	for _, name := range []string{"index.html", "x.exe"} {
		broken := whole()
		if _, is := broken[name]; is {
			delete(broken, name)
		} else {
			broken[name] = &fstest.MapFile{}
		}
		_, err := newPages(broken)
		require.ErrorContains(t, err, name)
	}
}
