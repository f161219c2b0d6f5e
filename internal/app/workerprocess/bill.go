package workerprocess

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"thalweg/internal/app/instance"
	"thalweg/internal/base/address"
	"thalweg/internal/base/fault"
	"thalweg/internal/ops/bill"
	"thalweg/internal/ops/price"
	"thalweg/internal/run/sheet"
	"thalweg/internal/store/state"
)

// pricesVariable names a file of prices in the environment: they go before those of a cluster's file.
const pricesVariable = "THALWEG_PRICES"

// ReadPrices reads what bills of an instance rest on: the published prices, those of the cluster's file, and those of a
// file that the environment names, seen from dir.
func ReadPrices(home *instance.Instance, getenv func(name string) string, dir string) (err error) {
	if cfg := home.Cluster(); cfg != nil {
		home.Costs = cfg.Cost
	}
	if home.Costs.Book, err = price.Published(); err != nil {
		return err
	}
	var files []string
	if home.Costs.Prices != "" {
		files = append(files, home.Costs.Prices)
	}
	if name := getenv(pricesVariable); name != "" {
		files = append(files, address.Seen(dir, name))
	}
	for _, name := range files {
		book, err := pricesIn(name)
		if err != nil {
			return err
		}
		home.Costs.Book = home.Costs.Book.With(book)
	}
	return nil
}

func pricesIn(name string) (*price.Book, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		f := &fault.Error{Kind: fault.Environment, Message: "read the prices in " + name, Err: err}
		if errors.Is(err, fs.ErrNotExist) {
			f.Kind, f.Hint = fault.Script, "name another file in "+pricesVariable+", or in cost.prices of the cluster"
		}
		return nil, f
	}
	book, diags := price.Read(name, string(text))
	return book, diags.Err()
}

// Bill returns what a run has cost so far; nil: it has no time sheets.
func Bill(ctx context.Context, home *instance.Instance, key state.RunKey, nodes []state.Node) (*bill.Bill, error) {
	sheets, err := sheet.Of(ctx, home.State, key)
	if err != nil {
		return nil, fmt.Errorf("bill run %d: %w", key.Run, err)
	}
	return bill.Of(sheets, bill.NodesOf(nodes), home.Costs.Basis), nil
}
