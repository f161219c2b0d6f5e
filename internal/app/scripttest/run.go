package scripttest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"thalweg/internal/app/inspect"
	"thalweg/internal/app/instance"
	"thalweg/internal/app/runner"
	"thalweg/internal/app/runtime"
	"thalweg/internal/app/sources"
	"thalweg/internal/app/view"
	"thalweg/internal/base/address"
	"thalweg/internal/base/allow"
	"thalweg/internal/base/fault"
	"thalweg/internal/base/similar"
	"thalweg/internal/base/sqltext"
	"thalweg/internal/lang/filespec"
	"thalweg/internal/lang/script"
	"thalweg/internal/run/engine"
	"thalweg/internal/store/state"
)

// Options of running tests.
type Options struct {
	runtime.Process
	ParamsPath string // parameters for all cases, behind those of the test file
	Lenient    bool   // see script.Sources
	WorkDir    string // private, exists; the caller removes it

	Policy *allow.Policy // of what the script may open, beside what is in WorkDir; nil: everything
	Texts  sources.Texts // read instead of the script's files; may be nil
}

// policy is Policy with the place of what the tests give and get.
func (o Options) policy() *allow.Policy {
	if o.Policy == nil {
		return nil
	}
	p := *o.Policy
	for _, dir := range []string{filepath.Clean(o.WorkDir), address.Resolve(o.WorkDir)} {
		p.Read, p.Write = append(slices.Clone(p.Read), dir), append(slices.Clone(p.Write), dir)
	}
	return &p
}

// Result holds the result of a case.
type Result struct {
	Case        *Case
	Elapsed     time.Duration
	Differences []string // empty: the case passed
}

// View returns the result as programs see it.
func (r Result) View(of *Suite) view.Tested {
	return view.Tested{Test: r.Case.Name, File: of.Path, Line: r.Case.Line, Nodes: r.Case.Nodes,
		OK: len(r.Differences) == 0, ElapsedMS: float64(r.Elapsed.Microseconds()) / 1000,
		Differences: append([]string{}, r.Differences...)}
}

// engineBytes is for tables of given rows.
const engineBytes = 256 << 20

// Run runs one case. The error is for what is no result: a broken test file
// or script, an environment that does not work.
func Run(ctx context.Context, s *Suite, c *Case, o Options) (Result, error) {
	r := &caseRun{suite: s, c: c, o: o}
	start := time.Now()
	err := r.run(ctx)
	return Result{Case: c, Elapsed: time.Since(start), Differences: r.differences}, err
}

// caseRun is the running of one case.
type caseRun struct {
	suite       *Suite
	c           *Case
	o           Options
	dir         string
	script      *script.Script
	isolation   *script.Isolation
	given       map[string]*value // not yet used
	outputs     map[string]string // directories of the files that nodes write
	differences []string
}

func (r *caseRun) run(ctx context.Context) (err error) {
	if r.dir, err = os.MkdirTemp(r.o.WorkDir, "case-"); err != nil {
		return &fault.Error{Kind: fault.Environment, Message: "make a directory for a test", Err: err}
	}
	defer func() { err = errors.Join(err, os.RemoveAll(r.dir)) }()
	if err := r.load(ctx); err != nil {
		return err
	}
	if err := r.prepare(ctx); err != nil {
		return err
	}
	home, err := instance.Open(ctx, filepath.Join(r.dir, "state"), true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, home.Close()) }()
	process := r.o.Process
	process.Cores = 1
	sum, runErr := runner.Run(ctx, home,
		runner.Options{Script: r.script, Process: process, ScriptPath: r.suite.Script,
			Workspace: instance.DefaultWorkspace,
			Start:     nodeNames(r.script), Unattended: true, Policy: r.o.policy()})
	if ctx.Err() != nil {
		return fmt.Errorf("test %s: %w", r.c.Name, context.Cause(ctx))
	}
	return r.judge(ctx, home, sum, runErr)
}

