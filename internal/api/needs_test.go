package api_test

import (
	"context"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app"
	"thalweg/internal/app/access"
	"thalweg/internal/app/view"
	"thalweg/internal/test/effort"
)

const badInput = "id,name\nx,ann\n"

// A failure that somebody takes is theirs for all to see, until the run goes on.
func TestTakeAFailure(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.run()
	s.file("in.csv", badInput)
	s.run()
	ann := s.as("ann", access.Grant{Workspace: "main", Role: access.Operator})
	ben := s.as("ben", access.Grant{Workspace: "main", Role: access.Operator})
	at := ws + "/runs/2/take"
	var got view.Taken
	ann.header.Set("Idempotency-Key", "k")
	for range 2 {
		got = view.Taken{}
		ann.send("POST", at, map[string]string{"comment": "I ask the supplier"}).into(http.StatusOK, &got)
		require.Equal(t, "ann", got.Taken.Actor)
		require.Equal(t, "token", got.Taken.Via)
		require.Nil(t, got.Before)
	}
	ben.send("POST", at, map[string]string{"comment": "it is mine"}).into(http.StatusOK, &got)
	require.Equal(t, "ben", got.Taken.Actor)
	require.Equal(t, "I ask the supplier", got.Before.Reason)
	p := ann.send("POST", at, map[string]string{"comment": "I ask the supplier"}).problem(http.StatusConflict)
	require.Contains(t, p.Detail, "has had an order since", "what another has taken meanwhile is not hers")

	var page struct{ Runs []view.ListedRun }
	ann.get(ws+"/runs").into(http.StatusOK, &page)
	require.Equal(t, "it is mine", page.Runs[0].Taken.Reason)
	require.Nil(t, page.Runs[1].Taken)
	require.Contains(t, ann.get(ws+"/runs/2/why").text, "taken by ben")
	var audit []view.AuditEntry
	ann.get(ws+"/runs/2/audit").into(http.StatusOK, &audit)
	require.Len(t, audit, 3, "a request that is repeated is one")
	require.Equal(t, []string{"create", "take", "take"}, []string{audit[0].Action, audit[1].Action, audit[2].Action})

	for _, body := range []map[string]string{{"comment": " "}, {}} {
		ben.send("POST", at, body).problem(http.StatusUnprocessableEntity)
	}
	p = ben.send("POST", ws+"/runs/1/take", map[string]string{"comment": "mine"}).problem(http.StatusConflict)
	require.Contains(t, p.Detail, "run 1 is complete")
	ben.send("POST", ws+"/runs/9/take", map[string]string{"comment": "mine"}).problem(http.StatusNotFound)

	sum, err := s.app.Run(t.Context(), app.ProcessCaller(), app.RunOptions{Workspace: app.DefaultWorkspace,
		ScriptPath: s.dir + "/script.yaml", Resume: true, Pinned: true, ResumeRun: 2})
	require.NoError(t, err)
	require.EqualValues(t, 2, sum.Key.Run)
	page.Runs = nil
	ann.get(ws+"/runs").into(http.StatusOK, &page)
	require.Equal(t, "failed", page.Runs[0].Status)
	require.Nil(t, page.Runs[0].Taken, "it has failed anew")
}

const gatedScript = `
deadline: "2020-01-01T00:00:00Z"
nodes:
  load:
    type: file_table
    r: {urls: [in.csv], types: {id: int, name: string}}
    w: {name: ids, approval: {by: [sales]}}
  write: {type: table_file, r: ids, w: out.csv}
`

