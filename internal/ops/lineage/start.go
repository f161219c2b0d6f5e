package lineage

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	duckdb "github.com/duckdb/duckdb-go/v2"

	"thalweg/internal/base/address"
	"thalweg/internal/base/fault"
	"thalweg/internal/base/format"
	"thalweg/internal/base/sqltext"
	"thalweg/internal/io/outfile"
	"thalweg/internal/lang/script"
	"thalweg/internal/run/engine"
	"thalweg/internal/run/pipeline"
	"thalweg/internal/run/plan"
	"thalweg/internal/store/state"
)

// Columns of output files' rows beside their own.
const (
	rowNumber  = `"#row"`  // among those of the batch
	fileNumber = `"#file"` // of the file, among those that are traced
	rowInFile  = `"#at"`
)

// startTable finds the rows of a table for which the condition holds.
func (t *tracer) startTable(ctx context.Context, n *traced) error {
	t.tree.Target = "table " + n.State.Table
	if n.inner {
		return &fault.Error{Kind: fault.Script,
			Message: fmt.Sprintf("table %s is not stored in run %d: it was ephemeral, computed inside node %s",
				n.State.Table, n.key.Run, n.Plan.ComputedIn),
			Hint: "trace rows of a table or file behind it"}
	}
	if err := t.fetch(ctx, n.table, nil); err != nil {
		return err
	}
	var ids []string
	for i := range n.table.Width() {
		ids = append(ids, plan.OrderName(i))
	}
	own := plan.Paths{}
	for _, p := range n.table.Parts {
		own[p.Key] = t.paths[p.Key]
	}
	found, err := t.choose(ctx, n.table.Select(own, nil, false), slices.Collect(maps.Values(own)), ids)
	if err != nil {
		return err
	}
	rows := make([]string, len(found))
	for i, values := range found {
		rows[i] = fmt.Sprintf("(%s)", strings.Join(values, ", "))
	}
	name, err := t.temp(ctx, fmt.Sprintf("SELECT CAST(0 AS BIGINT) AS n, CAST(1 AS BIGINT) AS total, nth, %s FROM "+
		"(VALUES %s) AS v(nth, %s)",
		strings.Join(orderList("v", len(ids)), ", "), numbered(rows), strings.Join(bare(len(ids)), ", ")))
	n.edges = append(n.edges, edge{name: name})
	return err
}

// numbered puts a number before the values of each row.
func numbered(rows []string) string {
	out := make([]string, len(rows))
	for i, r := range rows {
		out[i] = fmt.Sprintf("(CAST(%d AS BIGINT), %s", i+1, strings.TrimPrefix(r, "("))
	}
	return strings.Join(out, ", ")
}

func bare(count int) []string {
	names := orderList("", count)
	for i := range names {
		names[i] = strings.TrimPrefix(names[i], ".")
	}
	return names
}