func nodeNames(s *script.Script) []string {
	out := make([]string, len(s.Nodes))
	for i, n := range s.Nodes {
		out[i] = n.Name
	}
	return out
}

// load loads the script with the case's parameters; each case has its own,
// because cutting nodes out changes it.
func (r *caseRun) load(ctx context.Context) error {
	params, err := r.writeParams()
	if err != nil {
		return err
	}
	src := r.o.Sources(r.o.policy(), "", r.suite.Script, params)
	src.Read = r.o.Texts.Over(src.Dir, src.Read)
	src.Lenient = r.o.Lenient
	s, diags := script.Load(ctx, src)
	if diags.HasErrors() {
		return &sources.InvalidScriptError{Diagnostics: diags}
	}
	r.script = s
	if r.isolation, err = s.Isolate(r.c.Nodes); err != nil {
		f := fault.Of(err)
		f.Place = fault.Place{File: r.suite.Path, Line: int64(r.c.Line)}
		return f
	}
	return nil
}

// writeParams merges the parameters of the command line, the test file and the case.
func (r *caseRun) writeParams() (string, error) {
	merged := map[string]*yaml.Node{}
	if r.o.ParamsPath != "" {
		text, err := readLimited(address.Seen(r.o.Dir, r.o.ParamsPath))
		if err != nil {
			return "", err
		}
		var doc yaml.Node
		if err := yaml.Load(text, &doc); err != nil || len(doc.Content) != 1 {
			return "", &fault.Error{Kind: fault.Script, Place: fault.Place{File: r.o.ParamsPath},
				Message: "the parameters are not a map", Err: err}
		}
		for i := 0; i+1 < len(doc.Content[0].Content); i += 2 {
			merged[doc.Content[0].Content[i].Value] = doc.Content[0].Content[i+1]
		}
	}
	for _, m := range []map[string]*value{r.suite.Params, r.c.Params} {
		for name, v := range m {
			merged[name] = v.Node
		}
	}
	if len(merged) == 0 {
		return "", nil
	}
	text, err := yaml.Marshal(merged)
	if err != nil {
		return "", fmt.Errorf("write the parameters of a test: %w", err)
	}
	path := filepath.Join(r.dir, "params.yaml")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return "", &fault.Error{Kind: fault.Environment, Message: "write the parameters of a test", Err: err}
	}
	return path, nil
}

