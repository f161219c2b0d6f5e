package api

import (
	"net/http"
	"reflect"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// Names of the descriptions of failures.
const (
	responseProblem = "Problem"
	responseNoLogin = "NoLogin"
	responseTooMany = "TooMany"
	responseBad     = "Bad"
)

// problemResponses describes the answers of operations that are failures.
func problemResponses(schemas huma.Registry) map[string]*huma.Response {
	described := func(text string, headers map[string]string) *huma.Response {
		r := &huma.Response{Description: text, Headers: map[string]*huma.Header{}, Content: map[string]*huma.MediaType{
			problemType: {Schema: schemas.Schema(reflect.TypeFor[Problem](), true, "")}}}
		for name, what := range headers {
			r.Headers[name] = &huma.Header{Description: what, Schema: &huma.Schema{Type: huma.TypeString}}
		}
		return r
	}
	bad := described("It is no request: a text if it could not be read at all.", nil)
	bad.Content["text/plain"] = &huma.MediaType{}
	return map[string]*huma.Response{
		responseProblem: described("A failure.", nil),
		responseNoLogin: described("Nobody has signed in.", map[string]string{"WWW-Authenticate": "Bearer."}),
		responseBad:     bad,
		responseTooMany: described("There were too many requests.", map[string]string{"Retry-After": "Seconds to wait."}),
	}
}

// responses lists the answers of an operation, but for what the type of its output says of success.
func (o operation) responses(input reflect.Type) map[string]*huma.Response {
	out := map[string]*huma.Response{}
	add := func(statuses ...int) {
		for _, status := range statuses {
			name := responseProblem
			switch status {
			case http.StatusUnauthorized:
				name = responseNoLogin
			case http.StatusTooManyRequests:
				name = responseTooMany
			case http.StatusBadRequest, http.StatusRequestHeaderFieldsTooLarge:
				name = responseBad
			}
			out[strconv.Itoa(status)] = &huma.Response{Ref: "#/components/responses/" + name}
		}
	}
	add(http.StatusUnauthorized, http.StatusForbidden, http.StatusMisdirectedRequest, http.StatusUnprocessableEntity,
		http.StatusBadRequest, http.StatusRequestHeaderFieldsTooLarge,
		http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusServiceUnavailable, http.StatusGatewayTimeout)
	if strings.Contains(o.path, "{") || o.missing {
		add(http.StatusNotFound)
	}
	if o.method != http.MethodGet {
		add(http.StatusConflict)
	}
	if _, has := input.FieldByName("Body"); has {
		add(http.StatusRequestTimeout, http.StatusRequestEntityTooLarge,
			http.StatusUnsupportedMediaType)
	}
	if len(o.media) > 0 {
		ok := &huma.Response{Description: http.StatusText(http.StatusOK), Content: map[string]*huma.MediaType{}}
		for _, m := range o.media {
			ok.Content[m] = &huma.MediaType{}
		}
		out[strconv.Itoa(http.StatusOK)] = ok
	}
	if _, may := input.FieldByName("IfNoneMatch"); may && o.method == http.MethodGet {
		out[strconv.Itoa(http.StatusNotModified)] = &huma.Response{Description: "It is as it was."}
	}
	return out
}
