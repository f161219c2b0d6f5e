package generate

import (
	"context"
	"errors"
	"fmt"
	"os"

	"thalweg/internal/base/fault"
)

// account is a clone of a fund.
type account struct {
	id    string
	fund  int
	scale int64 // its quantities are the fund's times this
}

// maxAccountScale bounds account.scale. Clones differ in it so that a mix-up
// of two accounts of one fund shows, and so that files do not compress better
// than real ones.
const maxAccountScale = 999

// newAccounts deals n accounts to the funds in turn. Names are given out in
// random order, so that neither names nor positions tell the fund.
func newAccounts(c chance, n int) []account {
	accounts := make([]account, n)
	for i, name := range c.r.Perm(n) {
		accounts[i] = account{
			id:    fmt.Sprintf("FUND-%06d", name+1),
			fund:  i % len(fundShapes),
			scale: c.between(1, maxAccountScale),
		}
	}
	return accounts
}

// Portfolio makes a portfolio data set and returns what it made. Failures are
// *fault.Error as the package comment says; a failed or cancelled call leaves
// the directory as it was.
func Portfolio(ctx context.Context, o Options) (summary Summary, err error) {
	o, err = o.withDefaults()
	if err != nil {
		return Summary{}, err
	}
	if err := replaceable(o.Dir); err != nil {
		return Summary{}, err
	}
	s, err := newStage(o.Dir)
	if err != nil {
		return Summary{}, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.discard())
		}
	}()
	summary, err = fillStage(ctx, o, s)
	if err != nil {
		return Summary{}, err
	}
	if err := s.publish(); err != nil {
		return Summary{}, err
	}
	return summary, nil
}

// fillStage makes all files in s.
func fillStage(ctx context.Context, o Options, s *stage) (sum Summary, err error) {
	random := newChance(o.Seed)
	cal := newCalendar()
	m := newMarket(random, cal)
	b := newBook(random, cal, m)
	accounts := newAccounts(random, o.Accounts)

	spill := s.path("spill")
	engine, err := newCloner(ctx, o, spill)
	if err != nil {
		return sum, err
	}
	txns, holdings, err := engine.load(ctx, m, b, accounts)
	if err != nil {
		return sum, errors.Join(err, engine.close())
	}
	if int64(o.TxnFiles) > txns || int64(o.HoldingFiles) > holdings {
		err := fault.New(fault.Script, "%d transactions and %d holdings do not fill %d and %d files", txns, holdings,
			o.TxnFiles, o.HoldingFiles)
		return sum, errors.Join(err, engine.close())
	}
	files := engine.files(txns, holdings, s.path)
	// The engine is closed before its spill folder goes.
	if err := errors.Join(engine.write(ctx, files), engine.close(), os.RemoveAll(spill)); err != nil {
		return sum, err
	}
	sum = Summary{
		Accounts: len(accounts), Txns: txns, TxnsInPeriod: b.inPeriod(cal, accounts), Holdings: holdings,
		Prices: priceCount, Companies: companyCount, Files: len(files), Params: o.paramsPath(),
	}
	return sum, finish(o, s, files, &sum)
}

// finish adds what describes the data files.
func finish(o Options, s *stage, files []file, sum *Summary) error {
	for _, f := range files {
		info, err := os.Stat(f.path)
		if err != nil {
			return &fault.Error{Kind: fault.Environment, Message: "measuring a generated file", Err: err}
		}
		sum.Bytes += info.Size()
	}
	if err := os.Mkdir(s.path(outName), 0o755); err != nil {
		return &fault.Error{Kind: fault.Environment, Message: "making the folder for results", Err: err}
	}
	if err := writeJSON(s.path(paramsName), o.params()); err != nil {
		return err
	}
	return writeJSON(s.path(markerName), marker{markerKind, markerVersion, o.marked(), *sum})
}

// inPeriod counts the transactions that the example script keeps.
func (b book) inPeriod(cal calendar, accounts []account) int64 {
	kept := make([]int64, len(fundShapes))
	for _, t := range b.trades {
		if t.day > cal.periodStart && t.day <= cal.periodEnd {
			kept[t.fund]++
		}
	}
	var n int64
	for _, a := range accounts {
		n += kept[a.fund]
	}
	return n
}