// startFiles finds the rows of output files for which the condition holds: their
// batch is executed once more, for rows that have the types of the script.
func (t *tracer) startFiles(ctx context.Context, n *traced, target Target) error {
	if t.tree.Target = "directory " + target.Dir; len(target.Files) == 1 {
		t.tree.Target = "file " + target.Files[0].URL
		if at, _, _ := strings.Cut(target.Files[0].URL, "#"); address.Database(at) {
			t.tree.Target = "table " + target.Files[0].URL
		}
	}
	if len(target.Files) == 0 {
		return t.noMatch()
	}
	first := target.Files[0]
	if n.blocked != "" || n.Node.Out == nil {
		return fault.New(fault.Script, "%s cannot be traced: %s", t.tree.Target, n.blocked)
	}
	specs, err := t.specs(ctx, n)
	if err != nil {
		return err
	}
	again, err := n.job.TraceBatch(ctx, n.key, specs[first.Batch], pipeline.Again{Dir: t.cfg.Dir, Beside: t.cfg.Beside})
	if err != nil {
		return err
	}
	all, err := t.written(ctx, n, first.Batch)
	if err != nil {
		return err
	}
	var rows int64
	for _, f := range all {
		rows += f.Rows
	}
	if again.Rows != rows {
		return differs(n, fmt.Sprintf("%s instead of %d", format.Counted(again.Rows, "row", "rows"), rows))
	}
	if again.Path == "" {
		return t.noMatch()
	}
	from := fmt.Sprintf("(SELECT *, file_row_number AS %s, 0 AS %s, file_row_number AS %s FROM read_parquet(%s))",
		rowNumber, fileNumber, rowInFile, sqltext.String(sqltext.Glob(again.Path)))
	if target.Dir != "" {
		if from, err = t.inDirectory(ctx, n, target, all, again.Path); err != nil {
			return err
		}
	}
	cols := []string{rowNumber, fileNumber, rowInFile}
	ids := slices.Clone(cols)
	for i, name := range fileColumns(n.Node.Out) {
		cols = append(cols, sqltext.Ident(n.Node.Out.Columns[i].Name)+" AS "+sqltext.Ident(name))
	}
	found, err := t.choose(ctx, fmt.Sprintf("SELECT %s FROM %s AS r", strings.Join(cols, ", "), from),
		[]string{again.Path}, ids)
	if err != nil {
		return err
	}
	for i, values := range found {
		place3, err := numbersOf(values)
		if err != nil {
			return err
		}
		n.at[int64(i)+1] = place{first.Batch, place3[0]}
		r := n.row()
		r.File, r.Row = target.Files[place3[1]].URL, place3[2]+1
		n.ids[int64(i)+1] = t.add(r)
		t.tree.Roots = append(t.tree.Roots, r.ID)
	}
	return t.values(ctx, n,
		fmt.Sprintf("SELECT v.n, %s FROM %s AS v JOIN read_parquet(%s) AS s ON s.file_row_number = "+
			"v.at_row",
			textsOf("s", names(n.Node.Out)), placesOf(n.at), sqltext.String(sqltext.Glob(again.Path))),
		fileColumns(n.Node.Out), fileTypes(n.Node.Out))
}

// numbersOf reads whole numbers that literal has written.
func numbersOf(values []string) ([]int64, error) {
	out := make([]int64, len(values))
	for i, v := range values {
		if _, err := fmt.Sscan(strings.TrimSuffix(strings.TrimPrefix(v, "CAST("), " AS BIGINT)"), &out[i]); err != nil {
			return nil, fmt.Errorf("read the place of a row: %w", err)
		}
	}
	return out, nil
}

// written are the files that a batch has written, but for manifests.
func (t *tracer) written(ctx context.Context, n *traced, batch int) ([]state.File, error) {
	all, err := state.All(ctx, t.cfg.Store.Files, n.key)
	if err != nil {
		return nil, fmt.Errorf("read the files of %s: %w", n.key.Node, err)
	}
	return slices.DeleteFunc(all, func(f state.File) bool { return f.Manifest || f.Batch != batch }), nil
}

// inDirectory is a FROM item of the target's rows in a batch's, with the numbers of their files in the
// target and their own in these. In each directory of partitions the files have its rows one behind
// the other, in the order of the batch.
func (t *tracer) inDirectory(ctx context.Context, n *traced, target Target, all []state.File,
	path string) (string, error) {
	read := "read_parquet(" + sqltext.String(sqltext.Glob(path)) + ")"
	firsts := map[string]string{"": "0"} // by directory: the number of its first row
	over := ""
	if by := n.Node.Out.PartitionBy; len(by) > 0 {
		var err error
		if firsts, err = t.partitions(ctx, n, read); err != nil {
			return "", err
		}
		var keys []string
		for _, c := range by {
			keys = append(keys, sqltext.Ident(c.Name))
		}
		over = "PARTITION BY " + strings.Join(keys, ", ")
	}
	slices.SortFunc(all, func(a, b state.File) int { return strings.Compare(a.URL, b.URL) })
	before := map[string]int64{}
	var spans []string
	for _, f := range all {
		name, ok := strings.CutPrefix(f.URL, strings.TrimSuffix(target.Dir, "/")+"/")
		dir := name[:strings.LastIndexByte(name, '/')+1]
		first, known := firsts[dir]
		if !ok || !known {
			return "", differs(n, "none for "+f.URL)
		}
		from := before[dir]
		before[dir] += f.Rows
		nth := slices.IndexFunc(target.Files, func(o state.File) bool { return o.URL == f.URL })
		if nth >= 0 {
			spans = append(spans, fmt.Sprintf("(%s, %d, %d, %d)", first, from, before[dir], nth))
		}
	}
	first := "0"
	if over != "" {
		first = "min(file_row_number) OVER (" + over + ")"
	}
	return fmt.Sprintf(`(SELECT r.*, r.__n AS %s, CAST(f.nth AS BIGINT) AS %s, r.__at - f.__from AS %s
		FROM (SELECT *, file_row_number AS __n, %s AS __first, row_number() OVER (%s ORDER BY file_row_number) - 1 AS __at FROM %s) AS r
		JOIN (VALUES %s) AS f(__first, __from, __to, nth) ON r.__first = f.__first AND r.__at >= f.__from AND r.__at < f.__to)`,
		rowNumber, fileNumber, rowInFile, first, over, read, strings.Join(spans, ", ")), nil
}

