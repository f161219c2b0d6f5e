package api

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"thalweg/internal/app/access"
	"thalweg/internal/app/view"
)

func (s *Server) registerMe() {
	op := func(id, method, path, summary string, needs access.Permission) operation {
		return operation{id: id, method: method, path: path, summary: summary, tag: "access", needs: needs}
	}
	add(s, op("login", http.MethodPost, "/v1/login", "Begin a session in a cookie.", access.Anyone), s.login)
	add(s, op("ways-to-login", http.MethodGet, "/v1/login", "Say how a session can begin.", access.Anyone), s.waysToLogin)
	add(s, op("logout", http.MethodPost, "/v1/logout", "End the session.", access.Self), s.logout)
	add(s, op("me", http.MethodGet, "/v1/me", "Say who asks, and what they may.", access.Self), s.me)
	add(s, op("version", http.MethodGet, "/v1/version", "Say which program answers.", access.Self), s.showVersion)
	add(s, op("list-workspaces", http.MethodGet, "/v1/workspaces", "List the workspaces that you may see.", access.Self),
		s.listWorkspaces)
	add(s, op("list-tokens", http.MethodGet, "/v1/tokens", "List your tokens.", access.Self), s.listTokens)
	make := op("make-token", http.MethodPost, "/v1/tokens", "Make a token; its secret is told once.", access.Self)
	make.status = http.StatusCreated
	add(s, make, s.makeToken)
	add(s, op("revoke-token", http.MethodDelete, "/v1/tokens/{token}", "Revoke a token of yours; an admin, any.",
		access.Self), s.revokeToken)
	add(s, op("list-users", http.MethodGet, "/v1/users", "List the users.", access.Admin), s.listUsers)
	add(s, op("put-user", http.MethodPut, "/v1/users/{user}", "Make a user, or change one.", access.Admin), s.putUser)
	add(s, op("access-log", http.MethodGet, "/v1/access-log", "List who came in, was refused, saw or took rows.",
		access.Admin), s.accessLog)
}

// authenticate says who sends a request: by its token, else by its cookie.
func (s *Server) authenticate(c huma.Context) (access.Principal, error) {
	if text := c.Header("Authorization"); text != "" {
		scheme, secret, _ := strings.Cut(text, " ")
		if !strings.EqualFold(scheme, "Bearer") {
			return access.Principal{}, errNoLogin
		}
		return s.access.Bearer(c.Context(), strings.TrimLeft(secret, " "))
	}
	cookie, err := huma.ReadCookie(c, s.cookie)
	if err != nil {
		return access.Principal{}, errNoLogin
	}
	return s.access.Session(c.Context(), cookie.Value)
}

// may reports whether the asker has a permission in the operation's workspace.
func (a asker) may(p access.Permission) bool { return a.May(a.workspace, p) }

type loginIn struct {
	Body struct {
		Name     string `json:"name,omitempty" maxLength:"100"`
		Password string `json:"password,omitempty" maxLength:"1024"`
		Start    string `json:"start,omitempty" maxLength:"128" doc:"The start token, instead of a name and a password."`
	}
}

// loginWays are the ways in which a session can begin.
type loginWays struct {
	Ways []string `json:"ways" enum:"password,provider,start" doc:"A name with a password; /oidc/login; the address that the server has printed."`
}

func (s *Server) waysToLogin(context.Context, asker, *none) (*reply[loginWays], error) {
	out := loginWays{Ways: []string{"password"}}
	if s.provider != nil {
		out.Ways = append(out.Ways, "provider")
	}
	if s.access.Starts() {
		out.Ways = append(out.Ways, "start")
	}
	return body(out, nil)
}

type cookied struct {
	SetCookie http.Cookie `header:"Set-Cookie"`
}

func (s *Server) login(ctx context.Context, by asker, in *loginIn) (*cookied, error) {
	var secret string
	var err error
	if in.Body.Start != "" {
		secret, err = s.access.Start(ctx, in.Body.Start, by.from)
	} else {
		secret, err = s.access.Login(ctx, in.Body.Name, in.Body.Password, by.from)
	}
	if err != nil {
		return nil, err
	}
	return &cookied{s.sessionCookie(secret, access.SessionMax)}, nil
}

// sessionCookie is the cookie of a session; life 0 removes it.
func (s *Server) sessionCookie(secret string, life time.Duration) http.Cookie {
	age := int(life.Seconds())
	if life == 0 {
		age = -1
	}
	return http.Cookie{Name: s.cookie, Value: secret, Path: "/", MaxAge: age, HttpOnly: true, Secure: s.secure,
		SameSite: http.SameSiteLaxMode}
}

func (s *Server) logout(ctx context.Context, by asker, _ *none) (*cookied, error) {
	return &cookied{s.sessionCookie("", 0)}, s.access.Logout(ctx, by.Principal, by.from)
}

