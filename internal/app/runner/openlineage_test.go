package runner_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"thalweg/internal/app/instance"
	"thalweg/internal/app/registry"
	"thalweg/internal/app/runner"
	"thalweg/internal/app/runtime"
	"thalweg/internal/base/secret"
	"thalweg/internal/ops/lineage"
	"thalweg/internal/run/job"
	"thalweg/internal/store/state"
	"thalweg/internal/test/effort"
)

const toldScript = `
nodes:
  read_sales:
    desc: what the shops send
    type: file_table
    r: {urls: [DIR/sales.csv], columns: {shop: string, price: int = 0}}
    w: {name: sales, having: w.price >= 0, fields: [r.shop, r.price], indexes: {idx_sales: non_unique(shop)}}
  joined:
    type: table_lookup_table
    r: {table: sales}
    l: {index_name: idx_sales, join_on: r.shop, join_type: left, group: true}
    w: {name: joined, fields: {shop: {expression: r.shop, type: string}, sum: {expression: sum(l.price), type: int}}}
  asked:
    type: sql
    r: [joined]
    query: SELECT shop, sum FROM joined WHERE sum > 1 ORDER BY shop
    w: {name: asked}
  write: {type: table_file, r: asked, w: DIR/out.csv}
  fails:
    type: table_table
    r: sales
    w: {name: fails, fields: [{x: 1 / (r.price - 4)}]}
`

// receiver is a server for events. It refuses as many as it is told to.
type receiver struct {
	mu     sync.Mutex
	refuse int
	got    [][]byte
	keys   []string
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var b bytes.Buffer
	_, _ = b.ReadFrom(req.Body)
	r.keys = append(r.keys, req.URL.Path+" "+req.Header.Get("Authorization"))
	if r.refuse > 0 {
		r.refuse--
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	r.got = append(r.got, b.Bytes())
}

func eventSchema(t *testing.T) *jsonschema.Schema {
	text, err := os.ReadFile("../../ops/lineage/testdata/openlineage.schema.json")
	require.NoError(t, err)
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	require.NoError(t, c.AddResource("event.json", doc))
	schema, err := c.Compile("event.json")
	require.NoError(t, err)
	return schema
}

// tellRun runs a script with somebody who is told, and gives the events that can be had later.
func tellRun(t *testing.T, prices string, to lineage.Destination, log *bytes.Buffer) (sum runner.Summary,
	later []lineage.Event) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "sales.csv"), []byte("shop,price\n"+prices), 0o600))
	path := filepath.Join(dir, "script.yaml")
	require.NoError(t, os.WriteFile(path, []byte(strings.ReplaceAll(toldScript, "DIR", dir)), 0o600))
	home, err := instance.Open(t.Context(), filepath.Join(dir, "state"), true)
	require.NoError(t, err)
	defer home.Close()
	known := secret.New()
	known.Add("Bern-is-secret", "xxxxx")
	var live *lineage.Live
	how := lineage.Telling{Namespace: "here", Hide: known.Text}
	opts := runner.Options{ScriptPath: path, Workspace: "main", Process: runtime.Process{Program: "1.2",
		MemoryBytes: 1 << 30,
		Cores:       2, Interpreter: "python3", Known: known}, Description: "Bern-is-secret"}
	opts.Started = func(s runner.Started) {
		how.Script, how.Dir = s.Script, s.Dir
		live = lineage.Tell(t.Context(), to, home.State, s.Key, how, slog.New(slog.NewTextHandler(log, nil)))
	}
	opts.Observe = func(e job.Event) { live.Changed(e.Node) }
	sum, err = runner.Run(t.Context(), home, opts)
	require.NoError(t, err)
	live.Close()
	require.NoError(t, to.Close())
	later, err = lineage.Events(t.Context(), home.State, sum.Key, how)
	require.NoError(t, err)
	return sum, later
}

