package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"thalweg/internal/fault"
)

// stepCase measures a script of hardly more than one step against the query
// that does the same by hand. Its directory has input.sql, script.yaml and
// peer.sql.
type stepCase struct {
	name   string
	what   string
	rows   int64  // of the input at full size
	memory string // given to both sides; "": what they take by themselves
	whole  *bar   // on the ratio of the two sides; nil: the bar is on memory
}

func (c stepCase) measure(ctx context.Context, s *session) (Report, error) {
	rows := max(1, c.rows*int64(s.config.Accounts)/barAccounts)
	dirIn, err := c.input(ctx, s, rows)
	if err != nil {
		return Report{}, err
	}
	what := c.what
	if c.memory != "" {
		what += " under " + c.memory
	}
	r := s.report(c.name, what, input{about: map[string]any{"rows": rows}})
	for range s.repeats(input{}) {
		ours, theirs, err := c.pair(ctx, s, dirIn, rows)
		if err != nil {
			return r, err
		}
		r.Runs = append(r.Runs, ours.run, theirs.run)
		if err := c.compare(&r, ours, theirs); err != nil {
			return r, err
		}
	}
	c.judge(&r, rows == c.rows)
	return r, nil
}

// pair runs both sides once.
func (c stepCase) pair(ctx context.Context, s *session, dirIn string, rows int64) (ours, theirs done, err error) {
	dir, params, out, err := s.runDirWith(c.name, func(out string) any {
		return map[string]string{"dir_in": dirIn, "dir_out": out}
	})
	if err != nil {
		return ours, theirs, err
	}
	script := filepath.Join(s.config.StepsDir, c.name, "script.yaml")
	if ours, err = s.runThalweg(ctx, c.name, dir, out, []string{script, "--params", params}, c.memory); err != nil {
		return ours, theirs, err
	}
	dir, _, out, err = s.runDirWith(c.name+"-peer", func(string) any { return nil })
	if err != nil {
		return ours, theirs, err
	}
	timings := filepath.Join(dir, "timings.json")
	args := c.peer(s, "peer.sql", dirIn, out, rows)
	if c.memory != "" {
		args = append(args, "--memory", c.memory)
	}
	theirs, err = s.runPeer(ctx, c.name, dir, out, timings, append(args, "--json", timings))
	return ours, theirs, err
}

func (c stepCase) peer(s *session, file, dirIn, out string, rows int64) []string {
	return []string{s.config.PeerPython, s.config.StepsPeer, filepath.Join(s.config.StepsDir, c.name, file), "--in", dirIn, "--out", out, "--rows", fmt.Sprint(rows)}
}

