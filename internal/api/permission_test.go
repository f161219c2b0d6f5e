package api_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app/access"
	"thalweg/internal/test/effort"
)

// openAPI is the part of the document that these tests read.
type openAPI struct {
	Paths map[string]map[string]struct {
		ID         string            `json:"operationId"`
		Permission access.Permission `json:"x-permission"`
	}
}

// document returns the description of the operations.
func (s *served) document() (doc openAPI) {
	s.t.Helper()
	text, err := json.Marshal(s.api.OpenAPI())
	require.NoError(s.t, err)
	require.NoError(s.t, json.Unmarshal(text, &doc))
	return doc
}

// Each operation asks for its permission, and each of these is refused who has not got it: with the grants of another
// workspace, without any, with a token that is revoked, expired, or none, and without credentials.
func TestEveryOperationAsksForItsPermission(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	s := serve(t)
	s.run()
	doc := s.document()
	roles := map[access.Role]*client{}
	other := map[access.Role]*client{}
	all := []access.Role{access.Viewer, access.Reader, access.Operator, access.Approver, access.Writer, access.Manager}
	for _, role := range all {
		roles[role] = s.as("main-"+string(role), access.Grant{Workspace: "main", Role: role, GateRoles: gateRolesOf(role)})
		other[role] = s.as("other-"+string(role), access.Grant{Workspace: "other", Role: role, GateRoles: gateRolesOf(role)})
	}
	strangers := map[string]*client{"nobody": s.nobody(), "forged": {s, http.Header{"Authorization": {
		"Bearer tw_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}}}, "basic": {s, http.Header{"Authorization": {
		"Basic bWU6bWU="}}}, "cookie": {s, http.Header{"Cookie": {"thalweg-test=AAAA"}}}, "revoked": s.revoked(),
		"disabled": s.disabled()}
	may := map[access.Permission][]access.Role{access.Self: all, access.View: all, access.Read: all[1:],
		access.Operate: {access.Operator, access.Writer, access.Manager}, access.Decide: {access.Approver, access.Manager},
		access.Author: {access.Writer, access.Manager}, access.Admin: {access.Manager}}
	cells := 0
	for path, operations := range doc.Paths {
		for method, o := range operations {
			if o.Permission == access.Anyone {
				require.Contains(t, []string{"login", "ways-to-login"}, o.ID, "anyone may ask for it")
				continue
			}
			require.Contains(t, may, o.Permission, "%s has no permission", o.ID)
			of := strings.Contains(path, "{workspace}")
			ask := func(c *client) int {
				cells++
				return c.send(strings.ToUpper(method), example(path), nil).status
			}
			for name, c := range strangers {
				require.Equal(t, http.StatusUnauthorized, ask(c), "%s of %s", o.ID, name)
			}
			if o.ID == "logout" {
				continue
			}
			for _, role := range all {
				refused := ask(roles[role]) == http.StatusForbidden
				want := !slices.Contains(may[o.Permission], role) || !of && o.Permission != access.Self ||
					strings.HasPrefix(path, "/v1/me/sessions") // tokens ask, which do not see the sessions of their owners
				require.Equal(t, want, refused, "%s of a %s", o.ID, role)
				refused = ask(other[role]) == http.StatusForbidden
				require.Equal(t, of || want, refused, "%s of a %s of another workspace", o.ID, role)
			}
		}
	}
	require.Greater(t, cells, 300)
	t.Logf("%d cells", cells)
}

func gateRolesOf(role access.Role) []string {
	if role == access.Approver {
		return []string{"sales"}
	}
	return nil
}

// example fills in the parameters of a path.
func example(path string) string {
	for name, value := range map[string]string{"{workspace}": "main", "{run}": "1", "{node}": "load", "{batch}": "0",
		"{gate}": "g", "{matrix}": "m", "{job}": "j", "{table}": "none", "{column}": "c", "{token}": "t", "{session}": "t", "{user}": "U",
		"{script}": "none.yaml", "{schedule}": "none"} {
		path = strings.ReplaceAll(path, name, value)
	}
	return path
}

// revoked returns a client whose token is revoked.
func (s *served) revoked() *client {
	s.t.Helper()
	c := s.as("gone", access.Grant{Workspace: "*", Role: access.Manager})
	tokens, err := s.users.Tokens(s.t.Context(), "gone")
	require.NoError(s.t, err)
	require.NoError(s.t, s.users.RevokeToken(s.t.Context(), access.Principal{}, "", tokens[0].ID))
	return c
}

// disabled returns a client whose user is disabled.
func (s *served) disabled() *client {
	s.t.Helper()
	c := s.as("left", access.Grant{Workspace: "*", Role: access.Manager})
	yes := true
	_, err := s.users.PutUser(s.t.Context(), access.Principal{}, "left", access.UserChange{Disabled: &yes})
	require.NoError(s.t, err)
	return c
}

// What is revoked while it is in use is refused within the time that is promised.
func TestRevokedIsRefusedSoon(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	s := serve(t)
	s.as("root", access.Grant{Workspace: "*", Role: access.Manager})
	c := s.as("ann", access.Grant{Workspace: "main", Role: access.Viewer})
	require.Equal(t, http.StatusOK, c.get(ws+"/runs").status)
	none := []access.Grant{}
	_, err := s.users.PutUser(t.Context(), access.Principal{}, "ann", access.UserChange{Grants: &none})
	require.NoError(t, err)
	begun := time.Now()
	require.Eventually(t, func() bool { return c.get(ws+"/runs").status == http.StatusForbidden }, effort.Patience,
		10*time.Millisecond)
	effort.Promised(t, begun, access.RevokedWithin)
}
