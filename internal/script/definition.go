package script

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"sort"
	"strconv"
	"strings"

	"thalweg/internal/address"
)

// fingerprintVersion changes whenever the same script would get another
// fingerprint, or other rows: runs of earlier versions then cannot be resumed by mistake.
const fingerprintVersion = "thalweg script 2"

// Definition is the script as loaded, as JSON: parameters applied, aliases
// followed, known keys in their canonical spelling, absent and overwritten
// keys left out, order of the document kept. Passwords and signatures in
// URLs are replaced by xxxxx, so it can be stored and shown. The caller may
// not change it.
func (s *Script) Definition() []byte { return s.definition }

// Text gives the text of a file that was read during Load (script,
// parameters, Python, tag criteria), by the name that positions have.
func (s *Script) Text(name string) (text string, ok bool) {
	text, ok = s.texts[name]
	return text, ok
}

// Files names the files that were read during Load, as Text knows them.
func (s *Script) Files() []string { return sortedKeys(s.texts) }

// identify computes definition and fingerprints.
func (l *loader) identify(doc *value) {
	l.script.definition = canonicalJSON(doc, canonicalOptions{redact: true})
	h := sha256.New()
	fmt.Fprintln(h, fingerprintVersion)
	h.Write(canonicalJSON(doc, canonicalOptions{noDesc: true}))
	var names []string
	for name, f := range l.fetched {
		if f.src != nil && name != l.src.Path && name != l.src.ParamsPath && !l.isIncluded[f.src] {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	for _, name := range names {
		writePulled(h, name, l.fetched[name].src.original)
	}
	l.script.Fingerprint = hex.EncodeToString(h.Sum(nil))
	for _, d := range l.nodes {
		l.identifyNode(d)
	}
}

func (l *loader) identifyNode(d *nodeDraft) {
	h := sha256.New()
	fmt.Fprintln(h, fingerprintVersion)
	h.Write(canonicalJSON(d.o.v, canonicalOptions{noDesc: true, depth: 2}))
	if p := d.node.Policy; p != nil {
		for _, r := range p.Rules {
			if r.Expr != nil {
				fmt.Fprintln(h, r.Cmd, r.Expr.Source())
			}
		}
		fmt.Fprintf(h, "%+v\n", p.Order)
	}
	for _, f := range d.node.PythonCode() {
		writePulled(h, f.URL, f.Text)
	}
	for _, p := range d.pulled {
		writePulled(h, p.url, p.src.original)
	}
	d.node.Fingerprint = hex.EncodeToString(h.Sum(nil))
}

// writePulled adds a file to a hash so that no two sets of files look the same.
func writePulled(h interface{ Write([]byte) (int, error) }, name, text string) {
	fmt.Fprintf(h, "\n%d %s %d\n%s", len(name), name, len(text), text)
}

type canonicalOptions struct {
	redact bool // secrets in URLs
	noDesc bool // leave out the nodes' descriptions
	depth  int  // of the value in the document
}

// nodeDepth is the depth of the keys of a node: root, nodes, node.
const nodeDepth = 2

func canonicalJSON(v *value, o canonicalOptions) []byte {
	var b bytes.Buffer
	writeCanonical(&b, v, o)
	return b.Bytes()
}

func writeCanonical(b *bytes.Buffer, v *value, o canonicalOptions) {
	switch v.kind {
	case nullKind:
		b.WriteString("null")
	case boolKind:
		b.WriteString(strings.ToLower(v.text))
	case numberKind:
		b.WriteString(canonicalNumber(v.text))
	case stringKind:
		text := v.text
		if o.redact {
			text = address.RedactText(text)
		}
		writeJSONString(b, text)
	case listKind:
		b.WriteByte('[')
		for i, item := range v.items {
			if i > 0 {
				b.WriteByte(',')
			}
			inner := o
			inner.depth++
			writeCanonical(b, item, inner)
		}
		b.WriteByte(']')
	case mapKind:
		writeCanonicalMap(b, v, o)
	}
}

func writeCanonicalMap(b *bytes.Buffer, v *value, o canonicalOptions) {
	last := make(map[string]*entry, len(v.entries))
	for _, e := range v.entries {
		last[e.name] = e
	}
	inner := o
	inner.depth++
	b.WriteByte('{')
	comma := false
	for _, e := range v.entries {
		if last[e.name] != e || e.val.kind == nullKind || (o.noDesc && o.depth == nodeDepth && e.name == "desc") {
			continue
		}
		if comma {
			b.WriteByte(',')
		}
		comma = true
		writeJSONString(b, e.name)
		b.WriteByte(':')
		writeCanonical(b, e.val, inner)
	}
	b.WriteByte('}')
}

// canonicalNumber writes a number so that JSON can hold it: whole numbers as
// digits, others as they are if JSON knows the form.
func canonicalNumber(text string) string {
	if n, ok := wholeNumber(text); ok {
		return strconv.FormatInt(n, 10)
	}
	if validJSONNumber(text) {
		return text
	}
	f, err := strconv.ParseFloat(strings.ReplaceAll(text, "_", ""), 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		return strconv.Quote(strings.ToLower(text))
	}
	return strconv.FormatFloat(f, 'g', -1, 64)
}

func writeJSONString(b *bytes.Buffer, s string) {
	if plainASCII(s) {
		b.WriteByte('"')
		b.WriteString(s)
		b.WriteByte('"')
		return
	}
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	// Text always encodes; the line break that the encoder adds is taken off.
	if err := e.Encode(s); err == nil {
		b.Truncate(b.Len() - 1)
	}
}

// plainASCII reports whether JSON writes s as it is.
func plainASCII(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}
