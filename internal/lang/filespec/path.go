package filespec

import (
	"fmt"
	"strconv"
	"strings"
)

// Step is a key of an object, or an element of a list.
type Step struct {
	Key   string
	Index int // -1: it is a key
}

// KeyPath is the path of a key, quoted where it has to be.
func KeyPath(key string) string {
	if key != "" && !strings.ContainsAny(key, `."[]`) {
		return key
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key) + `"`
}

const indexMax = 1_000_000

// ParsePath takes a path to a value apart: keys with points between them, elements as [0], keys with such characters in
// quotes, as in address.city, items[0].sku and "a.b". The error says what is wrong with it.
func ParsePath(path string) ([]Step, error) {
	var out []Step
	rest := path
	for first := true; rest != "" || first; first = false {
		var err error
		switch {
		case strings.HasPrefix(rest, "[") && !first:
			end := strings.IndexByte(rest, ']')
			if end < 0 {
				return nil, fmt.Errorf("the [ in path %q is not closed", path)
			}
			n, failed := strconv.Atoi(rest[1:end])
			if failed != nil || n < 0 || n > indexMax {
				return nil, fmt.Errorf("in path %q, [%s] is no element of a list: the first is [0]", path, rest[1:end])
			}
			out = append(out, Step{Index: n})
			rest = rest[end+1:]
			continue
		case !first && !strings.HasPrefix(rest, "."):
			return nil, fmt.Errorf("in path %q, a point or [ is missing before %q", path, rest)
		case !first:
			rest = rest[1:]
		}
		var key string
		if strings.HasPrefix(rest, `"`) {
			key, rest, err = quotedKey(path, rest[1:])
		} else {
			end := strings.IndexAny(rest, `.["]`)
			if end < 0 {
				end = len(rest)
			}
			if key, rest = rest[:end], rest[end:]; key == "" {
				err = fmt.Errorf("a key is missing in path %q", path)
			}
		}
		if err != nil {
			return nil, err
		}
		out = append(out, Step{Key: key, Index: -1})
	}
	return out, nil
}

func quotedKey(path, rest string) (key, left string, err error) {
	var b strings.Builder
	for i := 0; i < len(rest); i++ {
		switch {
		case rest[i] == '"':
			return b.String(), rest[i+1:], nil
		case rest[i] == '\\' && i+1 < len(rest):
			i++
		}
		b.WriteByte(rest[i])
	}
	return "", "", fmt.Errorf("the quote in path %q is not closed", path)
}
