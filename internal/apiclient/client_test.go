package apiclient_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"thalweg/internal/apiclient"
	"thalweg/internal/app"
	"thalweg/internal/app/view"
	"thalweg/internal/base/fault"
)

func client(t *testing.T, mux *http.ServeMux) *apiclient.Client {
	t.Helper()
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	c, err := apiclient.New(s.URL, "tw_secret")
	require.NoError(t, err)
	return c
}

// A wait for a job that is interrupted cancels the job.
func TestInterruptedWaitCancels(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancel(t.Context())
	var canceled atomic.Bool
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/workspaces/main/traces", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusAccepted)
		fmt.Fprint(w, `{"id":"J","status":"waiting"}`)
	})
	mux.HandleFunc("GET /v1/jobs/J", func(w http.ResponseWriter, _ *http.Request) {
		interrupt()
		fmt.Fprint(w, `{"id":"J","status":"running"}`)
	})
	mux.HandleFunc("DELETE /v1/jobs/J", func(w http.ResponseWriter, _ *http.Request) {
		canceled.Store(true)
		fmt.Fprint(w, `{"id":"J","status":"canceled"}`)
	})
	_, err := client(t, mux).Trace(ctx, app.Caller{}, app.TraceOptions{Workspace: "main", Name: "t"})
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, fault.Canceled, fault.Of(err).Kind)
	require.True(t, canceled.Load())
}

// Who waits for a job hears how far it is.
func TestJobsTellTheirProgress(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/workspaces/main/traces", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusAccepted)
		fmt.Fprint(w, `{"id":"J","status":"waiting"}`)
	})
	var asked atomic.Int64
	mux.HandleFunc("GET /v1/jobs/J", func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) == 1 {
			fmt.Fprint(w, `{"id":"J","status":"running","progress":{"phase":"at work","done":3,"of":12,"unit":"nodes"}}`)
			return
		}
		fmt.Fprint(w, `{"id":"J","status":"done","result":{"matches":1}}`)
	})
	var heard []view.Progress
	ctx := view.HearProgress(t.Context(), func(p view.Progress) { heard = append(heard, p) })
	tree, err := client(t, mux).Trace(ctx, app.Caller{}, app.TraceOptions{Workspace: "main", Name: "t"})
	require.NoError(t, err)
	require.EqualValues(t, 1, tree.Matches)
	require.Equal(t, []view.Progress{{Phase: "at work", Done: 3, Of: 12, Unit: "nodes"}}, heard)
}

// A run is followed without gap or double over cuts of the stream, and while the server is away.
func TestFollowOverCuts(t *testing.T) {
	t.Parallel()
	const last = 6
	var asked, streams atomic.Int64
	mux := http.NewServeMux()
	event := func(n int64) string { return fmt.Sprintf(`{"n":%d,"workspace":"main","run":1,"kind":"node_moved"}`, n) }
	mux.HandleFunc("GET /v1/workspaces/main/runs/1/events", func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) == 2 { // a proxy whose server is away
			http.Error(w, `{"kind":"environment","detail":"away"}`, http.StatusServiceUnavailable)
			return
		}
		after, err := strconv.ParseInt(r.FormValue("after"), 10, 64)
		assert.NoError(t, err)
		there := int64(2)
		if streams.Load() > 1 {
			there = last
		}
		events := []string{}
		for n := after + 1; n <= there; n++ {
			events = append(events, event(n))
		}
		fmt.Fprintf(w, `{"events":[%s],"more":false}`, strings.Join(events, ","))
	})
	mux.HandleFunc("GET /v1/stream", func(w http.ResponseWriter, r *http.Request) {
		if streams.Add(1) == 1 { // what was told before comes again, and the last event is cut
			fmt.Fprintf(w, ": listening\n\nevent: node_moved\ndata: %s\n\nevent: node_moved\ndata: %s\n\n", event(2), event(3))
			fmt.Fprintf(w, "event: node_moved\ndata: %s\n\nevent: node_moved\ndata: {\"n\":5,", event(4))
			return
		}
		if r.FormValue("after") == "main/1:4" {
			fmt.Fprintf(w, "event: node_moved\ndata: %s\n\n", event(5))
		}
		fmt.Fprintf(w, "event: node_moved\ndata: %s\n\nevent: reset\ndata: {}\n\n", event(last))
	})
	var told []int64
	mux.HandleFunc("GET /v1/workspaces/main/runs/1/standing", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"over":%t}`, streams.Load() > 1)
	})
	err := client(t, mux).Follow(t.Context(), view.RunKey{Workspace: "main", Run: 1}, app.FollowOptions{},
		func(lines []view.EventLine) error {
			for _, l := range lines {
				told = append(told, l.N)
			}
			return nil
		})
	require.NoError(t, err)
	require.Equal(t, []int64{1, 2, 3, 4, 5, last}, told)
}
