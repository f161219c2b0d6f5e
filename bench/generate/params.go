package generate

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"thalweg/internal/base/fault"
)

// Params is params.json: the parameters of the example script. Paths are absolute.
type Params struct {
	AccountsURLs  []string `json:"accounts_urls"`
	TxnsURLs      []string `json:"txns_urls"`
	HoldingsURLs  []string `json:"holdings_urls"`
	PricesFile    string   `json:"prices_file"`
	CompaniesFile string   `json:"companies_file"`
	DirOut        string   `json:"dir_out"`
	PeriodStart   string   `json:"period_start"` // YYYY-MM-DD, exclusive for transactions
	PeriodEnd     string   `json:"period_end"`   // YYYY-MM-DD, inclusive
}

func (o Options) params() Params {
	in := func(name string) string { return filepath.Join(o.Dir, name) }
	p := Params{
		AccountsURLs:  []string{in(o.accountsName())},
		PricesFile:    in(pricesName),
		CompaniesFile: in(companiesName),
		DirOut:        in(outName),
		PeriodStart:   PeriodStart,
		PeriodEnd:     PeriodEnd,
	}
	for i := range o.TxnFiles {
		p.TxnsURLs = append(p.TxnsURLs, in(o.partName("txns", i)))
	}
	for i := range o.HoldingFiles {
		p.HoldingsURLs = append(p.HoldingsURLs, in(o.partName("holdings", i)))
	}
	return p
}

func (o Options) accountsName() string { return "accounts." + o.Format }

func (o Options) partName(kind string, i int) string {
	return fmt.Sprintf("%s_%03d.%s", kind, i, o.Format)
}

// writeJSON writes v, indented, as a new file.
func writeJSON(path string, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding %s: %w", filepath.Base(path), err)
	}
	if err := os.WriteFile(path, append(text, '\n'), 0o644); err != nil {
		return &fault.Error{Kind: fault.Environment, Message: "writing " + filepath.Base(path), Err: err}
	}
	return nil
}

func (o Options) paramsPath() string { return filepath.Join(o.Dir, paramsName) }
