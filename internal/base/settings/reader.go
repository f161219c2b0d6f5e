package settings

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"thalweg/internal/base/address"
	"thalweg/internal/base/document"
	"thalweg/internal/base/fault"
	"thalweg/internal/base/secret"
)

// Options say where values come from that the text refers to.
type Options struct {
	Environment func(name string) (string, bool) // os.LookupEnv
	Known       *secret.Known                    // learns the secrets; may be nil
	Dir         string                           // relative names are seen from it; "": the working directory
}

// passwordFileBytesMax limits a file that holds a password.
const passwordFileBytesMax = 4 << 10

// Reader reads the values of one document.
type Reader struct {
	document.Report
	Dir    string                 // that relative paths are seen from
	Places map[string]fault.Place // of the values, by path: state.cassandra.hosts

	opts  Options
	what  string              // the document is: a cluster configuration
	asked map[string][]string // keys that are known, by path; nil unless Ask was called
}

// New returns a reader of the text of a file that lies at path. what is said of the document in messages.
func New(path, what string, opts Options) *Reader {
	if opts.Environment == nil {
		opts.Environment = os.LookupEnv
	}
	if opts.Known == nil {
		opts.Known = secret.New()
	}
	return &Reader{opts: opts, Dir: filepath.Dir(path), what: what, Places: map[string]fault.Place{}}
}

// Known returns the secrets that the reader has learnt.
func (r *Reader) Known() *secret.Known { return r.opts.Known }

// Ask has the reader note the keys that it knows, for tests of schemas. Asked returns them, by path.
func (r *Reader) Ask() { r.asked = map[string][]string{} }

// Asked returns the keys that the reader knows, by path, if Ask was called.
func (r *Reader) Asked() map[string][]string { return r.asked }

// Field reads the value of one key.
type Field struct {
	Name string
	Read func(v *document.Value, path string)
}

// Key returns a Field.
func Key(name string, read func(v *document.Value, path string)) Field { return Field{name, read} }

// Fields reads a map, and refuses keys that it does not know. It answers with
// the keys that are there.
func (r *Reader) Fields(v *document.Value, path string, fields ...Field) map[string]*document.Value {
	there := map[string]*document.Value{}
	if v.Present() && v.Kind != document.Map {
		r.ErrorAt(v, path, "%s is a map, not %s", r.label(path), v.Kind)
		return there
	}
	if !v.Present() {
		return there
	}
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.Name
	}
	if r.asked != nil {
		r.asked[path] = names
	}
	for _, e := range v.Entries {
		at := Join(path, e.Name)
		i := slices.Index(names, e.Name)
		switch {
		case i < 0:
			r.ErrorAt(e.Key, path, "unknown key %s", document.Quote(e.Name)).Hint = document.DidYouMean(e.Name, names)
		case there[e.Name] != nil:
			r.ErrorAt(e.Key, at, "key %s is there twice", document.Quote(e.Name))
		default:
			there[e.Name] = e.Value
			r.Note(e.Value, at)
			fields[i].Read(e.Value, at)
		}
	}
	return there
}

// Note keeps where a value is, for what turns out to be wrong with it later.
func (r *Reader) Note(v *document.Value, path string) {
	start, _ := v.Span()
	pos := v.Src.Pos(v.Src.Origin(start, false))
	r.Places[path] = fault.Place{File: pos.File, Line: int64(pos.Line), Column: pos.Col}
}

func (r *Reader) label(path string) string {
	if path == "" {
		return r.what
	}
	return path
}

// Join returns the path of a key in a section.
func Join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// variable is a reference to the environment.
var variable = regexp.MustCompile(`\{[ \t]*env\.([A-Za-z_][A-Za-z0-9_]*)[ \t]*\}`)

// Text reads a text, with what it has of the environment.
func (r *Reader) Text(v *document.Value, path string) string {
	return r.filled(v, path, func(text string, value func(string) (string, bool)) string {
		return variable.ReplaceAllStringFunc(text, func(ref string) string {
			filled, _ := value(variable.FindStringSubmatch(ref)[1])
			return filled
		})
	})
}

