package secret

import (
	"regexp"
	"strings"

	"thalweg/internal/base/address"
)

// value is one of YAML or JSON in a place where no map or list begins.
const value = `("(?:[^"\\\n]|\\.)*"|'[^'\n]*'|[^\s"'{\[,}\]#][^\n,}\]#]*)`

// secretName is the name of what may be a secret.
const secretName = `([\w.-]*(?:` + address.SecretWords + `)[\w.-]*)`

// keyed finds NAME: VALUE and "NAME": "VALUE" of YAML and JSON, and NAME = "VALUE"
// of Python, where the name may be one of a secret. Behind the colon there may be an
// anchor, a tag, or the map in which parameters have their values.
var keyed = newExpression(secretName+`["']?\s*(?:`+
	`:\s*(?:[&!][\w!-]+\s+)*(?:\{\s*["']?value["']?\s*:\s*)?(?:[|>][+-]?[0-9]?\s*\n\s*)?`+value+
	`|=\s*("(?:[^"\\\n]|\\.)*"|'[^'\n]*'))`,
	start{signs: ":=", part: inName, wanted: address.HasSecretWord})

// declared finds the value that a script gives an environment value which it calls secret.
var declared = newExpression(`\bsecret["']?\s*:\s*["']?(?:t\w*|y\w*|on|1)["']?\s*[,\n]\s*["']?default["']?\s*:\s*`+
	value+
	`|\bdefault["']?\s*:\s*`+value+`\s*[,\n]\s*["']?secret["']?\s*:\s*["']?(?:t|y|on\b|1)`,
	start{signs: ":", part: inWord, wanted: oneOf("secret|default"), whole: true})

// schemes are the words behind which a header has its secret.
const schemes = "bearer|basic|digest|token|apikey|sharedkey"

// authorization finds what a header of that name has, wherever it stands.
var authorization = newExpression(`\b(?:`+schemes+`)[ \t]+([A-Za-z0-9._~+/:=-]+)`,
	start{signs: " \t", part: inWord, wanted: oneOf(schemes), whole: true})

// assigned finds NAME=VALUE as shells and connection strings have it. In programs
// that may be anything: only a value that looks like a secret counts.
var assigned = newExpression(secretName+`=([^\s"'&;,<>(){}\[\]]+)`,
	start{signs: "=", part: inName, wanted: address.HasSecretWord})

// harmless are values that say what a column or a setting is.
var harmless = regexp.MustCompile(
	`(?i)^((int|float|string|bool|decimal2|decimal|date|datetime|timestamptz)(\([0-9, ]*\)?)?\??|(list|struct)\(.*` +
		`|true|false|null|none|yes|no|\d{1,3}|(r|l|p|w)\.\w+|.*\{[\w.|]+\}.*|x+)( .*)?$`)

// hidden reports whether a value behind such a name is a secret in a text.
func hidden(name address.Name, value string) bool {
	switch name {
	case address.Surely:
		return !harmless.MatchString(value)
	case address.Likely:
		return !harmless.MatchString(value) && address.LooksRandom(value)
	case address.Perhaps:
		return !harmless.MatchString(value) && address.LooksLikeNothingElse(value)
	}
	return false
}

// keyedValues lists the values that their keys call secret.
func keyedValues(text string) (values []string) {
	note := func(value string) {
		values = append(values, value)
		if plain := strings.NewReplacer(`\"`, `"`, `\\`, `\`, `\/`, `/`, `''`, `'`).Replace(value); plain != value {
			values = append(values, plain)
		}
	}
	for _, m := range keyed.all(text) {
		if value := unquoted(m[2] + m[3]); hidden(address.NameOf(m[1]), value) {
			note(value)
		}
	}
	for _, m := range assigned.all(text) {
		if hidden(min(address.NameOf(m[1]), address.Likely), m[2]) {
			note(m[2])
		}
	}
	for _, m := range declared.all(text) {
		note(unquoted(m[1] + m[2]))
	}
	for _, m := range authorization.all(text) {
		if address.LooksRandom(m[1]) {
			note(m[1])
		}
	}
	return values
}

func unquoted(value string) string {
	value = strings.TrimSpace(value)
	if q := value[:min(1, len(value))]; (q == `"` || q == `'`) && len(value) > 1 {
		value = value[1 : len(value)-1]
	}
	return value
}
