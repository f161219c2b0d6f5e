package script

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"thalweg/internal/base/address"
	"thalweg/internal/base/document"
	"thalweg/internal/base/fault"
	"thalweg/internal/base/secret"
)

// A reference {env.NAME} is put into the parsed text as a mark, so that it may
// stand where YAML would read a brace, and so that its value can never change
// the structure of the document. The marks are characters of Unicode's
// private use area.
const (
	envOpen  = "\ue0e0env."
	envClose = "\ue0e1"
)

var envMark = regexp.MustCompile(envOpen + `([A-Za-z0-9_]+)(?:\|([A-Za-z]+))?` + envClose)

func hasEnvironment(text string) bool { return strings.Contains(text, envOpen) }

// markEnvironment returns the text that stands for {env.name} while the document is parsed.
func markEnvironment(name, typ string) string {
	if typ != "" {
		name += "|" + typ
	}
	return envOpen + name + envClose
}

// envReference is {env.name} as it is shown, and as it stays for secrets.
func envReference(name string) string { return "{env." + name + "}" }

// envValue is a declared value.
type envValue struct {
	text   string
	known  bool // else it is missing, which was reported
	secret bool
}

// environment reads the declarations and puts the values where they are
// referred to. A secret's reference stays in the text.
func (l *loader) environment(root *object) {
	declared := map[string]envValue{}
	for _, e := range root.members("environment") {
		declared[e.Name] = l.declareEnvironment(e)
	}
	if e := root.keys["environment"]; e != nil {
		l.keepSecrets(root, declared)
	}
	l.script.Given = digestOf(declared)
	if len(l.script.secrets) > 0 && l.src.Secrets != nil {
		l.src.Secrets(l.script)
	}
	names := slices.Sorted(maps.Keys(declared))
	seen := map[*document.Value]bool{}
	l.useEnvironment(root.v, "", declared, names, seen)
}

// digestOf tells the values that are no secrets from others; "" if there are none.
func digestOf(declared map[string]envValue) string {
	h, some := sha256.New(), false
	for _, name := range slices.Sorted(maps.Keys(declared)) {
		if v := declared[name]; v.known && !v.secret {
			fmt.Fprintf(h, "%q=%q\n", name, v.text)
			some = true
		}
	}
	if !some {
		return ""
	}
	return hex.EncodeToString(h.Sum(nil))
}

// declareEnvironment reads {NAME: {secret: true}} and the like.
func (l *loader) declareEnvironment(e *document.Entry) envValue {
	path := join("environment", e.Name)
	o := l.object(e.Value, path, environmentShape)
	var out envValue
	if o == nil {
		return out
	}
	o.at = e.Key
	if !isWord(e.Name) || len(e.Name) > MaxEnvironmentNameChars {
		l.ErrorAt(e.Key, path, "%s is not the name of an environment value", document.Quote(e.Name)).Hint =
			"use letters, digits and underscores"
		return out
	}
	out.secret = o.boolean("secret")
	def := o.text("default")
	if def != nil && out.secret {
		l.src.Known.Add(def.Text, secret.Mask)
		l.ErrorAt(def, o.keyPath("default"), "a secret cannot have its value in the script")
		return out
	}
	text, ok := "", false
	if l.src.Environment != nil {
		text, ok = l.src.Environment(e.Name)
	}
	switch {
	case ok && (len(text) > MaxEnvironmentValueBytes || !utf8.ValidString(text) || strings.Contains(text, "\x00")):
		l.ErrorAt(e.Key, path, "the environment variable %s is not UTF-8 text of at most %d KiB", e.Name,
			MaxEnvironmentValueBytes>>10)
		return out
	case ok:
		out.text, out.known = text, true
	case def != nil:
		out.text, out.known = def.Text, true
	default:
		at := l.ErrorAt(e.Key, path, "the environment variable %s is not set", e.Name)
		if at.Hint = "set it, or give it a default here"; out.secret {
			at.Hint = "set it where the command runs"
		}
		return out
	}
	if out.secret && out.text != "" {
		l.script.secrets[e.Name] = out.text
		l.script.hidden.Add(out.text, envReference(e.Name))
		l.src.Known.Add(out.text, envReference(e.Name))
	}
	return out
}

// keepSecrets leaves only the declarations of secrets in the document: the
// other values become part of it.
func (l *loader) keepSecrets(root *object, declared map[string]envValue) {
	e := root.keys["environment"]
	if e.Value.Kind != document.Map {
		return
	}
	kept := own(e)
	var entries []*document.Entry
	for _, x := range kept.Entries {
		if declared[x.Name].secret {
			entries = append(entries, x)
		}
	}
	if kept.Entries = entries; len(entries) == 0 {
		root.v = &document.Value{Src: root.v.Src, Kind: document.Map, Off: root.v.Off, End: root.v.End,
			Entries: append([]*document.Entry(nil), root.v.Entries...), Weight: root.v.Weight}
		root.drop("environment")
	}
}

