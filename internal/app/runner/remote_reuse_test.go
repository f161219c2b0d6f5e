package runner_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app/runner"
	"thalweg/internal/app/runtime"
	"thalweg/internal/io/remote"
	"thalweg/internal/run/job"
	"thalweg/internal/store/state"
	"thalweg/internal/test/effort"
	"thalweg/internal/test/remotetest"
)

// tagged is a file of a server that gives entity tags, and counts how often all
// of it is sent.
type tagged struct {
	mu      sync.Mutex
	version int
	weak    bool
	sent    int
	sends   func() // called before the file is sent
}

func (s *tagged) serve(w http.ResponseWriter, r *http.Request) bool {
	if r.Header.Get("Range") == "" {
		s.mu.Lock()
		s.sent++
		sends := s.sends
		s.mu.Unlock()
		if sends != nil {
			sends()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	tag := fmt.Sprintf(`"v%d"`, s.version)
	if s.weak {
		tag = "W/" + tag
	}
	w.Header().Set("ETag", tag)
	http.ServeContent(w, r, "items.csv", time.Time{}, strings.NewReader(fmt.Sprintf("id\n%d\n", s.version)))
	return true
}

func (s *tagged) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// An input of another machine is known by its server's strong entity tag, and
// not copied for a node that is taken over.
func TestRemoteInputsAreNotCopiedForWhatIsTakenOver(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	dir := t.TempDir()
	https := remotetest.NewHTTPS(t, dir)
	file := &tagged{version: 1}
	https.Intercept(file.serve)
	script := filepath.Join(dir, "script.yaml")
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	write("mine.csv", "id\n7\n")
	write("script.yaml", strings.NewReplacer("URL", "https://"+https.Addr+"/items.csv", "DIR", dir).Replace(`
nodes:
  one:
    type: file_table
    r: {urls: ["URL"], columns: {id: int}}
    w: one
  two:
    type: file_table
    r: {urls: ["DIR/mine.csv", "URL"], columns: {id: int}}
    w: two
`))
	home := openHome(t, dir)
	t.Cleanup(func() { require.NoError(t, home.Close()) })
	var observe func(job.Event)
	run := func() runner.Summary {
		t.Helper()
		client := remote.New(remote.Config{CAPath: https.CAFile})
		defer client.Close()
		sum, err := runner.Run(t.Context(), home, runner.Options{ScriptPath: script, Workspace: "main",
			Process: runtime.Process{MemoryBytes: 512 << 20, Cores: 1, Remote: client, Observe: observe}, Reuse: true})
		require.NoError(t, err)
		return sum
	}
	complete := func(sent int, computed ...string) {
		t.Helper()
		file.set(func() { file.sent = 0 })
		sum := run()
		require.Equal(t, state.Complete, sum.Status, "%+v", sum.Failure)
		require.ElementsMatch(t, computed, computedOf(sum))
		file.set(func() { require.Equal(t, sent, file.sent, "how often it was copied") })
	}
	complete(1, "one", "two")
	complete(0)
	file.set(func() { file.version = 2 })
	complete(1, "one", "two")
	complete(0)
	write("mine.csv", "id\n8\n")
	complete(1, "two")
	file.set(func() { file.weak = true })
	complete(1, "one", "two")
	complete(1, "one", "two")

	// One node is taken over by what the server said, while another one is at
	// copying the file, which changes: no run has rows of both.
	file.set(func() { file.weak = false })
	complete(0)
	write("mine.csv", "id\n9\n")
	over := make(chan struct{})
	observe = func(e job.Event) {
		if e.Node == "one" && e.Kind == job.NodePlanned {
			close(over)
		}
	}
	file.set(func() {
		file.sends = func() {
			<-over
			file.set(func() { file.version = 3 })
		}
	})
	sum := run()
	require.Equal(t, state.Failed, sum.Status)
	require.Contains(t, sum.Failure.Message, "the input file changed after the run read it")
}
