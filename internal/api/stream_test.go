package api_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app"
	"thalweg/internal/app/access"
	"thalweg/internal/app/hub"
	"thalweg/internal/app/view"
	"thalweg/internal/store/state"
	"thalweg/internal/test/effort"
)

// event is one of a stream.
type event struct{ kind, id, data string }

// listen opens a stream, and returns a function that gives its next event; of an ended one none.
func (c *client) listen(ctx context.Context, query, last string) (next func() (event, bool)) {
	c.t.Helper()
	req, err := http.NewRequestWithContext(ctx, "GET", c.url+"/v1/stream?"+query, nil)
	require.NoError(c.t, err)
	for k, v := range c.header {
		req.Header[k] = v
	}
	if last != "" {
		req.Header.Set("Last-Event-ID", last)
	}
	res, err := http.DefaultClient.Do(req)
	require.NoError(c.t, err)
	c.t.Cleanup(func() { _ = res.Body.Close() })
	require.Equal(c.t, http.StatusOK, res.StatusCode)
	require.Equal(c.t, "text/event-stream", res.Header.Get("Content-Type"))
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 1<<20)
	return func() (e event, ok bool) {
		for lines.Scan() {
			name, value, _ := strings.Cut(lines.Text(), ": ")
			switch name {
			case "event":
				e.kind = value
			case "id":
				e.id = value
			case "data":
				return event{e.kind, e.id, value}, true
			}
		}
		return e, false
	}
}

// printed returns the events of a run as --json prints them.
func (s *served) printed(run int64) (out []string) {
	s.t.Helper()
	require.NoError(s.t, s.app.Runs.Events(s.t.Context(), view.RunKey{Workspace: "main", Run: run}, 0,
		func(lines []view.EventLine) error {
			for _, l := range lines {
				text, err := view.JSON(l)
				require.NoError(s.t, err)
				out = append(out, string(text))
			}
			return nil
		}))
	return out
}

// A stream gives the lines of a run, those of the past and new ones, and goes on where it was.
func TestStreamOfRun(t *testing.T) {
	effort.Raced(t)
	t.Parallel()
	s := serve(t)
	s.run()
	c := s.as("ann", access.Grant{Workspace: "main", Role: access.Reader})
	ctx, cancel := context.WithTimeout(t.Context(), effort.Patience)
	defer cancel()
	next := c.listen(ctx, "topics=main/1", "")
	want := s.printed(1)
	var ids []string
	for i, line := range want {
		e, ok := next()
		require.True(t, ok)
		require.Equal(t, line, e.data)
		require.Equal(t, fmt.Sprint("main/1:", i+1), e.id)
		ids = append(ids, e.id)
	}
	_, err := s.app.Orders.Invalidate(ctx, app.ProcessCaller(), view.RunKey{Workspace: "main", Run: 1}, nil, "wrong", "")
	require.NoError(t, err)
	e, ok := next()
	require.True(t, ok)
	require.Equal(t, s.printed(1)[len(want)], e.data, "what happens while it is open")

	again := c.listen(ctx, "topics=main/1", ids[2])
	for _, line := range s.printed(1)[3:] {
		e, ok := again()
		require.True(t, ok)
		require.Equal(t, line, e.data, "behind the last id")
	}
}

// Between what is shown once a stream from the end is open, and the stream, nothing is missing; and nothing of the past
// is told.
func TestStreamFromTheEnd(t *testing.T) {
	effort.Raced(t)
	t.Parallel()
	s := serve(t)
	for range 3 {
		s.run()
	}
	c := s.as("ann", access.Grant{Workspace: "main", Role: access.Reader})
	ctx, cancel := context.WithTimeout(t.Context(), effort.Patience)
	defer cancel()
	invalidate := func(run int64) {
		key := view.RunKey{Workspace: "main", Run: run}
		_, err := s.app.Orders.Invalidate(ctx, app.ProcessCaller(), key, nil, "wrong", "")
		require.NoError(t, err)
	}
	invalidated := func() bool { return strings.Contains(c.get(ws+"/runs/1").text, `"invalidated"`) }
	require.False(t, invalidated(), "the first view")
	invalidate(1)
	const topics = "topics=main/1,main/2,main/3&from=end"
	next := c.listen(ctx, topics, "")
	require.True(t, invalidated(), "what has happened before the stream is in the view behind its opening")
	for _, run := range []int64{2, 3} { // the second time the runs are followed already
		known := len(s.printed(run))
		invalidate(run)
		for i, line := range s.printed(run)[known:] {
			e, ok := next()
			require.True(t, ok)
			require.Equal(t, line, e.data, "only what happened then")
			require.Equal(t, fmt.Sprintf("main/%d:%d", run, known+i+1), e.id, "the others begin at their ends again")
		}
		next = c.listen(ctx, topics, "")
	}
}

