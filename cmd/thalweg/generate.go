package main

import (
	"context"
	"fmt"
	"path/filepath"

	"thalweg/internal/generate"
)

type generateCmd struct {
	Portfolio generatePortfolioCmd `cmd:"" help:"Accounts, transactions, holdings and prices for examples/portfolio."`
}

type generatePortfolioCmd struct {
	Accounts     int    `help:"Accounts; each has about 14,700 transactions and 717 holdings." default:"6"`
	Out          string `help:"Directory for the files: new, empty, or an earlier output." required:"" type:"path" placeholder:"DIR"`
	Format       string `help:"${enum}." enum:"parquet,csv" default:"parquet"`
	TxnFiles     int    `help:"Transaction files; default: one an account." placeholder:"N"`
	HoldingFiles int    `help:"Holding files; default: one for 20 accounts." placeholder:"N"`
	Seed         uint64 `help:"The same seed makes the same files." default:"1"`
	JSON         bool   `name:"json" help:"Print the summary as JSON."`
}

func (c *generatePortfolioCmd) Run(ctx context.Context, a *app) error {
	fmt.Fprintf(a.stderr, "generating a portfolio of %d accounts in %s\n", c.Accounts, c.Out)
	sum, err := generate.Portfolio(ctx, generate.Options{Accounts: c.Accounts, Dir: c.Out, Format: c.Format, TxnFiles: c.TxnFiles, HoldingFiles: c.HoldingFiles, Seed: c.Seed})
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(a.stdout, sum)
	}
	script := "script.yaml"
	if c.Format == generate.FormatCSV {
		script = "script_csv.yaml"
	}
	fmt.Fprintf(a.stdout, "%s accounts, %s transactions (%s in the periods), %s holdings, %s prices: %d files, %s\n",
		count(int64(sum.Accounts)), count(sum.Txns), count(sum.TxnsInPeriod), count(sum.Holdings), count(sum.Prices), sum.Files, size(sum.Bytes))
	fmt.Fprintf(a.stdout, "run it: thalweg run %s --params %s\n", filepath.Join("examples", "portfolio", script), sum.Params)
	return nil
}
