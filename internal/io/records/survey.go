package records

import (
	"context"
	"io"

	"thalweg/internal/base/fault"
	"thalweg/internal/lang/filespec"
)

// Limits of surveys.
const (
	// surveyedMax limits the number of different keys of records, nested ones included.
	surveyedMax = 10_000
	// surveyedDepthMax limits how deep objects are taken apart; deeper values stay JSON.
	surveyedDepthMax = 5
)

// Survey takes the whole text of a JSON file, and learns which values its records have, also
// inside of objects.
type Survey struct {
	*Writer
	root  *surveyed
	count int
}

// surveyed is a key, and what its values were.
type surveyed struct {
	path    string
	value   Value // of those that are no objects
	seen    int64
	objects int64
	keys    map[string]*surveyed
	order   []*surveyed
}

// NewSurvey returns one that has seen nothing. The text is written to it, and it is closed.
func NewSurvey() *Survey {
	s := &Survey{Writer: &Writer{to: io.Discard, spec: filespec.Spec{Format: filespec.JSON}, line: 1},
		root: &surveyed{}}
	s.visit = func(text []byte) error { return s.object(text, s.root, 0) }
	return s
}

// object counts the members of a sound object.
func (s *Survey) object(text []byte, of *surveyed, depth int) (err error) {
	of.objects++
	if of.keys == nil {
		of.keys = map[string]*surveyed{}
	}
	eachMember(text, func(key string, raw []byte) {
		k := of.keys[key]
		if k == nil {
			if s.count++; s.count > surveyedMax {
				err = fault.New(fault.UserData, "the records have more than %d different keys", surveyedMax)
				return
			}
			k = &surveyed{path: filespec.KeyPath(key)}
			if of.path != "" {
				k.path = of.path + "." + k.path
			}
			of.keys[key], of.order = k, append(of.order, k)
		}
		k.seen++
		if raw[0] == '{' && depth < surveyedDepthMax {
			if inner := s.object(raw, k, depth+1); inner != nil {
				err = inner
			}
			return
		}
		k.value = together(k.value, kindOf(raw))
	})
	return err
}

// Found are the values that a column can have each, by their paths: those of objects where all are
// some, in the order in which they came.
func (s *Survey) Found() []Found { return s.root.found(nil, false) }

func (k *surveyed) found(out []Found, lacking bool) []Found {
	for _, c := range k.order {
		lacks := lacking || c.seen < k.objects
		if c.objects > 0 && c.value == Nothing && len(c.order) > 0 {
			out = c.found(out, lacks)
			continue
		}
		if c.objects > 0 {
			c.value = Any
		}
		out = append(out, Found{Key: c.path, Value: c.value, Missing: lacks})
	}
	return out
}

// SurveyExcel says which columns a sheet has, by its header and all of its rows, and how many rows with values are
// below the header.
func SurveyExcel(ctx context.Context, in io.ReaderAt, size int64, spec filespec.Spec) (found []Found, rows int,
	err error) {
	return lookExcel(ctx, in, size, spec, -1)
}
