package api_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app"
	"thalweg/internal/app/access"
	"thalweg/internal/app/view"
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
	p := ben.send("POST", ws+"/runs/1/take", map[string]string{"comment": "mine"}).problem(http.StatusConflict)
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
