package price

import (
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"thalweg/internal/base/document"
	"thalweg/internal/base/settings"
)

// Limits of a file of prices.
const (
	FileBytesMax       = 1 << 20
	MachinesMax        = 10_000
	CoresMax           = 65_536
	textCharsMax       = 200
	PerHourMax         = 100_000 * Dollar
	memoryLeast  int64 = 1 << 20
)

// dateText is a year, a month or a day.
var dateText = regexp.MustCompile(`^[0-9]{4}(-(0[1-9]|1[0-2])(-(0[1-9]|[12][0-9]|3[01]))?)?$`)

// reader reads a file of prices.
type reader struct {
	*settings.Reader
	book  *Book
	texts Line // region, date and source of machines without their own
}

// Read reads prices of the user's, YAML or JSON. name is how people call the file.
//
//	version: 1
//	date: 2026-11-01
//	source: our contract
//	machines:
//	  rack-16: {cores: 16, memory: 64GB, usd_per_hour: 0.41}
func Read(name, text string) (*Book, document.Diagnostics) {
	r := &reader{Reader: settings.New(name, "a file of prices", settings.Options{
		Environment: func(string) (string, bool) { return "", false }}), book: &Book{map[string]Line{}}}
	src := document.NewSource(name, text)
	if len(text) > FileBytesMax {
		r.AddFile(document.Error, name, "", "a file of prices has at most 1 MiB")
		return nil, r.Result(name, func(string) int { return 0 }, r.Known())
	}
	root, syntax := document.Read(src)
	switch {
	case syntax != nil:
		r.AddSyntax(src, syntax)
	case root.Kind != document.Map:
		r.ErrorAt(root, "", "a file of prices is a map, not %s", root.Kind).Hint = "begin it with version: 1"
	default:
		r.root(root)
	}
	diags := r.Result(name, func(string) int { return 0 }, r.Known())
	if diags.HasErrors() {
		return nil, diags
	}
	return r.book, diags
}

func (r *reader) root(v *document.Value) {
	version, currency := 1, "USD"
	var machines *document.Value
	there := r.Fields(v, "", settings.Key("version", r.CountTo(&version, 1, 1)),
		settings.Key("currency", r.shortTo(&currency)), settings.Key("region", r.shortTo(&r.texts.Region)),
		settings.Key("date", r.dateTo(&r.texts.Date)), settings.Key("source", r.shortTo(&r.texts.Source)),
		settings.Key("machines", func(v *document.Value, _ string) { machines = v }))
	if !there["version"].Present() {
		r.ErrorAt(v, "version", "the version is missing").Hint = "write version: 1"
	}
	if currency != "USD" {
		r.ErrorAt(there["currency"], "currency", "%s is not a currency that sums are made in",
			document.Quote(currency)).Hint = "give prices in US dollars: USD"
	}
	if !machines.Present() {
		r.ErrorAt(v, "machines", "there are no machines").Hint = "name one: machines: {c7g.large: {usd_per_hour: 0.07}}"
		return
	}
	if machines.Kind != document.Map {
		r.ErrorAt(machines, "machines", "machines is a map, not %s", machines.Kind)
		return
	}
	if len(machines.Entries) > MachinesMax {
		r.ErrorAt(machines, "machines", "there are %d machines; the most are %d", len(machines.Entries), MachinesMax)
		return
	}
	for _, e := range machines.Entries {
		r.machine(e)
	}
}

func (r *reader) machine(e *document.Entry) {
	at := settings.Join("machines", e.Name)
	if _, twice := r.book.lines[e.Name]; twice {
		r.ErrorAt(e.Key, at, "machine %s is there twice", document.Quote(e.Name))
		return
	}
	if !short(e.Name) {
		r.ErrorAt(e.Key, at, "%s is not the name of a machine", document.Quote(e.Name))
		return
	}
	line := r.texts
	line.Machine = e.Name
	there := r.Fields(e.Value, at, settings.Key("cores", r.CountTo(&line.Cores, 1, CoresMax)),
		settings.Key("memory", r.SizeTo(&line.MemoryBytes, memoryLeast)),
		settings.Key("arch", r.shortTo(&line.Arch)), settings.Key("nvme", r.BoolTo(&line.NVMe)),
		settings.Key("usd_per_hour", PerHourTo(r.Reader, &line.PerHour)),
		settings.Key("region", r.shortTo(&line.Region)), settings.Key("date", r.dateTo(&line.Date)),
		settings.Key("source", r.shortTo(&line.Source)))
	if e.Value.Present() && e.Value.Kind != document.Map {
		return // which Fields has said
	}
	for _, missing := range []struct {
		key  string
		lack bool
	}{{"usd_per_hour", !there["usd_per_hour"].Present()}, {"date", line.Date == ""}, {"source", line.Source == ""}} {
		if missing.lack && there[missing.key] == nil {
			r.ErrorAt(e.Key, at, "machine %s has no %s", document.Quote(e.Name), missing.key).Hint = "give " + missing.key +
				" of the machine" + map[bool]string{false: ", or once for all machines"}[missing.key == "usd_per_hour"]
		}
	}
	r.book.lines[e.Name] = line
}

// PerHourTo reads a price as it is written: by way of a float it would drift.
func PerHourTo(r *settings.Reader, to *Money) func(*document.Value, string) {
	return func(v *document.Value, path string) {
		if !v.Present() || !v.Scalar() {
			r.ErrorAt(v, path, "%s is an amount of US dollars, not %s", path, kindOf(v))
			return
		}
		m, err := Parse(v.Text)
		switch {
		case err != nil:
			r.ErrorAt(v, path, "%s is not a price", document.Quote(v.Text)).Hint =
				"write US dollars an hour, with at most six digits behind the point: 0.0725"
		case m > PerHourMax:
			r.ErrorAt(v, path, "%s is more than %s an hour", document.Quote(v.Text), PerHourMax.Text(0))
		default:
			*to = m
		}
	}
}

func kindOf(v *document.Value) string {
	if v == nil {
		return document.Null.String()
	}
	return v.Kind.String()
}

func (r *reader) dateTo(to *string) func(*document.Value, string) {
	return func(v *document.Value, path string) {
		text := r.Text(v, path)
		if text != "" && !isDate(text) {
			r.ErrorAt(v, path, "%s is not a date", document.Quote(text)).Hint = "write a day, a month or a year: 2026-11-01"
			return
		}
		*to = text
	}
}

// isDate reports whether a text is a year, a month or a day that there is.
func isDate(text string) bool {
	_, err := time.Parse(time.DateOnly[:min(len(text), len(time.DateOnly))], text)
	return err == nil && dateText.MatchString(text)
}

func (r *reader) shortTo(to *string) func(*document.Value, string) {
	return func(v *document.Value, path string) {
		text := r.Text(v, path)
		if text != "" && !short(text) {
			r.ErrorAt(v, path, "%s is no text of 1 to %d characters", document.Quote(text), textCharsMax)
			return
		}
		*to = text
	}
}

// short reports whether a text can stand in a table: it is not blank, not long, and has nothing that moves the cursor.
func short(text string) bool {
	return strings.TrimSpace(text) != "" && utf8.RuneCountInString(text) <= textCharsMax &&
		!strings.ContainsFunc(text, unicode.IsControl)
}
