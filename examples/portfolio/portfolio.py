"""Time-weighted return of investment accounts, by period and sector.

The formulas of the portfolio example. A script calls three functions:

    calc_perf(...)                        one account -> JSON text with every period and sector
    twr_pct(perf_json, period, sector)    time-weighted return in percent, from that text
    cagr_pct(perf_json, period, sector)   the same return as a yearly rate, in percent

The market value of a set of holdings changes for two reasons: prices move, and
shares are bought and sold. A time-weighted return keeps only the first. The
period is cut at each day with a trade; each piece grows by (value at its end,
without that day's purchases and sales) / (value at its start), and the return
is the product of all pieces, minus one.

Only the standard library is used, on Python 3.9 or later. Days are counted as
integers (proleptic Gregorian ordinals) and every date text is converted once;
files of prices and companies are read once in a process.
"""

from __future__ import annotations

import csv
import json
from bisect import bisect_right
from calendar import monthrange
from collections import defaultdict
from datetime import date
from functools import lru_cache
from itertools import accumulate
from operator import add
from typing import NamedTuple

ALL_SECTORS = "All"
DAYS_PER_YEAR = 365
NEGLIGIBLE_VALUE = 1e-9  # money; nothing is held, so there is nothing that could grow
RETURN_DIGITS = 4  # 0.1234 is 12.34 %
PRICE_DIGITS = 2


# ---------------------------------------------------------------------------
# What a script calls
# ---------------------------------------------------------------------------


def calc_perf(
    txns_json: str,
    holdings_json: str,
    period_start: str,
    period_end: str,
    prices_file: str,
    companies_file: str,
) -> str:
    """Return the performance of one account as JSON text.

    txns_json      array of "date|ticker|signed quantity|trade price"
    holdings_json  array of "date|ticker|quantity", at least at each period's start
    period_start   date at whose end the account is opened; period_end: the last date
    prices_file    CSV with columns ticker, d, price: end-of-day prices
    companies_file CSV with columns ticker, sector

    The text has sorted keys: {period: {sector: {"cagr": rate, "twr": rate}}}.
    """
    trades = _parse_trades(txns_json)
    openings = _parse_holdings(holdings_json)
    prices = load_prices(prices_file)
    companies = load_companies(companies_file)
    perf = {
        period.name: _period_performance(period, openings.get(period.start, {}), trades, prices, companies)
        for period in split_periods(_DAYS[period_start], _DAYS[period_end])
    }
    return json.dumps(perf, sort_keys=True)


def twr_pct(perf_json: str, period: str, sector: str) -> float:
    """Return the time-weighted return of a period and sector, in percent."""
    return _rate(perf_json, period, sector, "twr") * 100


def cagr_pct(perf_json: str, period: str, sector: str) -> float:
    """Return the yearly rate of a period and sector, in percent."""
    return _rate(perf_json, period, sector, "cagr") * 100


def _rate(perf_json: str, period: str, sector: str, name: str) -> float:
    try:
        return _parse_perf(perf_json)[period][sector][name]
    except KeyError as missing:
        raise ValueError(f"no {name} for period {period!r} and sector {sector!r}: {missing} is missing") from None


@lru_cache(maxsize=4)
def _parse_perf(perf_json: str) -> dict[str, dict[str, dict[str, float]]]:
    # The rows of one account follow one another, so a few remembered texts save
    # one parse for each of its periods, sectors and rates but the first.
    return json.loads(perf_json)


# ---------------------------------------------------------------------------
# Days and periods
# ---------------------------------------------------------------------------


class _DayNumbers(dict):
    """Day number of each date text, converted when first asked for."""

    def __missing__(self, text: str) -> int:
        day = self[text] = date.fromisoformat(text).toordinal()
        return day


_DAYS = _DayNumbers()


class Period(NamedTuple):
    """Days after start, up to and including end. What is held at the end of start opens the period."""

    name: str  # 2021Q1, 2021
    start: int
    end: int


@lru_cache(maxsize=16)
def split_periods(start: int, end: int) -> list[Period]:
    """Cut the days after start into calendar quarters, then into calendar years.

    A quarter or year that is not over by end is left out; one that has begun
    before start begins at start.
    """
    quarters: list[Period] = []
    years: list[Period] = []
    quarter_start = year_start = start
    for month_end in _month_ends(start, end):
        day = month_end.toordinal()
        if month_end.month % 3 == 0:
            quarters.append(Period(f"{month_end.year}Q{month_end.month // 3}", quarter_start, day))
            quarter_start = day
        if month_end.month == 12:
            years.append(Period(str(month_end.year), year_start, day))
            year_start = day
    return quarters + years


