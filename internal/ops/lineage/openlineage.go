package lineage

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"thalweg/internal/base/address"
	"thalweg/internal/lang/expr"
	"thalweg/internal/lang/script"
	"thalweg/internal/store/state"
)

// OpenLineage events are made from what state says of a run, and from nothing
// else: so those that are sent while it is at work are those that can be had
// later. Their ids follow from the run, so that sending one twice tells nothing
// new. Each run has a run of its own in OpenLineage, and each node one whose
// parent that is.

// Addresses of the published schemas, which say the version that an event follows.
const (
	schemaRoot  = "https://openlineage.io/spec/"
	eventSchema = schemaRoot + "2-0-2/OpenLineage.json#/$defs/RunEvent"
	producer    = "urn:thalweg:openlineage"
	// DefaultNamespace is that of jobs and tables, where nobody names one.
	DefaultNamespace = "thalweg"
)

// Telling holds the settings for a run's events.
type Telling struct {
	Namespace string         // of jobs and tables; "": DefaultNamespace
	Script    *script.Script // nil: it cannot be had; then columns are not told
	Dir       string         // that relative names of files are seen from
	Hide      func(string) string
}

// Event is an OpenLineage event.
type Event struct {
	EventType string    `json:"eventType"`
	EventTime string    `json:"eventTime"`
	Producer  string    `json:"producer"`
	SchemaURL string    `json:"schemaURL"`
	Run       eventRun  `json:"run"`
	Job       eventJob  `json:"job"`
	Inputs    []dataset `json:"inputs,omitempty"`
	Outputs   []dataset `json:"outputs,omitempty"`
}

type eventRun struct {
	RunID  string         `json:"runId"`
	Facets map[string]any `json:"facets,omitempty"`
}

type eventJob struct {
	Namespace string         `json:"namespace"`
	Name      string         `json:"name"`
	Facets    map[string]any `json:"facets,omitempty"`
}

type dataset struct {
	Namespace    string         `json:"namespace"`
	Name         string         `json:"name"`
	Facets       map[string]any `json:"facets,omitempty"`
	InputFacets  map[string]any `json:"inputFacets,omitempty"`
	OutputFacets map[string]any `json:"outputFacets,omitempty"`
}

// Line is the event as one line of JSON, with its line end.
func (e Event) Line() ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(e)
	return b.Bytes(), err
}

// Key tells an event from others.
func (e Event) Key() string { return e.Run.RunID + " " + e.EventType }

// facet is one, with what each has.
func facet(schema string, fields map[string]any) map[string]any {
	name := strings.TrimSuffix(path.Base(schema), ".json")
	out := map[string]any{"_producer": producer, "_schemaURL": schemaRoot + "facets/" + schema + "#/$defs/" + name}
	maps.Copy(out, fields)
	return out
}

