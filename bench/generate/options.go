package generate

import (
	"path/filepath"

	"thalweg/internal/base/fault"
)

// Formats of the account, holding and transaction files.
const (
	FormatCSV     = "csv"     // header line, dates as YYYY-MM-DD, LF line ends
	FormatParquet = "parquet" // VARCHAR, DATE, BIGINT, DECIMAL(18,2)
)

// Limits of Options.
const (
	MaxAccounts = 100_000 // accounts; 1.5 G transactions
	MaxFiles    = 20_000  // files of one kind
)

// accountsPerHoldingFile makes 1,000 accounts come in 50 holding files.
const accountsPerHoldingFile = 20

// Options sets the size and place of a Portfolio.
type Options struct {
	// Accounts is the number of accounts, 1 to MaxAccounts. Each account
	// clones one of six funds; funds differ in size, so only multiples of six
	// give exactly the average 14,741.7 transactions and 716.7 holdings each.
	Accounts int
	// Dir is the directory of the files. It must not exist, be empty, or hold an earlier output of Portfolio,
	// which is then replaced.
	Dir string
	// Format is FormatCSV or FormatParquet; empty means FormatParquet.
	// Prices and companies are CSV in any case: Python formulas read them.
	Format string
	// TxnFiles is the number of transaction files, up to MaxFiles;
	// 0 means one for each account.
	TxnFiles int
	// HoldingFiles is the number of holding files, up to MaxFiles;
	// 0 means one for each 20 accounts.
	HoldingFiles int
	// Seed selects the random stream; every value is as good.
	Seed uint64
}

// withDefaults fills what was left out and refuses what cannot be made.
func (o Options) withDefaults() (Options, error) {
	if o.Format == "" {
		o.Format = FormatParquet
	}
	if o.TxnFiles == 0 {
		o.TxnFiles = min(MaxFiles, max(1, o.Accounts))
	}
	if o.HoldingFiles == 0 {
		o.HoldingFiles = min(MaxFiles, max(1, o.Accounts/accountsPerHoldingFile))
	}
	switch {
	case o.Accounts < 1 || o.Accounts > MaxAccounts:
		return o, fault.New(fault.Script, "number of accounts must be 1 to %d, not %d", MaxAccounts, o.Accounts)
	case o.TxnFiles < 1 || o.TxnFiles > MaxFiles:
		return o, fault.New(fault.Script, "number of transaction files must be 1 to %d, not %d", MaxFiles, o.TxnFiles)
	case o.HoldingFiles < 1 || o.HoldingFiles > MaxFiles:
		return o, fault.New(fault.Script, "number of holding files must be 1 to %d, not %d", MaxFiles, o.HoldingFiles)
	case o.Format != FormatCSV && o.Format != FormatParquet:
		return o, fault.New(fault.Script, "format must be %s or %s, not %q", FormatCSV, FormatParquet, o.Format)
	case o.Dir == "":
		return o, fault.New(fault.Script, "a directory for the generated files is needed")
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return o, &fault.Error{Kind: fault.Environment, Message: "resolving the directory " + o.Dir, Err: err}
	}
	o.Dir = dir
	return o, nil
}

// Summary counts the generated rows. Row counts are exact.
type Summary struct {
	Accounts     int   `json:"accounts"`
	Txns         int64 `json:"txns"`
	TxnsInPeriod int64 `json:"txns_in_period"` // after PeriodStart, up to PeriodEnd inclusive
	Holdings     int64 `json:"holdings"`
	Prices       int64 `json:"prices"`
	Companies    int64 `json:"companies"`
	Files        int   `json:"files"` // input files, without params.json
	Bytes        int64 `json:"bytes"` // of those files
	// Params is the absolute path of the parameter file for the example script.
	Params string `json:"-"`
}
