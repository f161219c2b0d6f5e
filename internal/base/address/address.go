package address

import (
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"thalweg/internal/base/fault"
)

// nameBytesMax bounds an address; object keys have 1024 bytes at most, signed
// URLs are longer.
const nameBytesMax = 16 << 10

// Scheme gives the scheme of a URL in lower case, "" for a local path.
func Scheme(name string) string {
	s, _, ok := strings.Cut(name, "://")
	if !ok || s == "" {
		return ""
	}
	s = strings.ToLower(s)
	if s[0] < 'a' || s[0] > 'z' || strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789+.-") != "" {
		return ""
	}
	return s
}

// Remote reports whether name is of a file that is not on this machine.
func Remote(name string) bool {
	s := Scheme(name)
	return s != "" && s != "file"
}

// Parquet reports whether name ends as those of Parquet files do.
func Parquet(name string) bool {
	if Scheme(name) != "" {
		name, _, _ = strings.Cut(name, "?")
	}
	name = strings.ToLower(name)
	return strings.HasSuffix(name, ".parquet") || strings.HasSuffix(name, ".parq") || strings.HasSuffix(name, ".pq")
}

// mistyped is an address whose :// is not one. A letter alone is a drive.
var mistyped = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]+:/([^/]|$)|^(https?|s3|sftp|file)//`)

// Mistyped says why a name without a scheme can hardly be that of a file of this
// machine; "" if it can. Taken for one, an output would be written to a place where
// nobody looks, in a directory that is named like a password.
func Mistyped(name string) string {
	switch {
	case Scheme(name) != "":
		return ""
	case mistyped.MatchString(name):
		return "has not the :// of an address"
	case bare.MatchString(name):
		return "has a user and a password, but nothing like https:// before them"
	case bareToken.MatchString(name):
		return "has a token or a user before an @ and a host, but nothing like https:// before them"
	}
	if _, found := redactQuery(name); len(found) > 0 {
		return "has the query of an address, but nothing like https:// before it"
	}
	return ""
}

// Records says what a file is, by its name, of whose records CSV is made: "JSON" or "an
// Excel workbook"; "": nothing says so.
func Records(name string) string {
	_, plain := Compression(name)
	switch {
	case Format(plain) == "JSON":
		return "JSON"
	case Workbook(plain):
		return "an Excel workbook"
	}
	return ""
}

// Workbook reports whether name ends as those of Excel's workbooks do that are read.
func Workbook(name string) bool {
	if Scheme(name) != "" {
		name, _, _ = strings.Cut(name, "?")
	}
	switch strings.ToLower(path.Ext(name)) {
	case ".xlsx", ".xlsm":
		return true
	}
	return false
}

// Separator returns the column separator that a file's name implies by its ending: a tab or "|"; "" for any
// other name, .csv included. A comma is no news.
func Separator(name string) string {
	if Scheme(name) != "" {
		name, _, _ = strings.Cut(name, "?")
	}
	_, name = Compression(name)
	switch strings.ToLower(path.Ext(name)) {
	case ".tsv", ".tab":
		return "\t"
	case ".psv":
		return "|"
	}
	return ""
}

// Form returns the form in which a file of that name is written: parquet, json (one record a line, also
// compressed), excel or index; "" for any other name, .csv included.
func Form(name string) string {
	if Parquet(name) {
		return "parquet"
	}
	how, name := Compression(name)
	if Scheme(name) != "" {
		name, _, _ = strings.Cut(name, "?")
	}
	switch ext := strings.ToLower(path.Ext(name)); {
	case ext == ".ndjson", ext == ".jsonl":
		return "json"
	case ext == ".xlsx" && how == "":
		return "excel"
	case ext == ".twx" && how == "":
		return "index"
	}
	return ""
}

// Compression returns the compression that a file's name implies, gzip or zstd, and the name without that
// ending. It returns "" and the name as it is for others.
func Compression(name string) (compression, plain string) {
	plain = name
	if Scheme(name) != "" {
		plain, _, _ = strings.Cut(name, "?")
	}
	ext := path.Ext(plain)
	switch strings.ToLower(ext) {
	case ".gz", ".gzip":
		return "gzip", strings.TrimSuffix(plain, ext)
	case ".zst", ".zstd":
		return "zstd", strings.TrimSuffix(plain, ext)
	}
	return "", name
}

