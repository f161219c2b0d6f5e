package api_test

import (
	"encoding/json"
	"flag"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"
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

// requireDocumented fails if the description does not have an answer to a request, or describes another content.
func (s *served) requireDocumented(method, path string, status int, mediaType string, content []byte) {
	s.t.Helper()
	path, _, _ = strings.Cut(path, "?")
	for template, item := range s.api.OpenAPI().Paths {
		o := map[string]*huma.Operation{"GET": item.Get, "POST": item.Post, "PUT": item.Put, "DELETE": item.Delete}[method]
		pattern := "^" + regexp.MustCompile(`\\\{[a-z]+\\\}`).ReplaceAllString(regexp.QuoteMeta(template), "[^/]*") + "$"
		if o == nil || !regexp.MustCompile(pattern).MatchString(path) {
			continue
		}
		r := o.Responses[strconv.Itoa(status)]
		require.NotNil(s.t, r, "%s answers with %d", o.OperationID, status)
		if r.Ref != "" {
			r = s.api.OpenAPI().Components.Responses[r.Ref[strings.LastIndexByte(r.Ref, '/')+1:]]
		}
		mediaType, _, _ = strings.Cut(mediaType, ";")
		types := []string{""}
		for is := range r.Content {
			is, _, _ = strings.Cut(is, ";")
			types = append(types, is)
		}
		require.Contains(s.t, types, mediaType, "%s answers with it", o.OperationID)
		if is := r.Content[mediaType]; is != nil && is.Schema != nil && strings.HasSuffix(mediaType, "json") {
			var value any
			require.NoError(s.t, json.Unmarshal(content, &value), string(content))
			found := &huma.ValidateResult{}
			huma.Validate(s.api.OpenAPI().Components.Schemas, is.Schema, huma.NewPathBuffer(nil, 0), huma.ModeReadFromServer,
				value, found)
			require.Empty(s.t, found.Errors, "%s answers with %s", o.OperationID, content)
		}
	}
}