// prepare makes files of what the case gives and leads the nodes to them.
func (r *caseRun) prepare(ctx context.Context) (err error) {
	in, err := engine.OpenInstance(ctx, engine.InstanceConfig{MemoryBytes: engineBytes, Threads: 1,
		SpillDir: filepath.Join(r.dir, "spill"), Paths: []string{r.dir}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	r.given = map[string]*value{}
	for _, g := range r.c.Given {
		r.given[g.name] = g.value
	}
	paths := map[string]string{}
	for i, n := range r.isolation.Tables {
		name := n.Table.Name
		v := r.given[name]
		if v == nil {
			f := r.fault("test %q gives no rows for table %s, which it reads", r.c.Name, name)
			f.Hint = "write given: {" + name + ": []} if it is to be empty"
			return f
		}
		delete(r.given, name)
		columns := tableColumns(n.Table)
		rows, err := v.table(columns)
		if err != nil {
			return err
		}
		paths[name] = filepath.Join(r.dir, fmt.Sprintf("table%d.parquet", i))
		if err := writeParquet(ctx, in, paths[name], columns, rows); err != nil {
			return err
		}
	}
	if err := r.isolation.Cut(func(table string) string { return paths[table] }); err != nil {
		return err
	}
	for i, name := range r.c.Nodes {
		if err := r.files(ctx, in, r.script.Node(name), i); err != nil {
			return err
		}
	}
	return r.unused()
}

// files leads a node to given files, and what it writes into a directory of the case.
func (r *caseRun) files(ctx context.Context, in *engine.Instance, n *script.Node, ordinal int) error {
	if n.Out != nil {
		if r.outputs == nil {
			r.outputs = map[string]string{}
		}
		dir := filepath.Join(r.dir, fmt.Sprintf("out%d", ordinal))
		r.outputs[n.Name] = dir
		name := "file"
		if n.Out.PerBatch() {
			name += "_{batch_idx|string}"
		}
		// its text is compared
		n.Out.URL, n.Out.Packing, n.Out.Manifest = filepath.Join(dir, name), script.Packing{}, false
		n.Out.Target = nil
		n.Out.PartitionBy, n.Out.TargetBytes = nil, 0
	}
	if n.Files == nil {
		return nil
	}
	v := r.given[n.Name]
	if v == nil {
		f := r.fault("test %q gives no input for node %s, which reads files", r.c.Name, n.Name)
		f.Hint = fmt.Sprintf("write given: {%s: TEXT}, or a list of texts, one for each file", n.Name)
		return f
	}
	delete(r.given, n.Name)
	urls := n.Files.URLs
	n.Files.URLs, n.Files.Table, n.Files.Query = nil, "", ""
	n.Files.CSV.Charset = filespec.UTF8 // what is given is text
	if slices.ContainsFunc(n.Files.Columns, func(c *script.InputColumn) bool { return !c.InFile() }) {
		return r.namedFiles(ctx, in, n, v, urls, filepath.Join(r.dir, fmt.Sprintf("in%d", ordinal)))
	}
	inputs := []*value{v}
	if v.Kind == yaml.SequenceNode && !n.Files.Parquet {
		inputs = nil
		for _, item := range v.Content {
			inputs = append(inputs, (&value{v.suite, item}).resolved())
		}
	}
	for i, input := range inputs {
		path := filepath.Join(r.dir, fmt.Sprintf("in%d_%d", ordinal, i))
		if err := r.input(ctx, in, n, input, path); err != nil {
			return err
		}
		n.Files.URLs = append(n.Files.URLs, script.FileURL{URL: path, Pos: n.Pos})
	}
	return nil
}

// namedFiles gives files to a node that takes columns from their names.
func (r *caseRun) namedFiles(ctx context.Context, in *engine.Instance, n *script.Node, v *value, urls []script.FileURL,
	dir string) error {
	if v.Kind != yaml.MappingNode || len(v.Content) == 2 && v.Content[0].Value == "file" {
		f := v.fault("node %s takes columns from the names of its files, and nothing gives them names", n.Name)
		f.Hint = fmt.Sprintf("write given: {%s: {NAME: TEXT}}, with names as urls of the script have them", n.Name)
		return f
	}
	for i := 0; i+1 < len(v.Content); i += 2 {
		path := filepath.Join(dir, filepath.FromSlash(v.Content[i].Value))
		if !strings.HasPrefix(path, dir+string(filepath.Separator)) {
			return v.fault("%q leads out of the directory that the test has for given files", v.Content[i].Value)
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return &fault.Error{Kind: fault.Environment, Message: "write a given file", Err: err}
		}
		if err := r.input(ctx, in, n, (&value{v.suite, v.Content[i+1]}).resolved(), path); err != nil {
			return err
		}
		n.Files.URLs = append(n.Files.URLs, script.FileURL{URL: path, Pos: n.Pos})
	}
	for i, u := range urls {
		if u.Pattern != "" && len(n.Files.URLs) > 0 {
			at := &n.Files.URLs[min(i, len(n.Files.URLs)-1)]
			at.Pattern = filepath.Join(dir, filepath.FromSlash(u.Pattern))
		}
	}
	return nil
}

// input writes one given file: text as it is, or rows as Parquet.
func (r *caseRun) input(ctx context.Context, in *engine.Instance, n *script.Node, v *value, path string) error {
	if !n.Files.Parquet {
		text, err := v.text()
		if err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return &fault.Error{Kind: fault.Environment, Message: "write a given file", Err: err}
		}
		return nil
	}
	columns := make([]column, len(n.Files.Columns))
	for i, c := range n.Files.Columns {
		// files may have NULLs everywhere
		columns[i] = column{name: c.Name, stored: c.Parquet, typ: c.Type, nullable: true}
	}
	rows, err := v.table(columns)
	if err != nil {
		return err
	}
	return writeParquet(ctx, in, path, columns, rows)
}

func (r *caseRun) fault(format string, args ...any) *fault.Error {
	f := fault.New(fault.Script, format, args...)
	f.Place = fault.Place{File: r.suite.Path, Line: int64(r.c.Line)}
	return f
}

// unused refuses what the case gives to nobody.
func (r *caseRun) unused() error {
	var left []string
	for name := range r.given {
		left = append(left, name)
	}
	if len(left) == 0 {
		return nil
	}
	sort.Strings(left)
	var read []string
	for _, n := range r.isolation.Tables {
		read = append(read, n.Table.Name)
	}
	for _, name := range r.c.Nodes {
		if n := r.script.Node(name); n.Files != nil {
			read = append(read, n.Name)
		}
	}
	f := r.given[left[0]].fault("test %q gives %s, which none of its nodes reads", r.c.Name, left[0])
	if near := similar.Nearest(left[0], read); near != "" {
		f.Hint = fmt.Sprintf("did you mean %q?", near)
	} else if len(read) > 0 {
		f.Hint = "they read " + strings.Join(read, ", ")
	}
	return f
}

func tableColumns(w *script.TableWriter) []column {
	out := make([]column, len(w.Fields))
	for i, f := range w.Fields {
		out[i] = column{name: f.Name, typ: f.Type, nullable: f.Nullable}
	}
	return out
}

// judge compares how the run ended with what the case expects.
func (r *caseRun) judge(ctx context.Context, home *instance.Instance, sum runner.Summary, runErr error) error {
	message := failure(sum, runErr)
	switch {
	case r.c.Error != "" && message == "":
		r.differ("it succeeded, where a failure with %q is expected", r.c.Error)
		return nil
	case r.c.Error != "" && !strings.Contains(message, r.c.Error):
		r.differ("it failed, but not with %q: %s", r.c.Error, message)
		return nil
	case r.c.Error != "":
		return nil
	case message != "":
		r.differ("it failed: %s", message)
		return nil
	}
	for _, e := range r.c.Expect {
		if err := r.compare(ctx, home, e); err != nil {
			return err
		}
	}
	return nil
}

func (r *caseRun) differ(format string, args ...any) {
	r.differences = append(r.differences, fmt.Sprintf(format, args...))
}

// failure is the text of a run's failure; "" if it is complete.
func failure(sum runner.Summary, err error) string {
	switch {
	case sum.Status == state.Complete:
		return ""
	case sum.Failure != nil:
		return sum.Failure.Text()
	case err != nil:
		return err.Error()
	}
	return "the run is " + string(sum.Status)
}

// compare holds what a table or a file has against what is expected of it.
func (r *caseRun) compare(ctx context.Context, home *instance.Instance, e named) error {
	var creators []string
	for _, name := range r.c.Nodes {
		n := r.script.Node(name)
		if n.Out != nil && name == e.name {
			return r.compareFile(n, e)
		}
		if n.Out != nil {
			creators = append(creators, name)
			continue
		}
		if n.Table.Name == e.name || name == e.name {
			return r.compareTable(ctx, home, n, e)
		}
		creators = append(creators, n.Table.Name)
	}
	f := e.fault("none of the test's nodes makes %s", e.name)
	f.Hint = "they make " + strings.Join(creators, ", ")
	return f
}

// compareFile compares a file's text; the files of several batches one behind
// the other. Line ends do not count.
func (r *caseRun) compareFile(n *script.Node, e named) error {
	if !n.Out.Form.Text() {
		return e.fault("node %s writes %s: test the node before it, or write CSV", n.Name, n.Out.Form.Shown())
	}
	want, err := e.text()
	if err != nil {
		return err
	}
	paths, err := filepath.Glob(filepath.Join(r.outputs[n.Name], "*"))
	if err != nil {
		return fmt.Errorf("look for the files of %s: %w", n.Name, err)
	}
	var got strings.Builder
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("read the file of %s: %w", n.Name, err)
		}
		got.Write(text)
	}
	wantLines, gotLines := lines(want), lines(got.String())
	for i := 0; i < max(len(wantLines), len(gotLines)); i++ {
		switch {
		case i >= len(gotLines):
			r.differ("%s: line %d is missing: %s", n.Name, i+1, wantLines[i])
		case i >= len(wantLines):
			r.differ("%s: line %d is not expected: %s", n.Name, i+1, gotLines[i])
		case wantLines[i] != gotLines[i]:
			r.differ("%s: line %d is %s, where %s is expected", n.Name, i+1, gotLines[i], wantLines[i])
		}
	}
	return nil
}