def _month_ends(start: int, end: int):
    """Yield the last day of each month that lies after start and not after end."""
    first = date.fromordinal(start + 1)
    year, month = first.year, first.month
    while True:
        last = date(year, month, monthrange(year, month)[1])
        if last.toordinal() > end:
            return
        yield last
        year, month = (year, month + 1) if month < 12 else (year + 1, 1)


# ---------------------------------------------------------------------------
# Prices and companies
# ---------------------------------------------------------------------------


class TickerPrices(dict):
    """End-of-day price of one ticker by day number.

    Known prices are sparse. A day between two of them gets the price on the
    straight line between them by calendar days, in whole cents; it is worked out
    when first asked for, and remembered.
    """

    def __init__(self, ticker: str, points: list[tuple[int, float]]):
        self.ticker = ticker
        self.days = [day for day, _ in points]
        self.prices = [price for _, price in points]
        # A known price is given back as it is, except that the two outermost ones
        # are rounded like those between.
        super().__init__(points[1:-1])

    def __missing__(self, day: int) -> float:
        price = self[day] = self._interpolate(day)
        return price

    def _interpolate(self, day: int) -> float:
        days, prices = self.days, self.prices
        if len(days) == 1 and day == days[0]:
            return round(prices[0], PRICE_DIGITS)
        # Two points make a line that has no ends; with more of them a day outside is a mistake.
        if len(days) != 2 and not days[0] <= day <= days[-1]:
            raise ValueError(
                f"no price of {self.ticker} on {date.fromordinal(day)}: "
                f"known from {date.fromordinal(days[0])} to {date.fromordinal(days[-1])}"
            )
        right = min(max(bisect_right(days, day), 1), len(days) - 1)
        left = right - 1
        slope = (prices[right] - prices[left]) / (days[right] - days[left])
        return round(prices[left] + slope * (day - days[left]), PRICE_DIGITS)


