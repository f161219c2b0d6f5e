package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/test/effort"
)

// killedServer is a server that is killed and started again over one directory.
type killedServer struct {
	t       *testing.T
	dir     string
	at      atomic.Value // address, a string
	token   string
	process *os.Process
	ended   chan struct{}
}

// begin starts the server; the first time it also makes an admin with a token.
func (k *killedServer) begin() {
	k.t.Helper()
	cmd := thalweg(context.Background(), k.dir, "serve", "--listen", "127.0.0.1:0", "--worker", "--config", "serve.yaml")
	said, err := cmd.StderrPipe()
	require.NoError(k.t, err)
	require.NoError(k.t, cmd.Start())
	k.process, k.ended = cmd.Process, make(chan struct{})
	lines := bufio.NewScanner(said)
	signIn := regexp.MustCompile(`to sign in: (http://[^/]+)/start#(\S+)`)
	var start string
	for start == "" && lines.Scan() {
		if m := signIn.FindStringSubmatch(lines.Text()); m != nil {
			start = m[2]
			k.at.Store(m[1])
		}
	}
	require.NotEmpty(k.t, start, "the server has ended")
	go func() {
		defer close(k.ended)
		for lines.Scan() {
		}
		_ = cmd.Wait() // it is killed
	}()
	if k.token != "" {
		return
	}
	req, err := http.NewRequestWithContext(k.t.Context(), "POST", k.at.Load().(string)+"/v1/login",
		strings.NewReader(`{"start":"`+start+`"}`))
	require.NoError(k.t, err)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	require.NoError(k.t, err)
	require.NoError(k.t, res.Body.Close())
	cookie := res.Cookies()[0]
	for _, one := range [][2]string{{"PUT /v1/users/ann", annsGrants}, {"POST /v1/login",
		`{"name":"ann","password":"correct horse battery"}`}, {"POST /v1/tokens", `{"name":"t","days":1,` +
		`"grants":[{"workspace":"*","role":"admin","gate_roles":["sales"]}]}`}} {
		method, path, _ := strings.Cut(one[0], " ")
		status, text, set := k.send(context.Background(), method, path, one[1], "", cookie)
		require.Equal(k.t, 2, status/100, text)
		if len(set) > 0 {
			cookie = set[0]
		}
		var made struct{ Secret string }
		if strings.HasPrefix(text, "{") {
			require.NoError(k.t, json.Unmarshal([]byte(text), &made), text)
		}
		k.token = made.Secret
	}
	require.NotEmpty(k.t, k.token)
}

func (k *killedServer) kill() {
	require.NoError(k.t, k.process.Signal(syscall.SIGKILL))
	<-k.ended
}

// send returns the status of an answer, and its text; 0: there was none.
func (k *killedServer) send(ctx context.Context, method, path, body, key string, cookie *http.Cookie) (int, string,
	[]*http.Cookie) {
	req, err := http.NewRequestWithContext(ctx, method, k.at.Load().(string)+path, strings.NewReader(body))
	if err != nil {
		return 0, err.Error(), nil
	}
	if req.Header.Set("Content-Type", "application/json"); key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	if cookie != nil {
		req.AddCookie(cookie)
	} else {
		req.Header.Set("Authorization", "Bearer "+k.token)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err.Error(), nil
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, err.Error(), nil
	}
	return res.StatusCode, string(text), res.Cookies()
}

// get reads what is there.
func (k *killedServer) get(path string, into any) {
	k.t.Helper()
	status, text, _ := k.send(k.t.Context(), "GET", path, "", "", nil)
	require.Equal(k.t, http.StatusOK, status, text)
	require.NoError(k.t, json.Unmarshal([]byte(text), into), text)
}

// heard collects the ids of the events of a run that a client hears who comes back to whichever server there is.
type heard struct {
	mu    sync.Mutex
	lines []string
}

func (h *heard) follow(ctx context.Context, address, token, topic string) {
	h.mu.Lock()
	last := fmt.Sprint(topic, ":", len(h.lines))
	h.mu.Unlock()
	req, err := http.NewRequestWithContext(ctx, "GET", address+"/v1/stream?topics="+topic, nil)
	if err != nil {
		return
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Last-Event-ID", last)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() {
		if data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: ")); ok && bytes.HasPrefix(data, []byte(`{"n":`)) {
			h.mu.Lock()
			h.lines = append(h.lines, string(data))
			h.mu.Unlock()
		}
	}
}

// audited is what the test looks at of an entry of the audit.
type audited struct {
	Action string
	Void   bool
}

