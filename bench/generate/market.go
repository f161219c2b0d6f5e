package generate

import (
	"fmt"
	"slices"
	"strings"
)

// Size of the invented market.
const (
	tickerCount  = 250    // traded tickers
	companyCount = 256    // companies; the last few are not traded
	priceCount   = 41_857 // end-of-day prices over all tickers
	// minPrices and maxPrices bound the points of one ticker. Two are the
	// least that a lookup can interpolate between.
	minPrices = 2
	maxPrices = 308
)

// sectors with the number of companies in each. The names are those that the
// example script tags by. They add up to companyCount.
var sectors = [...]struct {
	name      string
	companies int
}{
	{"Communication Services", 23},
	{"Consumer Cyclical", 24},
	{"Consumer Defensive", 3},
	{"Financial Services", 29},
	{"Healthcare", 75},
	{"Industrials", 31},
	{"Real Estate", 2},
	{"Technology", 69},
}

// company is one line of companies.csv.
type company struct{ ticker, sector string }

// point is an end-of-day price in cents.
type point struct {
	day   day
	cents int64
}

// market is everything that exists before any fund trades.
type market struct {
	companies []company // sorted by ticker
	tickers   []string  // the traded ones, sorted
	prices    map[string][]point
}

func newMarket(c chance, cal calendar) market {
	m := market{companies: newCompanies(c), prices: make(map[string][]point, tickerCount)}
	for _, co := range pick(c, m.companies, tickerCount) {
		m.tickers = append(m.tickers, co.ticker)
	}
	inside := weekdays(cal.firstPrice+1, cal.lastPrice-1)
	for i, n := range apportion(priceCount, c.skewed(tickerCount), minPrices, maxPrices) {
		days := append([]day{cal.firstPrice}, pick(c, inside, int(n)-minPrices)...)
		m.prices[m.tickers[i]] = walk(c, append(days, cal.lastPrice))
	}
	return m
}

// newCompanies invents tickers: a letter and a number, and on some a
// secondary listing's suffix, because real ones contain blanks too.
func newCompanies(c chance) []company {
	numbers := c.r.Perm(1000)[:companyCount]
	var all []company
	for s, sector := range sectors {
		for range sector.companies {
			n := numbers[len(all)]
			ticker := fmt.Sprintf("%c%03d", 'A'+3*s, n)
			if n%25 == 0 {
				ticker += " UX"
			}
			all = append(all, company{ticker, sector.name})
		}
	}
	slices.SortFunc(all, func(a, b company) int { return strings.Compare(a.ticker, b.ticker) })
	return all
}

// walk is a random walk over days, in cents, kept between 1 and 5,000 dollars.
func walk(c chance, days []day) []point {
	const (
		minCents, maxCents = 100, 500_000
		dailyMovePPM       = 9_000 // largest move of one calendar day, in millionths
		maxMovePPM         = 250_000
	)
	cents := c.between(500, 40_000)
	points := make([]point, len(days))
	for i, d := range days {
		if i > 0 {
			move := min(maxMovePPM, dailyMovePPM*int64(d-days[i-1]))
			cents += cents * c.between(-move, move) / 1_000_000
			cents = min(maxCents, max(minCents, cents))
		}
		points[i] = point{d, cents}
	}
	return points
}

// at is the price on a day by straight line between the points around it: what
// the formulas will look up. d must lie within the points.
func at(points []point, d day) int64 {
	i, exact := slices.BinarySearchFunc(points, d, func(p point, d day) int { return int(p.day - d) })
	if exact {
		return points[i].cents
	}
	a, b := points[i-1], points[i]
	return a.cents + (b.cents-a.cents)*int64(d-a.day)/int64(b.day-a.day)
}
