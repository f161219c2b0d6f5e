package script

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v4"
	"pgregory.net/rapid"
)

// Wherever a text is written, each of its visible characters is found again
// in the source.
func TestLayoutFindsCharacters(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.RuneFrom([]rune("ab.r+é😀'\"\\ \n\t#:{|"))).Draw(t, "text")
		src, v := written(t, text)
		require.Equal(t, text, v.text)
		offsets, ok := v.layout()
		require.True(t, ok, "%q in %q", text, src.text)
		require.Len(t, offsets, len(text)+1)
		for i, r := range text {
			if strings.ContainsRune("ab.r+é😀", r) && !strings.HasPrefix(src.text[offsets[i]:], `\`) {
				require.True(t, strings.HasPrefix(src.text[offsets[i]:], string(r)), "%q at %d of %q", r, i, src.text)
			}
		}
	})
}

// written puts text into a document in one of the ways that there are.
func written(t *rapid.T, text string) (*source, *value) {
	var doc string
	read := readYAML
	style := rapid.SampledFrom([]yaml.Style{0, yaml.SingleQuotedStyle, yaml.DoubleQuotedStyle, yaml.LiteralStyle, yaml.FoldedStyle, yaml.FlowStyle}).Draw(t, "style")
	if style == yaml.FlowStyle { // stands for JSON
		out, err := json.Marshal(map[string]string{"k": text})
		require.NoError(t, err)
		doc, read = string(out), readJSON
	} else {
		out, err := yaml.Dump(&yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{
			{Kind: yaml.ScalarNode, Value: "k"}, {Kind: yaml.ScalarNode, Tag: "!!str", Value: text, Style: style}}}, yaml.WithLineWidth(20))
		require.NoError(t, err)
		doc = string(out)
	}
	src := newSource("x", doc)
	v, fail := read(src)
	require.Nil(t, fail, "%s", doc)
	return src, v.entries[0].val
}

func TestSourcePositions(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.RuneFrom([]rune("aé😀\n"))).Draw(t, "text")
		if rapid.Bool().Draw(t, "mark") {
			text = byteOrderMark + text
		}
		src := newSource("x", text)
		for range 5 {
			at := rapid.IntRange(0, len(text)).Draw(t, "at")
			for at < len(text) && !utf8.RuneStart(text[at]) {
				at++
			}
			if strings.HasPrefix(text, byteOrderMark) {
				at = max(at, len(byteOrderMark))
			}
			p := src.pos(at)
			require.Equal(t, at, src.offset(p.Line, p.Col), fmt.Sprintf("%q %v", text, p))
		}
	})
}

func TestOriginOfReplacedText(t *testing.T) {
	t.Parallel()
	l := &loader{src: Sources{}, script: &Script{texts: map[string]string{}}}
	src := newSource("x", `ab "{n|number}" cd {s} ef`)
	issues := l.substitute(src, &parameters{values: map[string]paramValue{"n": {kind: "number", text: "12"}, "s": {kind: "string", text: "long text"}}, given: true})
	require.Empty(t, issues)
	require.Equal(t, `ab 12 cd long text ef`, src.text)
	at := func(word string) (int, int) {
		i := strings.Index(src.text, word)
		return src.origin(i, false), src.origin(i+len(word), true)
	}
	for word, want := range map[string]string{"ab": "ab", "12": `"{n|number}"`, "cd": "cd", "text": "{s}", "ef": "ef"} {
		from, to := at(word)
		require.Equal(t, want, src.original[from:to], word)
	}
	require.Equal(t, []string{"n", "s"}, src.params(0, len(src.text)))
	require.Empty(t, src.params(0, 2))
}

// readJSON accepts what encoding/json accepts, and nothing else.
func FuzzReadJSON(f *testing.F) {
	for _, s := range []string{`{"a":[1,-2.5e3,true,null,"x\u00e9\n"]}`, `[`, `{"a":1,}`, `"\ud83d\ude00"`, `01`, `1.`, "\"\x01\"", `{"a" 1}`, ` [ ] x`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		text = strings.ToValidUTF8(text, "?")
		v, fail := readJSON(newSource("x.json", text))
		if strings.HasPrefix(text, byteOrderMark) || strings.Count(text, "[")+strings.Count(text, "{") > MaxDepthLevels {
			return
		}
		require.Equal(t, json.Valid([]byte(text)), fail == nil, "%q %+v", text, fail)
		if fail == nil && v.kind == stringKind {
			var want string
			require.NoError(t, json.Unmarshal([]byte(text), &want))
			require.Equal(t, want, v.text)
		}
	})
}