// Servers that are killed amid orders have given each of them once or not at all; who repeats an order with its key
// has it given once. Of two decisions one counts. A stream that is taken up again has no gap and nothing twice.
func TestChaosServerIsKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "jobs"), 0o700))
	for name, text := range map[string]string{"jobs/gate.yaml": servedScript, "jobs/in.csv": "id\n1\n2\n",
		"serve.yaml": "version: 1\nworkspaces: {main: {scripts: [jobs]}}\n"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	k := &killedServer{t: t, dir: dir}
	k.begin()
	t.Cleanup(func() { k.kill() })
	random := rand.New(rand.NewPCG(1, 2))
	const runs = "/v1/workspaces/main/runs"
	kills := effort.Of(2, 5, 100)
	for trial := range kills {
		key := fmt.Sprint("start-", trial)
		answers := k.amid(random, func(ctx context.Context) (int, string) {
			status, text, _ := k.send(ctx, "POST", runs, `{"script":"gate.yaml","fresh":true}`, key, nil)
			return status, text
		})
		var began struct{ Run int64 }
		require.NoError(t, json.Unmarshal([]byte(answers[len(answers)-1]), &began))
		require.EqualValues(t, trial+1, began.Run, "each start began one run")
		run := fmt.Sprint(runs, "/", began.Run)

		var gates []struct {
			Run  int64
			Asks struct{ Digest string }
		}
		require.Eventually(t, func() bool {
			k.get("/v1/workspaces/main/gates", &gates)
			return len(gates) == 1 && gates[0].Run == began.Run
		}, effort.Patience, 20*time.Millisecond)
		h, topic := &heard{}, fmt.Sprint("main/", began.Run)
		listening, stop := context.WithCancel(t.Context())
		var group sync.WaitGroup
		group.Go(func() {
			for listening.Err() == nil {
				h.follow(listening, k.at.Load().(string), k.token, topic)
			}
		})
		digest := gates[0].Asks.Digest
		var made sync.Map
		k.amid(random, func(ctx context.Context) (int, string) {
			var both sync.WaitGroup
			worst := http.StatusOK
			var mu sync.Mutex
			for _, approve := range []bool{true, false} {
				both.Go(func() {
					status, text, _ := k.send(ctx, "POST", run+"/gates/ids/decision",
						fmt.Sprintf(`{"approve":%v,"digest":%q}`, approve, digest), fmt.Sprint(key, approve), nil)
					made.Store(approve, fmt.Sprint(status, " ", text))
					mu.Lock()
					defer mu.Unlock()
					if status == 0 {
						worst = 0
					}
				})
			}
			both.Wait()
			return worst, ""
		})
		var audit []audited
		k.get(run+"/audit", &audit)
		decisions := 0
		for _, a := range audit {
			if !a.Void && (a.Action == "approve" || a.Action == "reject") {
				decisions++
			}
		}
		approved, _ := made.Load(true)
		rejected, _ := made.Load(false)
		require.Equal(t, 1, decisions, "%v\n%v\n%v", audit, approved, rejected)
		status, text, _ := k.send(t.Context(), "POST", run+"/gates/ids/decision",
			fmt.Sprintf(`{"approve":true,"digest":"%s"}`, strings.Repeat("0", len(digest))), "", nil)
		require.Equal(t, http.StatusConflict, status, text)

		var shown struct{ Status string }
		require.Eventually(t, func() bool {
			k.get(run, &shown)
			return shown.Status == "complete" || shown.Status == "failed"
		}, effort.Patience, 20*time.Millisecond)
		k.amid(random, func(ctx context.Context) (int, string) {
			status, text, _ := k.send(ctx, "POST", run+"/orders", `{"kind":"invalidate","reason":"trial"}`, key+"-i", nil)
			return status, text
		})
		audit = nil
		k.get(run+"/audit", &audit)
		invalidated := slices.DeleteFunc(slices.Clone(audit), func(a audited) bool {
			return a.Action != "invalidate"
		})
		require.Len(t, invalidated, 1, "%v", audit)

		printed, err := thalweg(t.Context(), dir, "events", fmt.Sprint(began.Run)).Output()
		require.NoError(t, err)
		want := strings.Split(strings.TrimSpace(string(printed)), "\n")
		require.Eventually(t, func() bool {
			h.mu.Lock()
			defer h.mu.Unlock()
			return len(h.lines) >= len(want)
		}, effort.Patience, 20*time.Millisecond)
		stop()
		group.Wait()
		hints := regexp.MustCompile(`"hint":"[^"]*"`) // a server gives them as actions
		for _, lines := range [][]string{want, h.lines} {
			for i := range lines {
				lines[i] = hints.ReplaceAllString(lines[i], "")
			}
		}
		require.Equal(t, want, h.lines, "without gap, and nothing twice")
	}
	t.Log(kills*3, "times killed")
}

// amid gives an order while the server is killed, then again until it is answered, and returns the answers.
func (k *killedServer) amid(random *rand.Rand,
	order func(context.Context) (status int, text string)) (answers []string) {
	k.t.Helper()
	wait := time.Duration(random.IntN(25_000)) * time.Microsecond
	done := make(chan struct{})
	go func() {
		defer close(done)
		if status, text := order(k.t.Context()); status != 0 {
			answers = append(answers, text)
		}
	}()
	<-time.After(wait)
	k.kill()
	<-done
	k.begin()
	status, text := order(k.t.Context())
	require.NotZero(k.t, status, text)
	return append(answers, text)
}
