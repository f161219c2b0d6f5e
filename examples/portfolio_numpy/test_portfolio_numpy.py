"""Tests of the numpy formulas against the row-wise ones: python3 -m unittest test_portfolio_numpy

They are skipped where the interpreter has no numpy.
"""

import csv
import json
import random
import sys
import tempfile
import unittest
from datetime import date, timedelta
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "portfolio")]

import portfolio  # noqa: E402

try:
    import numpy as np

    import portfolio_numpy
except ImportError:
    np = None

START, END = date(2020, 12, 31), date(2022, 12, 31)


def write(path, header, rows):
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])


@unittest.skipUnless(np, "numpy is not installed")
class Prices(unittest.TestCase):
    def test_as_the_row_wise_formulas_have_them(self):
        chance = random.Random(1)
        count = (END - START).days + 1
        for points in (1, 2, 3, 7, 40):
            for _ in range(20):
                days = sorted(chance.sample(range(-30, count + 30), points))
                known = [(day, chance.randrange(1, 10**6) / 100 + chance.choice((0, 0.005, 0.001))) for day in days]
                expected = portfolio.TickerPrices("T", [(START.toordinal() + day, price) for day, price in known])
                prices = portfolio_numpy.daily_prices("T", known, count)
                for day in range(count):
                    try:
                        want = expected[START.toordinal() + day]
                    except (ValueError, IndexError):
                        want = None
                    self.assertEqual(want, None if np.isnan(prices[day]) else float(prices[day]), (known, day))

    def test_rounding_is_pythons(self):
        chance = random.Random(2)
        values = [chance.randrange(10**7) / 1000 for _ in range(20_000)] + [0.005, 1.005, 2.675, -0.125, 1e9 + 0.125]
        self.assertEqual([round(value, 2) for value in values], portfolio_numpy.round_cents(np.array(values)).tolist())


@unittest.skipUnless(np, "numpy is not installed")
class Accounts(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        chance = random.Random(3)
        self.tickers = [f"T{i}" for i in range(12)]
        self.prices, self.companies = (str(Path(self.folder.name) / name) for name in ("prices.csv", "companies.csv"))
        write(self.companies, ["ticker", "sector"], [(ticker, f"Sector {i % 4}") for i, ticker in enumerate(self.tickers[:-1])])
        days = [START - timedelta(5) + timedelta(9 * i) for i in range(90)]
        write(self.prices, ["ticker", "d", "price"], [(t, day, chance.randrange(100, 90_000) / 100) for t in self.tickers for day in days])

    def rows(self, trades, holdings):
        kind = [portfolio_numpy.ACCOUNT] + [portfolio_numpy.HOLDING] * len(holdings) + [portfolio_numpy.TRADE] * len(trades)
        rows = [("1970-01-01", "", 0, 0.0)] + [(*row, 0.0) for row in holdings] + trades
        day, ticker, qty, price = zip(*rows)
        return {
            "kind": np.array(kind), "day": np.array(day, dtype="datetime64[ms]"), "ticker": np.array(ticker, dtype=object),
            "qty": np.array(qty), "price": np.array(price),
        }

    def check(self, trades, holdings):
        arguments = (START.isoformat(), END.isoformat(), self.prices, self.companies)
        texts = [json.dumps(["|".join(map(str, row)) for row in rows]) for rows in (trades, holdings)]
        perf = json.loads(portfolio.calc_perf(*texts, *arguments))
        got = portfolio_numpy.performance(self.rows(trades, holdings), *arguments)
        found = {}
        for period, sector, cagr, twr in zip(got["period"], got["sector"], got["cagr"], got["twr"]):
            found.setdefault(period, {})[sector] = {"cagr": round(cagr / 100, 4), "twr": round(twr / 100, 4)}
        self.assertEqual(perf, found)

    def test_random_accounts(self):
        chance = random.Random(4)
        for _ in range(25):
            dates = [(START + timedelta(chance.randrange(-10, 740))).isoformat() for _ in range(chance.choice((1, 5, 60)))]
            trades = [
                (chance.choice(dates), chance.choice(self.tickers), chance.choice((-7, 0, 3, 120)), chance.randrange(1, 10**5) / 100)
                for _ in range(chance.choice((0, 1, 30, 400)))
            ]
            ends = [START, date(2021, 3, 31), date(2021, 9, 30), date(2021, 12, 31), date(2022, 6, 30)]
            holdings = [(end.isoformat(), t, chance.randrange(500)) for end in ends for t in self.tickers if chance.random() < 0.7]
            self.check([t for t in trades if t[0] > START.isoformat() and t[0] <= END.isoformat()], holdings)

    def test_nothing_is_known(self):
        self.check([], [])

    def test_nullable_columns(self):
        rows = self.rows([], [])
        rows["kind"] = np.ma.masked_array(rows["kind"], mask=[False])
        with self.assertRaisesRegex(ValueError, "day is NULL"):
            portfolio_numpy.performance({**rows, "day": np.ma.masked_array(rows["day"], mask=[True])}, "", "", "", "")
        self.assertEqual(portfolio_numpy.ACCOUNT, portfolio_numpy.known("kind", rows["kind"])[0])

    def test_other_accounts_have_no_rows(self):
        rows = {name: values[1:] for name, values in self.rows([("2021-01-05", "T1", 1, 1.0)], []).items()}
        self.assertIsNone(portfolio_numpy.performance(rows, "", "", "", ""))

    def test_failures(self):
        arguments = (START.isoformat(), END.isoformat(), self.prices, self.companies)
        twice = [(START.isoformat(), "T1", 5), (START.isoformat(), "T1", 6)]
        with self.assertRaisesRegex(ValueError, "held twice"):
            portfolio_numpy.performance(self.rows([], twice), *arguments)
        write(self.companies, ["ticker", "sector"], [("NEW", "Sector 1")])
        portfolio_numpy.load_market.cache_clear()
        with self.assertRaisesRegex(ValueError, "no price of NEW is known on 2021-01-05"):
            portfolio_numpy.performance(self.rows([("2021-01-05", "NEW", 1, 1.0)], []), *arguments)


if __name__ == "__main__":
    unittest.main()
