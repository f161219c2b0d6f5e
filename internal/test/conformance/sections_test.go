package conformance

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// sections are those of the specification of the script language. Each needs
// at least one case. Those from 9 on are what Thalweg adds.
var sections = []string{
	"1.1", "1.2", "1.3", "1.4", "1.5", "1.6", "1.7", "1.8", "1.9", "1.10", "1.11", "1.12", "1.13",
	"2.1", "2.2", "2.3", "2.4", "2.5", "2.6", "2.7",
	"3.1", "3.2", "3.3", "3.4", "3.5",
	"4.2", "4.3", "4.6", "4.7", "4.8", "6",
	"9.1", "9.2", "9.3", "9.4", "9.5", "9.6", "9.7", "9.8", "9.9",
	"9.10", "9.11", "9.12",
	"9.14", "9.15",
}

// casesMin is the number of checks, each line of expressions counted as one.
const casesMin = 1000

// TestSections counts the checks of each section, and fails where there is none.
func TestSections(t *testing.T) {
	t.Parallel()
	count := map[string]int{}
	total := 0
	for _, file := range allCases(t) {
		c, err := readCase(file)
		require.NoError(t, err, file)
		n := 1
		if c.has(fileExpressions) {
			lines, err := readExpressions(c.files[fileExpressions])
			require.NoError(t, err, file)
			n = len(lines)
		}
		count[c.section] += n
		total += n
	}
	for _, s := range sections {
		require.NotZero(t, count[s], "section %s has no case", s)
		t.Logf("section %s: %d", s, count[s])
		delete(count, s)
	}
	for s := range count {
		t.Errorf("there is no section %s", s)
	}
	require.GreaterOrEqual(t, total, casesMin)
	t.Logf("%d checks in %d files", total, len(allCases(t)))
}

// TestWrongCases shows that a case which is wrong in itself is refused.
func TestWrongCases(t *testing.T) {
	t.Parallel()
	const head = "section: 1.1\nWhat is pinned.\n"
	for text, want := range map[string]string{
		"What is pinned.\n-- script.yaml --\n":                                  "the first line must be",
		"section: 1.1\n-- script.yaml --\n":                                     "a sentence must say",
		"section: 1.2\nWhat is pinned.\n-- script.yaml --\n":                    "of section 1.2 is in the folder 1.1",
		head + "-- script.yml --\n":                                             "script.yml is used by nothing",
		head + "-- script.yaml --\n-- in.csv --\n":                              "in.csv is used by nothing",
		head + "-- script.yaml --\n-- want.eror --\n":                           "want.eror means nothing",
		head + "-- script.yaml --\n-- script.yaml --\n":                         "two files named script.yaml",
		head + "-- script.yaml --\n-- ../up --\n":                               "not a name of a file",
		head + "-- script.yaml --\n-- want/sql.csv --\n":                        "want/sql.csv without want.sql",
		head + "-- script.yaml --\n-- row --\n":                                 "row without expressions",
		head + "-- script.yaml --\n-- runs --\nstart=a sometimes\n":             `what is "sometimes"`,
		head + "-- script.yaml --\n-- want.error --\n-- want.error.prefix --\n": "want.error and want.error.prefix",
		head: "there is no script",
		head + "-- script.yaml --\n-- want.error --\n    a: $DIR/x\n    ^\n": "marks a place",
	} {
		file := filepath.Join(t.TempDir(), "1.1", "x.txtar")
		require.NoError(t, writeFile(file, txtar.Format(txtar.Parse([]byte(text)))))
		_, err := readCase(file)
		require.ErrorContains(t, err, want, text)
	}
}

// TestKeysAndFunctionsHaveCases: each key of the language, as the published
// schema lists them, and each function, as the generated page lists them, is
// in at least one case.
func TestKeysAndFunctionsHaveCases(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	for _, file := range allCases(t) {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		text.Write(data)
	}
	cases := text.String()

	data, err := os.ReadFile("../../../schemas/script.schema.json")
	require.NoError(t, err)
	var schema any
	require.NoError(t, json.Unmarshal(data, &schema))
	keys := map[string]bool{}
	schemaKeys(schema, keys)
	require.Greater(t, len(keys), 50)
	for key := range keys {
		assert.True(t, regexp.MustCompile(`\b`+regexp.QuoteMeta(key)+`"?\s*:`).MatchString(cases),
			"no case has the key %s", key)
	}

	page, err := os.ReadFile("../../../docs/expressions.md")
	require.NoError(t, err)
	functions := regexp.MustCompile("(?m)^\\| `([A-Za-z0-9_.]+)\\(").FindAllStringSubmatch(string(page), -1)
	require.Greater(t, len(functions), 30)
	for _, m := range functions {
		assert.True(t, strings.Contains(cases, m[1]+"("), "no case calls %s", m[1])
	}
}

// schemaKeys gathers the names of properties.
func schemaKeys(v any, keys map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		if properties, ok := v["properties"].(map[string]any); ok {
			for k := range properties {
				keys[k] = true
			}
		}
		for _, one := range v {
			schemaKeys(one, keys)
		}
	case []any:
		for _, one := range v {
			schemaKeys(one, keys)
		}
	}
}