// filled reads a text in which fill puts what it has of the environment.
func (r *Reader) filled(v *document.Value, path string, fill func(string, func(string) (string, bool)) string) string {
	if !v.Present() || !v.Scalar() {
		r.ErrorAt(v, path, "%s is a text, not %s", path, v.Kind)
		return ""
	}
	for _, m := range variable.FindAllStringSubmatch(v.Text, -1) {
		if _, ok := r.opts.Environment(m[1]); !ok {
			r.ErrorAt(v, path, "the environment has no %s",
				m[1]).Hint = "set it where the command is started: export " +
				m[1] + "=…"
			return ""
		}
	}
	return fill(v.Text, func(name string) (string, bool) {
		value, ok := r.opts.Environment(name)
		if ok && (secretName.MatchString(name) || address.NameOf(name) >= address.Likely) {
			r.opts.Known.Add(value, "{env."+name+"}")
		}
		return value, ok
	})
}

// secretName is of variables whose values are shown nowhere.
var secretName = regexp.MustCompile(`(?i)pass|secret|token|credential|url|(^|_)key(_|$)`)

// AddressTo reads an address, in which values of the environment stay in their places.
func (r *Reader) AddressTo(to *string) func(*document.Value, string) {
	return func(v *document.Value, path string) {
		if *to = strings.TrimSpace(r.filled(v, path, address.Fill)); *to == "" && v.Present() &&
			v.Scalar() && v.Text == "" {
			r.ErrorAt(v, path, "%s is empty", path)
		}
		r.opts.Known.Learn(*to)
	}
}

// TextTo reads a text that is not empty.
func (r *Reader) TextTo(to *string) func(*document.Value, string) {
	return func(v *document.Value, path string) {
		if *to = strings.TrimSpace(r.Text(v, path)); *to == "" && v.Present() && v.Scalar() && v.Text == "" {
			r.ErrorAt(v, path, "%s is empty", path)
		}
	}
}

// PathTo reads a path, seen from the directory of the file.
func (r *Reader) PathTo(to *string) func(*document.Value, string) {
	return func(v *document.Value, path string) {
		if r.TextTo(to)(v, path); *to == "" {
			return
		}
		if rest, ok := strings.CutPrefix(*to, "~/"); ok {
			if home, err := os.UserHomeDir(); err == nil {
				*to = filepath.Join(home, rest)
			}
		}
		if !filepath.IsAbs(*to) {
			*to = filepath.Join(r.Dir, *to)
		}
	}
}

// PasswordTo reads a secret.
func (r *Reader) PasswordTo(to *string) func(*document.Value, string) {
	return func(v *document.Value, path string) {
		if *to = r.Text(v, path); *to != "" {
			r.opts.Known.Add(*to, secret.Mask)
		}
	}
}

// PasswordFileTo reads a secret from a file of its own, whose line end does not count.
func (r *Reader) PasswordFileTo(to *string) func(*document.Value, string) {
	return func(v *document.Value, path string) {
		var name string
		if r.PathTo(&name)(v, path); name == "" {
			return
		}
		text, err := os.ReadFile(name)
		switch {
		case err != nil:
			r.ErrorAt(v, path, "the password cannot be read: %s",
				err).Hint = "the file has the password and nothing else"
		case len(text) > passwordFileBytesMax:
			r.ErrorAt(v, path, "%s has more than %d bytes: it is no password", name, passwordFileBytesMax)
		default:
			if *to = strings.TrimRight(string(text), "\r\n"); *to != "" {
				r.opts.Known.Add(*to, secret.Mask)
			}
		}
	}
}