// Format names the format that the ending of a file's name implies, such as CSV or Parquet. It returns "" for
// no ending or an unknown one.
func Format(name string) string {
	if Parquet(name) {
		return "Parquet"
	}
	if Scheme(name) != "" {
		name, _, _ = strings.Cut(name, "?")
	}
	switch strings.ToLower(path.Ext(name)) {
	case ".csv", ".tsv", ".tab", ".psv":
		return "CSV"
	case ".json", ".jsonl", ".ndjson":
		return "JSON"
	case ".xlsx", ".xls", ".xlsm", ".ods":
		return "a spreadsheet"
	case ".twx":
		return "an index"
	case ".gz", ".gzip", ".tgz", ".bz2", ".xz", ".zst", ".zstd", ".lz4", ".br", ".zip", ".7z", ".rar", ".tar":
		return "that it is compressed or an archive"
	case ".avro", ".orc", ".arrow", ".feather", ".ipc", ".xml", ".yaml", ".yml", ".html", ".htm", ".pdf",
		".db", ".sqlite", ".duckdb", ".sql", ".dbf", ".sav", ".dta", ".h5", ".pkl":
		return strings.ToUpper(strings.TrimPrefix(strings.ToLower(path.Ext(name)), "."))
	}
	return ""
}

// Unescape puts characters in the place of their %XX; what is none stays.
func Unescape(text string) string {
	if out, err := url.PathUnescape(text); err == nil {
		return out
	}
	return text
}

// Local gives the path that a plain path or a file:// URL names. Anything else
// is a fault.Script.
func Local(name string) (string, error) {
	s := Scheme(name)
	switch {
	case name == "":
		return "", fault.New(fault.Script, "empty file name")
	case s == "":
		return name, nil
	case s != "file":
		err := fault.New(fault.Script, "not a local file: %s", Redact(name))
		err.Hint = "copy the file to this machine and name it by its path"
		return "", err
	}
	host, p, ok := strings.Cut(name[len("file://"):], "/")
	if ok && (host == "" || strings.EqualFold(host, "localhost")) {
		if p, err := url.PathUnescape("/" + p); err == nil {
			return p, nil
		}
	}
	err := fault.New(fault.Script, "not a local file URL: %s", name)
	err.Hint = "write file:///absolute/path, or the plain path"
	return "", err
}

// LocalIn is Local for a name that is seen from dir if it is relative; "": from
// the working directory.
func LocalIn(dir, name string) (string, error) {
	path, err := Local(name)
	return Seen(dir, path), err
}

// Seen is a path as it is seen from dir; "": from the working directory.
func Seen(dir, path string) string {
	if dir == "" || filepath.IsAbs(path) {
		return path
	}
	if strings.HasPrefix(path, "..") { // what .. leaves may be a link: whoever cleans the path would be elsewhere
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			dir = real
		}
	}
	return dir + string(filepath.Separator) + path
}

// Resolve returns a path without symbolic links, as far as there is something at it: of a link to nothing, where it
// leads, for that is where a file would be made.
func Resolve(path string) string { return resolve(path, linksMax) }

// linksMax bounds the links to nothing, one behind the other.
const linksMax = 40

