"""Time-weighted return of investment accounts, by period and sector, with numpy.

The same figures as ../portfolio/portfolio.py, for whole accounts at a time and
without a text for each transaction: a py_table node calls performance() with all
rows of an account as arrays. Inside, everything is a table of tickers by days or of
sectors by days; there is no loop over transactions, days or tickers.

What is added up is whole numbers (shares, hundredths), so sums are exact and
do not depend on the order of the rows.
"""

import csv
from calendar import monthrange
from datetime import date
from functools import lru_cache
from itertools import repeat
from typing import NamedTuple

import numpy as np

ALL_SECTORS = "All"
DAYS_PER_YEAR = 365
NEGLIGIBLE_VALUE = 1e-9  # money; nothing is held, so there is nothing that could grow
RETURN_DIGITS = 4  # 0.1234 is 12.34 %
CENTS = 100

# Kinds of rows.
ACCOUNT, HOLDING, TRADE = 0, 1, 2


def performance(rows, period_start, period_end, prices_file, companies_file):
    """Return a row for each period and sector of one account.

    rows  arrays kind, day, ticker, qty, price: one row of kind ACCOUNT, holdings at the
          end of days (at least of those on which periods begin), and trades with signed quantity
    """
    rows = {name: known(name, values) for name, values in rows.items()}
    if not np.any(rows["kind"] == ACCOUNT):
        return None  # rows of an account that is not looked at
    market = load_market(prices_file, companies_file, period_start, period_end)
    account = Account(rows, market)
    rates = [account.rates(period) for period in market.periods]
    return {
        "period": [period.name for period in market.periods for _ in market.sectors],
        "sector": market.sectors * len(market.periods),
        "cagr": [percent for cagr, _ in rates for percent in cagr],
        "twr": [percent for _, twr in rates for percent in twr],
    }


def known(name: str, values) -> np.ndarray:
    """Return values without the mask that arrays of nullable columns have; there must be no NULL."""
    if np.ma.is_masked(values):
        raise ValueError(f"{name} is NULL")
    return np.ma.getdata(values)


# ---------------------------------------------------------------------------
# Days and periods
# ---------------------------------------------------------------------------


class Period(NamedTuple):
    """Days after start, up to and including end, counted from the first day. What is held at the end of start opens the period."""

    name: str  # 2021Q1, 2021
    start: int
    end: int


def split_periods(start: date, end: date) -> list:
    """Cut the days after start into calendar quarters, then into calendar years.

    A quarter or year that is not over by end is left out; one that has begun before
    start begins at start.
    """
    quarters, years = [], []
    quarter_start = year_start = 0
    for year in range(start.year, end.year + 1):
        for month in (3, 6, 9, 12):
            last = date(year, month, monthrange(year, month)[1])
            if not start < last <= end:
                continue
            day = (last - start).days
            quarters.append(Period(f"{year}Q{month // 3}", quarter_start, day))
            quarter_start = day
            if month == 12:
                years.append(Period(str(year), year_start, day))
                year_start = day
    return quarters + years


# ---------------------------------------------------------------------------
# Prices and companies
# ---------------------------------------------------------------------------


class Market(NamedTuple):
    """What is the same for all accounts. Tickers without a company count in no sector, not even in "All"."""

    first: int  # day number (from 1970) of day 0
    periods: list
    sectors: list  # sorted
    tickers: list
    code: dict  # ticker -> its index
    member: np.ndarray  # sectors by tickers: 1 if the ticker belongs to the sector
    price: np.ndarray  # tickers by days: at the end of the day; NaN if not known