// What needs people is listed for who asks: gates that they may decide, failures without values for who may not read,
// and runs behind their deadline with what earlier ones lead to.
func TestNeeds(t *testing.T) {
	t.Parallel()
	s := serve(t)
	viewer := s.as("eve", access.Grant{Workspace: "main", Role: access.Viewer})
	approver := s.as("zoe", access.Grant{Workspace: "main", Role: access.Approver, GateRoles: []string{"sales"}})
	operator := s.as("ann", access.Grant{Workspace: "main", Role: access.Operator})
	var got view.Needs
	viewer.get(ws+"/needs").into(http.StatusOK, &got)
	require.Empty(t, got.Needs)
	require.Contains(t, viewer.get(ws+"/needs").text, `"needs":[],"deadlines":[]`)

	s.file("in.csv", badInput)
	s.run() // 1 fails
	s.file("in.csv", "id,name\n1,ann\n")
	s.file("gated.yaml", gatedScript)
	gated := func() {
		t.Helper()
		_, err := s.app.Run(t.Context(), app.ProcessCaller(), app.RunOptions{Workspace: app.DefaultWorkspace,
			ScriptPath: s.dir + "/gated.yaml"})
		require.NoError(t, err)
	}
	gated() // 2 waits
	approver.get(ws+"/needs").into(http.StatusOK, &got)
	require.Len(t, got.Needs, 3)
	byKind := map[string]view.Need{}
	for _, n := range got.Needs {
		byKind[n.Kind] = n
	}
	require.True(t, byKind[view.NeedGate].May)
	require.Equal(t, "ids", byKind[view.NeedGate].Gate.Gate)
	require.EqualValues(t, 2, byKind[view.NeedLate].Run)
	require.Contains(t, byKind[view.NeedFailure].Failure.Place.Value, "x")
	require.Contains(t, byKind[view.NeedFailure].Failure.Place.Raw, "x")
	require.Equal(t, "no earlier run of its script with its nodes is complete", byKind[view.NeedLate].Expectation.Why)
	got = view.Needs{}
	viewer.get(ws+"/needs").into(http.StatusOK, &got)
	for _, n := range got.Needs {
		require.False(t, n.May)
		if n.Failure != nil {
			require.Empty(t, n.Failure.Place.Value)
			require.Empty(t, n.Failure.Place.Raw)
			require.Contains(t, n.Text, "you may not read")
		}
	}

	record := byKind[view.NeedGate].Gate
	approver.send("POST", ws+"/runs/2/gates/ids/decision", map[string]any{"approve": true, "digest": record.Digest}).
		into(http.StatusOK, &view.Decided{})
	_, err := s.app.Run(t.Context(), app.ProcessCaller(), app.RunOptions{Workspace: app.DefaultWorkspace, Resume: true,
		Pinned: true, ResumeRun: 2})
	require.NoError(t, err)
	gated() // 3 waits, as 2 did
	var expected view.Expectation
	viewer.get(ws+"/runs/3/expectation").into(http.StatusOK, &expected)
	require.Equal(t, 1, expected.Of, expected.Why)
	require.False(t, expected.Expected.Before(*expected.From) || expected.To.Before(*expected.Expected))
	require.Equal(t, 2020, expected.Deadline.Year())
	expected = view.Expectation{}
	viewer.get(ws+"/runs/2/expectation").into(http.StatusOK, &expected)
	require.Equal(t, "it is complete", expected.Why)
	require.Nil(t, expected.Expected)

	operator.send("POST", ws+"/runs/1/take", map[string]string{"comment": "I ask"}).into(http.StatusOK, &view.Taken{})
	got = view.Needs{}
	operator.get(ws+"/needs").into(http.StatusOK, &got)
	last := got.Needs[len(got.Needs)-1]
	require.Equal(t, "I ask", last.Taken.Reason, "what somebody has taken is last")
	s.run() // 4 makes 1 good
	got = view.Needs{}
	operator.get(ws+"/needs").into(http.StatusOK, &got)
	for _, n := range got.Needs {
		require.NotEqual(t, view.NeedFailure, n.Kind)
	}
}

