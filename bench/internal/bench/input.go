package bench

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"

	"thalweg/bench/generate"
	"thalweg/internal/base/fault"
)

// The kinds of input beside those that a directory of bench/steps makes.
const (
	inputPortfolio = "portfolio" // generated; the size is its accounts
	inputArk       = "ark"       // the real data
	inputNone      = "none"      // the program makes what it measures
)

// input describes the input of a side.
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
	case inputNone:
		return input{about: map[string]any{"rows": size}}, "", nil
	default:
		in = input{dir: dir, params: map[string]any{"dir_in": dir}, about: map[string]any{"rows": size}}
		err = s.statements(ctx, kind, dir, size)
	}
	if err != nil || why != "" {
		return in, why, err
	}
	s.inputs[key] = in
	return in, "", Warm(in.dir)
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
		"accounts_urls": []string{at("accounts.csv")}, "txns_urls": []string{at("txns.csv")},
		"holdings_urls": []string{at("holdings.csv")},
		"prices_file":   at("prices.csv"), "companies_file": at("companies.csv"),
		"period_start": generate.PeriodStart, "period_end": generate.PeriodEnd,
	}}, ""
}

// statements makes the input of a step with its own statements, if it is not
// there; a half-made one does not look finished.
func (s *session) statements(ctx context.Context, step, dir string, rows int64) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	s.config.Logger.InfoContext(ctx, "generating", "dir", dir)
	fresh := dir + ".new"
	args, err := s.command(ctx, side{program: "sql"}, map[string]string{
		"file": filepath.Join(s.config.Root, "bench", "steps", step, "input.sql"), "in": fresh, "out": fresh,
		"rows": fmt.Sprint(rows), "timings": os.DevNull,
	})
	if err != nil {
		return err
	}
	if err = errors.Join(os.RemoveAll(fresh), os.MkdirAll(fresh, 0o755)); err == nil {
		_, err = output(ctx, "", args...)
	}
	if err == nil {
		err = os.Rename(fresh, dir)
	}
	if err != nil {
		return &fault.Error{Kind: fault.Environment, Message: "making the input " + dir, Err: err}
	}
	return nil
}

// with are the parameters of a run whose results go to out.
func (in input) with(more map[string]any, out string) map[string]any {
	params := map[string]any{}
	maps.Copy(params, in.params)
	maps.Copy(params, more)
	params["dir_out"] = out
	return params
}
