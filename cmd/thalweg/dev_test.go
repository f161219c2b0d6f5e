package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/test/effort"
)

const developed = `
nodes:
  load: {type: file_table, r: {urls: [in.csv], types: {id: int}}, w: ids}
  keep: {type: table_table, r: ids, w: {name: kept, having: "w.id >= {least}", fields: [r.id]}}
  write: {type: table_file, r: kept, w: "{out}"}
`

// A script is developed as run sees it: from the working directory, with parameters of the command line. What a run of
// the command line has done is taken over.
func TestDev(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{"jobs/script.yaml": developed, "in.csv": "id\n1\n2\n3\n",
		"params.yaml": "least: \"2\"\n"} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	args := []string{"jobs/script.yaml", "--params", "params.yaml", "--param", "out=out.csv", "--memory", "1GB"}
	said, err := thalweg(t.Context(), dir, append([]string{"run"}, args...)...).CombinedOutput()
	require.NoError(t, err, string(said))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "params.yaml"), []byte("least: \"3\"\n"), 0o600))

	cmd := thalweg(context.Background(), dir, append([]string{"dev", "--no-browser"}, args...)...)
	stderr, err := cmd.StderrPipe()
	require.NoError(t, err)
	keys, err := cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewScanner(stderr)
	var page *url.URL
	for page == nil && lines.Scan() {
		if m := regexp.MustCompile(`to sign in: (\S+)`).FindStringSubmatch(lines.Text()); m != nil {
			page, err = url.Parse(m[1])
			require.NoError(t, err)
		}
	}
	require.NotNil(t, page, "the server has ended")
	t.Cleanup(func() {
		require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
		for lines.Scan() {
		}
		require.NoError(t, cmd.Wait())
	})
	require.Equal(t, "127.0.0.1", page.Hostname())
	require.Equal(t, "/w/main/dev/script.yaml", page.Query().Get("next"))
	var cookie *http.Cookie
	ask := func(method, path, body string, into any) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, "http://"+page.Host+path, strings.NewReader(body))
		require.NoError(t, err)
		req.Header.Set("Content-Type", "application/json")
		if cookie != nil {
			req.AddCookie(cookie)
		}
		res, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		require.Equal(t, 2, res.StatusCode/100, "%s %s: %s", method, path, text)
		if len(res.Cookies()) > 0 {
			cookie = res.Cookies()[0]
		}
		if into != nil {
			require.NoError(t, json.Unmarshal(text, into))
		}
	}
	ask("POST", "/v1/login", `{"start":"`+page.Fragment+`"}`, nil)
	var runs []struct{ Run int64 }
	ask("GET", "/v1/workspaces/main/scripts/script.yaml/runs", "", &runs)
	require.Len(t, runs, 1, "the run of the command line is one of the script")
	ask("POST", "/v1/workspaces/main/runs", `{"script":"script.yaml"}`, nil)
	var run struct {
		Status string
		Nodes  []struct {
			Node   string
			Reused *struct{ Run int64 } `json:"reused_from"`
		}
	}
	require.Eventually(t, func() bool {
		ask("GET", "/v1/workspaces/main/runs/2", "", &run)
		return run.Status == "complete"
	}, effort.Patience, 20*time.Millisecond)
	require.NotNil(t, run.Nodes[0].Reused, "load is as it was")
	require.Nil(t, run.Nodes[1].Reused, "its parameter has changed")
	out, err := os.ReadFile(filepath.Join(dir, "out.csv"))
	require.NoError(t, err)
	require.Equal(t, "id\n3\n", string(out))

	require.NoError(t, os.WriteFile(filepath.Join(dir, "params.yaml"), []byte("least: \"2\"\n"), 0o600))
	_, err = io.WriteString(keys, "x\nr\n")
	require.NoError(t, err)
	for lines.Scan() && lines.Text() != "run 3 has begun" {
	}
	require.Eventually(t, func() bool {
		ask("GET", "/v1/workspaces/main/runs/3", "", &run)
		return run.Status == "complete"
	}, effort.Patience, 20*time.Millisecond)
	out, err = os.ReadFile(filepath.Join(dir, "out.csv"))
	require.NoError(t, err)
	require.Equal(t, "id\n2\n3\n", string(out))
}

func TestDevRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{"script.yaml": developed, "script.txt": developed,
		"thalweg.yaml": "environments: {prod: {protected: true}}\n"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	for want, args := range map[string][]string{
		"there is no script none.yaml": {"none.yaml"},
		"no script":                    {"script.txt"},
		"prod is protected":            {"script.yaml", "--env", "prod"},
		"works here":                   {"script.yaml", "--server", "http://127.0.0.1:1"},
	} {
		said, err := thalweg(t.Context(), dir, append([]string{"dev"}, args...)...).CombinedOutput()
		require.Error(t, err)
		require.Contains(t, string(said), want)
	}
}