func TestStreamOfWorkspace(t *testing.T) {
	effort.Raced(t)
	t.Parallel()
	s := serve(t)
	c := s.as("ann", access.Grant{Workspace: "main", Role: access.Viewer})
	ctx, cancel := context.WithTimeout(t.Context(), effort.Patience)
	defer cancel()
	next := c.listen(ctx, "topics=main", "")
	s.run()
	for {
		e, ok := next()
		require.True(t, ok)
		require.Equal(t, "run", e.kind)
		if strings.Contains(e.data, `"status":"complete"`) {
			return
		}
	}
}

// Who may no more listen is told so, soon.
func TestStreamEndsWhenRevoked(t *testing.T) {
	effort.Raced(t)
	t.Parallel()
	s := serve(t)
	s.run()
	s.as("root", access.Grant{Workspace: "*", Role: access.Manager})
	c := s.as("ann", access.Grant{Workspace: "main", Role: access.Viewer})
	ctx, cancel := context.WithTimeout(t.Context(), effort.Patience)
	defer cancel()
	next := c.listen(ctx, "topics=main/1&after=main/1:1000", "")
	yes := true
	_, err := s.users.PutUser(ctx, access.Principal{}, "ann", access.UserChange{Disabled: &yes})
	require.NoError(t, err)
	begun := time.Now()
	e, ok := next()
	require.True(t, ok)
	require.Equal(t, "closed", e.kind)
	effort.Promised(t, begun, access.RevokedWithin)
	_, ok = next()
	require.False(t, ok)
}

func TestStreamsOfOthers(t *testing.T) {
	effort.Raced(t)
	t.Parallel()
	s := serve(t)
	s.run()
	c := s.as("ann", access.Grant{Workspace: "main", Role: access.Viewer})
	for query, status := range map[string]int{"topics=other": 403, "topics=other/1": 403, "topics=main,other": 403,
		"topics=main/9": 404, "topics=main/x": 422, "": 422, "topics=" + strings.Repeat("main,", 21) + "main": 422} {
		c.get("/v1/stream?" + query).problem(status)
	}
}

// Two hundred streams hear of a commit soon.
func TestManyStreams(t *testing.T) {
	effort.Raced(t)
	t.Parallel()
	const listeners = 200
	s := serve(t)
	s.run()
	c := s.as("ann", access.Grant{Workspace: "main", Role: access.Viewer})
	ctx, cancel := context.WithTimeout(t.Context(), effort.Patience)
	defer cancel()
	known := len(s.printed(1))
	var group sync.WaitGroup
	took := make([]time.Time, listeners)
	for i := range listeners {
		next := c.listen(ctx, fmt.Sprintf("topics=main/1&after=main/1:%d", known), "")
		group.Go(func() {
			if _, ok := next(); ok {
				took[i] = time.Now()
			}
		})
	}
	begun := time.Now()
	_, err := s.app.Orders.Invalidate(ctx, app.ProcessCaller(), view.RunKey{Workspace: "main", Run: 1}, nil, "wrong", "")
	require.NoError(t, err)
	group.Wait()
	longest := time.Duration(0)
	for _, at := range took {
		require.False(t, at.IsZero())
		longest = max(longest, at.Sub(begun))
	}
	t.Logf("the last of %d after %s", listeners, longest)
}

// Values of the data reach readers, and nobody else: not in failures, checks, events or reasons.
func TestViewersSeeNoValues(t *testing.T) {
	effort.Raced(t)
	t.Parallel()
	const value = "31-Secretember"
	s := serve(t)
	s.file("in.csv", "id,name\n1,ann\n"+value+",ben\n")
	s.run()
	reader := s.as("ann", access.Grant{Workspace: "main", Role: access.Reader})
	viewer := s.as("ben", access.Grant{Workspace: "main", Role: access.Viewer})
	seen := 0
	for path, operations := range s.document().Paths {
		if p := operations["get"].Permission; p != access.View && p != access.Self || operations["get"].ID == "stream" {
			continue
		}
		path = example(path)
		all, got := reader.get(path), viewer.get(path)
		require.Equal(t, all.status, got.status, path)
		require.NotContains(t, got.text, value, path)
		if strings.Contains(all.text, value) {
			seen++
		}
	}
	require.Greater(t, seen, 10, "readers see it")
	require.Contains(t, viewer.get(ws+"/runs/1").text, `in.csv","line":3`, "viewers see where it is")
	ctx, cancel := context.WithTimeout(t.Context(), effort.Patience)
	defer cancel()
	next := viewer.listen(ctx, "topics=main/1", "")
	for range s.printed(1) {
		e, ok := next()
		require.True(t, ok)
		require.NotContains(t, e.data, value)
	}
}