@lru_cache(maxsize=8)
def load_prices(path: str) -> dict[str, TickerPrices]:
    """Read a price file, once in a process for each path."""
    points: dict[str, list[tuple[int, float]]] = defaultdict(list)
    with open(path, newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            points[row["ticker"]].append((_DAYS[row["d"]], float(row["price"])))
    for ticker, known in points.items():
        known.sort()
        for (day, _), (next_day, _) in zip(known, known[1:]):
            if day == next_day:
                raise ValueError(f"{path}: two prices of {ticker} on {date.fromordinal(day)}")
    return {ticker: TickerPrices(ticker, known) for ticker, known in points.items()}


class Companies(NamedTuple):
    """Who does what. Tickers that are not listed count in no sector, not even in "All"."""

    sector_of: dict[str, str]
    sectors: list[str]  # sorted, without "All"


@lru_cache(maxsize=8)
def load_companies(path: str) -> Companies:
    """Read a company file, once in a process for each path."""
    with open(path, newline="", encoding="utf-8") as file:
        sector_of = {row["ticker"]: row["sector"] for row in csv.DictReader(file)}
    return Companies(sector_of, sorted(set(sector_of.values())))


# ---------------------------------------------------------------------------
# One account
# ---------------------------------------------------------------------------


class Trades(NamedTuple):
    """All trades of one ticker, one entry a day, in the order of days."""

    days: list[int]
    quantities: list[float]  # bought less sold on that day
    costs: list[float]  # money put in less money taken out on that day


def _parse_trades(txns_json: str) -> dict[str, Trades]:
    """Read "date|ticker|quantity|price" entries, and sum up those of a ticker and a day."""
    trades: dict[str, Trades] = {}
    unsorted: set[str] = set()
    for entry in json.loads(txns_json):
        text, ticker, quantity_text, price = entry.split("|")
        day = _DAYS[text]
        quantity = float(quantity_text)
        if ticker not in trades:
            trades[ticker] = Trades([], [], [])
        days, quantities, costs = trades[ticker]
        if days and day <= days[-1]:
            if day == days[-1]:
                quantities[-1] += quantity
                costs[-1] += quantity * float(price)
                continue
            unsorted.add(ticker)
        days.append(day)
        quantities.append(quantity)
        costs.append(quantity * float(price))
    for ticker in unsorted:
        trades[ticker] = _merge_days(trades[ticker])
    return trades


def _merge_days(trades: Trades) -> Trades:
    """Put days in order, and those that are there more than once together."""
    quantities: dict[int, float] = defaultdict(float)
    costs: dict[int, float] = defaultdict(float)
    for day, quantity, cost in zip(*trades):
        quantities[day] += quantity
        costs[day] += cost
    days = sorted(quantities)
    return Trades(days, [quantities[day] for day in days], [costs[day] for day in days])


def _parse_holdings(holdings_json: str) -> dict[int, dict[str, float]]:
    """Read "date|ticker|quantity" entries: day -> ticker -> quantity held at the end of that day."""
    holdings: dict[int, dict[str, float]] = defaultdict(dict)
    for entry in json.loads(holdings_json):
        text, ticker, quantity = entry.split("|")
        of_day = holdings[_DAYS[text]]
        if ticker in of_day:
            raise ValueError(f"{ticker} is held twice on {text}")
        of_day[ticker] = float(quantity)
    return holdings


# ---------------------------------------------------------------------------
# One period of one account
# ---------------------------------------------------------------------------


class _Cut(NamedTuple):
    """The part of a ticker's trades that lies in a period."""

    ticker: str
    opening: float  # quantity held when the period begins
    days: list[int]
    quantities: list[float]
    costs: list[float]


def _period_performance(
    period: Period,
    opening: dict[str, float],
    trades: dict[str, Trades],
    prices: dict[str, TickerPrices],
    companies: Companies,
) -> dict[str, dict[str, float]]:
    """Return sector -> rates for one period, "All" being one of the sectors."""
    cuts = _cut_trades(period, opening, trades)

    # Each holding is valued on each of the days on which anything was traded, so
    # that a sector's values, and those of the account, are plain sums of them.
    days = sorted({period.start, period.end}.union(*(cut.days for cut in cuts)))
    position = {day: i for i, day in enumerate(days)}
    members: dict[str, list[_Cut]] = defaultdict(list)
    for cut in cuts:
        if cut.ticker in companies.sector_of:
            members[companies.sector_of[cut.ticker]].append(cut)

    result = {sector: {"cagr": 0.0, "twr": 0.0} for sector in companies.sectors}
    all_values: list[float] = [0.0] * len(days)
    all_flows: dict[int, float] = defaultdict(float)
    for sector in sorted(members):
        values: list[float] = [0.0] * len(days)
        flows: dict[int, float] = defaultdict(float, {period.start: 0.0, period.end: 0.0})
        for cut in members[sector]:
            values = list(map(add, values, _values(cut, days, position, prices)))
            for day, cost in zip(cut.days, cut.costs):
                flows[day] += cost
        sector_days = sorted(flows)
        result[sector] = _rates(sector_days, [values[position[day]] for day in sector_days], flows)
        all_values = list(map(add, all_values, values))
        for day, flow in flows.items():
            all_flows[day] += flow
    all_days = sorted(all_flows)
    result[ALL_SECTORS] = _rates(all_days, [all_values[position[day]] for day in all_days], all_flows)
    return result


def _cut_trades(period: Period, opening: dict[str, float], trades: dict[str, Trades]) -> list[_Cut]:
    """Return what happens to each ticker that is held or traded in the period, by ticker."""
    cuts = []
    for ticker in sorted(trades.keys() | opening.keys()):
        traded = trades.get(ticker)
        if traded is None:
            cuts.append(_Cut(ticker, opening[ticker], [], [], []))
            continue
        low = bisect_right(traded.days, period.start)
        high = bisect_right(traded.days, period.end, low)
        if low < high or ticker in opening:
            cuts.append(
                _Cut(
                    ticker,
                    opening.get(ticker, 0.0),
                    traded.days[low:high],
                    traded.quantities[low:high],
                    traded.costs[low:high],
                )
            )
    return cuts


def _values(
    cut: _Cut, days: list[int], position: dict[int, int], prices: dict[str, TickerPrices]
) -> list[float]:
    """Return what the ticker's shares are worth at the end of each of the days."""
    held: list[float] = []  # on each of the days
    quantities = accumulate(cut.quantities, initial=cut.opening)
    for next_day, quantity in zip(cut.days, quantities):
        held += [quantity] * (position[next_day] - len(held))
    # There is one quantity more than there are trades: the last one stays to the end.
    held += [next(quantities)] * (len(days) - len(held))
    if not any(held):
        return held  # no price is needed, nor perhaps known
    price = prices.get(cut.ticker)
    if price is None:
        raise ValueError(f"no price of {cut.ticker} is known")
    return [quantity and quantity * price[day] for quantity, day in zip(held, days)]


def _rates(days: list[int], values: list[float], flows: dict[int, float]) -> dict[str, float]:
    """Return the rates of a set of holdings with the given value on each day and flows by day."""
    if len(days) < 2:
        return {"cagr": 0.0, "twr": 0.0}
    growth = 1.0
    before = values[0]
    for day, value in zip(days[1:], values[1:]):
        if abs(before) > NEGLIGIBLE_VALUE:
            growth *= (value - flows[day]) / before
        before = value
    exponent = DAYS_PER_YEAR / (days[-1] - days[0])
    yearly = growth**exponent if growth >= 0 else -((-growth) ** exponent)
    return {"cagr": round(yearly - 1, RETURN_DIGITS), "twr": round(growth - 1, RETURN_DIGITS)}
