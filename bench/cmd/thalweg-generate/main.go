// Command thalweg-generate makes input data for the examples. The same flags
// make the same bytes everywhere.
//
// It exits with 0 when the data is there, 2 for what the command line asks in
// vain, 130 when it was interrupted, 1 for anything else.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/alecthomas/kong"

	"thalweg/bench/generate"
	"thalweg/internal/base/fault"
)

// Exit codes, as those of thalweg.
const (
	exitOurs        = 1
	exitUsers       = 2
	exitInterrupted = 130
)

type options struct {
	Portfolio portfolio `cmd:"" help:"Accounts, transactions, holdings and prices for examples/portfolio."`
}

type portfolio struct {
	Accounts     int    `help:"Accounts; each has about 14,700 transactions and 717 holdings." default:"6"`
	Out          string `help:"Directory for the files: new, empty, or an earlier output." required:"" placeholder:"DIR"`
	Format       string `help:"${enum}." enum:"parquet,csv" default:"parquet"`
	TxnFiles     int    `help:"Transaction files; default: one an account." placeholder:"N"`
	HoldingFiles int    `help:"Holding files; default: one for 20 accounts." placeholder:"N"`
	Seed         uint64 `help:"The same seed makes the same files." default:"1"`
	JSON         bool   `name:"json" help:"Print the summary as JSON."`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run parses args, makes the data and returns the exit code.
func run(ctx context.Context, args []string, out, talk io.Writer) int {
	var o options
	exited := -1
	parser, err := kong.New(&o, kong.Name("thalweg-generate"), kong.Description("Make input data for the examples."),
		kong.Writers(out, talk), kong.Exit(func(code int) { exited = code }))
	if err != nil {
		fmt.Fprintln(talk, "thalweg-generate:", err)
		return exitOurs
	}
	_, err = parser.Parse(args)
	switch {
	case exited >= 0:
		return exited
	case err != nil:
		fmt.Fprintf(talk, "thalweg-generate: %v\n  hint: thalweg-generate --help lists commands and flags\n", err)
		return exitUsers
	}
	if err := o.Portfolio.make(ctx, out, talk); err != nil {
		return report(ctx, talk, err)
	}
	return 0
}

// report prints a failure and gives its exit code.
func report(ctx context.Context, talk io.Writer, err error) int {
	f := fault.Of(err)
	switch {
	case ctx.Err() != nil:
		fmt.Fprintln(talk, "thalweg-generate: interrupted")
		return exitInterrupted
	case f.Hint != "":
		fmt.Fprintf(talk, "error: %v\n  hint: %s\n", err, f.Hint)
	default:
		fmt.Fprintf(talk, "error: %v\n", err)
	}
	if f.Kind == fault.Script {
		return exitUsers
	}
	return exitOurs
}

func (p *portfolio) make(ctx context.Context, out, talk io.Writer) error {
	fmt.Fprintf(talk, "generating a portfolio of %d accounts in %s\n", p.Accounts, p.Out)
	sum, err := generate.Portfolio(ctx, generate.Options{Accounts: p.Accounts, Dir: p.Out, Format: p.Format,
		TxnFiles: p.TxnFiles, HoldingFiles: p.HoldingFiles, Seed: p.Seed})
	if err != nil {
		return err
	}
	if p.JSON {
		return json.NewEncoder(out).Encode(sum)
	}
	script := "script.yaml"
	if p.Format == generate.FormatCSV {
		script = "script_csv.yaml"
	}
	fmt.Fprintf(out, "%d accounts, %d transactions (%d in the periods), %d holdings, %d prices: %d files, %.1f MB\n",
		sum.Accounts, sum.Txns, sum.TxnsInPeriod, sum.Holdings, sum.Prices, sum.Files, float64(sum.Bytes)/1e6)
	_, err = fmt.Fprintf(out, "run it: thalweg run %s --params %s\n", filepath.Join("examples", "portfolio", script),
		sum.Params)
	return err
}
