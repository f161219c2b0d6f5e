package generate

import (
	"cmp"
	"slices"
)

// fundShape is the size of a template fund. Order matters: accounts are dealt
// to the funds in turn, and this order keeps any number of accounts close to
// the average size.
type fundShape struct {
	tickers int
	txns    int64
	late    bool // starts inside the period
}

var fundShapes = [...]fundShape{
	{tickers: 83, txns: 16_100},
	{tickers: 66, txns: 12_700},
	{tickers: 79, txns: 21_600},
	{tickers: 72, txns: 11_350},
	{tickers: 55, txns: 3_600, late: true},
	{tickers: 86, txns: 23_100},
}

// trade is one template transaction; quantities are signed.
type trade struct {
	fund   int
	day    day
	ticker string
	qty    int64
	cents  int64
}

// holding is one template position at a quarter's end.
type holding struct {
	fund   int
	day    day
	ticker string
	qty    int64
}

// book lists the trades and holdings of the six funds, in the order in which files carry them: by date, then
// fund, then ticker.
type book struct {
	trades   []trade
	holdings []holding
}

func newBook(c chance, cal calendar, m market) book {
	var b book
	for f, tickers := range dealTickers(c, m.tickers) {
		shape := fundShapes[f]
		first, reports := cal.firstTrade, cal.quarterEnds
		if shape.late {
			// A fund that starts inside the period has no reports from before.
			first = cal.lateTrade
			reports = slices.DeleteFunc(slices.Clone(reports), func(d day) bool { return d < first })
		}
		days := weekdays(first, cal.periodEnd)
		counts := apportion(shape.txns, c.skewed(len(tickers)), 2, int64(len(days)))
		for i, ticker := range tickers {
			// Each position is settled on the period's last day, which is the
			// day that an exclusive end of period would lose.
			on := append(pick(c, days, int(counts[i])-1), cal.periodEnd)
			trades := tradeTicker(c, m.prices[ticker], on)
			for k := range trades {
				trades[k].fund, trades[k].ticker = f, ticker
			}
			b.trades = append(b.trades, trades...)
			b.holdings = append(b.holdings, positions(trades, reports)...)
		}
	}
	slices.SortFunc(b.trades, func(x, y trade) int {
		return cmp.Or(cmp.Compare(x.day, y.day), cmp.Compare(x.fund, y.fund), cmp.Compare(x.ticker, y.ticker))
	})
	slices.SortFunc(b.holdings, func(x, y holding) int {
		return cmp.Or(cmp.Compare(x.day, y.day), cmp.Compare(x.fund, y.fund), cmp.Compare(x.ticker, y.ticker))
	})
	return b
}

// dealTickers gives each fund its own set; sets overlap, and together they
// hold every ticker.
func dealTickers(c chance, tickers []string) [][]string {
	own := make([]int64, len(fundShapes))
	for f, shape := range fundShapes {
		own[f] = int64(shape.tickers)
	}
	own = apportion(int64(len(tickers)), own, 1, int64(len(tickers)))
	order := c.r.Perm(len(tickers))
	sets := make([][]string, len(fundShapes))
	start := 0
	for f, shape := range fundShapes {
		end := start + int(own[f])
		set := slices.Clone(order[start:end])
		others := slices.Concat(order[:start], order[end:])
		set = append(set, pick(c, others, shape.tickers-len(set))...)
		start = end
		slices.Sort(set)
		for _, i := range set {
			sets[f] = append(sets[f], tickers[i])
		}
	}
	return sets
}

// tradeTicker trades one ticker of one fund on the given ascending days: first
// it buys, and it never sells what it has not got.
func tradeTicker(c chance, prices []point, on []day) []trade {
	size := c.between(50, 200_000)
	trades := make([]trade, len(on))
	var held int64
	for i, d := range on {
		var qty int64
		switch {
		case held == 0 || !c.percent(55):
			qty = c.between(1, size)
		case c.percent(3):
			qty = -held
		default:
			qty = -min(held, c.between(1, size))
		}
		held += qty
		// A trade is done within 1 % of the day's closing price.
		close := at(prices, d)
		cents := max(1, close+close*c.between(-10_000, 10_000)/1_000_000)
		trades[i] = trade{day: d, qty: qty, cents: cents}
	}
	return trades
}

// positions are the running quantities of one ticker's trades on the given
// days. A position that is not open is reported with quantity 0.
func positions(trades []trade, on []day) []holding {
	var held int64
	next := 0
	out := make([]holding, len(on))
	for i, d := range on {
		for next < len(trades) && trades[next].day <= d {
			held += trades[next].qty
			next++
		}
		out[i] = holding{fund: trades[0].fund, day: d, ticker: trades[0].ticker, qty: held}
	}
	return out
}
