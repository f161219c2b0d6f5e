package api_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app/access"
	"thalweg/internal/test/effort"
)

const checkedText = "nodes:\n  load: {type: file_table, r: {urls: [../in/a.csv], columns: {id: int}}, w: ids,\n" +
	"    checks: [{name: few, range: {field: id, max: 1}}]}\n"

// The checks of a script are made over a run's tables by operators, those of a text by authors.
func TestChecksOverTables(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	s, author, operator := authorOf(t)
	t.Cleanup(s.work(t.Context()))
	require.Equal(t, "complete", operator.statusOf(operator.send("POST", ws+"/runs", body{"script": "ids.yaml"})))
	s.file("jobs/checked.yaml", checkedText)
	ask := func(c *client, b body) answer { return c.send("POST", ws+"/checks", b) }
	require.Nil(t, operator.jobOf(ask(operator, body{"script": "checked.yaml"})).Problem)
	for name, b := range map[string]body{"script": {"script": "checked.yaml", "run": "1", "limit": 1}, "text": {"text": checkedText}} {
		j := author.jobOf(ask(author, b))
		require.Nil(t, j.Problem, name)
		text, err := json.Marshal(j.Result)
		require.NoError(t, err)
		require.Contains(t, string(text), `"check":"few"`)
		require.Contains(t, string(text), `"rows":[{"__message":"id = 2, above 1","id":2}]`)
		require.Contains(t, string(text), `"failed":1`)
	}
	ask(operator, body{"text": checkedText}).problem(http.StatusForbidden)
	ask(operator, body{"script": "../other/secret.yaml"}).problem(http.StatusNotFound)
	ask(operator, body{}).problem(http.StatusUnprocessableEntity)
	ask(s.as("vic", access.Grant{Workspace: "main", Role: access.Reader}), body{"script": "checked.yaml"}).
		problem(http.StatusForbidden)
	require.NotNil(t, operator.jobOf(ask(operator, body{"script": "checked.yaml", "run": "99"})).Problem)
	require.NotNil(t, operator.jobOf(ask(operator, body{"script": "checked.yaml", "nodes": []string{"lod"}})).Problem)
}
