package clusterconfig

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

// reader reads the values of one document.
type reader struct {
	document.Report
	opts Options
	dir  string // that relative paths are seen from
	cfg  *Config

	asked map[string][]string // keys that are known, by path; nil except in tests
}

// field reads the value of one key.
type field struct {
	name string
	read func(v *document.Value, path string)
}

// fields reads a map, and refuses keys that it does not know. It answers with
// the keys that are there.
func (r *reader) fields(v *document.Value, path string, fields ...field) map[string]*document.Value {
	there := map[string]*document.Value{}
	if v.Present() && v.Kind != document.Map {
		r.ErrorAt(v, path, "%s is a map, not %s", label(path), v.Kind)
		return there
	}
	if !v.Present() {
		return there
	}
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.name
	}
	if r.asked != nil {
		r.asked[path] = names
	}
	for _, e := range v.Entries {
		at := join(path, e.Name)
		i := slices.Index(names, e.Name)
		switch {
		case i < 0:
			r.ErrorAt(e.Key, path, "unknown key %s", document.Quote(e.Name)).Hint = document.DidYouMean(e.Name, names)
		case there[e.Name] != nil:
			r.ErrorAt(e.Key, at, "key %s is there twice", document.Quote(e.Name))
		default:
			there[e.Name] = e.Value
			r.note(e.Value, at)
			fields[i].read(e.Value, at)
		}
	}
	return there
}

// note keeps where a value is, for what turns out to be wrong with it later.
func (r *reader) note(v *document.Value, path string) {
	start, _ := v.Span()
	pos := v.Src.Pos(v.Src.Origin(start, false))
	r.cfg.places[path] = fault.Place{File: pos.File, Line: int64(pos.Line), Column: pos.Col}
}

func label(path string) string {
	if path == "" {
		return "a cluster configuration"
	}
	return path
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// variable is a reference to the environment.
var variable = regexp.MustCompile(`\{[ \t]*env\.([A-Za-z_][A-Za-z0-9_]*)[ \t]*\}`)

// text reads a text, with what it has of the environment.
func (r *reader) text(v *document.Value, path string) string {
	return r.filled(v, path, func(text string, value func(string) (string, bool)) string {
		return variable.ReplaceAllStringFunc(text, func(ref string) string {
			filled, _ := value(variable.FindStringSubmatch(ref)[1])
			return filled
		})
	})
}

// filled reads a text in which fill puts what it has of the environment.
func (r *reader) filled(v *document.Value, path string, fill func(string, func(string) (string, bool)) string) string {
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

// addressTo reads an address, in which values of the environment stay in their places.
func (r *reader) addressTo(to *string) func(*document.Value, string) {
	return func(v *document.Value, path string) {
		if *to = strings.TrimSpace(r.filled(v, path, address.Fill)); *to == "" && v.Present() &&
			v.Scalar() && v.Text == "" {
			r.ErrorAt(v, path, "%s is empty", path)
		}
		r.opts.Known.Learn(*to)
	}
}

func (r *reader) textTo(to *string) func(*document.Value, string) {
	return func(v *document.Value, path string) {
		if *to = strings.TrimSpace(r.text(v, path)); *to == "" && v.Present() && v.Scalar() && v.Text == "" {
			r.ErrorAt(v, path, "%s is empty", path)
		}
	}
}

// pathTo reads a path, seen from the directory of the file.
func (r *reader) pathTo(to *string) func(*document.Value, string) {
	return func(v *document.Value, path string) {
		if r.textTo(to)(v, path); *to == "" {
			return
		}
		if rest, ok := strings.CutPrefix(*to, "~/"); ok {
			if home, err := os.UserHomeDir(); err == nil {
				*to = filepath.Join(home, rest)
			}
		}
		if !filepath.IsAbs(*to) {
			*to = filepath.Join(r.dir, *to)
		}
	}
}

// passwordTo reads a secret.
func (r *reader) passwordTo(to *string) func(*document.Value, string) {
	return func(v *document.Value, path string) {
		if *to = r.text(v, path); *to != "" {
			r.opts.Known.Add(*to, secret.Mask)
		}
	}
}

// passwordFileTo reads a secret from a file of its own, whose line end does not count.
func (r *reader) passwordFileTo(to *string) func(*document.Value, string) {
	return func(v *document.Value, path string) {
		var name string
		if r.pathTo(&name)(v, path); name == "" {
			return
		}
		text, err := os.ReadFile(name)
		switch {
		case err != nil:
			r.ErrorAt(v, path, "the password cannot be read: %s",
				err).Hint = "the file has the password and nothing else"
		case len(text) > passwordFileMaxSize:
			r.ErrorAt(v, path, "%s has more than %d bytes: it is no password", name, passwordFileMaxSize)
		default:
			if *to = strings.TrimRight(string(text), "\r\n"); *to != "" {
				r.opts.Known.Add(*to, secret.Mask)
			}
		}
	}
}

// sizeTo reads bytes: 20GB. Units are binary, as people mean them here.
func (r *reader) sizeTo(to *int64, least int64) func(*document.Value, string) {
	return func(v *document.Value, path string) {
		text := r.text(v, path)
		if text == "" {
			return
		}
		n, ok := parseSize(text)
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

func parseSize(text string) (int64, bool) {
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

func (r *reader) durationTo(to *time.Duration, most time.Duration) func(*document.Value, string) {
	return func(v *document.Value, path string) {
		text := r.text(v, path)
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

func (r *reader) countTo(to *int, least, most int) func(*document.Value, string) {
	return func(v *document.Value, path string) {
		text := r.text(v, path)
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

// hostsTo reads host or host:port, one or several.
func (r *reader) hostsTo(to *[]string, port string) func(*document.Value, string) {
	return func(v *document.Value, path string) {
		items := []*document.Value{v}
		if v.Present() && v.Kind == document.List {
			items = v.Items
		}
		if len(items) == 0 {
			r.ErrorAt(v, path, "%s names no host", path)
		}
		for _, item := range items {
			for host := range strings.SplitSeq(r.text(item, path), ",") {
				r.host(item, path, strings.TrimSpace(host), port, to)
			}
		}
	}
}

var hostText = regexp.MustCompile(`^(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.-]+)(:([0-9]{1,5}))?$`)

func (r *reader) host(v *document.Value, path, host, port string, to *[]string) {
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
