package api

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"maps"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"thalweg/internal/app"
	"thalweg/internal/app/access"
	"thalweg/internal/app/view"
	"thalweg/internal/base/fault"
)

// Limits of texts.
const (
	givenBytesMax = 4 << 20 // of a text and its files
	textBodyBytes = 3 * givenBytesMax
	lookTimeout   = 30 * time.Second // at a script
)

func (s *Server) registerAuthor() {
	const w = "/v1/workspaces/{workspace}"
	text := func(id, method, path, summary string, needs access.Permission) operation {
		return operation{id: id, method: method, path: w + path, tag: "scripts", summary: summary, needs: needs,
			bytes: textBodyBytes}
	}
	job := func(o operation) operation {
		o.status = http.StatusAccepted
		return o
	}
	add(s, text("validate-script", http.MethodPost, "/validations",
		"List all problems of a script that may be started or, for authors, of a text.", access.View), s.validateScript)
	add(s, text("explain-script", http.MethodPost, "/explanations",
		"Say how a run of a script that may be started, or for authors of a text, would proceed.", access.View),
		s.explainScript)
	add(s, text("format-script", http.MethodPost, "/formats", "Lay a text out as all scripts are.", access.Author),
		s.formatScript)
	add(s, job(text("infer-script", http.MethodPost, "/inferences", "Propose a script for files: a job.",
		access.Author)), s.inferScript)
	add(s, job(text("test-script", http.MethodPost, "/tests", "Run the tests of a script or a text: a job.",
		access.Author)), s.testScript)
	add(s, text("show-script", http.MethodGet, "/scripts/{script}", "Show the text of a script, or of a file beside one.",
		access.Author), s.showScript)
	add(s, text("show-run-texts", http.MethodGet, "/runs/{run}/texts",
		"Show the texts that a run was begun with: its script, and what that includes and uses.", access.Author),
		s.showRunTexts)
	add(s, text("put-script", http.MethodPut, "/scripts/{script}",
		"Write the text of a script, or of a file beside one.", access.Author), s.putScript)
}

// Given is a script that may be started, by its name, or a text.
type Given struct {
	Script string            `json:"script,omitempty" maxLength:"1024" doc:"Name, as list-scripts has it."`
	Text   string            `json:"text,omitempty" maxLength:"1048576" doc:"Text of a script, instead. It needs author."`
	Name   string            `json:"name,omitempty" maxLength:"200" doc:"Where the text would be, below the first directory of scripts."`
	Files  map[string]string `json:"files,omitempty" maxProperties:"100" doc:"Texts beside it, by name: they are read instead of what is there."`
}

// given finds the script that a request means, as its runs see it: from its directory, with what the workspace allows.
func (s *Server) given(ctx context.Context, by asker, operation string, g Given) (app.NamedScript, error) {
	n := app.NamedScript{Policy: s.serving.Policy(by.workspace)}
	if g.Text != "" && !by.may(access.Author) {
		s.access.Note(ctx, by.Principal, access.Refused, by.workspace, operation+" of a text", by.from)
		return n, errNotMay
	}
	switch {
	case (g.Script == "") == (g.Text == ""):
		return n, &fault.Error{Kind: fault.Script, Message: "a request means either a script or a text",
			Hint: "script is the name of one that may be started, text is one itself"}
	case g.Script != "" && (g.Name != "" || len(g.Files) > 0):
		return n, &fault.Error{Kind: fault.Script, Message: "name and files belong to a text, and script names a script",
			Hint: "leave them out, or send text instead of script"}
	case g.Script != "":
		return s.scriptOf(by.workspace, g.Script)
	}
	dir, err := s.serving.FirstDir(by.workspace)
	if err != nil {
		return n, err
	}
	if g.Name == "" {
		sum := sha256.Sum256([]byte(g.Text))
		g.Name = "text-" + hex.EncodeToString(sum[:6]) + ".yaml"
	}
	n.Path = filepath.Join(dir, g.Name)
	n.Dir = filepath.Dir(n.Path)
	n.Texts, err = textsOf(dir, g)
	return n, err
}

// scriptOf finds a script that may be started, as its runs see it.
func (s *Server) scriptOf(workspace, name string) (app.NamedScript, error) {
	one, err := s.serving.ScriptOf(workspace, name)
	n := app.NamedScript{Path: one.Path, Dir: filepath.Dir(one.Path), Policy: s.serving.Policy(workspace)}
	if d := s.serving.Workspaces[workspace].Dev; d != nil && d.Script == name {
		n.Dir, n.ParamsPath, n.Params, n.Lenient = d.Dir, d.ParamsPath, d.Params, d.Lenient
	}
	return n, err
}

// GivenParams is a script or a text with values of its parameters.
type GivenParams struct {
	Given
	Params map[string]string `json:"params,omitempty" doc:"Parameters; of a script, where the server's configuration allows them."`
}

