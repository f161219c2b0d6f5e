package document

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
		require.Equal(t, text, v.Text)
		offsets, ok := v.layout()
		require.True(t, ok, "%q in %q", text, src.Text)
		require.Len(t, offsets, len(text)+1)
		for i, r := range text {
			if strings.ContainsRune("ab.r+é😀", r) && !strings.HasPrefix(src.Text[offsets[i]:], `\`) {
				require.True(t, strings.HasPrefix(src.Text[offsets[i]:], string(r)), "%q at %d of %q", r, i, src.Text)
			}
		}
	})
}

// written puts text into a document in one of the ways that there are.
func written(t *rapid.T, text string) (*Source, *Value) {
	var doc string
	read := ReadYAML
	style := rapid.SampledFrom([]yaml.Style{0, yaml.SingleQuotedStyle, yaml.DoubleQuotedStyle, yaml.LiteralStyle,
		yaml.FoldedStyle, yaml.FlowStyle}).Draw(t, "style")
	if style == yaml.FlowStyle { // stands for JSON
		out, err := json.Marshal(map[string]string{"k": text})
		require.NoError(t, err)
		doc, read = string(out), ReadJSON
	} else {
		out, err := yaml.Dump(&yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{
			{Kind: yaml.ScalarNode, Value: "k"}, {Kind: yaml.ScalarNode, Tag: "!!str", Value: text, Style: style}}},
			yaml.WithLineWidth(20))
		require.NoError(t, err)
		doc = string(out)
	}
	src := NewSource("x", doc)
	v, fail := read(src)
	require.Nil(t, fail, "%s", doc)
	return src, v.Entries[0].Value
}

func TestSourcePositions(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.RuneFrom([]rune("aé😀\n"))).Draw(t, "text")
		if rapid.Bool().Draw(t, "mark") {
			text = ByteOrderMark + text
		}
		src := NewSource("x", text)
		for range 5 {
			at := rapid.IntRange(0, len(text)).Draw(t, "at")
			for at < len(text) && !utf8.RuneStart(text[at]) {
				at++
			}
			if strings.HasPrefix(text, ByteOrderMark) {
				at = max(at, len(ByteOrderMark))
			}
			p := src.Pos(at)
			require.Equal(t, at, src.offset(p.Line, p.Col), fmt.Sprintf("%q %v", text, p))
		}
	})
}

// readJSON accepts what encoding/json accepts, and nothing else.
func FuzzReadJSON(f *testing.F) {
	for _, s := range []string{`{"a":[1,-2.5e3,true,null,"x\u00e9\n"]}`, `[`, `{"a":1,}`, `"\ud83d\ude00"`, `01`, `1.`,
		"\"\x01\"", `{"a" 1}`, ` [ ] x`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		text = strings.ToValidUTF8(text, "?")
		v, fail := ReadJSON(NewSource("x.json", text))
		if strings.HasPrefix(text, ByteOrderMark) || strings.Count(text, "[")+
			strings.Count(text, "{") > MaxDepthLevels {
			return
		}
		require.Equal(t, json.Valid([]byte(text)), fail == nil, "%q %+v", text, fail)
		if fail == nil && v.Kind == String {
			var want string
			require.NoError(t, json.Unmarshal([]byte(text), &want))
			require.Equal(t, want, v.Text)
		}
	})
}