// runID is always the same for the same.
func runID(parts ...any) string {
	sum := sha256.Sum256([]byte(fmt.Sprintln(parts...)))
	const custom, variant = 8, 2 // of RFC 9562
	sum[6], sum[8] = sum[6]&0x0f|custom<<4, sum[8]&0x3f|variant<<6
	h := hex.EncodeToString(sum[:16])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

func moment(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// teller makes the events of one run.
type teller struct {
	Telling
	store   state.Store
	run     state.Run
	columns *Columns
	tables  map[string]*script.Node
}

// newTeller reads what all events of a run need.
func newTeller(ctx context.Context, store state.Store, key state.RunKey, how Telling) (*teller, error) {
	t := &teller{Telling: how, store: store, tables: map[string]*script.Node{}}
	t.Namespace = cmp.Or(t.Namespace, DefaultNamespace)
	if t.Hide == nil {
		t.Hide = func(s string) string { return s }
	}
	var err error
	if t.run, err = store.Run(ctx, key); err != nil {
		return nil, fmt.Errorf("read run %d: %w", key.Run, err)
	}
	if t.Script != nil {
		t.columns = ColumnsOf(t.Script)
		for _, n := range t.Script.Nodes {
			if n.Table != nil {
				t.tables[n.Table.Name] = n
			}
		}
	}
	return t, nil
}

// Events lists the OpenLineage events of a run, as far as it has come.
func Events(ctx context.Context, store state.Store, key state.RunKey, how Telling) ([]Event, error) {
	t, err := newTeller(ctx, store, key, how)
	if err != nil {
		return nil, err
	}
	nodes, err := store.Nodes(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("read the nodes of run %d: %w", key.Run, err)
	}
	out := t.begun(nodes)
	for _, n := range nodes {
		events, err := t.node(ctx, n)
		if err != nil {
			return nil, err
		}
		out = append(out, events...)
	}
	out = append(out, t.over()...)
	slices.SortStableFunc(out, func(a, b Event) int { return strings.Compare(a.EventTime, b.EventTime) })
	return out, nil
}

// begun are the events of the run itself but the last.
func (t *teller) begun(nodes []state.Node) []Event {
	out := []Event{t.runEvent("START", t.run.Created)}
	// Which node began first may show late: one that waited for the state tells
	// of an earlier moment. So the moment is one that does not change.
	if slices.ContainsFunc(nodes, func(n state.Node) bool { return !n.Started.IsZero() }) {
		out = append(out, t.runEvent("RUNNING", t.run.Created))
	}
	return out
}

// over is the last event of a run that is over.
func (t *teller) over() []Event {
	kind, ok := map[state.Status]string{state.Complete: "COMPLETE", state.Failed: "FAIL", state.Stopped: "ABORT",
		state.Invalidated: "COMPLETE"}[t.run.Status]
	if !ok || t.run.Finished.IsZero() {
		return nil
	}
	e := t.runEvent(kind, later(t.run.Finished, t.run.Created))
	if t.run.Failure != nil && kind == "FAIL" {
		e.Run.Facets["errorMessage"] = t.failure(*t.run.Failure, "SQL")
	}
	return []Event{e}
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

func (t *teller) runID() string {
	return runID(t.Namespace, t.run.Workspace, t.run.Run, t.run.Created.UnixMilli())
}

// jobName is the script's.
func (t *teller) jobName() string {
	if t.Script != nil && t.Script.Name != "" {
		return t.Script.Name
	}
	name := path.Base(filepath.ToSlash(address.Redact(t.run.ScriptPath)))
	return cmp.Or(strings.TrimSuffix(name, path.Ext(name)), "script")
}

func (t *teller) event(kind string, at time.Time) Event {
	return Event{EventType: kind, EventTime: moment(at), Producer: producer, SchemaURL: eventSchema,
		Run: eventRun{Facets: map[string]any{"processing_engine": facet("1-1-1/ProcessingEngineRunFacet.json",
			map[string]any{"name": "Thalweg", "version": cmp.Or(t.run.Program, "unknown")})}},
		Job: eventJob{Namespace: t.Namespace, Facets: map[string]any{}}}
}

func (t *teller) runEvent(kind string, at time.Time) Event {
	e := t.event(kind, at)
	e.Run.RunID, e.Job.Name = t.runID(), t.jobName()
	nominal := map[string]any{"nominalStartTime": moment(t.run.Created)}
	if t.run.Deadline.After(t.run.Created) {
		nominal["nominalEndTime"] = moment(t.run.Deadline)
	}
	e.Run.Facets["nominalTime"] = facet("1-0-1/NominalTimeRunFacet.json", nominal)
	e.Job.Facets["jobType"] = jobType("JOB")
	if t.run.Description != "" {
		e.Job.Facets["documentation"] = facet("1-1-0/DocumentationJobFacet.json",
			map[string]any{"description": t.Hide(t.run.Description)})
	}
	t.located(&e)
	return e
}

func jobType(kind string) map[string]any {
	return facet("2-0-4/JobTypeJobFacet.json", map[string]any{"processingType": "BATCH", "integration": "THALWEG",
		"jobType": kind})
}

// located says where the script is.
func (t *teller) located(e *Event) {
	at := address.Redact(t.run.ScriptPath)
	if at == "" {
		return
	}
	if !address.Remote(at) {
		if !filepath.IsAbs(at) {
			at = filepath.Join(t.Dir, at)
		}
		at = (&url.URL{Scheme: "file", Path: filepath.ToSlash(at)}).String()
	}
	e.Job.Facets["sourceCodeLocation"] = facet("1-1-0/SourceCodeLocationJobFacet.json",
		map[string]any{"type": "file", "url": t.Hide(at), "version": t.run.Fingerprint})
}

func (t *teller) failure(f state.Failure, language string) map[string]any {
	return facet("1-0-1/ErrorMessageRunFacet.json", map[string]any{"message": t.Hide(f.Text()),
		"programmingLanguage": language})
}

// endOf returns the event type for a node's end. An invalidated node keeps the end that was told before.
func endOf(n state.Node) string {
	switch n.Status {
	case state.Succeeded:
		return "COMPLETE"
	case state.Failed:
		return "FAIL"
	case state.Stopped:
		return "ABORT"
	case state.Invalidated:
		switch {
		case n.Failure != nil || n.BatchesFailed > 0:
			return "FAIL"
		case n.ReusedFrom != nil, n.Decision != nil && n.Decision.Approved, n.BatchesTotal > 0 &&
			n.BatchesDone == n.BatchesTotal:
			return "COMPLETE"
		}
		return "ABORT"
	}
	return ""
}

// node are the events of a node, as far as it has come.
func (t *teller) node(ctx context.Context, n state.Node) ([]Event, error) {
	ended := endOf(n)
	if ended == "FAIL" && n.Failure == nil && !t.run.Status.Terminal() {
		ended = "" // which of its batches it has failed by is known when the run has ended
	}
	begun := n.Started
	if begun.IsZero() && ended != "ABORT" { // it was taken over, or has failed before its first batch
		begun = n.Finished
	}
	if begun.IsZero() {
		return nil, nil
	}
	inputs, outputs, err := t.datasets(ctx, n)
	if err != nil {
		return nil, err
	}
	out := []Event{t.nodeEvent(n, "START", begun)}
	if ended == "" || n.Finished.IsZero() {
		out[0].Inputs = inputs
		return out, nil
	}
	out[0].Inputs = inputs
	end := t.nodeEvent(n, ended, later(n.Finished, begun))
	if end.Inputs = inputs; ended == "COMPLETE" {
		end.Outputs = outputs
	}
	if ended == "FAIL" {
		failure := n.Failure
		if failure == nil && t.run.Failure != nil && t.run.Failure.Node == n.Name {
			failure = t.run.Failure
		}
		if failure == nil {
			failure = &state.Failure{Message: "node " + n.Name + " failed"}
		}
		end.Run.Facets["errorMessage"] = t.failure(*failure, language(t.scripted(n)))
	}
	return append(out, end), nil
}

func (t *teller) scripted(n state.Node) *script.Node {
	if t.Script == nil {
		return nil
	}
	return t.Script.Node(n.Name)
}

func language(n *script.Node) string {
	if n != nil && (n.PyCalc != nil || n.PyTable != nil) {
		return "PYTHON"
	}
	return "SQL"
}

func (t *teller) nodeEvent(n state.Node, kind string, at time.Time) Event {
	e := t.event(kind, at)
	e.Run.RunID = runID(t.runID(), n.Name, n.Generation)
	e.Run.Facets["parent"] = facet("1-2-0/ParentRunFacet.json",
		map[string]any{"run": map[string]any{"runId": t.runID()},
			"job": map[string]any{"namespace": t.Namespace, "name": t.jobName()}})
	e.Job.Name = t.jobName() + "." + n.Name
	e.Job.Facets["jobType"] = jobType(strings.ToUpper(n.Kind))
	t.located(&e)
	s := t.scripted(n)
	if s == nil {
		return e
	}
	if s.Desc != "" {
		e.Job.Facets["documentation"] = facet("1-1-0/DocumentationJobFacet.json",
			map[string]any{"description": t.Hide(s.Desc)})
	}
	if s.Query != nil && s.Query.Info != nil {
		e.Job.Facets["sql"] = facet("1-1-0/SQLJobFacet.json", map[string]any{"query": t.Hide(s.Query.Info.SQL),
			"dialect": "duckdb"})
	}
	return e
}

// tableName returns a table's name for people who look at many systems.
func (t *teller) tableName(table string) string { return t.run.Workspace + "." + table }

func (t *teller) table(name string) dataset {
	d := dataset{Namespace: t.Namespace, Name: t.tableName(name), Facets: map[string]any{
		"dataSource": facet("1-0-1/DatasourceDatasetFacet.json", map[string]any{"name": "workspace " + t.run.Workspace,
			"uri": "thalweg:" + url.PathEscape(t.run.Workspace)})}}
	if n := t.tables[name]; n != nil {
		var fields []map[string]any
		for _, f := range n.Table.Fields {
			fields = append(fields, field(f.Name, f.Type))
		}
		d.Facets["schema"] = schema(fields)
	}
	return d
}

func field(name string, t expr.Type) map[string]any {
	return map[string]any{"name": name, "type": t.String()}
}

func schema(fields []map[string]any) map[string]any {
	return facet("1-2-0/SchemaDatasetFacet.json", map[string]any{"fields": fields})
}

// file is a file of this machine or of another one.
func (t *teller) file(at string) dataset {
	at = t.Hide(address.Redact(at))
	d := dataset{Namespace: "file", Name: at, Facets: map[string]any{}}
	uri := at
	if u, err := url.Parse(at); err == nil && address.Remote(at) {
		d.Namespace, d.Name = u.Scheme+"://"+u.Host, strings.TrimPrefix(u.Path, "/")
	} else if !filepath.IsAbs(at) {
		d.Name = filepath.Join(t.Dir, at)
		uri = (&url.URL{Scheme: "file", Path: filepath.ToSlash(d.Name)}).String()
	} else {
		uri = (&url.URL{Scheme: "file", Path: filepath.ToSlash(at)}).String()
	}
	d.Facets["dataSource"] = facet("1-0-1/DatasourceDatasetFacet.json", map[string]any{"name": d.Namespace, "uri": uri})
	return d
}

// datasets returns the datasets that a node reads and writes.
func (t *teller) datasets(ctx context.Context, n state.Node) (inputs, outputs []dataset, err error) {
	s := t.scripted(n)
	read, err := state.All(ctx, t.store.Inputs, n.NodeKey)
	if err != nil {
		return nil, nil, fmt.Errorf("read the input files of %s: %w", n.Name, err)
	}
	var files []dataset
	for _, in := range read {
		d := t.file(in.Address)
		statistics := map[string]any{"size": in.Bytes, "fileCount": 1}
		if in.Rows >= 0 {
			statistics["rowCount"] = in.Rows
		}
		d.InputFacets = map[string]any{"inputStatistics": facet("1-0-0/InputStatisticsInputDatasetFacet.json",
			statistics)}
		if s != nil && s.Files != nil {
			var fields []map[string]any
			for _, c := range s.Files.Columns {
				fields = append(fields, field(inputName(s.Files, c.Name), c.Type))
			}
			d.Facets["schema"] = schema(fields)
		}
		files = append(files, d)
	}
	inputs = files
	if s != nil {
		seen := map[string]bool{}
		for _, source := range s.Sources(t.Script) {
			if name := source.Table.Name; !seen[name] {
				seen[name] = true
				inputs = append(inputs, t.table(name))
			}
		}
	}
	outputs, err = t.outputs(ctx, n, s, files)
	return inputs, outputs, err
}

func (t *teller) outputs(ctx context.Context, n state.Node, s *script.Node, read []dataset) ([]dataset, error) {
	if n.Table != "" {
		d := t.table(n.Table)
		d.OutputFacets = map[string]any{"outputStatistics": outputStatistics(n.RowsOut, n.BytesOut, 0)}
		t.linked(&d, s, read)
		return []dataset{d}, nil
	}
	files, err := state.All(ctx, t.store.Files, n.NodeKey)
	if err != nil {
		return nil, fmt.Errorf("read the files of %s: %w", n.Name, err)
	}
	var out []dataset
	for _, f := range files {
		if f.Manifest {
			continue
		}
		d := t.file(f.URL)
		d.OutputFacets = map[string]any{"outputStatistics": outputStatistics(f.Rows, f.Bytes, 1)}
		if s != nil && s.Out != nil {
			var fields []map[string]any
			names := fileColumns(s.Out)
			for i, c := range s.Out.Columns {
				fields = append(fields, field(names[i], c.Type))
			}
			d.Facets["schema"] = schema(fields)
		}
		t.linked(&d, s, read)
		out = append(out, d)
	}
	return out, nil
}

func outputStatistics(rows, bytes, files int64) map[string]any {
	fields := map[string]any{"rowCount": rows, "size": bytes}
	if files > 0 {
		fields["fileCount"] = files
	}
	return facet("1-0-2/OutputStatisticsOutputDatasetFacet.json", fields)
}

// linked says which columns a dataset's columns are made of; read are the files of the node.
func (t *teller) linked(d *dataset, s *script.Node, read []dataset) {
	if s == nil || t.columns == nil {
		return
	}
	fields, beside := map[string]any{}, map[string]any{}
	for _, l := range t.columns.Links {
		if l.Node != s.Name {
			continue
		}
		for _, from := range t.sourcesOf(l.From, read) {
			in := map[string]any{"namespace": from.Namespace, "name": from.Name, "field": l.From.Name,
				"transformations": []map[string]any{transformation(l, t.Hide(l.Text))}}
			if l.Indirect {
				beside[fmt.Sprint(from.Namespace, " ", from.Name, " ", l.From.Name, " ", l.How)] = in
				continue
			}
			list, _ := fields[l.To.Name].(map[string]any)
			have, _ := list["inputFields"].([]map[string]any)
			fields[l.To.Name] = map[string]any{"inputFields": append(have, in)}
		}
	}
	if len(fields)+len(beside) == 0 {
		return
	}
	content := map[string]any{"fields": fields}
	if len(beside) > 0 {
		var list []any
		for _, key := range slices.Sorted(maps.Keys(beside)) {
			list = append(list, beside[key])
		}
		content["dataset"] = list
	}
	d.Facets["columnLineage"] = facet("1-2-0/ColumnLineageDatasetFacet.json", content)
}

// sourcesOf are the datasets that have a column.
func (t *teller) sourcesOf(c Column, read []dataset) []dataset {
	if t.tables[c.Of] != nil {
		return []dataset{{Namespace: t.Namespace, Name: t.tableName(c.Of)}}
	}
	return read
}

// transformation is a link in OpenLineage's words.
func transformation(l Link, text string) map[string]any {
	out := map[string]any{"type": "DIRECT", "subtype": "TRANSFORMATION", "masking": false}
	switch {
	case l.Indirect:
		subtype := map[string]string{ByFilter: "FILTER", ByJoin: "JOIN", ByGroup: "GROUP_BY", ByKey: "GROUP_BY",
			ByOrder: "SORT", ByTag: "CONDITIONAL", "window": "WINDOW", "distinct": "GROUP_BY"}[l.How]
		out["type"], out["subtype"] = "INDIRECT", cmp.Or(subtype, "CONDITIONAL")
	case l.How == ByExpression && text == l.Alias()+"."+l.From.Name:
		out["subtype"] = "IDENTITY"
	}
	if text != "" {
		out["description"] = text
	}
	return out
}

// Alias returns the table's alias in the expression of a link; "r" where it names none.
func (l Link) Alias() string {
	if alias, _, ok := strings.Cut(l.Text, "."); ok && (alias == "r" || alias == "l") {
		return alias
	}
	return "r"
}
