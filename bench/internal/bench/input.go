package bench

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"thalweg/bench/generate"
	"thalweg/internal/fault"
)

// The kinds of input beside those that a directory of bench/steps makes.
const (
	inputPortfolio = "portfolio" // generated; the size is its accounts
	inputArk       = "ark"       // the real data
	inputWide      = "wide"      // a script of wideNodes nodes
)

// input is what a side reads.
type input struct {
	dir    string
	params map[string]any // of the script, but for where results go
	about  map[string]any
}

// input returns a case's input of some size, making it if it is not there,
// and reads it once. why tells what is missing where there is none.
func (s *session) input(ctx context.Context, kind string, size int64) (in input, why string, err error) {
	key := fmt.Sprintf("%s-%d", kind, size)
	if in, ok := s.inputs[key]; ok {
		return in, "", nil
	}
	dir := filepath.Join(s.config.WorkDir, key)
	switch kind {
	case inputPortfolio:
		in, err = s.generated(ctx, dir, int(size))
	case inputArk:
		in, why = s.ark()
	case inputWide:
		in = input{dir: dir, about: map[string]any{"nodes": wideNodes}}
		err = s.made(ctx, dir, func(fresh string) error {
			return os.WriteFile(filepath.Join(fresh, "wide.yaml"), []byte(wideScript(wideNodes)), 0o644)
		})
	default:
		in = input{dir: dir, params: map[string]any{"dir_in": dir}, about: map[string]any{"rows": size}}
		err = s.made(ctx, dir, func(fresh string) error { return s.statements(ctx, kind, fresh, size) })
	}
	if err != nil || why != "" {
		return in, why, err
	}
	s.inputs[key] = in
	return in, "", warm(in.dir)
}

// generated returns the generated portfolio.
func (s *session) generated(ctx context.Context, dir string, accounts int) (input, error) {
	o := generate.Options{Accounts: accounts, Dir: dir, Seed: 1}
	sum, ok, err := generate.Existing(o)
	if err == nil && !ok {
		s.config.Logger.InfoContext(ctx, "generating", "accounts", accounts, "dir", o.Dir)
		sum, err = generate.Portfolio(ctx, o)
	}
	if err != nil {
		return input{}, err
	}
	in := input{dir: dir, about: map[string]any{
		"accounts": sum.Accounts, "txns": sum.Txns, "txns_in_period": sum.TxnsInPeriod, "holdings": sum.Holdings,
		"prices": sum.Prices, "files": sum.Files, "bytes": sum.Bytes, "format": generate.FormatParquet, "seed": o.Seed,
	}}
	return in, readJSON(sum.Params, &in.params)
}

// ark returns the real data set.
func (s *session) ark() (in input, why string) {
	if s.config.RealDataDir == "" {
		return in, "THALWEG_REAL_DATA is not set"
	}
	dir := filepath.Join(s.config.RealDataDir, "portfolio", "in")
	at := func(name string) string { return filepath.Join(dir, name) }
	if _, err := os.Stat(at("txns.csv")); err != nil {
		return in, dir + " is not there"
	}
	return input{dir: dir, about: map[string]any{"accounts": 6, "format": generate.FormatCSV}, params: map[string]any{
		"accounts_urls": []string{at("accounts.csv")}, "txns_urls": []string{at("txns.csv")}, "holdings_urls": []string{at("holdings.csv")},
		"prices_file": at("prices.csv"), "companies_file": at("companies.csv"),
		"period_start": generate.PeriodStart, "period_end": generate.PeriodEnd,
	}}, ""
}

// made sees to it that dir is there; a half-made one does not look finished.
func (s *session) made(ctx context.Context, dir string, fill func(fresh string) error) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	s.config.Logger.InfoContext(ctx, "generating", "dir", dir)
	fresh := dir + ".new"
	err := os.RemoveAll(fresh)
	if err == nil {
		err = os.MkdirAll(fresh, 0o755)
	}
	if err == nil {
		err = fill(fresh)
	}
	if err == nil {
		err = os.Rename(fresh, dir)
	}
	if err != nil {
		return &fault.Error{Kind: fault.Environment, Message: "making the input " + dir, Err: err}
	}
	return nil
}

// statements makes the input of a step with its own statements.
func (s *session) statements(ctx context.Context, step, dir string, rows int64) error {
	args, err := s.command(ctx, side{program: "sql"}, map[string]string{
		"file": filepath.Join(s.config.Root, "bench", "steps", step, "input.sql"), "in": dir, "out": dir, "rows": fmt.Sprint(rows), "timings": os.DevNull,
	})
	if err == nil {
		_, err = output(ctx, "", args...)
	}
	return err
}

// with are the parameters of a run whose results go to out.
func (in input) with(more map[string]any, out string) map[string]any {
	params := map[string]any{}
	maps.Copy(params, in.params)
	maps.Copy(params, more)
	params["dir_out"] = out
	return params
}

// wideNodes is the size of the script that is only checked.
const wideNodes = 200

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
