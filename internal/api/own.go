package api

import (
	"context"
	"net/http"

	"thalweg/internal/app/access"
)

func (s *Server) registerOwn() {
	op := func(id, method, path, summary string) operation {
		return operation{id: id, method: method, path: path, summary: summary, tag: "access", needs: access.Self}
	}
	add(s, op("change-password", http.MethodPut, "/v1/me/password",
		"Change your password: your sessions end, and this one goes on in a new cookie."), s.changePassword)
	add(s, op("list-sessions", http.MethodGet, "/v1/me/sessions", "List your sessions."), s.listSessions)
	add(s, op("end-session", http.MethodDelete, "/v1/me/sessions/{session}", "End a session of yours."), s.endSession)
	add(s, op("end-sessions", http.MethodDelete, "/v1/me/sessions", "End all your sessions but the one that asks."),
		s.endSessions)
}

type changePasswordIn struct {
	Body struct {
		Old string `json:"old" maxLength:"1024" doc:"The present password."`
		New string `json:"new" maxLength:"1024"`
	}
}

func (s *Server) changePassword(ctx context.Context, by asker, in *changePasswordIn) (*cookied, error) {
	secret, err := s.access.ChangePassword(ctx, by.Principal, in.Body.Old, in.Body.New, by.from)
	if err != nil {
		return nil, err
	}
	return &cookied{s.sessionCookie(secret, access.SessionMax)}, nil
}

func (s *Server) listSessions(ctx context.Context, by asker, _ *none) (*reply[[]access.OwnSession], error) {
	return body(s.access.Sessions(ctx, by.Principal))
}

type ofSession struct {
	Session string `path:"session" minLength:"1" maxLength:"64" doc:"Id of the session."`
}

func (s *Server) endSession(ctx context.Context, by asker, in *ofSession) (*struct{}, error) {
	_, err := s.access.EndSessions(ctx, by.Principal, in.Session, by.from)
	return nil, err
}

func (s *Server) endSessions(ctx context.Context, by asker, _ *none) (*struct{}, error) {
	_, err := s.access.EndSessions(ctx, by.Principal, "", by.from)
	return nil, err
}