// whoami says who asks.
type whoami struct {
	Name   string         `json:"name"`
	Via    string         `json:"via"`
	Grants []access.Grant `json:"grants"`
}

func (s *Server) me(_ context.Context, by asker, _ *none) (*reply[whoami], error) {
	return body(whoami{by.Name(), string(by.Via()), append([]access.Grant{}, by.Grants()...)}, nil)
}

func (s *Server) showVersion(context.Context, asker, *none) (*reply[view.Build], error) {
	return body(s.build, nil)
}

// workspace is a workspace with what the asker may do there.
type workspace struct {
	Workspace string              `json:"workspace"`
	May       []access.Permission `json:"may"`
}

func (s *Server) listWorkspaces(ctx context.Context, by asker, _ *none) (*reply[[]workspace], error) {
	all, err := s.app.Runs.Workspaces(ctx)
	if err != nil {
		return nil, err
	}
	for name := range s.serving.Workspaces { // some may have had no run yet
		all = append(all, name)
	}
	slices.Sort(all)
	out := []workspace{}
	for _, name := range slices.Compact(all) {
		if !by.May(name, access.View) {
			continue
		}
		one := workspace{Workspace: name}
		for _, p := range []access.Permission{access.View, access.Read, access.Operate, access.Decide, access.Author,
			access.Admin} {
			if by.May(name, p) {
				one.May = append(one.May, p)
			}
		}
		out = append(out, one)
	}
	return body(out, nil)
}

func (s *Server) listTokens(ctx context.Context, by asker, _ *none) (*reply[[]access.Token], error) {
	return body(s.access.Tokens(ctx, by.Name()))
}

type makeTokenIn struct {
	Body struct {
		Name   string         `json:"name" minLength:"1" maxLength:"100" doc:"What it is for."`
		Grants []access.Grant `json:"grants" minItems:"1" maxItems:"200" nullable:"false"`
		Days   int            `json:"days" minimum:"1" maximum:"366" doc:"It lives for so many."`
	}
}

// madeToken is a new token with its secret.
type madeToken struct {
	access.Token
	Secret string `json:"secret"`
}

func (s *Server) makeToken(ctx context.Context, by asker, in *makeTokenIn) (*reply[madeToken], error) {
	t, secret, err := s.access.MakeToken(ctx, by.Principal, in.Body.Name, in.Body.Grants,
		time.Duration(in.Body.Days)*24*time.Hour)
	return body(madeToken{t, secret}, err)
}

type ofToken struct {
	Token string `path:"token" maxLength:"64" doc:"Id of the token."`
}

func (s *Server) revokeToken(ctx context.Context, by asker, in *ofToken) (*struct{}, error) {
	owner := by.Name()
	if by.May("", access.Admin) {
		owner = ""
	}
	return nil, s.access.RevokeToken(ctx, by.Principal, owner, in.Token)
}

// user is a user as others see them.
type user struct {
	Name     string         `json:"name"`
	Display  string         `json:"display,omitempty"`
	Kind     string         `json:"kind" enum:"local,oidc" doc:"Who signs them in: this server, or the provider of identities."`
	Disabled bool           `json:"disabled,omitempty"`
	Grants   []access.Grant `json:"grants"`
}

func userOf(u access.User) user {
	kind := "local"
	if u.External() {
		kind = "oidc"
	}
	return user{Name: u.Name, Kind: kind, Display: u.Display, Disabled: u.Disabled, Grants: append([]access.Grant{}, u.Grants...)}
}

func (s *Server) listUsers(ctx context.Context, _ asker, _ *none) (*reply[[]user], error) {
	found, err := s.access.Users(ctx)
	out := []user{}
	for _, u := range found {
		out = append(out, userOf(u))
	}
	return body(out, err)
}

type putUserIn struct {
	User string `path:"user" maxLength:"100" doc:"Name of the user."`
	Body struct {
		Display  *string         `json:"display,omitempty" maxLength:"200"`
		Password *string         `json:"password,omitempty" maxLength:"1024"`
		Disabled *bool           `json:"disabled,omitempty"`
		Grants   *[]access.Grant `json:"grants,omitempty" maxItems:"200"`
	}
}

func (s *Server) putUser(ctx context.Context, by asker, in *putUserIn) (*reply[user], error) {
	u, err := s.access.PutUser(ctx, by.Principal, in.User, access.UserChange{Display: in.Body.Display,
		Password: in.Body.Password, Disabled: in.Body.Disabled, Grants: in.Body.Grants})
	return body(userOf(u), err)
}

type accessLogIn struct {
	Before string `query:"before" maxLength:"64" doc:"Id of the last entry of the page before."`
	Limit  int    `query:"limit" minimum:"1" maximum:"1000" default:"100"`
}

func (s *Server) accessLog(ctx context.Context, _ asker, in *accessLogIn) (*reply[[]access.Entry], error) {
	entries, err := s.access.Entries(ctx, in.Before, in.Limit)
	return body(append([]access.Entry{}, entries...), err)
}