// givenParams is given with parameters.
func (s *Server) givenParams(ctx context.Context, by asker, operation string, g GivenParams) (app.NamedScript, error) {
	n, err := s.given(ctx, by, operation, g.Given)
	if err == nil && len(g.Params) > 0 && g.Text == "" && !s.serving.Workspaces[by.workspace].Parameters {
		err = &fault.Error{Kind: fault.Script, Code: fault.Forbidden,
			Message: "scripts of this workspace are started without parameters: they could name other files",
			Hint:    "parameters: true of the workspace in serve.yaml allows them"}
	}
	if n.Params = maps.Clone(n.Params); n.Params == nil {
		n.Params = map[string]string{}
	}
	maps.Copy(n.Params, g.Params)
	n.Literal = !by.may(access.Author)
	return n, err
}

// textsOf returns the texts of a request by where they would be.
func textsOf(dir string, g Given) (app.Texts, error) {
	out := app.Texts{}
	total := 0
	take := func(name, text string) error {
		if err := app.CheckTextName(name); err != nil {
			return err
		}
		if total += len(text); len(text) > app.TextBytesMax || total > givenBytesMax {
			return fault.New(fault.Script, "a text has at most %d bytes, and all of a request %d", app.TextBytesMax,
				givenBytesMax)
		}
		out[filepath.Join(dir, name)] = text
		return nil
	}
	for name, text := range g.Files {
		if err := take(name, text); err != nil {
			return nil, err
		}
	}
	if _, twice := g.Files[g.Name]; twice {
		return nil, fault.New(fault.Script, "files has the name of the text, too")
	}
	return out, take(g.Name, g.Text)
}

// asGiven names the files of problems as a request does: below the directory of its script.
func asGiven(g Given, n app.NamedScript, ds view.Diagnostics) view.Diagnostics {
	name := cmp.Or(g.Script, g.Name, filepath.Base(n.Path))
	root := strings.TrimSuffix(n.Path, filepath.FromSlash(name))
	return ds.Renamed(func(file string) string { return filepath.ToSlash(strings.TrimPrefix(file, root)) })
}

// errAsGiven is asGiven of an error that has problems.
func errAsGiven(g Given, n app.NamedScript, err error) error {
	var invalid *app.InvalidScriptError
	if !errors.As(err, &invalid) {
		return err
	}
	return &app.InvalidScriptError{Diagnostics: asGiven(g, n, invalid.Diagnostics)}
}

type validateIn struct {
	OfWorkspace
	Body struct{ GivenParams }
}

func (s *Server) validateScript(ctx context.Context, by asker, in *validateIn) (*reply[view.Validated], error) {
	n, err := s.givenParams(ctx, by, "validate-script", in.Body.GivenParams)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	valid, _, err := s.app.Scripts.Validate(ctx, n, false, "")
	valid.Diagnostics = asGiven(in.Body.Given, n, valid.Diagnostics)
	return body(valid, err)
}

type explainIn struct {
	OfWorkspace
	Body struct {
		GivenParams
		Node      string `json:"node,omitempty" maxLength:"256" doc:"Only this one."`
		Ephemeral bool   `json:"ephemeral,omitempty" doc:"As a run that stores no tables which need not be."`
		Reuse     bool   `json:"reuse,omitempty" doc:"To who may start it, say, too, what a run would take over: this imports its Python."`
	}
}

func (s *Server) explainScript(ctx context.Context, by asker, in *explainIn) (*reply[view.Explained], error) {
	n, err := s.givenParams(ctx, by, "explain-script", in.Body.GivenParams)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	script, _, err := s.app.Scripts.Valid(ctx, n)
	if err != nil {
		return nil, errAsGiven(in.Body.Given, n, err)
	}
	explain := s.app.ExplainAlone
	if in.Body.Reuse && by.may(access.Operate) {
		explain = s.app.Explain
	}
	out, err := explain(ctx, by.caller(), script, app.ExplainOptions{Node: in.Body.Node,
		Ephemeral: in.Body.Ephemeral, Path: n.Path, Workspace: in.Workspace, Seen: n})
	if !by.may(access.Author) { // what is made of the text is the text
		for i := range out.Nodes {
			out.Nodes[i].SQL, out.Nodes[i].Setup, out.Nodes[i].Python = "", nil, ""
		}
	}
	return body(out, err)
}

type formatIn struct {
	OfWorkspace
	Body struct {
		Text string `json:"text" maxLength:"1048576" doc:"Of a script, or of parameters."`
		Name string `json:"name,omitempty" maxLength:"200" doc:"Of its file: .json is laid out as JSON; default: script.yaml."`
	}
}

// formatted is a text in the layout of all scripts.
type formatted struct {
	Text string `json:"text"`
}

func (s *Server) formatScript(_ context.Context, _ asker, in *formatIn) (*reply[formatted], error) {
	name := in.Body.Name
	if name == "" {
		name = "script.yaml"
	}
	if err := app.CheckTextName(name); err != nil {
		return nil, err
	}
	text, err := app.FormatScript(name, []byte(in.Body.Text))
	return body(formatted{string(text)}, err)
}

