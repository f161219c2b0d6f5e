package api

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"thalweg/internal/app/view"
)

// textsHeader says, with textsMarked, that a client shows the actions of problems itself: their texts have marks.
const (
	textsHeader = "Thalweg-Texts"
	textsMarked = "marks"
)

type markedKey struct{}

// withTexts notes in a request's context how its sender wants texts.
func withTexts(r *http.Request) *http.Request {
	if r.Header.Get(textsHeader) != textsMarked {
		return r
	}
	return r.WithContext(context.WithValue(r.Context(), markedKey{}, true))
}

// told returns a problem as whoever has asked shows it: actions are words in its texts, and data in Next.
func (p *Problem) told(ctx context.Context) *Problem {
	if marked, _ := ctx.Value(markedKey{}).(bool); marked || p == nil {
		return p
	}
	out := *p
	for _, text := range []*string{&out.Detail, &out.Hint, &out.Evidence} {
		*text = view.RenderActions(*text, words{})
	}
	out.Diags = slices.Clone(p.Diags)
	for i := range out.Diags {
		d := &out.Diags[i]
		d.Message, d.Hint = view.RenderActions(d.Message, words{}), view.RenderActions(d.Hint, words{})
	}
	return &out
}

// words shows actions and settings in plain words.
type words struct{}

// Action implements action.Renderer.
func (words) Action(a view.Action, alone bool) string {
	out := strings.ReplaceAll(a.Verb, "-", " ")
	for i, arg := range a.Args {
		if i > 0 {
			out += ","
		}
		out += " " + strings.TrimSpace(arg.Name+" "+arg.Value)
	}
	if alone {
		return out
	}
	return "“" + out + "”"
}

// Setting implements action.Renderer.
func (words) Setting(s view.Arg) string {
	if name, no := strings.CutPrefix(s.Name, "no-"); no {
		return "the option " + name + " false"
	}
	return strings.TrimSpace("the option " + s.Name + " " + s.Value)
}