// Events have the form that is published, each run begins and ends once, and
// those that were sent are those that can be had later.
func TestOpenLineageEvents(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	schema := eventSchema(t)
	for name, tc := range map[string]struct {
		prices string
		status state.Status
		ends   string
		refuse int
	}{
		"complete":                    {"b,3\nt,5\nb,-1\n", state.Complete, "COMPLETE", 0},
		"failed":                      {"b,3\nt,4\n", state.Failed, "FAIL", 0},
		"the server refuses at first": {"b,3\nt,5\n", state.Complete, "COMPLETE", 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &receiver{refuse: tc.refuse}
			srv := httptest.NewServer(r)
			defer srv.Close()
			to, err := lineage.Open(srv.URL, "", "the-key")
			require.NoError(t, err)
			var log bytes.Buffer
			sum, later := tellRun(t, tc.prices, to, &log)
			require.Equal(t, tc.status, sum.Status)
			require.Empty(t, log.String())
			require.Equal(t, "/api/v1/lineage Bearer the-key", r.keys[0])

			var sent, again []string
			for _, e := range r.got {
				sent = append(sent, string(e))
			}
			count := map[string]map[string]int{}
			for _, e := range later {
				line, err := e.Line()
				require.NoError(t, err)
				again = append(again, string(line))
				require.NotContains(t, string(line), "Bern-is-secret")
				doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(line))
				require.NoError(t, err)
				require.NoError(t, schema.Validate(doc), string(line))
				if count[e.Run.RunID] == nil {
					count[e.Run.RunID] = map[string]int{}
				}
				count[e.Run.RunID][e.EventType]++
			}
			published(t, []byte(strings.Join(again, "")))
			require.ElementsMatch(t, again, sent)
			require.Equal(t, tc.ends, later[len(later)-1].EventType)
			for id, kinds := range count {
				require.Equal(t, 1, kinds["START"], id)
				require.Equal(t, 1, kinds["COMPLETE"]+kinds["FAIL"]+kinds["ABORT"], id)
			}
		})
	}
}

// An event that lacks what the schema wants is found.
func TestOpenLineageSchemaRefuses(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	schema := eventSchema(t)
	for _, text := range []string{`{}`,
		`{"eventType":"DONE","eventTime":"2026-01-01T00:00:00Z","producer":"urn:a:b","schemaURL":"x",` +
			`"run":{"runId":"1"},"job":{"namespace":"a","name":"b"}}`} {
		var doc any
		require.NoError(t, json.Unmarshal([]byte(text), &doc))
		require.Error(t, schema.Validate(doc), text)
	}
}

// Columns of outputs name the columns of inputs.
func TestOpenLineageColumns(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	path := filepath.Join(t.TempDir(), "events.ndjson")
	to, err := lineage.Open(path, "", "")
	require.NoError(t, err)
	_, later := tellRun(t, "b,3\nt,5\n", to, &bytes.Buffer{})
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, len(later), strings.Count(string(text), "\n"))
	require.Contains(t, string(text),
		`"sum":{"inputFields":[{"field":"price","name":"main.sales","namespace":"here",`+
			`"transformations":[{"description":"sum(l.price)","masking":false,`+
			`"subtype":"TRANSFORMATION","type":"DIRECT"}]}]}`)
	require.Contains(t, string(text), `"subtype":"JOIN","type":"INDIRECT"`)
	require.Contains(t, string(text), `"rowCount":2,"size":`)
	require.Contains(t, string(text), `"query":"SELECT shop, sum FROM joined`)
}

// A server that takes nothing costs the run nothing but a warning.
func TestOpenLineageServerGone(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	srv := httptest.NewServer(http.NotFoundHandler())
	at := srv.URL
	srv.Close()
	to, err := lineage.Open(at, "events", "")
	require.NoError(t, err)
	var log bytes.Buffer
	sum, later := tellRun(t, "b,3\n", to, &log)
	require.Equal(t, state.Complete, sum.Status)
	require.NotEmpty(t, later)
	require.Contains(t, log.String(), "OpenLineage events were not taken")
}

