package script

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"thalweg/internal/fault"
	"thalweg/internal/secret"
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

// markEnvironment is what stands for {env.name} while the text is parsed.
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
		declared[e.name] = l.declareEnvironment(e)
	}
	if e := root.keys["environment"]; e != nil {
		l.keepSecrets(root, declared)
	}
	if len(l.script.secrets) > 0 && l.src.Secrets != nil {
		l.src.Secrets(l.script)
	}
	names := sortedKeys(declared)
	seen := map[*value]bool{}
	l.useEnvironment(root.v, "", declared, names, seen)
}

// declareEnvironment reads {NAME: {secret: true}} and the like.
func (l *loader) declareEnvironment(e *entry) envValue {
	path := join("environment", e.name)
	o := l.object(e.val, path, environmentShape)
	var out envValue
	if o == nil {
		return out
	}
	o.at = e.key
	if !isWord(e.name) || len(e.name) > MaxEnvironmentNameChars {
		l.errorAt(e.key, path, "%s is not the name of an environment value", quote(e.name)).Hint = "use letters, digits and underscores"
		return out
	}
	out.secret = o.boolean("secret")
	def := o.text("default")
	if def != nil && out.secret {
		l.src.Known.Add(def.text, secret.Mask)
		l.errorAt(def, o.keyPath("default"), "a secret cannot have its value in the script")
		return out
	}
	text, ok := "", false
	if l.src.Environment != nil {
		text, ok = l.src.Environment(e.name)
	}
	switch {
	case ok && (len(text) > MaxEnvironmentValueBytes || !utf8.ValidString(text) || strings.Contains(text, "\x00")):
		l.errorAt(e.key, path, "the environment variable %s is not UTF-8 text of at most %d KiB", e.name, MaxEnvironmentValueBytes>>10)
		return out
	case ok:
		out.text, out.known = text, true
	case def != nil:
		out.text, out.known = def.text, true
	default:
		at := l.errorAt(e.key, path, "the environment variable %s is not set", e.name)
		if at.Hint = "set it, or give it a default here"; out.secret {
			at.Hint = "set it where the command runs"
		}
		return out
	}
	if out.secret && out.text != "" {
		l.script.secrets[e.name] = out.text
		l.src.Known.Add(out.text, envReference(e.name))
	}
	return out
}

// keepSecrets leaves only the declarations of secrets in the document: the
// other values become part of it.
func (l *loader) keepSecrets(root *object, declared map[string]envValue) {
	e := root.keys["environment"]
	if e.val.kind != mapKind {
		return
	}
	kept := own(e)
	var entries []*entry
	for _, x := range kept.entries {
		if declared[x.name].secret {
			entries = append(entries, x)
		}
	}
	if kept.entries = entries; len(entries) == 0 {
		root.v = &value{src: root.v.src, kind: mapKind, off: root.v.off, end: root.v.end, entries: append([]*entry(nil), root.v.entries...), weight: root.v.weight}
		root.drop("environment")
	}
}

// useEnvironment replaces the references in v and below.
func (l *loader) useEnvironment(v *value, path string, declared map[string]envValue, names []string, seen map[*value]bool) {
	if seen[v] {
		return
	}
	seen[v] = true
	for _, e := range v.entries {
		if hasEnvironment(e.name) {
			l.errorAt(e.key, path, "a name cannot be an environment value")
			e.name = envMark.ReplaceAllString(e.name, "{env.$1}")
		}
		l.useEnvironment(e.val, join(path, e.name), declared, names, seen)
	}
	for _, item := range v.items {
		l.useEnvironment(item, path, declared, names, seen)
	}
	if !v.scalar() || !hasEnvironment(v.text) {
		return
	}
	_, v.end = v.span() // the text changes: its end can be found only now
	marks := envMark.FindAllStringSubmatchIndex(v.text, -1)
	problems, missing := len(l.diags), false
	var b strings.Builder
	copied := 0
	for _, m := range marks {
		name, typ := v.text[m[2]:m[3]], ""
		if m[4] >= 0 {
			typ = v.text[m[4]:m[5]]
		}
		b.WriteString(v.text[copied:m[0]])
		missing = missing || !declared[name].known
		alone := m[0] == 0 && m[1] == len(v.text)
		b.WriteString(l.envText(v, path, name, typ, alone, declared, names))
		copied = m[1]
	}
	v.text = b.String() + v.text[copied:]
	if missing || len(l.diags) > problems { // what else is wrong with the value follows from that
		start, end := v.span()
		v.src.pending = append(v.src.pending, textRef{start, end})
	}
}

