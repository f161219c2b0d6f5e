package script

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBadRowsAsGiven(t *testing.T) {
	t.Parallel()
	cases := []struct {
		text   string
		action string
		rows   int64
		share  float64
	}{
		{"fail", "", 0, 0},
		{"quarantine", BadQuarantine, BadRowsDefault, BadPercentDefault},
		{"null", "", 0, 0}, // absent
		{"{action: fail}", "", 0, 0},
		{"{action: quarantine, max_rows: 0, max_percent: 0.25}", BadQuarantine, 0, 0.25},
		{"{action: quarantine, max_rows: 5}", BadQuarantine, 5, BadPercentDefault},
		{"{action: null}", BadNull, BadRowsDefault, BadPercentDefault},
		{"{action: 'null', max_percent: 100}", BadNull, BadRowsDefault, 100},
	}
	seen := map[string]string{}
	for _, c := range cases {
		s, diags := memory{"script.yaml": fmt.Sprintf(badRowsScript, c.text), "f.py": "def f(x):\n  return x\n"}.load(t)
		require.False(t, diags.HasErrors(), "%s: %v", c.text, diags)
		b := s.Node("calc").BadRows
		if c.action == "" {
			require.Nil(t, b, c.text)
		} else {
			require.NotNil(t, b, c.text)
			require.Equal(t, BadRows{Pos: b.Pos, Action: c.action, MaxRows: c.rows, MaxPercent: c.share}, *b, c.text)
			require.Positive(t, b.Pos.Line)
		}
		seen[c.text] = s.Fingerprint
	}
	require.NotEqual(t, seen["{action: null}"], seen["{action: fail}"], "null is a word here, not absence")
}

const badRowsScript = `
nodes:
  read:
    type: file_table
    r: {urls: [in.csv], columns: {id: {col_type: int, csv: {col_hdr: id}}}}
    w: {name: src, fields: {id: {expression: r.id, type: int}}}
  calc:
    type: table_custom_tfm_table
    custom_proc_type: py_calc
    bad_rows: %s
    r: {table: src}
    p: {python_code_urls: [f.py], calculated_fields: {x: {expression: f(r.id), type: int}}}
    w: {name: calculated, fields: {x: {expression: p.x, type: int}}}
`
