package script

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"thalweg/internal/base/allow"

	"thalweg/internal/base/address"
	"thalweg/internal/base/document"
	"thalweg/internal/base/fault"
	"thalweg/internal/base/secret"
	"thalweg/internal/base/similar"
	"thalweg/internal/lang/expr"
)

// Sources holds the text of a script, or its path, and its parameters.
type Sources struct {
	Path       string // script: .json, .yaml or .yml
	ParamsPath string // parameters file of the same kinds; "": none
	Dir        string // relative names of files and databases are seen from it; "": the working directory
	// parameters of the command line: they win, and are of the type that a reference asks for
	Params map[string]string
	// Literal refuses parameters of Params that stand in code and are no literals: who gives them may not write scripts.
	Literal bool
	Offered map[string]string // parameters that count if nobody gives others; the script need not refer to them
	// Answers holds the answers that people gave at the script's gates: they replace the defaults.
	Answers map[string]string
	// Lenient takes keys that look like typing errors, and keys that occur
	// twice, as Capillaries does: the former have no effect, of the latter the
	// last counts. Each is a warning then.
	Lenient bool
	// Environment looks up the environment values that a script declares. nil: none are set.
	Environment func(name string) (string, bool)
	// Secrets is given the script once its secrets are known, before any
	// address that refers to them is read: Read and Columns are then asked for
	// addresses with references. nil: they are asked for those with values.
	Secrets func(*Script)
	// Known is told the secrets that are found, and decides what diagnostics show.
	// nil: only rules decide.
	Known *secret.Known
	// Read fetches the script, the parameters, Python files and tag criteria
	// by the URLs that the user and the script give. Its errors should be
	// *fault.Error, so that a caller can tell a missing network from a missing
	// file; those for missing files should wrap fs.ErrNotExist, because Python
	// and tag files with relative names are looked for beside the script
	// first, then as given. nil is ReadLocal.
	Read func(ctx context.Context, url string) ([]byte, error)
	// Columns says which columns an input file has: those of its header record,
	// or of a Parquet file's schema. It is asked for files whose columns the
	// script does not list. For a name with * or ? it looks at the first file
	// that matches. nil: such scripts do not load.
	Columns func(ctx context.Context, url string, csv CSVReader, parquet bool) ([]FileColumn, error)
	// TableColumns says which columns a table, or the result of a query, of a database
	// has. nil: scripts that do not list them do not load.
	TableColumns func(ctx context.Context, url, table, query string) ([]FileColumn, error)
	// Describe opens what understands the queries of sql nodes; nil: they are
	// not checked, need declared fields, and cannot run.
	Describe func(ctx context.Context) (Describer, error)
}

// Load reads and checks a script. The diagnostics are all problems and
// warnings that were found, in the order of the text; if one of them is an
// error the Script is nil. It may be called by many goroutines at once.
func Load(ctx context.Context, src Sources) (*Script, document.Diagnostics) {
	return newLoader(src).all(ctx)
}

// LoadServing reads only how a script is served: its nodes are not looked at,
// and no input file is. Parameters that schedules and watches give may be missing.
func LoadServing(ctx context.Context, src Sources) (*Script, document.Diagnostics) {
	src.Offered = Offers(time.Time{})
	src.Offered[ParamWatchedFile] = "watched"
	l := newLoader(src)
	l.servingOnly = true
	return l.all(ctx)
}

// LoadHooks reads a file that has only hooks, and the environment values in them.
func LoadHooks(ctx context.Context, src Sources) ([]Hook, document.Diagnostics) {
	l := newLoader(src)
	l.servingOnly, l.hooksOnly = true, true
	s, diags := l.all(ctx)
	if s == nil {
		return nil, diags
	}
	return s.Notify, diags
}

func newLoader(src Sources) *loader {
	if src.Read == nil {
		src.Read = func(ctx context.Context, url string) ([]byte, error) {
			return ReadLocal(ctx, nil, address.SeenFrom(src.Dir, url))
		}
	}
	return &loader{Report: &document.Report{}, src: src, fetched: map[string]fetched{},
		isIncluded: map[*document.Source]bool{}, secretPlaces: map[*document.Value]bool{},
		fileOrdinals: map[string]int{}, templates: map[*document.Source][]document.Span{},
		tables: map[string]*Node{}, indexKeys: map[*Index]*document.Value{}, byPolicy: map[string]*DependencyPolicy{},
		drafts: map[*Node]*nodeDraft{},
		script: &Script{Path: address.Redact(src.Path), Dir: src.Dir, byName: map[string]*Node{}, byTable: map[string]*Node{},
			byIndex: map[string]*Index{}, texts: map[string]string{}, secrets: map[string]string{},
			hidden: secret.New()}}
}

