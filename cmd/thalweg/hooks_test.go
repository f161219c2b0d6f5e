package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
)

// cmdReceiver starts a server that keeps what it is posted: receiver DIR. Bodies
// are DIR/1, DIR/2 …, their headers DIR/1.headers …; the file DIR/answers has
// the status codes of the next answers, a line each, and then all is well.
// $RECEIVER is its address.
func cmdReceiver(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: receiver DIR")
	}
	dir := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(dir, 0o755))
	var mu sync.Mutex
	count := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return
		}
		count++
		name := filepath.Join(dir, strconv.Itoa(count))
		var headers strings.Builder
		fmt.Fprintf(&headers, "%s %s\n", req.Method, req.URL)
		_ = req.Header.Write(&headers)
		_ = os.WriteFile(name+".headers", []byte(strings.ReplaceAll(headers.String(), "\r", "")), 0o600)
		_ = os.WriteFile(name, body, 0o600)
		w.WriteHeader(nextAnswer(filepath.Join(dir, "answers")))
	}))
	ts.Defer(server.Close)
	ts.Setenv("RECEIVER", server.URL)
}

// nextAnswer takes the first line of a file of status codes.
func nextAnswer(path string) int {
	text, err := os.ReadFile(path)
	first, rest, _ := strings.Cut(string(text), "\n")
	if code, bad := strconv.Atoi(first); err == nil && bad == nil {
		_ = os.WriteFile(path, []byte(rest), 0o600)
		return code
	}
	return http.StatusOK
}