// publishedCheck names an interpreter that has the package openlineage-python, in
// which the OpenLineage project ships what its published schemas say.
const publishedCheck = "THALWEG_OPENLINEAGE_PYTHON"

const toldGateScript = `
nodes:
  read: {type: file_table, desc: what came, r: {urls: [DIR/sales.csv], columns: {shop: string, price: int = 0}}, ` +
	`w: sales}
  calc:
    type: table_custom_tfm_table
    custom_proc_type: py_calc
    r: sales
    p: {python_code_urls: [DIR/slow.py], calculated_fields: {twice: {expression: "slow(r.price)", type: int}}}
    w: {name: calc, fields: [r.shop, {twice: p.twice}]}
  write: {type: table_file, r: calc, w: DIR/out.csv, approval: {message: good}}
`

// Events of runs that were stopped at work, wait, were stopped while they waited,
// took over tables, and were invalidated: each node that has begun has ended when
// the run has, once, and what was told before is what is told later.
func TestOpenLineageEventsOfAllKinds(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	write("sales.csv", "shop,price\nb,1\n")
	write("slow.py", "import os, time\ndef slow(x):\n    while os.path.exists('"+filepath.Join(dir, "hold")+
		"'): time.sleep(0.01)\n    return 2 * x\n")
	write("hold", "")
	write("script.yaml", strings.ReplaceAll(toldGateScript, "DIR", dir))
	home, err := instance.Open(t.Context(), filepath.Join(dir, "state"), true)
	require.NoError(t, err)
	defer home.Close()
	how := lineage.Telling{}
	opts := runner.Options{ScriptPath: filepath.Join(dir, "script.yaml"), Workspace: "main",
		Process: runtime.Process{Program: "1.2", MemoryBytes: 1 << 30, Cores: 2, Interpreter: "python3"}, Reuse: true,
		Started: func(s runner.Started) { how.Script, how.Dir = s.Script, s.Dir }}
	var all bytes.Buffer
	told := map[string]string{}
	look := func(key state.RunKey) (kinds []string) {
		events, err := lineage.Events(t.Context(), home.State, key, how)
		require.NoError(t, err)
		for _, e := range events {
			line, err := e.Line()
			require.NoError(t, err)
			if before, ok := told[e.Key()]; ok {
				require.Equal(t, before, string(line), "told before, and later")
			} else {
				all.Write(line)
			}
			told[e.Key()] = string(line)
			kinds = append(kinds, strings.TrimPrefix(e.Job.Name, "script")+" "+e.EventType)
		}
		return kinds
	}
	order := func(key state.RunKey, o state.CommandKind) {
		require.NoError(t, state.Direct(t.Context(), home.State, key, state.Command{Kind: o,
			Token: string(o) + t.Name(), Mark: state.Mark{Actor: "me", Reason: "wrong", Time: time.Now()}}))
	}

	stopped := opts
	var key state.RunKey
	stopped.Started = func(s runner.Started) { opts.Started(s); key = s.Key }
	var once sync.Once
	var wg sync.WaitGroup
	stopped.Observe = func(e job.Event) {
		if e.Kind == job.BatchStarted && e.Node == "calc" {
			once.Do(func() {
				wg.Go(func() { look(key); order(key, state.CommandStop) })
			})
		}
	}
	sum, err := runner.Run(t.Context(), home, stopped)
	require.NoError(t, err)
	wg.Wait()
	require.Equal(t, state.Stopped, sum.Status)
	require.ElementsMatch(t, []string{" START", " RUNNING", " ABORT", ".read START", ".read COMPLETE", ".calc START",
		".calc ABORT"}, look(sum.Key))
	require.NoError(t, os.Remove(filepath.Join(dir, "hold")))

	sum, err = runner.Run(t.Context(), home, opts)
	require.NoError(t, err)
	require.Equal(t, state.Waiting, sum.Status)
	waits := []string{" START", " RUNNING", ".read START", ".read COMPLETE", ".calc START", ".calc COMPLETE"}
	require.ElementsMatch(t, waits, look(sum.Key))
	require.NotNil(t, sum.Nodes[0].ReusedFrom, "read was taken over")
	order(sum.Key, state.CommandStop)
	require.ElementsMatch(t, append(waits, " ABORT"), look(sum.Key))
	order(sum.Key, state.CommandInvalidate)
	require.ElementsMatch(t, append(waits, " ABORT"), look(sum.Key))

	for line := range strings.Lines(all.String()) {
		doc, err := jsonschema.UnmarshalJSON(strings.NewReader(line))
		require.NoError(t, err)
		require.NoError(t, eventSchema(t).Validate(doc), line)
	}
	published(t, all.Bytes())
}

