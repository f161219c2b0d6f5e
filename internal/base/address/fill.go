package address

import (
	"regexp"
	"strings"
)

// reference is {env.NAME}, with blanks where configurations may have some.
var reference = regexp.MustCompile(`\{[ \t]*env\.([A-Za-z0-9_]+)[ \t]*\}`)

// component is a part of an address, and what is written in it as it is beside letters, digits and -._~.
type component string

// The components in which values stand. What separates one component from the next is in none of them, and %XX is
// kept in all.
const (
	inUser   component = ""                  // a name, or a password
	inLogin  component = ":"                 // name:password
	inHost   component = ":[]"               // with its port
	inPath   component = "/:@!$&'()*+,;="    // of as many steps as the value has
	inValue  component = "/:@!$'()*,?"       // of a parameter of the query, or behind #
	inParams component = "/:@!$'()*,?&=+;"   // all of the query: name=value&…
	asItIs   component = "the whole address" // which the value begins, or which has no components
)

// Fill puts values in the places of {env.NAME} in an address, each written so that it stays within the component in
// which it stands: an @ or a / of a password is %40 and %2F. What is %XX already stays as it is. A value that the
// address begins with is an address itself and stays so. References that value does not know stay, too.
func Fill(template string, value func(name string) (string, bool)) string {
	var b strings.Builder
	copied := 0
	before := "" // what componentAt is told of
	for _, m := range reference.FindAllStringSubmatchIndex(template, -1) {
		b.WriteString(template[copied:m[0]])
		before += template[copied:m[0]]
		copied = m[1]
		text, ok := value(template[m[2]:m[3]])
		if !ok {
			text = template[m[0]:m[1]]
		} else if m[0] > 0 || !strings.Contains(text, "://") {
			text = componentAt(before, template[m[1]:]).encode(text)
		} else { // an address, which goes on behind it
			before = text
			b.WriteString(text)
			continue
		}
		before += "x"
		b.WriteString(text)
	}
	return b.String() + template[copied:]
}

// componentAt finds the component in which something stands, by the text before it, without references, and behind it.
func componentAt(before, behind string) component {
	i := strings.Index(before, "://")
	if i < 0 || Scheme(before) == "sqlite" { // the name of a file
		return asItIs
	}
	before = before[i+len("://"):]
	if strings.Contains(before, "#") {
		return inValue
	}
	path, query, hasQuery := strings.Cut(before, "?")
	switch {
	case hasQuery && query == "" && (behind == "" || behind[0] == '#' || behind[0] == '&'):
		return inParams
	case hasQuery:
		return inValue
	case strings.Contains(path, "/"):
		return inPath
	}
	authority := reference.ReplaceAllString(behind, "x")
	if end := strings.IndexAny(authority, "/?#"); end >= 0 {
		authority = authority[:end]
	}
	at := strings.IndexByte(authority, '@')
	switch {
	case at < 0:
		return inHost
	case at == 0 && before == "":
		return inLogin
	}
	return inUser
}

// encode writes a value as a part of a component.
func (c component) encode(value string) string {
	if c == asItIs {
		return value
	}
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(value) {
		char := value[i]
		switch {
		case char >= 'a' && char <= 'z', char >= 'A' && char <= 'Z',
			strings.IndexByte(digits+"-._~"+string(c), char) >= 0:
			b.WriteByte(char)
		case char == '%' && i+2 < len(value) && isHex(value[i+1]) && isHex(value[i+2]):
			b.WriteByte(char)
		default:
			b.Write([]byte{'%', hex[char>>4], hex[char&0xf]})
		}
	}
	return b.String()
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

// Encodings are the forms that a value may have in an address.
func Encodings(value string) (forms []string) {
	for _, c := range []component{inUser, inLogin, inHost, inPath, inValue, inParams} {
		forms = append(forms, c.encode(value))
	}
	return forms
}

// LoginPassword returns the longest possible password in an address: from the colon behind the user to the
// last @. It so includes characters that ought to be escaped. It returns "" if there is none.
func LoginPassword(name string) string {
	if Scheme(name) == "" || Scheme(name) == "sqlite" {
		return ""
	}
	rest := name[strings.Index(name, "://")+len("://"):]
	at := strings.LastIndexByte(rest, '@')
	if at < 0 {
		return ""
	}
	user, password, _ := strings.Cut(rest[:at], ":")
	if strings.ContainsAny(user, "/?#") {
		return ""
	}
	return password
}
