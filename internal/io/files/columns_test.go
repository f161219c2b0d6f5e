package files

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/fault"
	"thalweg/internal/lang/script"
)

func TestColumnsOfCSV(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tests := []struct {
		name, text string
		csv        script.CSVReader
		want       []string
		problem    string
	}{
		{name: "plain", text: "id,Order ID\n1,2\n", want: []string{"id", "Order ID"}},
		{name: "bom, quotes, CRLF", text: "\xEF\xBB\xBF\"a,b\",c\r\n1,2\r\n", want: []string{"a,b", "c"}},
		{name: "third record", text: "title\n\nmore,of,it\nid;x\n", csv: script.CSVReader{HeaderRecord: 2,
			Separator: ';'},
			want: []string{"id", "x"}},
		{name: "broken title", text: "\"Report\" of 2024\nid;x\n", csv: script.CSVReader{HeaderRecord: 1,
			Separator: ';'},
			want: []string{"id", "x"}},
		{name: "no line end", text: "id", want: []string{"id"}},
		{name: "empty", text: "", problem: "the file ends before its header"},
	}
	for _, tt := range tests {
		path := filepath.Join(dir, tt.name+".csv")
		require.NoError(t, os.WriteFile(path, []byte(tt.text), 0o644))
		if tt.csv.Separator == 0 {
			tt.csv.Separator = ','
		}
		got, err := Columns(context.Background(), Look{}, path, tt.csv, false)
		if tt.problem != "" {
			require.ErrorContains(t, err, tt.problem)
			require.Equal(t, fault.UserData, fault.Of(err).Kind)
			continue
		}
		require.NoError(t, err, tt.name)
		var names []string
		for _, c := range got {
			names = append(names, c.Name)
		}
		require.Equal(t, tt.want, names, tt.name)
	}
	_, err := Columns(context.Background(), Look{}, filepath.Join(dir, "none.csv"), script.CSVReader{Separator: ','},
		false)
	require.ErrorContains(t, err, "does not exist")
}
