package clusterconfig

import (
	"time"

	"thalweg/internal/base/document"
	"thalweg/internal/base/settings"
	"thalweg/internal/ops/bill"
	"thalweg/internal/ops/price"
	"thalweg/internal/run/sheet"
)

func (r *reader) cost(v *document.Value, path string) {
	c := &r.cfg.Cost
	r.Fields(v, path,
		settings.Key("services", func(v *document.Value, path string) {
			r.each(v, path, "write {c7g.large: 3}", func(name string, v *document.Value, path string) {
				n := 0
				r.CountTo(&n, 1, servicesMax)(v, path)
				c.Services = append(c.Services, bill.Service{Machine: name, Count: n})
			})
		}),
		settings.Key("others", func(v *document.Value, path string) {
			r.each(v, path, "write {balancer: 0.0225}", func(name string, v *document.Value, path string) {
				other := bill.Hourly{Name: name}
				price.PerHourTo(r.Reader, &other.PerHour)(v, path)
				c.Others = append(c.Others, other)
			})
		}),
		settings.Key("bring_up", func(v *document.Value, path string) {
			c.BringUp = new(time.Duration)
			r.DurationTo(c.BringUp, bringUpMax)(v, path)
		}),
		settings.Key("prices", r.PathTo(&c.Prices)))
}

// each calls do for each entry of a map whose keys name machines or other things.
func (r *reader) each(v *document.Value, path, hint string, do func(name string, v *document.Value, path string)) {
	if !v.Present() || v.Kind != document.Map || len(v.Entries) == 0 {
		r.ErrorAt(v, path, "%s names nothing", path).Hint = hint
		return
	}
	there := map[string]bool{}
	for _, e := range v.Entries {
		at := settings.Join(path, e.Name)
		switch {
		case !sheet.IsMachine(e.Name):
			r.ErrorAt(e.Key, path, "%s cannot be a name here", document.Quote(e.Name)).Hint =
				"use up to 64 letters, digits, dots, _ and -"
		case there[e.Name]:
			r.ErrorAt(e.Key, path, "%s is there twice", document.Quote(e.Name))
		default:
			do(e.Name, e.Value, at)
		}
		there[e.Name] = true
		r.Note(e.Value, at)
	}
}
