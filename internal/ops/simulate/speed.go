package simulate

import (
	"strconv"

	"thalweg/internal/base/document"
)

// Speed is how fast the cores of a host are, as measured there.
type Speed struct {
	Host      string  `json:"host"`
	Machine   string  `json:"machine"`    // type; "": not known
	CoreSpeed float64 `json:"core_speed"` // times that of a core which carried out the run
}

// speedMax is how many times as fast or as slow as another a core may be.
const speedMax = 100

// ReadSpeed reads what was measured on a host from JSON. Fields that it does not need are left alone; errors name the
// place of what is wrong.
func ReadSpeed(name string, text []byte) (Speed, error) {
	var s Speed
	r := &document.Report{}
	src := document.NewSource(name, string(text))
	if bad := document.InvalidUTF8(src.Text); bad >= 0 {
		r.ErrorSpan(src, bad, bad+1, "", "the text is not UTF-8")
	} else if root, syntax := document.ReadJSON(src); syntax != nil {
		r.AddSyntax(src, syntax)
	} else {
		s.read(r, root)
	}
	return s, r.Result(name, func(string) int { return 0 }, nil).Err()
}

func (s *Speed) read(r *document.Report, root *document.Value) {
	const hint = `it is JSON: {"host": "b", "machine": "c8g.large", "core_speed": 1.2}, 1 being a core which carried out ` +
		"the run"
	if root.Kind != document.Map {
		r.ErrorAt(root, "", "the speed of a host is a JSON object, not %s", root.Kind).Hint = hint
		return
	}
	there := map[string]bool{}
	for _, e := range root.Entries {
		texts := map[string]*string{"host": &s.Host, "machine": &s.Machine}
		to, isText := texts[e.Name]
		switch {
		case !isText && e.Name != "core_speed":
			continue
		case there[e.Name]:
			r.ErrorAt(e.Key, e.Name, "%s is there twice", e.Name)
		case isText && e.Value.Present() && e.Value.Kind != document.String:
			r.ErrorAt(e.Value, e.Name, "%s is a text, not %s", e.Name, e.Value.Kind)
		case isText:
			*to = e.Value.Text
		default:
			s.speed(r, e.Value)
		}
		there[e.Name] = true
	}
	if !there["core_speed"] {
		r.ErrorAt(root, "core_speed", "it has no core_speed, and no speed is taken from a name").Hint = hint
	}
}

func (s *Speed) speed(r *document.Report, v *document.Value) {
	of, err := strconv.ParseFloat(v.Text, 64)
	switch {
	case !v.Present():
		r.ErrorAt(v, "core_speed", "it has no core_speed, and no speed is taken from a name")
	case v.Kind != document.Number:
		r.ErrorAt(v, "core_speed", "core_speed is a number, not %s", v.Kind)
	case err != nil || !(of >= 1.0/speedMax && of <= speedMax):
		r.ErrorAt(v, "core_speed", "core_speed is from 0.01 to 100")
	default:
		s.CoreSpeed = of
	}
}
