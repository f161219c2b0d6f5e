package api_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app/access"
	"thalweg/internal/test/effort"
)

// Problems say in plain words what can be done, and in next for programs; a client that shows actions itself gets marks.
func TestTextsOfProblems(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	s := serve(t)
	s.run()
	c := s.as("ann", access.Grant{Workspace: "main", Role: access.Operator})
	resume := map[string]any{"kind": "resume"}
	p := c.send(http.MethodPost, orders, resume).problem(http.StatusUnprocessableEntity)
	require.NotEmpty(t, p.Next)
	require.NotContains(t, p.Detail+p.Hint, "{{")
	require.Contains(t, p.Hint, "“"+p.Next[0].Verb+" run 1")
	c.header.Set("Thalweg-Texts", "marks")
	marked := c.send(http.MethodPost, orders, resume).problem(http.StatusUnprocessableEntity)
	require.Contains(t, marked.Hint, "{{do "+p.Next[0].Verb)
	require.Equal(t, p.Next, marked.Next)
}