// A dry run says what an order would touch, with rows and time of last time, and does nothing.
func TestDryRunsSayWhatTheyTouch(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.run()
	c := s.as("ann", access.Grant{Workspace: "main", Role: access.Operator})
	type answer struct {
		Would       *view.Outlook
		Planned     *view.RetryPlanned
		Invalidated *view.Invalidated
	}
	ask := func(run string, order map[string]any) (got answer) {
		t.Helper()
		order["dry_run"] = true
		c.send("POST", ws+"/runs/"+run+"/orders", order).into(http.StatusOK, &got)
		return got
	}
	tasks := ask("1", map[string]any{"kind": "retry", "nodes": []string{"load"}}).Planned.Tasks
	require.Len(t, tasks, 2)
	for _, task := range tasks {
		require.EqualValues(t, 2, task.Rows, task.Node)
		require.Positive(t, task.Elapsed, task.Node)
	}
	s.file("in.csv", badInput)
	s.run()
	for _, kind := range []string{"stop", "pause"} {
		would := ask("2", map[string]any{"kind": kind}).Would
		require.Equal(t, []view.Status{view.FailedRun, view.FailedRun}, []view.Status{would.Before, would.Status}, kind)
		require.Len(t, would.Left, 2)
		require.Zero(t, would.InFlight)
	}
	would := ask("2", map[string]any{"kind": "resume"}).Would
	require.Equal(t, view.Running, would.Status)
	require.Equal(t, []string{"load", "write"}, []string{would.Tasks[0].Node, would.Tasks[1].Node})
	c.send("POST", ws+"/runs/1/orders", map[string]any{"kind": "resume", "dry_run": true}).problem(http.StatusConflict)

	lost := ask("1", map[string]any{"kind": "invalidate"}).Invalidated.Lost
	require.Len(t, lost, 2)
	require.Equal(t, []any{"load", "ids", int64(2)}, []any{lost[0].Node, lost[0].Table, lost[0].Rows})
	require.Positive(t, lost[0].Elapsed)
	planned := ask("1", map[string]any{"kind": "retry"}).Planned // its input is another one now
	require.True(t, planned.NewRun)
	require.EqualValues(t, 2, planned.Nodes[0].Rows)
	require.Positive(t, planned.Nodes[0].Elapsed)
	// What the order would refuse, its dry run refuses.
	s.file("in.csv", "id,name\n1,eve\n")
	for _, order := range []map[string]any{{"kind": "resume"}, {"kind": "retry", "nodes": []string{"load"}},
		{"kind": "retry", "batches": []map[string]any{{"node": "load", "from": 0, "to": 0}}},
		{"kind": "retry", "like": map[string]any{"node": "load", "batch": 0}}} {
		for _, dry := range []bool{true, false} {
			order["dry_run"] = dry
			said := c.send("POST", ws+"/runs/2/orders", order).problem(http.StatusUnprocessableEntity)
			require.Contains(t, said.Detail, "in.csv: the input file changed after the run planned it", order)
		}
	}
	var audit []view.AuditEntry
	c.get(ws+"/audit").into(http.StatusOK, &audit)
	require.Len(t, audit, 2, "nothing was ordered")
}