// all loads, and gives the script if there are no errors.
func (l *loader) all(ctx context.Context) (*Script, document.Diagnostics) {
	l.load(ctx)
	if l.describer != nil {
		if err := l.describer.Close(); err != nil {
			l.AddFile(document.Error, l.script.Path, "", "closing what checked the queries: "+err.Error()).Cause = err
		}
	}
	if err := ctx.Err(); err != nil {
		l.AddFile(document.Error, l.script.Path, "", "loading was canceled").Cause = &fault.Error{Kind: fault.Canceled,
			Message: "loading " + l.script.Path, Err: err}
	}
	diags := l.Result(l.script.Path, l.fileRank, l.src.Known)
	if diags.HasErrors() {
		return nil, diags
	}
	return l.script, diags
}

func (l *loader) load(ctx context.Context) {
	script := l.fetch(ctx, l.src.Path, nil, "", document.MaxBytes)
	params := &parameters{values: map[string]paramValue{}, given: l.src.ParamsPath != "", used: map[string]bool{}}
	if l.src.ParamsPath != "" {
		params.broken = true
		if src := l.fetch(ctx, l.src.ParamsPath, nil, "", document.MaxBytes); src != nil {
			params.values, params.broken = l.readParams(src)
		}
	}
	if script == nil {
		return
	}
	for name, value := range l.src.Params {
		l.src.Known.LearnArgument(strings.TrimPrefix(name, SpareParam) + "=" + value)
	}
	params.offer(l.src.Offered)
	params.override(l.src.Params, l.src.Literal)
	l.answers(ctx, script, params)
	root := l.document(ctx, script, params)
	if root == nil {
		return
	}
	l.serving(root)
	if l.servingOnly {
		return
	}
	l.findAnswerUses(root)
	l.unusedParams(params, script.Original)
	l.policies(root)
	l.python(ctx, root)
	l.readNodes(ctx, root)
	for _, f := range l.files {
		l.misplacedBuiltins(f.src, root.v)
	}
	l.misplacedSecrets(root.v, "", map[*document.Value]bool{})
	l.identify(root.v)
}

// readNodes learns the names of all nodes and tables first, and then goes
// through the nodes so that each comes behind those that it reads: what it
// reads may have types that were inferred.
func (l *loader) readNodes(ctx context.Context, root *object) {
	members := root.members("nodes")
	if len(members) == 0 {
		if !root.has("nodes") || root.get("nodes").Kind == document.Map {
			root.missing("nodes", "a script is a map with the key nodes")
		}
		return
	}
	for _, e := range members {
		if l.IsFull() {
			return
		}
		l.node(e)
	}
	for _, d := range l.nodes {
		if l.IsFull() {
			return
		}
		l.declareTable(d)
	}
	passes := []func(*nodeDraft){func(d *nodeDraft) { l.tableReader(ctx, d) }, l.lookup,
		func(d *nodeDraft) { l.processor(ctx, d) },
		func(d *nodeDraft) { l.sqlNode(ctx, d) }, l.tableExpressions, l.indexes, l.fileWriter, l.checks}
	for _, d := range l.dependencyOrder() {
		for _, pass := range passes {
			if l.IsFull() || ctx.Err() != nil {
				return
			}
			pass(d)
		}
	}
	l.indexUse()
	l.sideTables()
	l.cycles()
	l.gates()
	l.ephemeral()
}

// fetched is a pulled-in file, or the failure to get it.
type fetched struct{ src *document.Source }

// fetch reads a file once; failures are reported at the value that names it.
// A relative name in a value is looked for beside the file that the value is
// in, beside the script, and then as it is.
func (l *loader) fetch(ctx context.Context, name string, at *document.Value, where string, limit int) *document.Source {
	if at == nil {
		return l.fetchFirst(ctx, name, []string{name}, nil, where, limit)
	}
	l.secretPlaces[at] = takesSecrets(name)
	var places []string
	key := name
	for _, base := range []string{at.Src.URL, l.src.Path} {
		if place := address.Beside(base, name); place != "" && !slices.Contains(places, place) {
			places = append(places, place)
		}
	}
	if at.Src.URL != l.src.Path && len(places) > 0 {
		key = places[0]
	}
	return l.fetchFirst(ctx, key, append(places, name), at, where, limit)
}

// fetchExactly reads a file at one place.
func (l *loader) fetchExactly(ctx context.Context, name string, at *document.Value, where string,
	limit int) *document.Source {
	return l.fetchFirst(ctx, name, []string{name}, at, where, limit)
}