// A stream over HTTP/2 outlives the time that a client may take no bytes: nothing has to be written for it.
func TestQuietStreamOverHTTP2(t *testing.T) {
	effort.Raced(t)
	t.Parallel()
	s := serve(t)
	s.run()
	c := s.as("ann", access.Grant{Workspace: "main", Role: access.Viewer})
	s.api.SetStreamTimes(500*time.Millisecond, 100*time.Millisecond)
	server := httptest.NewUnstartedServer(s.api)
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	ctx, cancel := context.WithTimeout(t.Context(), effort.Patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "GET", server.URL+"/v1/stream?topics=main/1&after=main/1:1000", nil)
	require.NoError(t, err)
	req.Host, req.Header = strings.TrimPrefix(s.url, "http://"), c.header
	res, err := server.Client().Do(req)
	require.NoError(t, err)
	defer res.Body.Close()
	require.Equal(t, 2, res.ProtoMajor)
	lines, beats := bufio.NewScanner(res.Body), 0
	for beats < 3 && lines.Scan() {
		if strings.TrimSpace(lines.Text()) == ":" {
			beats++
		}
	}
	require.NoError(t, lines.Err())
	require.Equal(t, 3, beats)
}

// Events are selected by the server, whose search finds no value for those who may not read it.
func TestEventsSelected(t *testing.T) {
	effort.Raced(t)
	t.Parallel()
	const value = "31-Secretember"
	s := serve(t)
	s.file("in.csv", "id,name\n1,ann\n"+value+",ben\n")
	s.run()
	reader := s.as("ann", access.Grant{Workspace: "main", Role: access.Reader})
	viewer := s.as("ben", access.Grant{Workspace: "main", Role: access.Viewer})
	type answer struct {
		Events []view.EventLine
		More   bool
		Next   int64
	}
	list := func(c *client, query string) (page answer) {
		c.get(ws+"/runs/1/events?"+query).into(http.StatusOK, &page)
		return page
	}
	all := list(viewer, "")
	require.False(t, all.More)
	require.EqualValues(t, len(all.Events), all.Next)

	found := list(reader, "text=secretember")
	require.NotEmpty(t, found.Events)
	require.Less(t, len(found.Events), len(all.Events))
	require.Equal(t, all.Next, found.Next)
	for _, text := range []string{"secretember", "31-", value + ",ben"} {
		require.Empty(t, list(viewer, "text="+text).Events, text)
	}
	require.NotEmpty(t, list(viewer, "text=in.csv:3").Events, "viewers see where it is")

	for query, is := range map[string]func(view.EventLine) bool{
		"kind=batch_claimed,batch_ended": func(l view.EventLine) bool { return l.Batch != nil },
		"not=batch_claimed,batch_ended":  func(l view.EventLine) bool { return l.Batch == nil },
		"node=load":                      func(l view.EventLine) bool { return l.Node == "load" },
		"least=usual": func(l view.EventLine) bool {
			return l.Kind != "batch_claimed" && l.Kind != "node_heard" && l.Kind != "order_ended"
		},
	} {
		want := slices.DeleteFunc(slices.Clone(all.Events), func(l view.EventLine) bool { return !is(l) })
		require.NotEmpty(t, want, query)
		require.Less(t, len(want), len(all.Events), query)
		var got []view.EventLine
		for page := (answer{More: true}); page.More; { // one at a time: nothing is left out or comes twice
			page = list(viewer, fmt.Sprintf("%s&limit=1&after=%d", query, page.Next))
			require.LessOrEqual(t, len(page.Events), 1)
			got = append(got, page.Events...)
		}
		require.Equal(t, want, got, query)
	}
	viewer.get(ws + "/runs/1/events?kind=batch").problem(http.StatusUnprocessableEntity)
}

// A stream whose first look has not ended hears that the server ends.
func TestTheEndOfAServerReachesStreamsThatWait(t *testing.T) {
	effort.Raced(t)
	t.Parallel()
	s := serve(t)
	c := s.as("ann", access.Grant{Workspace: "main", Role: access.Viewer})
	looks := make(chan struct{}, 1)
	news := hub.New(hub.Config{Store: state.Around(nil, func(ctx context.Context, _ state.Op,
		_ func(context.Context) error) error {
		select {
		case looks <- struct{}{}:
		default:
		}
		<-ctx.Done()
		return ctx.Err()
	})})
	defer news.Close()
	s.api.SetNews(news)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, end := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- s.api.Serve(ctx, ln, 2*time.Second) }()
	go func() {
		<-looks
		end()
	}()
	req, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+ln.Addr().String()+"/v1/stream?topics=main", nil)
	require.NoError(t, err)
	req.Host, req.Header = strings.TrimPrefix(s.url, "http://"), c.header
	res, err := http.DefaultTransport.RoundTrip(req)
	require.NoError(t, err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.Contains(t, string(text), "the server ends")
	require.NoError(t, <-served)
}
