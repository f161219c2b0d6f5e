package secret

import (
	"regexp"
	"strings"
)

// keyed finds NAME: VALUE and "NAME": "VALUE" of YAML and JSON, and NAME = "VALUE"
// of Python, where the name is one of a secret. Behind the colon there may be an
// anchor, a tag, or the map in which parameters have their values.
var keyed = regexp.MustCompile(`(?i)([\w.-]*(?:passwor[dt]|passwd|passphrase|pwd|secret|token|api_?key|apikey|access_?key|private_?key|credential)[\w.-]*)["']?\s*` +
	`(?::\s*(?:[&!][\w!-]+\s+)*(?:\{\s*["']?value["']?\s*:\s*)?(?:[|>][+-]?[0-9]?\s*\n\s*)?("(?:[^"\\\n]|\\.)*"|'[^'\n]*'|[^\s"'{\[,}\]#][^\n,}\]#]*)|=\s*("(?:[^"\\\n]|\\.)*"|'[^'\n]*'))`)

// strong are the words behind which anything is a secret. A token may be a column's name.
var strong = regexp.MustCompile(`(?i)passwor[dt]|passwd|passphrase|pwd|secret`)

// harmless are values that say what a column or a setting is.
var harmless = regexp.MustCompile(`(?i)^(int|float|string|bool|decimal2|datetime|true|false|null|none|yes|no|\d{1,3}|(r|l|p|w)\.\w+|.*\{[\w.|]+\}.*|x+)( .*)?$`)

// minTokenBytes of a value behind a word that may have another meaning.
const minTokenBytes = 8

func isSecretKey(name string) bool {
	return keyed.MatchString(name + `: "v"`)
}

// keyedValues lists the values that their keys call secret.
func keyedValues(text string) (values []string) {
	for _, m := range keyed.FindAllStringSubmatch(text, -1) {
		value := strings.TrimSpace(m[2] + m[3])
		if q := value[:min(1, len(value))]; (q == `"` || q == `'`) && len(value) > 1 {
			value = value[1 : len(value)-1]
		}
		if harmless.MatchString(value) || !strong.MatchString(m[1]) && !looksRandom(value) {
			continue
		}
		values = append(values, value)
		if plain := strings.NewReplacer(`\"`, `"`, `\\`, `\`, `\/`, `/`, `''`, `'`).Replace(value); plain != value {
			values = append(values, plain)
		}
	}
	return values
}

// looksRandom tells a key from a name.
func looksRandom(value string) bool {
	return len(value) >= minTokenBytes && !strings.ContainsAny(value, " \t()") && strings.ContainsAny(value, "0123456789")
}