func lines(text string) []string {
	text = strings.TrimSuffix(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

// compareTable compares rows whatever their order, in the fields that are
// expected.
func (r *caseRun) compareTable(ctx context.Context, home *instance.Instance, n *script.Node, e named) error {
	columns := tableColumns(n.Table)
	rows, err := e.table(columns)
	if err != nil {
		return err
	}
	wanted := columns
	if len(rows) > 0 {
		wanted = nil
		for _, c := range columns {
			if rows[0].cells[c.name] != nil {
				wanted = append(wanted, c)
			}
		}
	}
	want := map[string]int{}
	var order []string
	for _, row := range rows {
		line, err := row.line(wanted)
		if err != nil {
			return err
		}
		want[line]++
		order = append(order, line)
	}
	got, err := tableLines(ctx, home, n.Table.Name, wanted)
	if err != nil {
		return err
	}
	var surplus []string
	for _, line := range got {
		if want[line]--; want[line] < 0 {
			surplus = append(surplus, line)
		}
	}
	for _, line := range order {
		if want[line] > 0 {
			want[line]--
			r.differ("%s: expected  %s", n.Table.Name, line)
		}
	}
	for _, line := range surplus {
		r.differ("%s: found     %s", n.Table.Name, line)
	}
	return nil
}

// line is a row in the form in which rows are compared and shown.
func (r row) line(columns []column) (string, error) {
	cells := make([]string, len(columns))
	for i, c := range columns {
		v := r.cells[c.name]
		if v == nil {
			return "", r.at.fault("the row has no %s, which the first row has", c.name)
		}
		text, err := v.canonical(c.typ)
		if err != nil {
			return "", err
		}
		cells[i] = c.name + "=" + text
	}
	if len(r.names) != len(columns) {
		return "", r.at.fault("the rows of a table are expected with the same fields, those of the first")
	}
	return strings.Join(cells, " "), nil
}

func tableLines(ctx context.Context, home *instance.Instance, table string, columns []column) ([]string, error) {
	cols := make([]string, len(columns))
	for i, c := range columns {
		cols[i] = resultSQL(c.typ, sqltext.Ident(c.name))
	}
	res, err := inspect.Query(ctx, home, inspect.QueryOptions{Workspace: instance.DefaultWorkspace,
		Process: runtime.Process{MemoryBytes: engineBytes}, SQL: "SELECT " + strings.Join(cols, ", ") + " FROM " +
			sqltext.Ident(table)})
	if err != nil {
		return nil, fmt.Errorf("read table %s: %w", table, err)
	}
	out := make([]string, len(res.Rows))
	for i, row := range res.Rows {
		cells := make([]string, len(columns))
		for k, c := range columns {
			cells[k] = c.name + "=" + result(c.typ, row[k])
		}
		out[i] = strings.Join(cells, " ")
	}
	return out, nil
}
