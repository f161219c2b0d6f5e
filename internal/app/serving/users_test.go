package serving_test

import (
	"os"
	"path/filepath"
	"testing"

	"thalweg/internal/base/settings"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app/serving"
	"thalweg/internal/base/fault"
)

// What a group may not give is said where it is written.
func TestGrantsOfGroups(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "serve.yaml")
	require.NoError(t, os.WriteFile(path, []byte(`version: 1
oidc:
  issuer: https://login.example.com
  client_id: thalweg
  groups:
    data: {workspace: main, role: viewer}
    leads: {workspace: main, role: oprator}
`), 0o600))
	_, err := serving.Load(path, settings.Options{})
	require.ErrorContains(t, err, `no role "oprator"`)
	f := fault.Of(err)
	require.Equal(t, int64(7), f.Place.Line)
	require.Contains(t, f.Hint, "operator")
}