// partitions finds the number of the first row of each directory of partitions.
func (t *tracer) partitions(ctx context.Context, n *traced, read string) (firsts map[string]string, err error) {
	query, err := outfile.PartitionsSQL(n.Node.Out, read, "file_row_number")
	if err != nil {
		return nil, err
	}
	keys := len(n.Node.Out.PartitionBy)
	rows, err := t.in.Query(ctx, query)
	if err != nil {
		return nil, fmt.Errorf("find the partitions: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	firsts = map[string]string{}
	for rows.Next() {
		texts, first := make([]*string, keys), int64(0)
		into := make([]any, 0, keys+1)
		for i := range texts {
			into = append(into, &texts[i])
		}
		if err := rows.Scan(append(into, &first)...); err != nil {
			return nil, err
		}
		dir, err := outfile.Directory(n.Node.Out, texts)
		if err != nil {
			return nil, err
		}
		firsts[dir] = fmt.Sprint(first)
	}
	return firsts, rows.Err()
}

// names are a file's columns as the script names them.
func names(w *script.FileWriter) (out []string) {
	for _, c := range w.Columns {
		out = append(out, c.Name)
	}
	return out
}

// fileColumns are a file's columns as its readers see them, where these names
// are different; else as the script names them.
func fileColumns(w *script.FileWriter) []string {
	out, seen := make([]string, len(w.Columns)), map[string]bool{}
	for i, c := range w.Columns {
		out[i] = c.Header
		if w.Parquet {
			out[i] = c.Parquet
		}
		if low := strings.ToLower(out[i]); low == "" || seen[low] {
			return names(w)
		} else {
			seen[low] = true
		}
	}
	return out
}

// choose gives, of the rows of a query for which the condition holds, the ids of
// the first, as SQL. The condition is a person's: it sees the query's rows and
// nothing else, in an instance that may read their files only.
func (t *tracer) choose(ctx context.Context, query string, paths, ids []string) (found [][]string, err error) {
	cfg := t.cfg.Engine
	cfg.SpillDir, cfg.Paths = filepath.Join(t.cfg.Dir, "where-spill"), paths
	in, err := engine.OpenInstance(ctx, cfg)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	if err := CheckCondition(ctx, in, t.opts.Where); err != nil {
		return nil, err
	}
	where := ""
	if t.opts.Where != "" {
		where = " WHERE (\n" + t.opts.Where + "\n)"
	}
	if err := in.Exec(ctx, fmt.Sprintf("CREATE TEMP TABLE found AS SELECT %s FROM (%s) AS t%s", strings.Join(ids, ", "),
		query, where)); err != nil {
		return nil, conditionFault(ctx, err)
	}
	list := make([]string, len(ids))
	for i, id := range ids {
		list[i] = fmt.Sprintf("typeof(%[1]s) = 'BLOB', CASE WHEN typeof(%[1]s) = 'BLOB' THEN hex(CAST(%[1]s AS "+
			"BLOB)) ELSE CAST(%[1]s AS VARCHAR) END", id)
	}
	rows, err := in.Query(ctx, fmt.Sprintf("SELECT count(*) OVER (), %s FROM found ORDER BY %s LIMIT %d",
		strings.Join(list, ", "), strings.Join(ids, ", "), max(t.opts.Limit, 1)))
	if err != nil {
		return nil, fmt.Errorf("read the rows: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		blobs, texts := make([]bool, len(ids)), make([]*string, len(ids))
		into := []any{&t.tree.Matches}
		for i := range ids {
			into = append(into, &blobs[i], &texts[i])
		}
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		values := make([]string, len(ids))
		for i := range ids {
			values[i] = literal(blobs[i], texts[i])
		}
		found = append(found, values)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, t.noMatch()
	}
	return found, nil
}

// literal writes an order column's value.
func literal(blob bool, text *string) string {
	switch {
	case blob && text != nil:
		if _, err := hex.DecodeString(*text); err == nil {
			return "from_hex(" + sqltext.String(*text) + ")"
		}
		fallthrough
	case text == nil && blob:
		return "CAST(NULL AS BLOB)"
	case text == nil:
		return "CAST(NULL AS BIGINT)"
	}
	return "CAST(" + *text + " AS BIGINT)"
}

// NoMatchError says that no row is traced, because the condition holds for none.
type NoMatchError struct{ Fault *fault.Error }

// Error implements error.
func (e *NoMatchError) Error() string { return e.Fault.Error() }

// Unwrap gives the classified failure.
func (e *NoMatchError) Unwrap() error { return e.Fault }

func (t *tracer) noMatch() error {
	f := &fault.Error{Kind: fault.Script, Message: fmt.Sprintf("no row of %s in run %d", t.tree.Target, t.tree.Run)}
	if t.opts.Where != "" {
		f.Message += " meets the condition " + t.opts.Where
		f.Hint = "look at its rows with {{do sql}}; texts are in single quotes"
	}
	return &NoMatchError{f}
}

// CheckCondition refuses what is no expression; "" is none.
func CheckCondition(ctx context.Context, in *engine.Instance, where string) (err error) {
	if where == "" {
		return nil
	}
	rows, err := in.Query(ctx, "SELECT CAST(json_serialize_sql("+sqltext.String("SELECT (\n"+where+"\n)")+
		", skip_null := true, skip_empty := true) AS VARCHAR)")
	if err != nil {
		return fmt.Errorf("parse the condition: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	var text string
	for rows.Next() {
		if err := rows.Scan(&text); err != nil {
			return fmt.Errorf("parse the condition: %w", err)
		}
	}
	var p struct {
		Error      bool   `json:"error"`
		Message    string `json:"error_message"`
		Statements []struct {
			Node struct {
				Type string            `json:"type"`
				List []json.RawMessage `json:"select_list"`
				From struct {
					Type string `json:"type"`
				} `json:"from_table"`
				Where json.RawMessage `json:"where_clause"`
			} `json:"node"`
		} `json:"statements"`
	}
	if err := errors.Join(rows.Err(), json.Unmarshal([]byte(text), &p)); err != nil {
		return fmt.Errorf("parse the condition: %w", err)
	}
	bad := &fault.Error{Kind: fault.Script, Message: "{{set where}}: " + p.Message,
		Hint: "it is an expression of DuckDB's SQL over the columns, as behind WHERE: name = 'x' AND amount > 3"}
	if p.Error {
		return bad
	}
	if n := p.Statements[0].Node; len(p.Statements) != 1 || n.Type != "SELECT_NODE" || len(n.List) != 1 ||
		n.From.Type != "EMPTY" || n.Where != nil {
		bad.Message = "{{set where}} is one expression"
		return bad
	}
	return nil
}

func conditionFault(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return &fault.Error{Kind: fault.Canceled, Message: "tracing was interrupted", Err: context.Cause(ctx)}
	}
	var db *duckdb.Error
	if !errors.As(err, &db) || db.Type == duckdb.ErrorTypeInternal || db.Type == duckdb.ErrorTypeFatal {
		return err
	}
	return &fault.Error{Kind: fault.Script, Message: "{{set where}}: " + db.Msg,
		Hint: "it is an expression of DuckDB's SQL over the columns, as behind WHERE"}
}