type inferIn struct {
	OfWorkspace
	Body struct {
		Files     []string `json:"files" minItems:"1" maxItems:"100" nullable:"false" doc:"Names as a script has them, patterns or addresses."`
		Separator string   `json:"separator,omitempty" maxLength:"1" doc:"Of CSV; none: it is found out."`
		Header    *bool    `json:"header,omitempty" doc:"Whether the first record of CSV is a header; none: it is found out."`
	}
}

// inferred is a proposal.
type inferred struct {
	Text  string        `json:"text" doc:"The script."`
	Found view.Inferred `json:"found"`
}

func (s *Server) inferScript(ctx context.Context, by asker, in *inferIn) (*reply[Job], error) {
	if !by.may(access.Read) {
		s.access.Note(ctx, by.Principal, access.Refused, by.workspace, "infer-script", by.from)
		return nil, errNotMay
	}
	dir, err := s.serving.FirstDir(in.Workspace)
	if err != nil {
		return nil, err
	}
	b := in.Body
	return s.job(by, operation{id: "infer-script"}, func(ctx context.Context) (any, error) {
		p, err := s.app.InferScript(ctx, b.Files, app.InferOptions{Separator: b.Separator, Header: b.Header,
			Told: func(text string) string { return view.RenderActions(text, words{}) },
			Seen: app.NamedScript{Dir: dir, Policy: s.serving.Policy(in.Workspace)}})
		s.note(ctx, by, access.RowsSeen, "files "+strings.Join(b.Files, ", "), err)
		if err != nil {
			return nil, err
		}
		var text bytes.Buffer
		err = p.WriteScript(&text, false)
		return inferred{text.String(), p.Inferred}, err
	})
}

type testIn struct {
	OfWorkspace
	Body struct {
		Given
		Tests string `json:"tests,omitempty" maxLength:"200" doc:"Name of the tests, as of files; none: NAME.test.yaml beside the script."`
	}
}

func (s *Server) testScript(ctx context.Context, by asker, in *testIn) (*reply[Job], error) {
	n, err := s.given(ctx, by, "test-script", in.Body.Given)
	if err != nil {
		return nil, err
	}
	tests := in.Body.Tests
	if tests != "" {
		if err := app.CheckTextName(tests); err != nil {
			return nil, err
		}
		dir, err := s.serving.FirstDir(in.Workspace)
		if err != nil {
			return nil, err
		}
		tests = filepath.Join(dir, tests)
	}
	return s.job(by, operation{id: "test-script"}, func(ctx context.Context) (any, error) {
		return s.app.TestScript(ctx, by.caller(), n, tests)
	})
}

// OfScript is the input of operations of a text.
type OfScript struct {
	OfWorkspace
	Script string `path:"script" maxLength:"200" doc:"Name, as list-scripts has it, with %2F for /; or of a file beside one."`
}

// scriptText is a script, or a file beside one, as it is kept.
type scriptText struct {
	Script string `json:"script"`
	Text   string `json:"text"`
}

func (s *Server) showScript(_ context.Context, _ asker, in *OfScript) (*reply[scriptText], error) {
	is, err := s.serving.ReadText(in.Workspace, in.Script)
	if err != nil {
		return nil, err
	}
	return &reply[scriptText]{ETag: strconv.Quote(is.Digest), Body: scriptText{in.Script, is.Text}}, nil
}

func (s *Server) showRunTexts(ctx context.Context, _ asker, in *OfRun) (*reply[view.RunTexts], error) {
	run, err := s.app.Runs.Find(ctx, in.Workspace, in.Run)
	if err != nil {
		return nil, err
	}
	return body(s.app.RunTexts(ctx, run))
}

type putScriptIn struct {
	OfScript
	IfMatch     string `header:"If-Match" maxLength:"4096" doc:"ETag of the text that is replaced, or several; *: whatever is there."`
	IfNoneMatch string `header:"If-None-Match" maxLength:"1" doc:"*: there is none yet."`
	Body        struct {
		Text string `json:"text" maxLength:"1048576"`
	}
}

func (s *Server) putScript(ctx context.Context, by asker, in *putScriptIn) (*reply[script], error) {
	if (in.IfMatch == "") == (in.IfNoneMatch != "*") {
		return nil, &fault.Error{Kind: fault.Script, Message: "a text is written over one that is known, or as a new one",
			Hint: "send its ETag as If-Match, or If-None-Match: *"}
	}
	digest, err := s.texts.Write(s.serving, in.Workspace, in.Script, in.Body.Text,
		app.TextCondition{New: in.IfMatch == "", Is: func(digest string) bool {
			return matches(in.IfMatch, func(tag string) bool { return tag == strconv.Quote(digest) })
		}})
	if err != nil {
		return nil, err
	}
	s.access.Note(ctx, by.Principal, access.TextWritten, in.Workspace, "script "+in.Script+" "+digest, by.from)
	return &reply[script]{ETag: strconv.Quote(digest), Body: script{in.Script}}, nil
}