// envText is what a reference is replaced by. typ number or bool makes v one.
func (l *loader) envText(v *value, path, name, typ string, alone bool, declared map[string]envValue, names []string) string {
	env, ok := declared[name]
	switch {
	case !ok:
		d := l.errorAt(v, path, "the environment value %s is not declared", quote(name))
		if d.Hint = didYouMean(name, names); d.Hint == "" {
			d.Hint = "declare it: environment: {" + name + ": {}}"
		}
	case !env.known:
		v.secret = env.secret
	case env.secret:
		v.secret = true
	case typ == "" || typ == "string":
		return env.text
	default:
		return l.typedEnv(v, path, name, typ, alone, env.text)
	}
	return envReference(name)
}

func (l *loader) typedEnv(v *value, path, name, typ string, alone bool, text string) string {
	switch {
	case typ != "number" && typ != "bool":
		l.errorAt(v, path, "environment value %s: there is no type %s", quote(name), quote(typ)).Hint = didYouMean(typ, []string{"string", "number", "bool"})
	case !alone:
		l.errorAt(v, path, "a %s environment value must stand alone", typ).Hint = `write "{env.` + name + "|" + typ + `}"`
	case typ == "number":
		number, _, ok := numberText(strings.TrimSpace(text))
		if !ok {
			l.errorAt(v, path, "the environment variable %s is not a number", name)
			return text
		}
		v.kind = numberKind
		return number
	default:
		word := strings.ToLower(strings.TrimSpace(text))
		if word != "true" && word != "false" {
			l.errorAt(v, path, "the environment variable %s is not true or false", name)
			return text
		}
		v.kind = boolKind
		return word
	}
	return text
}

// misplacedSecrets reports secrets outside of addresses of remote files.
func (l *loader) misplacedSecrets(v *value, path string, seen map[*value]bool) {
	if len(l.script.secrets) == 0 || seen[v] {
		return
	}
	seen[v] = true
	if v.secret && !l.secretPlaces[v] {
		l.errorAt(v, path, "a secret can be used in http:// and https:// addresses only").Hint = "it would be stored and shown anywhere else"
	}
	for _, e := range v.entries {
		l.misplacedSecrets(e.val, join(path, e.name), seen)
	}
	for _, item := range v.items {
		l.misplacedSecrets(item, path, seen)
	}
}

// Reveal puts the values of secrets where text has references to them. What it
// returns may be used to open a file, and must not be shown or stored.
func (s *Script) Reveal(text string) string {
	if !strings.Contains(text, "{env.") {
		return text
	}
	var pairs []string
	for name, value := range s.secrets {
		pairs = append(pairs, envReference(name), value)
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// Hide puts references where text has the values of secrets, as errors of
// whoever was given a revealed address may. Long values come first: of one
// that has another in it nothing stays.
func (s *Script) Hide(text string) string {
	names := sortedKeys(s.secrets)
	slices.SortStableFunc(names, func(a, b string) int { return len(s.secrets[b]) - len(s.secrets[a]) })
	var pairs []string
	for _, name := range names {
		if value := s.secrets[name]; len(value) >= minHiddenBytes {
			pairs = append(pairs, value, envReference(name))
		}
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// hideError is err, or one without the values of secrets if it has them.
func (s *Script) hideError(err error) error {
	if err == nil || s.Hide(err.Error()) == err.Error() {
		return err
	}
	f := *fault.Of(err)
	f.Message, f.Hint, f.Detail, f.Err = s.Hide(err.Error()), s.Hide(f.Hint), s.Hide(f.Detail), nil
	return &f
}

// minHiddenBytes is the shortest value that Hide looks for: shorter ones occur
// in any text.
const minHiddenBytes = 3