// A gate's tables are beside those that were last approved: rows, columns and sums.
func TestSinceTheLastApproval(t *testing.T) {
	t.Parallel()
	s := serve(t)
	c := s.as("zoe", access.Grant{Workspace: "main", Role: access.Approver, GateRoles: []string{"sales"}})
	run := func(types, input string) {
		t.Helper()
		s.file("in.csv", input)
		s.file("script.yaml", `
nodes:
  load:
    type: file_table
    r: {urls: [in.csv], types: {`+types+`}}
    w: {name: ids, approval: {by: [sales]}}
`)
		s.run()
	}
	since := func(run string) (got view.GateSince) {
		t.Helper()
		c.get(ws+"/runs/"+run+"/gates/ids/since").into(http.StatusOK, &got)
		return got
	}
	decide := func(run string, approve bool) {
		t.Helper()
		var gates []struct {
			Asks view.GateRecord `json:"asks"`
		}
		c.get(ws+"/gates").into(http.StatusOK, &gates)
		c.send("POST", ws+"/runs/"+run+"/gates/ids/decision", map[string]any{"approve": approve, "comment": "well",
			"digest": gates[len(gates)-1].Asks.Digest}).into(http.StatusOK, &view.Decided{})
	}
	run("id: int, name: string, price: decimal2", "id,name,price\n1,ann,2.50\n2,ben,\n")
	first := since("1")
	require.Nil(t, first.Approved)
	require.EqualValues(t, 2, first.Tables[0].Rows)
	require.Nil(t, first.Tables[0].Before)
	require.Equal(t, "2.50", first.Tables[0].Columns[2].Now.Sum)
	require.Empty(t, first.Tables[0].Columns[0].Change)
	decide("1", true)
	run("id: int", "id\n9\n")
	decide("2", false) // is none that others are held against
	run("id: float, price: decimal2, more: string", "id,price,more\n1,2.00,x\n2,3.00,y\n3,4.25,z\n")
	got := since("3")
	require.EqualValues(t, 1, got.Approved.Run)
	require.Equal(t, []string{"zoe", "well"}, []string{got.Approved.By.Actor, got.Approved.By.Reason})
	table := got.Tables[0]
	require.Equal(t, []any{int64(3), int64(2), false, ""}, []any{table.Rows, *table.Before, table.Same, table.Why})
	changes := map[string]view.SinceColumn{}
	for _, col := range table.Columns {
		changes[col.Name] = col
	}
	require.Equal(t, map[string]string{"id": "retyped", "price": "", "more": "added", "name": "removed"},
		map[string]string{"id": changes["id"].Change, "price": changes["price"].Change, "more": changes["more"].Change,
			"name": changes["name"].Change})
	require.Equal(t, []string{"9.25", "2.50"}, []string{changes["price"].Now.Sum, changes["price"].Then.Sum})
	require.Equal(t, []string{"4.25", "2.50"}, []string{*changes["price"].Now.Max, *changes["price"].Then.Max})
	require.EqualValues(t, 1, *changes["price"].Then.Nulls)
	require.Empty(t, changes["more"].Now.Sum)
	require.Equal(t, got, since("3"), "from what is kept of sums")

	c.get(ws + "/runs/3/gates/other/since").problem(http.StatusNotFound)
	s.as("eve", access.Grant{Workspace: "main", Role: access.Viewer}).get(ws + "/runs/3/gates/ids/since").
		problem(http.StatusForbidden)
}

// Who follows a workspace sees at once that somebody has taken a failure.
func TestTakingIsNews(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.file("in.csv", badInput)
	s.run()
	c := s.as("ann", access.Grant{Workspace: "main", Role: access.Operator})
	ctx, stop := context.WithTimeout(t.Context(), effort.Patience)
	defer stop()
	next := c.listen(ctx, "topics=main", "")
	c.send("POST", ws+"/runs/1/take", map[string]string{"comment": "I ask"}).into(http.StatusOK, &view.Taken{})
	for {
		e, ok := next()
		require.True(t, ok, "nothing was told")
		if strings.Contains(e.data, `"taken":{"actor":"ann"`) {
			return
		}
	}
}