// published holds events to the published schemas, if those are there.
func published(t *testing.T, events []byte) {
	t.Helper()
	python := os.Getenv(publishedCheck)
	if python == "" {
		t.Logf("not held to the published schemas: %s names no interpreter with the package openlineage-python",
			publishedCheck)
		return
	}
	check := exec.Command(python, "testdata/openlineage_check.py")
	check.Stdin = bytes.NewReader(events)
	out, err := check.CombinedOutput()
	require.NoError(t, err, string(out))
	t.Logf("published schemas: %s", out)
}

// notTaken is a destination that takes nothing.
type notTaken struct{}

func (notTaken) Send(context.Context, []byte) (bool, error) { return false, errors.New("not taken") }

func (notTaken) Close() error { return nil }

// What a process could not send, or has left when it was killed, another one sends:
// all of it, as it can be had later. While the first one lives it is left to that.
func TestOpenLineageEventsThatWereLeft(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "sales.csv"), []byte("shop,price\nb,3\nt,5\n"), 0o600))
	path := filepath.Join(dir, "script.yaml")
	require.NoError(t, os.WriteFile(path, []byte(strings.ReplaceAll(toldScript, "DIR", dir)), 0o600))
	home, err := instance.Open(t.Context(), filepath.Join(dir, "state"), true)
	require.NoError(t, err)
	defer home.Close()
	how := lineage.Telling{}
	alive := true
	config := lineage.PublisherConfig{Store: home.State, Box: registry.LineageBox(home),
		Logger: slog.New(slog.DiscardHandler),
		Gone:   func(string) bool { return !alive },
		How:    func(context.Context, state.RunKey) (lineage.Telling, error) { return how, nil }}
	outlet := func(owner string, to lineage.Destination) *lineage.Publisher {
		c := config
		c.Owner, c.To = owner, to
		return lineage.NewPublisher(t.Context(), c)
	}
	first := outlet("first", notTaken{})
	sum, err := runner.Run(t.Context(), home, runner.Options{ScriptPath: path, Workspace: "main",
		Process: runtime.Process{MemoryBytes: 1 << 30, Cores: 2, Interpreter: "python3",
			Observe: func(e job.Event) { first.Changed(e.Run, e.Node) }}, Started: func(s runner.Started) {
			how.Script, how.Dir = s.Script, s.Dir
			first.Follow(t.Context(), s.Key, how)
		},
	})
	require.NoError(t, err)
	require.Equal(t, state.Complete, sum.Status)
	require.NoError(t, first.Close())

	file := filepath.Join(dir, "events.ndjson")
	next := func() string {
		to, err := lineage.Open(file, "", "")
		require.NoError(t, err)
		o := outlet("second", to)
		for left := 1; alive == false && left > 0; {
			notes, err := config.Box.List(t.Context())
			require.NoError(t, err)
			left = len(notes)
		}
		require.NoError(t, o.Close())
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		return string(text)
	}
	require.Empty(t, next(), "the first one may yet send them")
	alive = false
	var want []string
	events, err := lineage.Events(t.Context(), home.State, sum.Key, how)
	require.NoError(t, err)
	for _, e := range events {
		line, err := e.Line()
		require.NoError(t, err)
		want = append(want, string(line))
	}
	require.Equal(t, strings.Join(want, ""), next())
	require.Equal(t, strings.Join(want, ""), next(), "once")
}
