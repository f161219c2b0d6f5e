package script

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"thalweg/internal/base/fault"
	"thalweg/internal/lang/expr"
)

// columns stands in for reading input files: the first line of a CSV file is
// its header, that of a Parquet file has name:type items, with ! behind required ones.
func (m memory) columns(_ context.Context, name string, _ CSVReader, parquet bool) ([]FileColumn, error) {
	text, ok := m[name]
	if !ok {
		return nil, fault.New(fault.UserData, "input file does not exist")
	}
	line, _, _ := strings.Cut(text, "\n")
	var out []FileColumn
	for item := range strings.SplitSeq(line, ",") {
		c := FileColumn{Name: item, Type: expr.String}
		if parquet {
			c.Name, c.Kind, _ = strings.Cut(item, ":")
			c.Kind, c.Required = strings.CutSuffix(c.Kind, "!")
			c.Type, _ = expr.ParseType(c.Kind)
		}
		out = append(out, c)
	}
	return out, nil
}

// Each archive holds a script in short form and the same one in long form.
func TestShortMeansLong(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/short/*.txtar")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(file)
			require.NoError(t, err)
			short, long := memory{}, memory{}
			for _, f := range archive.Files {
				switch f.Name {
				case "short.yaml":
					short["script.yaml"] = string(f.Data)
				case "long.yaml":
					long["script.yaml"] = string(f.Data)
				default:
					short[f.Name], long[f.Name] = string(f.Data), string(f.Data)
				}
			}
			a, b := mustLoad(t, short), mustLoad(t, long)
			require.Equal(t, summary(b), summary(a))
			require.JSONEq(t, string(b.Definition()), string(a.Definition()))
			again := mustLoad(t, memory{"script.json": string(a.Definition())})
			require.Equal(t, a.Fingerprint, again.Fingerprint, "the definition is a script that does the same")
		})
	}
}

func TestIdentifiers(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"id", "Order_ID", "Price_USD", "_2nd", "type_", "column", "ID_2", "rowid_", "a_b", "_x",
		"column_2"},
		identifiers([]string{"id", "Order ID", " Price (USD)", "2nd", "type", "", "ID", "rowid", "a - b", "_x", "é"}))
}
