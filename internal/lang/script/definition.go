package script

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"

	"thalweg/internal/base/address"
	"thalweg/internal/base/document"
	"thalweg/internal/base/secret"
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
func (s *Script) Files() []string { return slices.Sorted(maps.Keys(s.texts)) }

// Code names the files of Files that are not the parameters.
func (s *Script) Code() []string {
	return slices.DeleteFunc(s.Files(), func(name string) bool { return name == s.params })
}

// identify computes definition and fingerprints.
func (l *loader) identify(doc *document.Value) {
	l.script.params = address.Redact(l.src.ParamsPath)
	l.script.definition = canonicalJSON(doc, canonicalOptions{redact: true, known: l.src.Known})
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
		writePulled(h, name, l.fetched[name].src.Original)
	}
	l.script.Fingerprint = hex.EncodeToString(h.Sum(nil))
	for _, d := range l.nodes {
		l.identifyNode(d)
	}
}

func (l *loader) identifyNode(d *nodeDraft) {
	h := sha256.New()
	fmt.Fprintln(h, fingerprintVersion)
	h.Write(canonicalJSON(d.o.v, canonicalOptions{noDesc: true, noGate: true, depth: nodeDepth}))
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
		writePulled(h, p.url, p.src.Original)
	}
	d.node.Fingerprint = hex.EncodeToString(h.Sum(nil))
}

// writePulled adds a file to a hash so that no two sets of files look the same.
func writePulled(h interface{ Write([]byte) (int, error) }, name, text string) {
	fmt.Fprintf(h, "\n%d %s %d\n%s", len(name), name, len(text), text)
}

type canonicalOptions struct {
	redact bool          // secrets in URLs
	known  *secret.Known // is told them: with parameters applied, a text may turn out to be a URL
	noDesc bool          // leave out the nodes' descriptions and tags
	noGate bool          // leave out their approvals, which change nothing of what they do
	depth  int           // of the value in the document
}

// nodeDepth is the depth of the keys of a node: root, nodes, node.
const nodeDepth = 2

func canonicalJSON(v *document.Value, o canonicalOptions) []byte {
	var b bytes.Buffer
	writeCanonical(&b, v, o)
	return b.Bytes()
}

func writeCanonical(b *bytes.Buffer, v *document.Value, o canonicalOptions) {
	switch v.Kind {
	case document.Null:
		b.WriteString("null")
	case document.Bool:
		b.WriteString(strings.ToLower(v.Text))
	case document.Number:
		b.WriteString(canonicalNumber(v.Text))
	case document.String:
		text := v.Text
		if o.redact {
			o.known.Learn(text)
			text = address.RedactText(text)
		}
		writeJSONString(b, text)
	case document.List:
		b.WriteByte('[')
		for i, item := range v.Items {
			if i > 0 {
				b.WriteByte(',')
			}
			inner := o
			inner.depth++
			writeCanonical(b, item, inner)
		}
		b.WriteByte(']')
	case document.Map:
		writeCanonicalMap(b, v, o)
	}
}

func writeCanonicalMap(b *bytes.Buffer, v *document.Value, o canonicalOptions) {
	last := make(map[string]*document.Entry, len(v.Entries))
	for _, e := range v.Entries {
		last[e.Name] = e
	}
	inner := o
	inner.depth++
	b.WriteByte('{')
	comma := false
	for _, e := range v.Entries {
		if last[e.Name] != e || e.Value.Kind == document.Null ||
			(o.noDesc && o.depth == nodeDepth && (e.Name == "desc" || e.Name == "tags")) ||
			(o.noGate && o.depth <= nodeDepth+1 && e.Name == "approval") {
			continue
		}
		if comma {
			b.WriteByte(',')
		}
		comma = true
		writeJSONString(b, e.Name)
		b.WriteByte(':')
		writeCanonical(b, e.Value, inner)
	}
	b.WriteByte('}')
}

// canonicalNumber writes a number so that JSON can hold it: whole numbers as
// digits, others as they are if JSON knows the form.
func canonicalNumber(text string) string {
	if n, ok := wholeNumber(text); ok {
		return strconv.FormatInt(n, 10)
	}
	if json.Valid([]byte(text)) {
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