// fetchFirst reads the file that is found first, once for each key.
func (l *loader) fetchFirst(ctx context.Context, key string, places []string, at *document.Value, where string,
	limit int) *document.Source {
	if f, ok := l.fetched[key]; ok {
		return f.src
	}
	if len(l.fetched) >= MaxPulledFilesCount {
		l.ErrorAt(at, where, "too many files: the limit is %d", MaxPulledFilesCount)
		return nil
	}
	text, found, err := l.read(ctx, places)
	shown := address.Redact(found)
	if err == nil && len(text) > limit {
		err = fault.New(fault.Script, "the file is larger than %d MiB", limit>>20)
	}
	if err != nil {
		l.fetched[key] = fetched{}
		l.unreadable(shown, found, at, where, err)
		return nil
	}
	l.src.Known.Learn(string(text))
	src := document.NewSource(shown, string(text))
	src.URL = found
	l.fetched[key] = fetched{src}
	l.fileOrdinals[shown] = len(l.fileOrdinals) + 1
	l.script.texts[shown] = src.Original
	return src
}

// revealed is an address as Sources wants it.
func (l *loader) revealed(url string) string {
	if l.src.Secrets != nil {
		return url
	}
	return l.script.Reveal(url)
}

// read reads the first of the places where there is a file, and says which it was.
func (l *loader) read(ctx context.Context, places []string) (text []byte, found string, err error) {
	for _, found = range places {
		text, err = l.src.Read(ctx, l.revealed(found))
		if !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return text, found, l.script.hideError(err)
}

func (l *loader) unreadable(shown, found string, at *document.Value, where string, err error) {
	var d *document.Diagnostic
	if at == nil {
		d = l.AddFile(document.Error, shown, where, "the file cannot be read: "+err.Error()) // its name comes before
	} else {
		d = l.ErrorAt(at, where, "cannot read %s: %s", shown, err)
	}
	var f *fault.Error
	if !errors.As(err, &f) {
		f = &fault.Error{Kind: fault.Environment, Message: "reading " + shown, Err: err}
		err = f
	}
	d.Cause, d.Hint = err, f.Hint
	if d.Hint == "" && errors.Is(err, fs.ErrNotExist) {
		d.Hint = "check the name, and the directory the command runs in"
		if near := similar.File(found); near != "" && !address.Remote(found) {
			d.Hint = "did you mean " + near + "?"
		}
	}
}

// parse reads a source as its name says. nil after an error.
func (l *loader) parse(src *document.Source) *document.Value {
	doc, fail := document.Read(src)
	if fail != nil {
		l.AddSyntax(src, fail)
		return nil
	}
	l.learn("", doc, map[*document.Value]bool{})
	if l.zeroBytes(doc, "", map[*document.Value]bool{}) {
		return nil
	}
	l.equalKeys(doc, "", map[*document.Value]bool{})
	return doc
}

// learn makes the values known whose keys say that they are secrets: of a map in such a place its values.
func (l *loader) learn(name string, v *document.Value, seen map[*document.Value]bool) {
	if seen[v] {
		return
	}
	seen[v] = true
	for _, e := range v.Entries {
		if e.Name == "value" || e.Name == "default" {
			l.learn(name, e.Value, seen)
			continue
		}
		l.learn(e.Name, e.Value, seen)
	}
	for _, item := range v.Items {
		l.learn(name, item, seen)
	}
	if v.Scalar() {
		l.src.Known.LearnKeyed(name, v.Text)
	}
}

// ReadLocal reads a file of this machine that a policy lets be read.
func ReadLocal(ctx context.Context, policy *allow.Policy, name string) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, &fault.Error{Kind: fault.Canceled, Message: "reading " + address.Redact(name), Err: err}
	}
	if address.Remote(name) {
		return nil, fault.New(fault.Environment, "%s:// files cannot be read here", address.Scheme(name))
	}
	path, err := address.Local(name)
	if err != nil {
		return nil, err
	}
	f, err := policy.Open(path)
	var irregular *allow.NotRegularError
	switch {
	case errors.As(err, &irregular):
		return nil, fault.New(fault.Script, "it is not a regular file")
	case err != nil:
		return nil, localFault(err)
	}
	defer f.Close() // read only: nothing can be lost
	text, err := io.ReadAll(io.LimitReader(f, MaxPythonBytes+1))
	if err != nil {
		return nil, localFault(err)
	}
	return text, nil
}

// localFault leaves the name to the message around it.
func localFault(err error) error {
	var refused *fault.Error
	if errors.As(err, &refused) {
		return err
	}
	var p *os.PathError
	if errors.As(err, &p) {
		kind := fault.Environment
		if errors.Is(p.Err, fs.ErrNotExist) {
			kind = fault.Script // whoever names a file can mend its name
		}
		return &fault.Error{Kind: kind, Message: "opening the file", Err: p.Err}
	}
	return &fault.Error{Kind: fault.Environment, Message: "reading failed", Err: err}
}

func asExprError(err error) (*expr.Error, bool) {
	var e *expr.Error
	ok := errors.As(err, &e)
	return e, ok
}
