package address

import (
	"net/url"
	"regexp"
	"strings"
)

// plainHost is a host with or without a port: something else before the path
// may be the beginning of a password that is not escaped.
var plainHost = regexp.MustCompile(`^([^:@]*|\[[0-9A-Fa-f:.%]*\])(:[0-9]*)?$`)

// secretWords are parts of names of URL query parameters that carry secrets.
var secretWords = []string{"sig", "token", "secret", "password", "passwd", "key", "credential", "auth"}

// Redact removes a password and signed query parameters from a URL, for
// messages and stored definitions. Anything else stays as it is.
func Redact(name string) string {
	if Scheme(name) == "" {
		return name
	}
	out := name
	if u, err := url.Parse(name); err != nil || u.User.String() != u.User.Username() || !plainHost.MatchString(u.Host) {
		out = redactRaw(out)
	}
	head, query, ok := strings.Cut(out, "?")
	if !ok {
		return out
	}
	pairs := strings.Split(query, "&")
	for i, pair := range pairs {
		key, _, _ := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(key)
		if err != nil {
			name = key
		}
		for _, word := range secretWords {
			if strings.Contains(strings.ToLower(name), word) {
				pairs[i] = key + "=xxxxx"
			}
		}
	}
	return head + "?" + strings.Join(pairs, "&")
}

// redactRaw replaces the password between : and @ of a URL's authority.
func redactRaw(name string) string {
	at := strings.Index(name, "://") + len("://")
	authority := name[at:]
	if i := strings.IndexAny(authority, "/?#"); i >= 0 && strings.IndexByte(authority[:i], '@') >= 0 {
		authority = authority[:i]
	}
	i := strings.LastIndexByte(authority, '@')
	if i < 0 {
		return name
	}
	user, _, ok := strings.Cut(authority[:i], ":")
	if !ok {
		return name
	}
	return name[:at] + user + ":xxxxx" + name[at+i:]
}
