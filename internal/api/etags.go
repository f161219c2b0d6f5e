package api

import (
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
)

// anyTag, as If-Match or If-None-Match, means whatever there is.
const anyTag = "*"

// etag is an entity tag of a request.
type etag struct {
	text string // with its quotes
	weak bool
}

// etagsOf reads a list of entity tags: see RFC 9110, 8.8.3. What is none ends it.
func etagsOf(list string) (tags []etag) {
	for {
		list = strings.TrimLeft(list, " \t,")
		rest, weak := strings.CutPrefix(list, "W/")
		if !strings.HasPrefix(rest, `"`) {
			return tags
		}
		end := strings.IndexByte(rest[1:], '"')
		if end < 0 {
			return tags
		}
		tags = append(tags, etag{rest[:end+2], weak})
		list = rest[end+2:]
	}
}

// matchesNone reports whether a list of If-None-Match has the tag of what is there, in the weak comparison.
func matchesNone(list, tag string) bool {
	if strings.TrimSpace(list) == anyTag {
		return true
	}
	for _, one := range etagsOf(list) {
		if one.text == tag {
			return true
		}
	}
	return false
}

// matches reports whether a list of If-Match has a tag of what is there, in the strong comparison: weak tags are none.
func matches(list string, is func(tag string) bool) bool {
	if strings.TrimSpace(list) == anyTag {
		return true
	}
	for _, one := range etagsOf(list) {
		if !one.weak && is(one.text) {
			return true
		}
	}
	return false
}

// joinTags makes one list of headers that are sent several times: the library reads the first only.
func joinTags(c huma.Context) {
	r, _ := humago.Unwrap(c)
	for _, name := range []string{"If-Match", "If-None-Match"} {
		if all := r.Header.Values(name); len(all) > 1 {
			r.Header.Set(name, strings.Join(all, ", "))
		}
	}
}