// useEnvironment replaces the references in v and below.
func (l *loader) useEnvironment(v *document.Value, path string, declared map[string]envValue, names []string,
	seen map[*document.Value]bool) {
	if seen[v] {
		return
	}
	seen[v] = true
	for _, e := range v.Entries {
		if hasEnvironment(e.Name) {
			l.ErrorAt(e.Key, path, "a name cannot be an environment value")
			e.Name = envMark.ReplaceAllString(e.Name, "{env.$1}")
		}
		l.useEnvironment(e.Value, join(path, e.Name), declared, names, seen)
	}
	for _, item := range v.Items {
		l.useEnvironment(item, path, declared, names, seen)
	}
	if !v.Scalar() || !hasEnvironment(v.Text) {
		return
	}
	_, v.End = v.Span() // the text changes: its end can be found only now
	marks := envMark.FindAllStringSubmatchIndex(v.Text, -1)
	problems, missing := l.Errors(), false
	var b strings.Builder
	copied := 0
	for _, m := range marks {
		name, typ := v.Text[m[2]:m[3]], ""
		if m[4] >= 0 {
			typ = v.Text[m[4]:m[5]]
		}
		b.WriteString(v.Text[copied:m[0]])
		missing = missing || !declared[name].known
		alone := m[0] == 0 && m[1] == len(v.Text)
		b.WriteString(l.envText(v, path, name, typ, alone, declared, names))
		copied = m[1]
	}
	v.Text = b.String() + v.Text[copied:]
	if missing || l.Errors() > problems { // what else is wrong with the value follows from that
		start, end := v.Span()
		v.Src.Pending = append(v.Src.Pending, document.Span{Start: start, End: end})
	}
}

// envText returns the text that replaces a reference. With typ number or bool it makes v a value of that
// type.
func (l *loader) envText(v *document.Value, path, name, typ string, alone bool, declared map[string]envValue,
	names []string) string {
	env, ok := declared[name]
	switch {
	case !ok:
		d := l.ErrorAt(v, path, "the environment value %s is not declared", document.Quote(name))
		if d.Hint = document.DidYouMean(name, names); d.Hint == "" {
			d.Hint = "declare it: environment: {" + name + ": {}}"
		}
	case !env.known:
		v.Secret = env.secret
	case env.secret:
		v.Secret = true
	case typ == "" || typ == "string":
		return env.text
	default:
		return l.typedEnv(v, path, name, typ, alone, env.text)
	}
	return envReference(name)
}

func (l *loader) typedEnv(v *document.Value, path, name, typ string, alone bool, text string) string {
	switch {
	case typ != "number" && typ != "bool":
		l.ErrorAt(v, path, "environment value %s: there is no type %s", document.Quote(name),
			document.Quote(typ)).Hint = document.DidYouMean(typ, []string{"string", "number", "bool"})
	case !alone:
		l.ErrorAt(v, path, "a %s environment value must stand alone", typ).Hint = `write "{env.` + name +
			"|" + typ + `}"`
	case typ == "number":
		number, _, ok := numberText(strings.TrimSpace(text))
		if !ok {
			l.ErrorAt(v, path, "the environment variable %s is not a number", name)
			return text
		}
		v.Kind = document.Number
		return number
	default:
		word := strings.ToLower(strings.TrimSpace(text))
		if word != "true" && word != "false" {
			l.ErrorAt(v, path, "the environment variable %s is not true or false", name)
			return text
		}
		v.Kind = document.Bool
		return word
	}
	return text
}

// misplacedSecrets reports secrets outside of addresses of remote files.
func (l *loader) misplacedSecrets(v *document.Value, path string, seen map[*document.Value]bool) {
	if len(l.script.secrets) == 0 || seen[v] {
		return
	}
	seen[v] = true
	if v.Secret && !l.secretPlaces[v] {
		l.ErrorAt(v, path, "a secret can be used in addresses of http://, https:// and databases only").Hint =
			"it would be stored and shown anywhere else"
	}
	for _, e := range v.Entries {
		l.misplacedSecrets(e.Value, join(path, e.Name), seen)
	}
	for _, item := range v.Items {
		l.misplacedSecrets(item, path, seen)
	}
}

// Reveal puts the values of secrets where an address has references to them: see address.Fill. What it
// returns may be used to open a file, and must not be shown or stored.
func (s *Script) Reveal(text string) string {
	if !strings.Contains(text, "{env.") {
		return text
	}
	return address.Fill(text, func(name string) (string, bool) {
		value, ok := s.secrets[name]
		return value, ok
	})
}

// Hide puts references where text has the values of secrets, in any form, as errors of
// whoever was given a revealed address may.
func (s *Script) Hide(text string) string { return s.hidden.Hide(text) }

// hideError is err, or one without the values of secrets if it has them.
func (s *Script) hideError(err error) error {
	if err == nil || s.Hide(err.Error()) == err.Error() {
		return err
	}
	f := *fault.Of(err)
	f.Message, f.Hint, f.Detail, f.Err = s.Hide(err.Error()), s.Hide(f.Hint), s.Hide(f.Detail), nil
	return &f
}
