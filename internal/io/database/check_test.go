package database_test

import (
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/fault"
	"thalweg/internal/io/database"
)

// What a run would fail at is found before: each right that is wanted, one behind the other.
func TestRightsThatAreWanted(t *testing.T) {
	t.Parallel()
	s := postgres(t)
	role := name(t)
	s.exec(t, `CREATE SCHEMA shop; CREATE TABLE shop.goods (id bigint PRIMARY KEY, name text); CREATE ROLE `+role+
		` LOGIN`)
	t.Cleanup(func() { s.exec(t, "DROP OWNED BY "+role+"; DROP ROLE "+role) })
	u, err := url.Parse(s.url)
	require.NoError(t, err)
	u.User = url.User(role)
	src := database.Source{URL: u.String(), Table: "shop.goods"}
	target := func(mode, table string) database.Target {
		return database.Target{URL: u.String(), Table: table, Mode: mode,
			Key:     map[string][]string{database.Merge: {"id"}}[mode],
			Columns: []database.TargetColumn{{Name: "id", Type: "int"}, {Name: "name", Type: "string", Nullable: true}}}
	}
	for _, c := range []struct {
		check   func() error
		refused string // before the right is granted
		grant   string
	}{
		{func() error { return database.Client{}.CheckSource(t.Context(), src, []string{"id"}) }, "permission denied",
			"GRANT USAGE ON SCHEMA shop TO "},
		{func() error { return database.Client{}.CheckSource(t.Context(), src, []string{"id"}) }, "permission denied",
			"GRANT SELECT ON shop.goods TO "},
		{func() error { return database.Client{}.CheckTarget(t.Context(), target(database.Append, "shop.goods")) },
			"may not INSERT", "GRANT INSERT ON shop.goods TO "},
		{func() error { return database.Client{}.CheckTarget(t.Context(), target(database.Append, "shop.goods")) },
			`the table "shop"."thalweg_commits" is not there, and the user may not make it in the schema "shop"`,
			"GRANT CREATE ON SCHEMA shop TO "},
		{func() error {
			return database.Client{}.CheckTarget(t.Context(), target(database.Replace, "shop.goods"))
		}, "may not TRUNCATE", "GRANT TRUNCATE ON shop.goods TO "},
		{func() error { return database.Client{}.CheckTarget(t.Context(), target(database.Merge, "shop.goods")) },
			"may not UPDATE", "GRANT UPDATE ON shop.goods TO "},
		{func() error { return database.Client{}.CheckTarget(t.Context(), target(database.Append, "none.goods")) },
			"may not make it in the schema", "CREATE SCHEMA none AUTHORIZATION "},
	} {
		err := c.check()
		require.ErrorContains(t, err, c.refused)
		require.NotEmpty(t, fault.Of(err).Hint)
		require.NotEmpty(t, fault.Of(err).Place.File)
		s.exec(t, c.grant+role)
		if next := c.check(); next != nil { // for want of the next one
			require.NotContains(t, next.Error(), "may not INSERT")
		}
	}
	require.NoError(t, database.Client{}.CheckSource(t.Context(), src, []string{"id", "name"}))
	for _, mode := range []string{database.Append, database.Replace, database.Merge} {
		require.NoError(t, database.Client{}.CheckTarget(t.Context(), target(mode, "shop.goods")))
	}
	require.NoError(t, database.Client{}.CheckTarget(t.Context(), target(database.Append, "none.goods")))
	err = database.Client{}.CheckSource(t.Context(), src, []string{"id", "nam"})
	require.ErrorContains(t, err, `there is no column "nam"`)
	require.Equal(t, "it has id, name", fault.Of(err).Hint)
}