func resolve(path string, links int) string {
	if !filepath.IsAbs(path) {
		here, err := filepath.Abs(".")
		if err != nil {
			return filepath.Clean(path)
		}
		path = Seen(here, path)
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	up, name := filepath.Split(strings.TrimRight(path, "/"))
	if up == "" || name == ".." { // of a directory that is not there
		return filepath.Clean(path)
	}
	up = resolve(up, links)
	if to, err := os.Readlink(filepath.Join(up, name)); err == nil && links > 0 {
		return resolve(Seen(up, to), links-1)
	}
	return filepath.Join(up, name)
}

// SeenFrom is Seen for a name that may be an address, of a file or of a database.
func SeenFrom(dir, name string) string {
	switch {
	case name == "":
		return ""
	case Database(name):
		return DatabaseIn(dir, name)
	case Scheme(name) != "": // a file:// URL has an absolute path
		return name
	}
	return Seen(dir, name)
}

// Glob lists the files that match a pattern of filepath.Glob, seen from dir ("": from the
// working directory). Their names are relative if the pattern is.
func Glob(dir, pattern string) ([]string, error) {
	if dir == "" || filepath.IsAbs(pattern) {
		return filepath.Glob(pattern)
	}
	base, err := filepath.EvalSymlinks(dir) // Glob cleans what it finds: .. behind a link would lead elsewhere
	if err != nil {
		return nil, nil //nolint:nilerr // as filepath.Glob does of what cannot be looked at
	}
	found, err := filepath.Glob(Seen(QuoteGlob(base), pattern))
	for i, name := range found {
		if found[i], err = filepath.Rel(base, name); err != nil {
			return nil, err
		}
	}
	return found, err
}

// Location is a remote file's address, taken apart.
type Location struct {
	Scheme string // http, https, s3, sftp, or one of a database
	Host   string // of http, https, sftp and servers of databases, with its port if one is given
	User   string // of sftp
	Bucket string // of s3
	Path   string // of sftp: absolute; of s3: the key, taken literally; of sqlite: of the file
	URL    string // the whole, with its secrets: never print it, print String
	// Hide takes the values of secrets out of texts; nil: there are none.
	Hide func(string) string
}

// String is the address without secrets. They are hidden before anything else
// is: what Redact leaves of one would not be recognised.
func (l Location) String() string { return Redact(l.Hidden(l.URL)) }

// Hidden is a text about the location without secrets.
func (l Location) Hidden(text string) string {
	if l.Hide == nil {
		return text
	}
	return l.Hide(text)
}

// Parse takes a remote address apart, which may have references to values of the environment in it.
func Parse(name string) (Location, error) {
	l := Location{Scheme: Scheme(name), URL: name}
	if i := strings.IndexFunc(name, unicode.IsControl); i >= 0 || !utf8.ValidString(name) || len(name) > nameBytesMax {
		return l, bad(l, "has a control character, is not UTF-8, or is too long",
			"name the file without such characters")
	}
	switch l.Scheme {
	case "http", "https":
		u, err := url.Parse(reference.ReplaceAllString(name, "env.$1")) // a secret is not there yet
		if err != nil || u.Host == "" {
			return l, bad(l, "is not a URL", "write "+l.Scheme+"://host/path; characters such as % in a name are "+
				"written as %25")
		}
		l.Host = u.Host
		return l, nil
	case "s3":
		rest := name[len("s3://"):]
		l.Bucket, l.Path, _ = strings.Cut(rest, "/")
		if _, found := redactQuery(l.Path); len(found) > 0 {
			return l, bad(l, "has a signed query, which the name of an object has not",
				"write the https:// address to use the signature, or s3://bucket/key without it")
		}
		if l.Bucket == "" || l.Path == "" || strings.ContainsAny(l.Bucket, "@:?# ") {
			return l, bad(l, "names no object", "write s3://bucket/key")
		}
		return l, nil
	case "sftp":
		return parseSFTP(l)
	}
	if Database(name) {
		return parseDatabase(l)
	}
	return l, bad(l, "has a scheme that is not known here", "use a path, file://, http://, https://, s3:// or sftp://")
}

func parseSFTP(l Location) (Location, error) {
	const form = "write sftp://user@host/path or sftp://user@host:2022/path"
	u, err := url.Parse(l.URL)
	if err != nil || u.Hostname() == "" || u.Path == "" || u.Path == "/" || u.RawQuery != "" || u.Fragment != "" {
		return l, bad(l, "is not an SFTP address", form+"; % ? and # in a name are written as %25 %3F and %23")
	}
	if u.User.Username() == "" {
		return l, bad(l, "names no user", form)
	}
	if _, ok := u.User.Password(); ok {
		return l, bad(l, "has a password in it, which is not used", form+" and give the user a key")
	}
	if strings.IndexFunc(u.Path+u.User.Username(), unicode.IsControl) >= 0 {
		return l, bad(l, "has a control character in it", form)
	}
	l.User, l.Host, l.Path = u.User.Username(), u.Host, u.Path
	if u.Port() == "" {
		l.Host = u.Hostname() + ":22"
		if strings.Contains(u.Hostname(), ":") {
			l.Host = "[" + u.Hostname() + "]:22"
		}
	}
	return l, nil
}

func bad(l Location, what, hint string) error {
	err := fault.New(fault.Script, "the address %s %s", l, what)
	err.Hint = hint
	return err
}

// Beside gives the address of a file next to base, if name is relative: of
// http, https, s3 and sftp by their rules, without base's query. "" if name
// is not relative or base names nothing that has a neighbour.
func Beside(base, name string) string {
	if Scheme(name) != "" || path.IsAbs(name) || filepath.IsAbs(name) {
		return ""
	}
	if !Remote(base) {
		i := strings.LastIndexAny(base, `/\`)
		if i < 0 {
			return ""
		}
		return base[:i+1] + name
	}
	if s := Scheme(base); s == "http" || s == "https" {
		base, _, _ = strings.Cut(base, "#")
		base, _, _ = strings.Cut(base, "?")
		name = (&url.URL{Path: name}).EscapedPath()
	}
	at := strings.Index(base, "://") + len("://")
	host, dir, ok := strings.Cut(base[at:], "/")
	if !ok {
		return ""
	}
	return base[:at] + host + path.Join("/", path.Dir("/"+dir), name)
}
