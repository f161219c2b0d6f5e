package address

import (
	"net/url"
	"regexp"
	"strings"
)

// Mask replaces a secret in texts.
const Mask = "xxxxx"

// plainHost is a host with or without a port: something else before the path
// may be the beginning of a password that is not escaped.
var plainHost = regexp.MustCompile(`^([^:@]*|\[[0-9A-Fa-f:.%]*\])(:[0-9]*)?$`)

// login is one where none belongs: its password is one all the same.
var login = regexp.MustCompile(`(?i)^sqlite://[^/:@]+:[^@]+@`)

// opening is the beginning of an address, also of one that was mistyped: s3:/x, htps://x.
var opening = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*:/{1,3}`)

// bare is user:password@host where a scheme or its colon was left out; what is
// behind the host says that it is one.
var bare = regexp.MustCompile(
	`(^|//|[\s"'(<>\[{,=])([^\s/:@"'<>()\[\]{},=?&]+):([^\s/@"'<>]{3,})@([A-Za-z0-9][A-Za-z0-9.-]*[/:?])`)

// bareToken is token@host where the scheme was left out: the host has a port, is a
// number, or ends as hosts of the net do, and a path follows.
var bareToken = regexp.MustCompile(`(^|[\s"'(<>\[{,=])([^\s/:@"'<>()\[\]{},=?&]+)@` +
	`((?:[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*:[0-9]+|[0-9]{1,3}(?:\.[0-9]{1,3}){3}|(?:[A-Za-z0-9-]+\.)+[A-Za-z]{2,}|localhost)/)`)

// braced is a reference to a parameter or a value of the environment, as patterns have it.
const braced = `\{[ \t]*[A-Za-z0-9_.|]+[ \t]*\}`

// stretch matches a possible address in a text; parameter matches one parameter of a query.
var (
	stretch   = regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*:/{1,3}(?:` + braced + `|[^\s"'<>\x60])+`)
	parameter = regexp.MustCompile(`([?&;#])([A-Za-z0-9_.%\[\]-]+)=((?:` + braced + `|[^&;\s"'<>#\x60\\,)\]}])+)`)
)

// Redact removes passwords, tokens and signed query parameters from an address,
// for messages and stored definitions. A plain path stays as it is.
func Redact(name string) string {
	out, _ := redact(name)
	return out
}

// RedactText does the same to all addresses in a text, those included that were mistyped.
func RedactText(text string) string {
	out, _ := redactText(text)
	return out
}

// SecretsIn lists what RedactText would remove.
func SecretsIn(text string) []string {
	_, found := redactText(text)
	return found
}

func redactText(text string) (out string, found []string) {
	note := func(secrets []string) { found = append(found, secrets...) }
	if strings.Contains(text, ":/") {
		text = stretch.ReplaceAllStringFunc(text, func(name string) string {
			name, rest := sentence(name)
			shown, secrets := redact(name)
			note(secrets)
			return shown + rest
		})
	}
	if strings.Contains(text, "@") {
		text = bare.ReplaceAllStringFunc(text, func(name string) string {
			m := bare.FindStringSubmatch(name)
			if m[3] == Mask || refers(m[3]) {
				return name
			}
			note(m[3:4])
			return m[1] + m[2] + ":" + Mask + "@" + m[4]
		})
		text = bareToken.ReplaceAllStringFunc(text, func(name string) string {
			m := bareToken.FindStringSubmatch(name)
			if m[2] == Mask {
				return name
			}
			if LooksRandom(m[2]) { // else it may be a user, whose name may be any word
				note(m[2:3])
			}
			return m[1] + Mask + "@" + m[3]
		})
	}
	if strings.Contains(text, "=") {
		shown, secrets := redactQuery(text)
		note(secrets)
		text = shown
	}
	return text, found
}

// sentence cuts off what belongs to the text around an address: signs, and brackets that are not opened in it.
func sentence(name string) (address, rest string) {
	address = name
	for address != "" {
		last := address[len(address)-1]
		opened := strings.IndexByte(")]}", last)
		if opened >= 0 && strings.Count(address, string("([{"[opened])) >= strings.Count(address, string(last)) ||
			opened < 0 && strings.IndexByte(":,.;", last) < 0 {
			break
		}
		address = address[:len(address)-1]
	}
	return address, name[len(address):]
}

// refers reports a value that is said by references alone, or has one to a value of the environment: whoever writes
// those has put what is secret there.
func refers(value string) bool {
	return placeholder.ReplaceAllString(value, "") == "" || reference.MatchString(value)
}

// redactQuery removes what the parameters of queries have that are called secret.
func redactQuery(text string) (out string, found []string) {
	out = parameter.ReplaceAllStringFunc(text, func(pair string) string {
		m := parameter.FindStringSubmatch(pair)
		value := strings.TrimRight(m[3], ":.") // those belong to the text around
		rest := m[3][len(value):]
		if value == Mask || refers(value) || !secretParameter(m[2]) {
			return pair // a reference is no secret, and not half of one
		}
		found = append(found, value)
		return m[1] + m[2] + "=" + Mask + rest
	})
	return out, found
}

func secretParameter(key string) bool {
	name, err := url.QueryUnescape(key)
	if err != nil {
		name = key
	}
	return NameOf(name) != Harmless || queryWord.MatchString(name)
}

// redact removes the secrets of one address.
func redact(name string) (out string, found []string) {
	if !opening.MatchString(name) {
		return name, nil
	}
	out = name
	scheme := Scheme(name)
	u, err := url.Parse(name)
	switch {
	case scheme == "sqlite" && !login.MatchString(name): // a file, whose name may have : and @
	case scheme == "s3" && !strings.ContainsAny(head(name), "@:"): // the key of an object may have : and @
	case scheme == "" || err != nil || u.User.String() != u.User.Username() || !plainHost.MatchString(u.Host):
		out, found = redactUser(out)
	case u.Host == "" && scheme != "file": // https:///user:password@host
		out, found = redactUser(out)
	case u.User != nil && scheme != "sftp" && scheme != "ssh" && !Database(name): // a token, in the place of a user
		out, found = redactUser(out)
	}
	if strings.Contains(out, "=") { // of the query, the fragment, the path: tokens are handed over in all
		shown, secrets := redactQuery(out)
		out, found = shown, append(found, secrets...)
	}
	return out, found
}

// head is an address's part between its scheme and its path.
func head(name string) string {
	rest := name[len(opening.FindString(name)):]
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		rest = rest[:i]
	}
	return rest
}

// redactUser removes what stands before the @ of an address's host: a password,
// or a token without a user.
func redactUser(name string) (out string, found []string) {
	at := len(opening.FindString(name))
	authority := name[at:]
	whole := true
	if i := strings.IndexAny(authority, "/?#"); i >= 0 {
		if strings.IndexByte(authority[:i], '@') >= 0 {
			authority = authority[:i]
		} else {
			whole = false // only a password that is not escaped goes beyond
		}
	}
	i := strings.LastIndexByte(authority, '@')
	if i < 0 {
		return redactPort(name)
	}
	user, password, ok := strings.Cut(authority[:i], ":")
	switch {
	case ok && (password == Mask || refers(password)), !ok && (!whole || user == Mask || refers(user)):
		return name, nil
	case ok:
		if i = strings.LastIndexByte(name[at:], '@'); i > len(authority) {
			// @ and / may be of a password that is not escaped
			password = name[at+len(user)+1 : at+i]
		}
		return name[:at] + user + ":" + Mask + name[at+i:], []string{password}
	}
	return name[:at] + Mask + name[at+i:], []string{user}
}

// placeholder is a parameter of a script where its value will stand.
var placeholder = regexp.MustCompile(`\{[^{}]*\}`)

// redactPort removes what stands in the place of a port and is no number: in
// http://joe:passwordhost/x the @ was forgotten.
func redactPort(name string) (out string, found []string) {
	at, host := len(opening.FindString(name)), head(name)
	user, port, ok := strings.Cut(host, ":")
	const driveBytes = len("c:/")
	if !ok || port == Mask || at <= driveBytes || strings.HasPrefix(host, "[") ||
		strings.Trim(placeholder.ReplaceAllString(port, ""), digits) == "" {
		return name, nil
	}
	return name[:at] + user + ":" + Mask + name[at+len(host):], []string{port}
}
