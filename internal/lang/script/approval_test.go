package script

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/document"
)

func TestAnswerValues(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		answer      Answer
		text, value string // value "": refused
	}{
		{Answer{Type: "int"}, " 007 ", "7"},
		{Answer{Type: "int"}, "-0", "0"},
		{Answer{Type: "int"}, "1.0", ""},
		{Answer{Type: "int"}, "0x10", ""},
		{Answer{Type: "int"}, "1_000", ""},
		{Answer{Type: "int"}, "9223372036854775808", ""},
		{Answer{Type: "int", Min: "-5", Max: "10"}, "-6", ""},
		{Answer{Type: "int", Min: "-5", Max: "10"}, "-5", "-5"},
		{Answer{Type: "int", Min: "-5", Max: "10"}, "9", "9"}, // as numbers, not as texts
		{Answer{Type: "int", OneOf: []string{"1", "20"}}, "020", "20"},
		{Answer{Type: "int", OneOf: []string{"1", "20"}}, "2", ""},
		{Answer{Type: "float"}, "5", "5.0"}, // a script takes it for a float
		{Answer{Type: "float"}, "-0.10", "-0.1"},
		{Answer{Type: "float"}, "1e21", "1e+21"},
		{Answer{Type: "float"}, "0.0000000001", "1e-10"},
		{Answer{Type: "float"}, "NaN", ""},
		{Answer{Type: "float"}, "-Inf", ""},
		{Answer{Type: "float"}, "0x1p3", ""},
		{Answer{Type: "float", Max: "10.0"}, "9.5", "9.5"},
		{Answer{Type: "float", Max: "10.0"}, "10.5", ""},
		{Answer{Type: "decimal2"}, "5", "5.00"},
		{Answer{Type: "decimal2"}, "+05.5", "5.50"},
		{Answer{Type: "decimal2"}, "-0.00", "0.00"},
		{Answer{Type: "decimal2"}, "1.230", "1.23"},
		{Answer{Type: "decimal2"}, "1.234", ""},
		{Answer{Type: "decimal2"}, "1e2", ""},
		{Answer{Type: "decimal2"}, ".5", ""},
		{Answer{Type: "decimal2"}, "5.", ""},
		{Answer{Type: "decimal2"}, "--5", ""},
		{Answer{Type: "decimal2"}, "1234567890123456.00", ""},
		{Answer{Type: "decimal2", Min: "-1.50"}, "-1.51", ""},
		{Answer{Type: "decimal2", Min: "-1.50"}, "-1.49", "-1.49"},
		{Answer{Type: "bool"}, "TRUE", "true"},
		{Answer{Type: "bool"}, "yes", ""},
		{Answer{Type: "datetime"}, "2026-01-31", "2026-01-31"},
		{Answer{Type: "datetime"}, "2026-02-31", ""},
		{Answer{Type: "datetime", Max: "2026-01-31"}, "2026-01-31 00:00:01", ""},
		// one text for one value
		{Answer{Type: "datetime", Max: "2026-01-31"}, "2026-01-31T01:00:00+01:00", "2026-01-31"},
		{Answer{Type: "datetime"}, "2026-01-31 00:00", "2026-01-31"},
		{Answer{Type: "datetime"}, "2026-01-31T23:59:59.5Z", "2026-01-31 23:59:59.5"},
		{Answer{Type: "datetime"}, "1969-12-31 12:00", "1969-12-31 12:00:00"},
		{Answer{Type: "datetime"}, "0001-01-01", "0001-01-01"},
		{Answer{Type: "string"}, "north & south", "north & south"},
		{Answer{Type: "string"}, "", ""},
		{Answer{Type: "string"}, `a"b`, ""},
		{Answer{Type: "string"}, "a'b", ""},
		{Answer{Type: "string"}, "a`b", ""},
		{Answer{Type: "string"}, `a\`, ""},
		{Answer{Type: "string"}, "{other}", ""},
		{Answer{Type: "string"}, "a\nb", ""},
		{Answer{Type: "string"}, "a\u2028b", ""}, // lines end there in YAML
		{Answer{Type: "string"}, "a\u2029b", ""},
		{Answer{Type: "string"}, "a\u0085b", ""},
		{Answer{Type: "string"}, "\ufeffa", ""},
		{Answer{Type: "string"}, "a\xffb", ""}, // it would be recorded as another text
		{Answer{Type: "string"}, "Zürich 東京 €", "Zürich 東京 €"},
		{Answer{Type: "string"}, "key: value", ""},
		{Answer{Type: "string"}, "a #b", ""},
		{Answer{Type: "string"}, " a", ""},
		{Answer{Type: "string", OneOf: []string{"eu", "us"}}, "EU", ""},
	} {
		value, err := tc.answer.Value(tc.text)
		if tc.value == "" && tc.text != "" {
			require.Error(t, err, "%+v", tc)
			continue
		}
		require.NoError(t, err, "%+v", tc)
		require.Equal(t, tc.value, value, "%+v", tc)
		again, err := tc.answer.Value(value)
		require.NoError(t, err)
		require.Equal(t, value, again, "what is put into the script is an answer")
	}
}

const answered2 = `
nodes:
  read:
    type: file_table
    r: {urls: [a.csv], columns: {id: int}}
    w: {name: a, approval: {answers: {cutoff: {type: int, default: 1}, from: {type: string, default: b}}}}
  b:
    type: table_table
    r: a
    w: {name: b, having: "w.id > {cutoff}", fields: [r.id]}
  c:
    type: table_table
    r: a
    w: {name: c, fields: [r.id]}
  d:
    type: table_table
    r: "{from}"
    w: {name: d, fields: [r.id]}
`

func loadAnswered(t *testing.T, answers map[string]string) *Script {
	t.Helper()
	s, diags := Load(context.Background(), Sources{Path: "script.yaml", Read: memory{"script.yaml": answered2}.read,
		Answers: answers})
	require.False(t, diags.HasErrors(), diags.Render())
	return s
}

// Answers change the nodes that use them, and no others.
func TestAnswersChangeWhoUsesThem(t *testing.T) {
	t.Parallel()
	s := loadAnswered(t, nil)
	five := loadAnswered(t, map[string]string{"cutoff": "5"})
	require.NoError(t, s.Differs(five))
	require.Equal(t, "w.id > 5", five.Node("b").Table.Having.Source())
	for _, name := range []string{"read", "c", "d"} {
		require.Equal(t, s.Node(name).Fingerprint, five.Node(name).Fingerprint)
	}
	require.NotEqual(t, s.Node("b").Fingerprint, five.Node("b").Fingerprint)
	require.ErrorContains(t, s.Differs(loadAnswered(t, map[string]string{"from": "c"})), "node d reads other tables")

	python := func(file string, answers bool) (*Script, document.Diagnostics) {
		text := "nodes:\n  a: {type: file_table, r: {urls: [a.csv], columns: {id: int}}, w: {name: a, approval: " +
			"{answers: {file: {type: string, default: f.py}}}}}\n" +
			"  b: {type: py_table, r: a, p: {python_code_urls: [\"{file}\"], function: f, returns: {x: float}}, w: " +
			"{name: b, fields: {x: p.x}}}\n"
		src := Sources{Path: "script.yaml", Read: memory{"script.yaml": text, "f.py": "def f(rows): pass",
			"g.py": "def f(rows): pass"}.read, Params: map[string]string{"file": file}}
		if answers {
			src.Params, src.Answers = nil, src.Params
		}
		return Load(context.Background(), src)
	}
	f, _ := python("f.py", false)
	g, _ := python("g.py", false)
	require.ErrorContains(t, f.Differs(g), "node b has other Python files")
	_, diags := python("g.py", true)
	require.Contains(t, diags.Render(), `parameter "file" stands in code here`)

	_, diags = Load(context.Background(), Sources{Path: "script.yaml", Read: memory{"script.yaml": answered2}.read,
		Answers: map[string]string{"cutof": "5"}})
	require.Contains(t, diags.Render(), `no gate of the script asks for "cutof"`)
}

// An answer is put in with all of its digits, also as a number.
func TestAnswersKeepTheirDigits(t *testing.T) {
	t.Parallel()
	text := `
nodes:
  read:
    type: file_table
    r: {urls: [a.csv], columns: {id: int}}
    w: {name: a, approval: {answers: {part: {type: float, default: 0.5}}}}
  b:
    type: py_table
    r: a
    p: {python_code_urls: [f.py], function: f, arguments: {part: "{part|number}"}, returns: {x: float}}
    w: {name: b, fields: {x: p.x}}
`
	s, diags := Load(context.Background(),
		Sources{Path: "script.yaml", Read: memory{"script.yaml": text, "f.py": "def f(rows, part): pass"}.read,
			Answers: map[string]string{"part": "0.123456789"}})
	require.False(t, diags.HasErrors(), diags.Render())
	require.JSONEq(t, "0.123456789", string(s.Node("b").PyTable.Arguments[0].JSON))
}

// What an approval says changes nothing of what its node does.
func TestApprovalsAreNoPartOfWhatNodesDo(t *testing.T) {
	t.Parallel()
	with := loadAnswered(t, nil)
	s, diags := Load(context.Background(), Sources{Path: "script.yaml", Read: memory{"script.yaml": `
nodes:
  read:
    type: file_table
    r: {urls: [a.csv], columns: {id: int}}
    w: {name: a, approval: {message: otherwise}}
`}.read})
	require.False(t, diags.HasErrors(), diags.Render())
	require.Equal(t, with.Node("read").Fingerprint, s.Node("read").Fingerprint)
}

// Steps of a run come behind what they need, gates among them, and without
// gates nodes come as they would by themselves.
func TestSteps(t *testing.T) {
	t.Parallel()
	s := loadAnswered(t, nil)
	names := func(steps []Step) (out []string) {
		for _, step := range steps {
			out = append(out, step.Name)
		}
		return out
	}
	steps := s.Steps(s.Topological())
	require.Equal(t, []string{"read", "approval:a", "b", "c", "d"}, names(steps))
	require.Equal(t, []string{"read"}, steps[1].Inputs)
	require.Equal(t, []string{"b", "approval:a"}, steps[4].Inputs, "it uses an answer")
	require.Equal(t, []string{"approval:a", "b"}, names(s.Steps([]*Node{s.Node("b")})),
		"it asks where a run begins behind it, too")
	require.Equal(t, []string{"read", "approval:a"}, names(s.Steps([]*Node{s.Node("read")})))
	left := Unattended(steps)
	require.Equal(t, []string{"read", "b", "c", "d"}, names(left))
	require.Equal(t, []string{"b"}, left[3].Inputs)
}
