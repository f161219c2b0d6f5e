package archtest

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/run/engine"
)

// ownNamespaces are those of DuckDB itself, which others' code is not in.
var ownNamespaces = []string{"duckdb", "duckdb_adbc"}

// What is released names DuckDB's own third parties, with their licences (deploy/duckdb). No tool
// finds them, so that nothing but this test would tell after an update that one came or went.
func TestPartsOfDuckDBAreNamed(t *testing.T) {
	var list struct {
		DuckDB string
		Parts  []struct{ Name, License, Symbol string }
	}
	text, err := os.ReadFile("../../../deploy/duckdb/parts.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &list))
	require.Equal(t, engine.Version, "duckdb-"+list.DuckDB,
		"deploy/duckdb is of another version: bring parts.json and LICENSES up to date from the source of this one")
	licences, err := os.ReadFile("../../../deploy/duckdb/LICENSES")
	require.NoError(t, err)
	var titled []string
	for _, found := range regexp.MustCompile(`(?m)^==== DuckDB `+regexp.QuoteMeta(list.DuckDB)+
		`, (.+): LICENSE$`).FindAllSubmatch(licences, -1) {
		titled = append(titled, strings.Split(string(found[1]), ", ")...)
	}
	var names []string
	symbols := map[string]bool{} // and whether the archives have it
	for _, p := range list.Parts {
		names = append(names, p.Name)
		require.NotEmpty(t, p.License, p.Name)
		if p.Symbol != "" { // what is only inlined has none
			symbols[p.Symbol] = false
		}
	}
	require.ElementsMatch(t, names, titled, "parts.json and the titles in LICENSES")

	archives := archivesOfDuckDB(t)
	spaces := map[string]bool{}
	for _, archive := range archives {
		data, err := os.ReadFile(archive)
		require.NoError(t, err)
		for symbol := range symbols {
			symbols[symbol] = symbols[symbol] || bytes.Contains(data, []byte(symbol))
		}
		// Names that C++ has within a namespace: _ZN10duckdb_fmt…
		for _, found := range regexp.MustCompile(`_ZNK?(\d+)(duckdb[a-z0-9_]*)`).FindAllSubmatch(data, -1) {
			if size := atoi(found[1]); size <= len(found[2]) {
				spaces[string(found[2][:size])] = true
			}
		}
	}
	for symbol, there := range symbols {
		require.True(t, there, "parts.json names a part with %s, which DuckDB's archives have no more", symbol)
	}
	for _, space := range slices.Sorted(maps.Keys(spaces)) {
		_, named := symbols[space]
		require.True(t, named || slices.Contains(ownNamespaces, space) || strings.HasPrefix(space, "duckdb_mbedtls"),
			"DuckDB's archives have code in %s, which no part in deploy/duckdb/parts.json stands for", space)
	}
}

func archivesOfDuckDB(t *testing.T) []string {
	said, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}",
		"github.com/duckdb/duckdb-go-bindings/lib/linux-amd64").Output()
	require.NoError(t, err)
	archives, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(said)), "*.a"))
	require.NoError(t, err)
	require.NotEmpty(t, archives)
	return archives
}

func atoi(digits []byte) int {
	n := 0
	for _, d := range digits {
		n = 10*n + int(d-'0')
	}
	return n
}