// A schedule is paused by admins only, its dry run says which moments pass, and all see by whom it is.
func TestPauseASchedule(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.file("nightly.yaml", "name: nightly\nschedule: {cron: '0 5 1 1 *', name: yearly}\n"+script)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		done <- s.app.Schedule(ctx, app.ProcessCaller(), app.ScheduleOptions{Workspace: "main", Leave: true,
			Scripts: []string{filepath.Join(s.dir, "nightly.yaml")}})
	}()
	ann := s.as("ann", access.Grant{Workspace: "main", Role: access.Operator})
	root := s.as("root", access.Grant{Workspace: "*", Role: access.Manager})
	var all []view.Schedule
	require.Eventually(t, func() bool {
		ann.get(ws+"/schedules").into(http.StatusOK, &all)
		return len(all) == 1
	}, effort.Patience, 10*time.Millisecond)
	stop()
	<-done
	at := ws + "/schedules/" + all[0].ID + "/orders"
	ann.send("POST", at, map[string]any{"kind": "pause"}).problem(http.StatusForbidden)
	root.send("POST", ws+"/schedules/none/orders", map[string]any{"kind": "pause"}).problem(http.StatusNotFound)
	order := func(body map[string]any) (out view.ScheduleOrdered) {
		root.send("POST", at, body).into(http.StatusOK, &out)
		return out
	}
	got := order(map[string]any{"kind": "pause", "dry_run": true})
	require.Len(t, got.Next, 3)
	require.True(t, got.Changes)
	require.Nil(t, got.Schedule.Paused)
	patient, leave := context.WithTimeout(t.Context(), effort.Patience)
	defer leave()
	next := ann.listen(patient, "topics=main", "")
	heard := func(why string) {
		t.Helper()
		said, ok := next()
		require.True(t, ok, why)
		require.Equal(t, event{kind: "schedules", data: `{"workspace":"main"}`}, said, why)
	}
	got = order(map[string]any{"kind": "pause", "reason": "the source is away"})
	require.Equal(t, "root", got.Schedule.Paused.Actor)
	heard("it was paused")
	require.False(t, order(map[string]any{"kind": "pause"}).Changes)
	all = nil
	ann.get(ws+"/schedules").into(http.StatusOK, &all)
	require.Equal(t, "the source is away", all[0].Paused.Reason)
	require.Nil(t, order(map[string]any{"kind": "resume"}).Schedule.Paused)
	heard("it goes on")
	all = nil
	ann.get(ws+"/schedules").into(http.StatusOK, &all)
	require.Nil(t, all[0].Paused)
	var audit []view.AuditEntry
	ann.get(ws+"/audit").into(http.StatusOK, &audit)
	require.Len(t, audit, 2, "of what had an effect")
	require.Equal(t, []string{"pause", "resume"}, []string{audit[0].Action, audit[1].Action})
	require.Equal(t, view.AuditEntry{Time: audit[0].Time, Workspace: "main", Actor: "root", Via: "token", Action: "pause",
		Reason: "the source is away", Schedule: "schedule yearly", Script: all[0].Script}, audit[0])
}

// A retry of all that has failed for one reason says which batches these are, and does what it said.
func TestRetryAlike(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.file("in.csv", badInput)
	s.run()
	c := s.as("ann", access.Grant{Workspace: "main", Role: access.Operator})
	order := func(batch int, more map[string]any) answer {
		body := map[string]any{"kind": "retry", "like": map[string]any{"node": "load", "batch": batch}}
		for name, value := range more {
			body[name] = value
		}
		return c.send("POST", ws+"/runs/1/orders", body)
	}
	var said struct {
		Token   string
		Alike   []map[string]any
		Planned view.RetryPlanned
	}
	order(0, map[string]any{"dry_run": true}).into(http.StatusOK, &said)
	require.Equal(t, []map[string]any{{"node": "load", "from": 0.0, "to": 0.0}}, said.Alike)
	require.Equal(t, "load", said.Planned.Tasks[0].Node)
	require.Contains(t, order(0, map[string]any{"token": "other"}).problem(http.StatusConflict).Detail, "changed")
	require.Contains(t, order(7, nil).problem(http.StatusConflict).Detail, "has not failed")
	s.file("in.csv", "id,name\n1,ann\n")
	s.run()
	body := map[string]any{"kind": "retry", "like": map[string]any{"node": "load", "batch": 0}}
	require.Contains(t, c.send("POST", ws+"/runs/2/orders", body).problem(http.StatusConflict).Detail, "has not failed")
}