@lru_cache(maxsize=4)
def load_market(prices_file: str, companies_file: str, period_start: str, period_end: str) -> Market:
    """Read prices and companies, once in a process."""
    start, end = date.fromisoformat(period_start), date.fromisoformat(period_end)
    with open(companies_file, newline="", encoding="utf-8") as file:
        sector_of = {row["ticker"]: row["sector"] for row in csv.DictReader(file)}
    tickers = sorted(sector_of)
    code = {ticker: i for i, ticker in enumerate(tickers)}
    sectors = sorted({ALL_SECTORS, *sector_of.values()})
    member = np.array([[sector in (ALL_SECTORS, sector_of[ticker]) for ticker in tickers] for sector in sectors], dtype=float)
    price = np.full((len(tickers), (end - start).days + 1), np.nan)
    known = {}
    with open(prices_file, newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            known.setdefault(row["ticker"], []).append(((date.fromisoformat(row["d"]) - start).days, float(row["price"])))
    for ticker, points in known.items():
        if ticker in code:
            price[code[ticker]] = daily_prices(ticker, sorted(points), price.shape[1])
    return Market((start - date(1970, 1, 1)).days, split_periods(start, end), sectors, tickers, code, member, price)


def daily_prices(ticker: str, points: list, count: int) -> np.ndarray:
    """Return the price on each of the days 0 … count - 1.

    Known prices are sparse. A day between two of them gets the price on the straight
    line between them by calendar days, in whole cents; known prices stay as they are,
    except that the two outermost ones are rounded, too. Two points alone make a line
    that has no ends.
    """
    days, prices = (np.array(column) for column in zip(*points))
    if np.any(np.diff(days) == 0):
        raise ValueError(f"two prices of {ticker} on the same day")
    wanted = np.arange(count)
    out = np.full(count, np.nan)
    if len(days) == 1:
        out[wanted == days[0]] = round(points[0][1], 2)
        return out
    right = np.clip(np.searchsorted(days, wanted, side="right"), 1, len(days) - 1)
    left = right - 1
    slope = (prices[right] - prices[left]) / (days[right] - days[left])
    out = round_cents(prices[left] + slope * (wanted - days[left]))
    if len(days) > 2:
        out[(wanted < days[0]) | (wanted > days[-1])] = np.nan
    inside = (days[1:-1] >= 0) & (days[1:-1] < count)
    out[days[1:-1][inside]] = prices[1:-1][inside]
    return out


def round_cents(values: np.ndarray) -> np.ndarray:
    """Round as Python's round(value, 2) does; numpy's own takes some halves for others."""
    scaled = values * CENTS
    out = np.rint(scaled) / CENTS
    for i in np.flatnonzero(np.abs(np.abs(scaled - np.trunc(scaled)) - 0.5) < 1e-6):
        out[i] = round(float(values[i]), 2)
    return out


# ---------------------------------------------------------------------------
# One account
# ---------------------------------------------------------------------------


class Account:
    """An account's trades and holdings as tables of its tickers by the days on which anything happens."""

    def __init__(self, rows, market: Market):
        self.market = market
        day = rows["day"].astype("datetime64[D]").astype(np.int64) - market.first
        code = np.fromiter(map(market.code.get, rows["ticker"], repeat(-1)), dtype=np.int64, count=len(day))
        listed, kind = code >= 0, rows["kind"]
        last = market.price.shape[1] - 1
        trade = np.flatnonzero(listed & (kind == TRADE) & (day > 0) & (day <= last))
        holding = np.flatnonzero(listed & (kind == HOLDING) & (day >= 0) & (day <= last))

        # Days and tickers that matter, and where each of them is in the tables.
        matters = np.zeros(last + 1, dtype=bool)
        matters[day[trade]] = True
        for period in market.periods:
            matters[[period.start, period.end]] = True
        self.days = np.flatnonzero(matters)
        self.column = np.cumsum(matters) - 1
        held = np.zeros(len(market.tickers), dtype=bool)
        held[code[trade]] = held[code[holding]] = True
        self.tickers = np.flatnonzero(held)
        line = np.cumsum(held) - 1

        shape = (len(self.tickers), len(self.days))
        cell = line[code[trade]] * shape[1] + self.column[day[trade]]

        def table(weights=None):
            return np.bincount(cell, weights, minlength=shape[0] * shape[1]).reshape(shape)

        quantity = rows["qty"][trade].astype(float)
        cents = quantity * np.rint(rows["price"][trade] * CENTS)
        self.traded = np.cumsum(table(quantity), axis=1)  # shares bought less sold so far
        member = market.member[:, self.tickers]
        self.member = member
        self.flow = member @ table(cents) / CENTS  # sectors by days: money put in less taken out
        self.active = member @ table().astype(float) > 0
        self.price = market.price[np.ix_(self.tickers, self.days)]
        self.opening = self.openings(day[holding], line[code[holding]], rows["qty"][holding])

    def openings(self, day, line, quantity) -> dict:
        """Return what is held when periods begin: day -> quantity of each ticker."""
        out = {}
        for start in {period.start for period in self.market.periods}:
            at = np.flatnonzero(day == start)
            if len(np.unique(line[at])) < len(at):
                raise ValueError("a ticker is held twice on the same day")
            out[start] = np.zeros(len(self.tickers))
            out[start][line[at]] = quantity[at]
        return out

    def rates(self, period: Period) -> tuple:
        """Return the yearly rates and the returns of all sectors in a period, in percent."""
        low, high = self.column[period.start], self.column[period.end] + 1
        bought = self.traded[:, low:high] - self.traded[:, low : low + 1]
        held = self.opening[period.start][:, None] + bought
        value = np.where(held != 0, held * self.price[:, low:high], 0)
        if np.isnan(value).any():
            line, column = np.argwhere(np.isnan(value))[0]
            when = np.datetime64(int(self.market.first + self.days[low + column]), "D")
            raise ValueError(f"no price of {self.market.tickers[self.tickers[line]]} is known on {when}")
        value = self.member @ value  # of each sector

        # The period is cut at each day with a trade of the sector, and at its end. Each
        # piece grows by what its value is without that day's trades, by what it was.
        cut = self.active[:, low:high].copy()
        cut[:, [0, -1]] = True
        before = np.maximum.accumulate(np.where(cut, np.arange(high - low), 0), axis=1)[:, :-1]
        base = np.take_along_axis(value, before, axis=1)
        grows = cut[:, 1:] & (np.abs(base) > NEGLIGIBLE_VALUE)
        factor = np.divide(value[:, 1:] - self.flow[:, low + 1 : high], base, out=np.ones_like(base), where=grows)
        growth = factor.prod(axis=1)
        yearly = np.sign(growth) * np.abs(growth) ** (DAYS_PER_YEAR / (period.end - period.start))
        return percent(yearly - 1), percent(growth - 1)


def percent(rates: np.ndarray) -> list:
    return [round(rate, RETURN_DIGITS) * 100 for rate in rates.tolist()]
