package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
)

// readable refuses a request whose body does not arrive whole, which is none of our failures, or that has an empty
// parameter where a text must not be empty, as if it were not there, or one twice. Otherwise the body has been read.
func (s *Server) readable(c huma.Context) bool {
	o := c.Operation()
	u := c.URL()
	sent := u.Query()
	for _, p := range o.Parameters {
		values, wrong := sent[p.Name], ""
		switch {
		case p.In != "query" || len(values) == 0:
		case values[0] == "" && !mayBeEmpty(p.Schema):
			wrong = "it is empty: leave it out"
		case len(values) > 1 && p.Schema.Type != huma.TypeArray:
			wrong = "it is there more than once"
		}
		if wrong != "" {
			_ = huma.WriteErr(s.huma, c, http.StatusUnprocessableEntity, "validation failed", // else the client has gone
				&huma.ErrorDetail{Location: "query." + p.Name, Message: wrong})
			return false
		}
	}
	if o.RequestBody == nil {
		return true
	}
	// The library lifts the deadline behind it: one that passes later would cancel the work on the answer.
	_ = c.SetReadDeadline(time.Now().Add(s.bodyTimeout)) // else the server's is
	r, _ := humago.Unwrap(c)
	text, err := io.ReadAll(io.LimitReader(r.Body, o.MaxBodyBytes))
	var late net.Error
	switch {
	case err == nil:
		r.Body = io.NopCloser(bytes.NewReader(text))
		return s.describes(c, text)
	case errors.As(err, &late) && late.Timeout():
		_ = huma.WriteErr(s.huma, c, http.StatusRequestTimeout, "the body does not arrive")
	default:
		_ = huma.WriteErr(s.huma, c, http.StatusBadRequest, "the body is damaged, or not whole")
	}
	return false
}

// mayBeEmpty reports whether the empty text is a value of a parameter.
func mayBeEmpty(s *huma.Schema) bool {
	return s.Type == huma.TypeArray || s.Type == huma.TypeString && s.Format == "" && s.Pattern == "" && len(s.Enum) == 0 &&
		s.MinLength == nil
}

// describes refuses a body that the library would take although it is not as described: it overlooks null, and the case
// of names. What is no JSON is for the library to refuse.
func (s *Server) describes(c huma.Context, text []byte) bool {
	content := c.Operation().RequestBody.Content["application/json"]
	var body any
	if content == nil || json.Unmarshal(text, &body) != nil {
		return true
	}
	if wrong := ambiguous(text); wrong != nil {
		_ = huma.WriteErr(s.huma, c, http.StatusBadRequest, "the body can be read in more than one way", wrong)
		return false
	}
	path := huma.NewPathBuffer([]byte("body"), len("body"))
	if wrong := undescribed(s.huma.OpenAPI().Components.Schemas, content.Schema, body, path); wrong != nil {
		_ = huma.WriteErr(s.huma, c, http.StatusUnprocessableEntity, "validation failed", wrong) // else the client has gone
		return false
	}
	return true
}

// undescribed finds a null, or a member, that a schema does not have. nil: there is none.
func undescribed(schemas huma.Registry, of *huma.Schema, v any, path *huma.PathBuffer) error {
	if of != nil && of.Ref != "" {
		of = schemas.SchemaFromRef(of.Ref)
	}
	if of == nil {
		return nil
	}
	at := func(below *huma.Schema, v any, push func()) error {
		push()
		defer path.Pop()
		return undescribed(schemas, below, v, path)
	}
	switch v := v.(type) {
	case nil:
		if !of.Nullable {
			return &huma.ErrorDetail{Location: path.String(), Message: "it is null: leave it out"}
		}
	case []any:
		for i, one := range v {
			if err := at(of.Items, one, func() { path.PushIndex(i) }); err != nil {
				return err
			}
		}
	case map[string]any:
		for name, one := range v {
			below, is := of.Properties[name]
			if others, typed := of.AdditionalProperties.(*huma.Schema); !is && typed {
				below, is = others, true
			}
			if !is && of.AdditionalProperties == false {
				return &huma.ErrorDetail{Location: path.With(name), Message: "it has no such member"}
			}
			if err := at(below, one, func() { path.Push(name) }); err != nil {
				return err
			}
		}
	}
	return nil
}
