package caller_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app/caller"
)

func TestRoleOf(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		roles, may []string
		want       string
		ok         bool
	}{
		"anybody may, without a role":  {nil, nil, "", true},
		"anybody may, in a role":       {[]string{"ops"}, nil, "ops", true},
		"nobody without a role":        {nil, []string{"ops"}, "", false},
		"in another role":              {[]string{"sales"}, []string{"ops"}, "", false},
		"in one of several":            {[]string{"sales", "ops"}, []string{"finance", "ops"}, "ops", true},
		"a role is not a part of one":  {[]string{"op"}, []string{"ops"}, "", false},
		"an empty role is not a role ": {[]string{""}, []string{"ops"}, "", false},
	} {
		role, ok := caller.Caller{Roles: tc.roles}.RoleOf(tc.may)
		require.Equal(t, tc.ok, ok, name)
		require.Equal(t, tc.want, role, name)
	}
}

func TestMark(t *testing.T) {
	t.Parallel()
	m := caller.OfProcess(caller.CLI).Mark("late")
	require.NotEmpty(t, m.Actor)
	require.Equal(t, "cli", m.Via)
	require.Equal(t, "late", m.Reason)
	require.False(t, m.Time.IsZero())
	require.Empty(t, caller.OfProcess(caller.CLI, "").Roles)
	require.Equal(t, []string{"ops"}, caller.OfProcess(caller.CLI, "", "ops").Roles)
}