// input makes the case's input files, if they are not there, and reads them once.
func (c stepCase) input(ctx context.Context, s *session, rows int64) (string, error) {
	dir := filepath.Join(s.config.WorkDir, fmt.Sprintf("%s-%d", c.name, rows))
	if _, err := os.Stat(dir); err != nil {
		s.config.Logger.InfoContext(ctx, "generating", "case", c.name, "rows", rows, "dir", dir)
		fresh := dir + ".new" // an interrupted one must not look finished
		if err := os.RemoveAll(fresh); err != nil {
			return "", &fault.Error{Kind: fault.Environment, Message: "removing a half-made input", Err: err}
		}
		if err := os.MkdirAll(fresh, 0o755); err != nil {
			return "", &fault.Error{Kind: fault.Environment, Message: "making the directory of an input", Err: err}
		}
		if _, err := output(ctx, "", c.peer(s, "input.sql", fresh, fresh, rows)...); err != nil {
			return "", fmt.Errorf("make the input of %s: %w", c.name, err)
		}
		if err := os.Rename(fresh, dir); err != nil {
			return "", &fault.Error{Kind: fault.Environment, Message: "naming an input", Err: err}
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.parquet"))
	if err != nil {
		return "", fmt.Errorf("looking for inputs: %w", err)
	}
	return dir, warm(files)
}

// compare holds the results of both sides against each other as sets of
// lines: the peer need not keep the order of rows where the step has none.
func (c stepCase) compare(r *Report, ours, theirs done) error {
	how, same, err := alikeLines(ours.out, theirs.out)
	if err != nil {
		return err
	}
	r.Checks = append(r.Checks, equality(fmt.Sprintf("results of both sides, run %d", len(r.Runs)/2), how, same))
	for _, dir := range []string{ours.out, theirs.out} {
		if err := os.RemoveAll(dir); err != nil {
			return &fault.Error{Kind: fault.Environment, Message: "removing results", Err: err}
		}
	}
	return nil
}

func (c stepCase) judge(r *Report, judged bool) {
	ours, theirs := sides(r.Runs)
	mine, other := seconds(ours, wall), seconds(theirs, wall)
	if c.whole != nil {
		r.Checks = append(r.Checks, ratio("whole", "s", mine, other, *c.whole, judged))
	} else {
		r.Checks = append(r.Checks, Check{Name: "whole", Unit: "s", Thalweg: &mine, Peer: &other, Status: NotJudged, Note: "Thalweg stores each table on the way"})
	}
	if c.memory != "" {
		peak := figure("peak memory of the process tree", peakGB(ours), barMemory, judged)
		peak.Peer = ptr(peakGB(theirs))
		r.Checks = append(r.Checks, peak)
	}
}

// validateNodes is the size of the script of validateCase.
const validateNodes = 200

// validateCase checks a large script. There is no peer.
func validateCase(ctx context.Context, s *session) (Report, error) {
	r := s.report("validate", fmt.Sprintf("thalweg validate on a script of %d nodes", validateNodes), input{about: map[string]any{"nodes": validateNodes}})
	path := filepath.Join(s.config.WorkDir, "validate.yaml")
	if err := os.WriteFile(path, []byte(wideScript(validateNodes)), 0o644); err != nil {
		return r, &fault.Error{Kind: fault.Environment, Message: "writing a script", Err: err}
	}
	for range smallRepeats {
		load := firstLine("/proc/loadavg")
		m, err := measure(ctx, command{args: []string{s.config.Thalweg, "validate", path}, dir: s.config.WorkDir})
		if err != nil {
			return r, err
		}
		r.Runs = append(r.Runs, newRun(sideThalweg, m, load))
	}
	r.Checks = append(r.Checks, figure("wall time, start and exit included", seconds(r.Runs, wall), barValidate, true))
	return r, nil
}

// wideScript is a script of n nodes: a load, then lookups and tables that
// read each other in turn, and a file at the end.
func wideScript(n int) string {
	const fields = `
        id:    {expression: r.id, type: string}
        price: {expression: r.price, type: decimal2}
        total: {expression: "decimal2.iif(r.price > 10, r.price * 1 + r.price, r.price)", type: decimal2}
        label: {expression: "strings.ReplaceAll(fmt.Sprintf(\"%s %s\", r.id, string(r.price)), \" \", \"_\")", type: string}`
	var b strings.Builder
	b.WriteString("nodes:\n  n0:\n    type: file_table\n    r:\n      urls: [in.csv]\n      columns:\n")
	b.WriteString("        id: {col_type: string, csv: {col_hdr: id}}\n        price: {col_type: decimal2, csv: {col_hdr: price}}\n")
	b.WriteString("    w:\n      name: t0\n      fields:" + fields + "\n      indexes: {idx_t0: non_unique(id)}\n")
	for i := 1; i < n-1; i++ {
		kind, join := "table_table", ""
		if i%2 == 0 {
			kind, join = "table_lookup_table", "\n    l: {index_name: idx_t0, join_on: r.id, join_type: left, group: false}"
		}
		fmt.Fprintf(&b, "  n%d:\n    type: %s\n    r: {table: t%d}%s\n    w:\n      name: t%d\n      having: w.price > 0 && w.id != \"\"\n      fields:%s\n", i, kind, i-1, join, i, fields)
	}
	fmt.Fprintf(&b, "  out:\n    type: table_file\n    r: {table: t%d}\n    w:\n      url_template: out.csv\n      columns:\n", n-2)
	b.WriteString("        - {name: id, expression: r.id, type: string, csv: {header: id, format: \"%s\"}}\n")
	return b.String()
}