// SizeTo reads bytes: 20GB. Units are binary, as people mean them here.
func (r *Reader) SizeTo(to *int64, least int64) func(*document.Value, string) {
	return func(v *document.Value, path string) {
		text := r.Text(v, path)
		if text == "" {
			return
		}
		n, ok := ParseSize(text)
		switch {
		case !ok:
			r.ErrorAt(v, path, "%s is not a size", document.Quote(text)).Hint = "write a number and MB, GB or TB: 20GB"
		case n < least:
			r.ErrorAt(v, path, "%s is too little", document.Quote(text)).Hint = "the least is " +
				strconv.FormatInt(least>>20, 10) + "MB"
		default:
			*to = n
		}
	}
}

var sizeText = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?)[ ]?([kKmMgGtT])i?[bB]?$`)

// ParseSize reads bytes, such as 20GB; false: the text is no size.
func ParseSize(text string) (int64, bool) {
	m := sizeText.FindStringSubmatch(text)
	if m == nil {
		return 0, false
	}
	n, err := strconv.ParseFloat(m[1], 64)
	bits := map[string]int{"K": 10, "M": 20, "G": 30, "T": 40}[strings.ToUpper(m[2])]
	n *= float64(int64(1) << bits)
	const most = 1 << 60
	return int64(n), err == nil && n >= 1 && n < most
}

// DurationTo reads a duration from 0 to most.
func (r *Reader) DurationTo(to *time.Duration, most time.Duration) func(*document.Value, string) {
	return func(v *document.Value, path string) {
		text := r.Text(v, path)
		if text == "" {
			return
		}
		d, err := time.ParseDuration(text)
		switch {
		case err != nil:
			r.ErrorAt(v, path, "%s is not a duration",
				document.Quote(text)).Hint = "write a number and a unit: 60s, 5m, 1h"
		case d < 0 || d > most:
			r.ErrorAt(v, path, "%s is not between 0 and %s", document.Quote(text), most)
		default:
			*to = d
		}
	}
}

// CountTo reads a whole number from least to most.
func (r *Reader) CountTo(to *int, least, most int) func(*document.Value, string) {
	return func(v *document.Value, path string) {
		text := r.Text(v, path)
		if text == "" {
			return
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < least || n > most {
			r.ErrorAt(v, path, "%s is not a whole number from %d to %d", document.Quote(text), least, most)
			return
		}
		*to = n
	}
}

// HostsTo reads host or host:port, one or several.
// Host adds a host to those of a list; port is that of one without.
func (r *Reader) HostsTo(to *[]string, port string) func(*document.Value, string) {
	return func(v *document.Value, path string) {
		items := []*document.Value{v}
		if v.Present() && v.Kind == document.List {
			items = v.Items
		}
		if len(items) == 0 {
			r.ErrorAt(v, path, "%s names no host", path)
		}
		for _, item := range items {
			for host := range strings.SplitSeq(r.Text(item, path), ",") {
				r.Host(item, path, strings.TrimSpace(host), port, to)
			}
		}
	}
}

var hostText = regexp.MustCompile(`^(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.-]+)(:([0-9]{1,5}))?$`)

// Host adds a host to those of a list; port is that of one without.
func (r *Reader) Host(v *document.Value, path, host, port string, to *[]string) {
	m := hostText.FindStringSubmatch(host)
	if m == nil {
		if host != "" {
			r.ErrorAt(v, path, "%s is not a host", document.Quote(host)).Hint = "write host or host:" + port
		}
		return
	}
	if m[2] == "" {
		host += ":" + port
	} else if n, err := strconv.Atoi(m[3]); err != nil || n < 1 || n > 65535 {
		r.ErrorAt(v, path, "%s has no port from 1 to 65535", document.Quote(host))
		return
	}
	*to = append(*to, host)
}

// BoolTo reads true or false.
func (r *Reader) BoolTo(to *bool) func(*document.Value, string) {
	return func(v *document.Value, path string) {
		switch text := r.Text(v, path); text {
		case "true", "false":
			*to = text == "true"
		case "":
		default:
			r.ErrorAt(v, path, "%s is not true or false", document.Quote(text))
		}
	}
}
