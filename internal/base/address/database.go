package address

import (
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

// Database reports whether name is of a database, whose tables are read and written.
func Database(name string) bool {
	switch Scheme(name) {
	case "postgres", "postgresql", "mysql", "mariadb", "sqlite":
		return true
	}
	return Redis(name)
}

// Redis reports whether name is of a server of Redis or Valkey, to which tables are published.
func Redis(name string) bool {
	s := Scheme(name)
	return s == "redis" || s == "rediss"
}

// redisForms lists the forms of addresses of Redis.
const redisForms = "redis://user@host:6379/0, with the number of the database, or rediss:// with TLS"

// Where says for people where what an address names is.
func Where(name string) string {
	if Database(name) {
		return "in a database"
	}
	return "on another machine"
}

// DatabaseForms lists the forms of addresses of databases, for messages.
const DatabaseForms = "postgres://user@host:5432/database, mysql://user@host:3306/database or sqlite:///path/of/file.db"

// parseDatabase takes the address of a database apart. What is behind a # says what of it.
func parseDatabase(l Location) (Location, error) {
	whole, _, _ := strings.Cut(l.URL, "#")
	if l.Scheme == "sqlite" {
		if l.Path = whole[len("sqlite://"):]; l.Path == "" {
			return l, bad(l, "names no file", "write sqlite:///absolute/path.db or sqlite://relative/path.db")
		}
		return l, sqliteName(l)
	}
	u, err := url.Parse(placeholder.ReplaceAllString(whole, "x")) // a secret is not there yet
	if err != nil || strings.IndexFunc(u.Path, unicode.IsControl) >= 0 {
		return l, bad(l, "cannot be read", "write "+DatabaseForms+
			"; characters such as @ : / % in a name or password are written as %40 %3A %2F %25")
	}
	if Redis(l.URL) {
		if _, err := strconv.ParseUint(strings.TrimPrefix(u.Path, "/"), 10, 31); err != nil || u.Hostname() == "" ||
			u.RawQuery != "" {
			return l, bad(l, "names no database of Redis", "write "+redisForms)
		}
	}
	if strings.Trim(u.Path, "/") == "" {
		return l, bad(l, "names no database", "write "+DatabaseForms)
	}
	l.Host, l.User = u.Host, u.User.Username()
	return l, nil
}

// option is the beginning of what SQLite's own addresses have behind the file's name.
var option = regexp.MustCompile(`\?[a-z_]+=`)

// sqliteName refuses what is the name of a file to the system, but of something else to SQLite.
func sqliteName(l Location) error {
	name, uri := strings.CutPrefix(l.Path, "file:")
	name, options, _ := strings.Cut(name, "?")
	switch {
	case name == ":memory:" || uri && strings.Contains(options, "mode=memory"):
		return bad(l, "is of a database in memory: nobody could read its tables afterwards",
			"name a file: sqlite://relative/path.db")
	case uri:
		return bad(l, "has file: before the file's name", "write sqlite://"+strings.TrimPrefix(name, "//"))
	case option.MatchString(l.Path):
		return bad(l, "has options behind the file's name, of which there are none here", "write sqlite://"+name)
	}
	return nil
}

// Password reports whether an address of a database has a password in it, as text.
func Password(name string) bool {
	if !Database(name) || Scheme(name) == "sqlite" {
		return false
	}
	authority := head(name)
	i := strings.LastIndexByte(authority, '@')
	if i < 0 {
		return false
	}
	_, password, ok := strings.Cut(authority[:i], ":")
	return ok && placeholder.ReplaceAllString(password, "") != ""
}

// OfTable is the address of a table, or of the result of a query that is known by name.
func OfTable(database, name string) string {
	database, _, _ = strings.Cut(database, "#")
	return database + "#" + (&url.URL{Path: name}).EscapedPath()
}

// DatabaseIn is the address of a database whose file is seen from dir if its path is relative.
func DatabaseIn(dir, name string) string {
	path, ok := strings.CutPrefix(name, "sqlite://")
	if !ok || dir == "" || path == "" || path[0] == '/' {
		return name
	}
	return "sqlite://" + Seen(dir, path)
}
