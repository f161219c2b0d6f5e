package api_test

import (
	"encoding/json"
	"flag"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write docs/openapi.json")

// docs/openapi.json is the description that the program makes of its types.
func TestOpenAPIFile(t *testing.T) {
	t.Parallel()
	const path = "../../docs/openapi.json"
	doc := serve(t).api.OpenAPI()
	require.Equal(t, "3.1.0", doc.OpenAPI)
	doc.Info.Description = ""
	text, err := json.MarshalIndent(doc, "", " ")
	require.NoError(t, err)
	text = append(text, '\n')
	if *update {
		require.NoError(t, os.WriteFile(path, text, 0o644))
	}
	kept, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(kept), string(text), "go test ./internal/api -run TestOpenAPIFile -update writes it")
}
