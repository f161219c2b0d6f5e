package secret

import (
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/address"
)

func expressions() map[string]expression {
	return map[string]expression{"keyed": keyed, "assigned": assigned, "declared": declared,
		"authorization": authorization}
}

// same compares what is found where an expression can begin with what it
// finds when it is tried everywhere.
func same(t *testing.T, name string, text string) (matches int) {
	t.Helper()
	e := expressions()[name]
	want := e.anywhere.FindAllStringSubmatch(text, -1)
	require.Equal(t, want, e.all(text), "%s in %q", name, text)
	return len(want)
}

// pieces of texts in which the expressions match, nearly match, and meet.
var pieces = []string{
	"password", "PassWort", "pw", "dsn", "secret", "token", "key", "Credentials", "creds", "auth", "jwt", "sig", "sas",
	"session", "default",
	"bearer", "Basic", "DIGEST", "apikey", "sharedkey", "passwd", "passphrase", "pwd",
	"name", "x", "_", ".", "-", "9", "é", "\u017f", "\u212a", "\u0130", "\xe2",
	":", ":", ":", "=", "=", " ", " ", " ", "\n", "\n", "\t", "\r\n", "\v", "\f", "\u00a0",
	"\"", "\"", "'", "'", "\\", ",", ";", "&", "&a ", "!t ",
	"{", "}", "{value: ", "[", "]", "#", "|", "|-\n", ">", "(", ")", "true", "yes", "on", "1", "hunter2",
	"Hunter2Zq9Xw", "a/b+c~0",
	": ", ": true", ", ", "secret: true\n  default: ", "default: x, secret: t",
	"default: hunter2\n  secret: yes", "bearer ", "password=", "token: ",
}

func TestExpressionsFindTheSameEverywhere(t *testing.T) {
	t.Parallel()
	const texts, piecesMost = 5_000, 24
	for name := range expressions() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			random, matches := rand.New(rand.NewPCG(1, 2)), 0
			for range texts {
				var text strings.Builder
				for range 1 + random.IntN(piecesMost) {
					text.WriteString(pieces[random.IntN(len(pieces))])
				}
				matches += same(t, name, text.String())
			}
			require.Greater(t, matches, texts/100, "the texts match too seldom to tell anything")
		})
	}
}

// TestExpressionsFindTheSameInScripts takes all texts that the project has: what
// people write, with damage here and there.
func TestExpressionsFindTheSameInScripts(t *testing.T) {
	t.Parallel()
	const most, textBytesMax = 100, 6 << 10
	var texts []string
	for _, root := range []string{"../../../testdata", "../../../examples", "../../../cmd/thalweg/testdata"} {
		require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !regexp.MustCompile(`\.(yaml|json|py|txtar)$`).MatchString(path) {
				return err
			}
			raw, err := os.ReadFile(path)
			texts = append(texts, string(raw))
			return err
		}))
	}
	require.Greater(t, len(texts), most)
	random, matches := rand.New(rand.NewPCG(3, 4)), map[string]int{}
	random.Shuffle(len(texts), func(i, j int) { texts[i], texts[j] = texts[j], texts[i] })
	names := slices.Sorted(maps.Keys(expressions())) // in one order, so that each run damages alike
	for _, text := range append(texts[:most], "DB_PASSWORD=hunter2hunter2\npassword: hunter2hunter2\n") {
		text = text[:min(len(text), textBytesMax)]
		at := random.IntN(len(text) + 1)
		for _, name := range names {
			matches[name] += same(t, name, text)
			matches[name] += same(t, name, text[:at]+pieces[random.IntN(len(pieces))]+text[at:])
		}
	}
	require.Positive(t, matches["keyed"])
	require.Positive(t, matches["assigned"])
}

func FuzzExpressions(f *testing.F) {
	for _, piece := range pieces {
		f.Add(piece + piece)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for name := range expressions() {
			same(t, name, text)
		}
	})
}

// TestLettersThatFoldIntoASCII holds foldsIntoASCII against all letters.
func TestLettersThatFoldIntoASCII(t *testing.T) {
	t.Parallel()
	for letter := rune(unicode.MaxASCII + 1); letter <= unicode.MaxRune; letter++ {
		for other := unicode.SimpleFold(letter); other != letter; other = unicode.SimpleFold(other) {
			if other <= unicode.MaxASCII {
				require.True(t, foldsIntoASCII(string(letter)), "%q", letter)
			}
		}
	}
}

// TestSecretWordsAreWords holds what HasSecretWord needs of them.
func TestSecretWordsAreWords(t *testing.T) {
	t.Parallel()
	require.Regexp(t, `^[a-z]+(\|[a-z]+)*$`, address.SecretWords)
	whole := regexp.MustCompile(`(?i)` + address.SecretWords)
	for _, word := range append(strings.Split(address.SecretWords, "|"), "x", "", "wort", "ke") {
		for _, form := range []string{word, strings.ToUpper(word), "x" + word + "_2"} {
			require.Equal(t, whole.MatchString(form), address.HasSecretWord(form), form)
		}
	}
}

// BenchmarkLearn reads a script of 200 nodes, of 100 KB.
func BenchmarkLearn(b *testing.B) {
	var script strings.Builder
	for i := range 200 {
		fmt.Fprintf(&script, `  n%d:
    type: table_lookup_table
    r: {table: t%d}
    l: {index_name: idx_t0, join_on: r.id, join_type: left, group: false}
    w:
      name: t%[1]d
      having: w.price > 0 && w.id != ""
      fields:
        id:    {expression: r.id, type: string}
        total: {expression: "decimal2.iif(r.price > 10, r.price * 1 + r.price, r.price)", type: decimal2}
        label: {expression: "strings.ReplaceAll(fmt.Sprintf(\"%%s %%s\", r.id, string(r.price)), \" \", \"_\")", type: string}
`, i+1, i)
	}
	text := script.String()
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		New().Learn(text)
	}
}
