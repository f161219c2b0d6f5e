"""Tests of the portfolio formulas: python3 -m unittest test_portfolio

The hand-computed cases always run. The comparison with published results needs
the six funds' data, which is not part of the project: THALWEG_REAL_DATA names
the folder that has it in portfolio/. Without the variable it is skipped.
"""

from __future__ import annotations

import csv
import json
import os
import tempfile
import unittest
from collections import defaultdict
from pathlib import Path

import portfolio

HERE = Path(__file__).resolve().parent


def data_dir() -> Path | None:
    named = os.environ.get("THALWEG_REAL_DATA")
    return Path(named) / "portfolio" if named else None


def day(text: str) -> int:
    return portfolio._DAYS[text]


class Periods(unittest.TestCase):
    def test_quarters_come_before_years(self):
        periods = portfolio.split_periods(day("2020-12-31"), day("2022-12-31"))
        self.assertEqual(
            [period.name for period in periods],
            ["2021Q1", "2021Q2", "2021Q3", "2021Q4", "2022Q1", "2022Q2", "2022Q3", "2022Q4", "2021", "2022"],
        )
        self.assertEqual(periods[1], ("2021Q2", day("2021-03-31"), day("2021-06-30")))
        self.assertEqual(periods[9], ("2022", day("2021-12-31"), day("2022-12-31")))

    def test_unfinished_periods_are_left_out(self):
        periods = portfolio.split_periods(day("2021-02-10"), day("2021-11-30"))
        self.assertEqual([period.name for period in periods], ["2021Q1", "2021Q2", "2021Q3"])
        self.assertEqual(periods[0].start, day("2021-02-10"))

    def test_leap_day(self):
        self.assertEqual(
            [str(last) for last in portfolio._month_ends(day("2024-01-31"), day("2024-03-30"))], ["2024-02-29"]
        )


class Prices(unittest.TestCase):
    def prices(self, *points: tuple[str, float]) -> portfolio.TickerPrices:
        return portfolio.TickerPrices("ABC", [(day(text), price) for text, price in points])

    def test_known_and_interpolated(self):
        prices = self.prices(("2021-01-01", 10.0), ("2021-01-05", 11.111), ("2021-01-08", 12.0))
        self.assertEqual(prices[day("2021-01-05")], 11.111)  # stored price, not rounded
        self.assertEqual(prices[day("2021-01-02")], 10.28)  # 10 + 1.111 / 4
        self.assertEqual(prices[day("2021-01-06")], 11.41)  # 11.111 + 0.889 / 3
        self.assertEqual(prices[day("2021-01-01")], 10.0)
        self.assertEqual(prices[day("2021-01-08")], 12.0)

    def test_outside_of_the_known_days(self):
        prices = self.prices(("2021-01-01", 10.0), ("2021-01-05", 11.0), ("2021-01-08", 12.0))
        for text in ("2020-12-31", "2021-01-09"):
            with self.assertRaisesRegex(ValueError, f"no price of ABC on {text}: known from 2021-01-01 to 2021-01-08"):
                prices[day(text)]

    def test_two_points_make_an_endless_line(self):
        prices = self.prices(("2021-01-01", 10.0), ("2021-01-05", 11.0))
        self.assertEqual(prices[day("2021-01-09")], 12.0)
        self.assertEqual(prices[day("2020-12-28")], 9.0)

    def test_single_point(self):
        prices = self.prices(("2021-01-01", 10.0))
        self.assertEqual(prices[day("2021-01-01")], 10.0)
        with self.assertRaises(ValueError):
            prices[day("2021-01-02")]


class Account(unittest.TestCase):
    """One quarter, small enough to follow by hand."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.prices_file = str(Path(folder.name) / "prices.csv")
        self.companies_file = str(Path(folder.name) / "companies.csv")
        Path(self.prices_file).write_text(
            "ticker,d,price\n"
            "AAA,2020-12-31,10\nAAA,2021-01-31,11\nAAA,2021-03-31,22\n"
            "BBB,2020-12-31,100\nBBB,2021-02-28,50\nBBB,2021-03-31,50\n"
            "ZZZ,2020-12-31,1\nZZZ,2021-02-28,1\nZZZ,2021-03-31,9\n"
        )
        Path(self.companies_file).write_text("ticker,sector\nAAA,Tech\nBBB,Food\nCCC,Idle\n")

    def quarter(self, txns: list[str], holdings: list[str]) -> dict:
        text = portfolio.calc_perf(
            json.dumps(txns), json.dumps(holdings), "2020-12-31", "2021-03-31", self.prices_file, self.companies_file
        )
        self.assertEqual(text, json.dumps(json.loads(text), sort_keys=True))
        return json.loads(text)["2021Q1"]

    def test_prices_alone(self):
        got = self.quarter([], ["2020-12-31|AAA|5"])
        # 50 becomes 110 in 90 days.
        want = {"twr": 1.2, "cagr": round(2.2 ** (365 / 90) - 1, 4)}
        nothing = {"twr": 0.0, "cagr": 0.0}
        self.assertEqual(got, {"All": want, "Tech": want, "Food": nothing, "Idle": nothing})

    def test_purchase_is_not_growth(self):
        # 5 AAA grow from 50 to 55; 5 more are bought for 55; 110 grow to 220.
        got = self.quarter(["2021-01-31|AAA|5|11"], ["2020-12-31|AAA|5"])
        self.assertEqual(got["Tech"]["twr"], 1.2)

    def test_trades_of_a_day_and_order(self):
        # The later day comes first; on 31 January 3 + 2 are bought at different prices:
        # (110 - 33 - 24) / 50, then on 28 February all is sold at 20 while the price is
        # 11 + 11 * 28 / 59 = 16.22: (0 + 200) / 110; then nothing is left to grow.
        got = self.quarter(
            ["2021-02-28|AAA|-10|20", "2021-01-31|AAA|3|11", "2021-01-31|AAA|2|12"], ["2020-12-31|AAA|5"]
        )
        self.assertEqual(got["Tech"]["twr"], round(53 / 50 * 200 / 110 - 1, 4))

    def test_sectors_and_all(self):
        # On 28 February AAA is at 16.22. All: 150 -> 16.22 * 5 + 50 + 50 - 50 -> 110 + 100.
        got = self.quarter(["2021-02-28|BBB|1|50"], ["2020-12-31|AAA|5", "2020-12-31|BBB|1"])
        self.assertEqual(got["Food"]["twr"], -0.5)
        self.assertEqual(got["Tech"]["twr"], 1.2)  # the sector is not cut at the other's trade
        middle = 5 * 16.22 + 50
        self.assertEqual(got["All"]["twr"], round(middle / 150 * 210 / (middle + 50) - 1, 4))

    def test_trades_at_the_edges(self):
        # A trade on the first day belongs to what was before; one on the last day counts.
        got = self.quarter(["2020-12-31|AAA|100|1", "2021-03-31|AAA|10|22"], ["2020-12-31|AAA|5"])
        self.assertEqual(got["Tech"]["twr"], 1.2)

    def test_negative_growth(self):
        # 5 more are bought far too dear: 50 -> 220 - 230, a growth of -0.2.
        got = self.quarter(["2021-03-31|AAA|5|46"], ["2020-12-31|AAA|5"])
        self.assertEqual(got["Tech"], {"twr": -1.2, "cagr": round(-(0.2 ** (365 / 90)) - 1, 4)})

    def test_empty_account_and_zero_holdings(self):
        nothing = {"twr": 0.0, "cagr": 0.0}
        self.assertEqual(self.quarter([], []), {sector: nothing for sector in ("All", "Food", "Idle", "Tech")})
        # Nothing is held of a ticker without prices, so none is asked for.
        self.assertEqual(self.quarter([], ["2020-12-31|CCC|0"])["Idle"], nothing)

    def test_ticker_of_no_company_is_in_no_sector(self):
        got = self.quarter(["2021-02-28|ZZZ|7|1"], ["2020-12-31|AAA|5", "2020-12-31|ZZZ|3"])
        self.assertEqual(got["All"]["twr"], 1.2)

    def test_mistakes_are_named(self):
        with self.assertRaisesRegex(ValueError, "AAA is held twice on 2020-12-31"):
            self.quarter([], ["2020-12-31|AAA|5", "2020-12-31|AAA|5"])
        with self.assertRaisesRegex(ValueError, "no price of CCC is known"):
            self.quarter([], ["2020-12-31|CCC|5"])
        with self.assertRaises(ValueError):
            self.quarter(["2021-01-31|AAA|5"], [])

    def test_getters(self):
        text = '{"2021": {"All": {"cagr": 0.25, "twr": -0.5}}}'
        self.assertEqual(portfolio.cagr_pct(text, "2021", "All"), 25.0)
        self.assertEqual(portfolio.twr_pct(text, "2021", "All"), -50.0)
        with self.assertRaisesRegex(ValueError, "no twr for period '2022' and sector 'All'"):
            portfolio.twr_pct(text, "2022", "All")


class SixFunds(unittest.TestCase):
    """The results of real inputs, compared with those published beside them."""

    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.data = data_dir()
        if cls.data is None:
            raise unittest.SkipTest("THALWEG_REAL_DATA is not set: no comparison with published results")
        start, end = "2020-12-31", "2022-12-31"
        txns, holdings = defaultdict(list), defaultdict(list)
        for row in cls.rows("in/txns.csv"):
            if start < row["ts"] <= end:
                txns[row["account_id"]].append(f"{row['ts']}|{row['ticker']}|{row['qty']}|{row['price']}")
        for row in cls.rows("in/holdings.csv"):
            if start <= row["d"] <= end:
                holdings[row["account_id"]].append(f"{row['d']}|{row['ticker']}|{row['qty']}")
        prices, companies = str(cls.data / "in/prices.csv"), str(cls.data / "in/companies.csv")
        cls.perf = {
            account: portfolio.calc_perf(
                json.dumps(txns[account]), json.dumps(holdings[account]), start, end, prices, companies
            )
            for account in sorted(row["account_id"] for row in cls.rows("in/accounts.csv"))
        }

    @classmethod
    def rows(cls, name: str) -> list[dict[str, str]]:
        with open(cls.data / name, newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))

    def lines(self, keep) -> list[str]:
        return [
            f"{account},{period},{sector},{portfolio.cagr_pct(text, period, sector):.2f}"
            for account, text in self.perf.items()
            for period, sectors in json.loads(text).items()
            for sector in sectors
            if keep(period, sector)
        ]

    def expected(self, name: str) -> list[str]:
        return (self.data / "expected" / name).read_text(encoding="utf-8").splitlines()[1:]

    def test_periods_and_sectors(self):
        got = self.lines(lambda period, sector: True)
        self.assertEqual(len(got), 540)
        self.assertEqual(got, self.expected("account_period_sector_perf_baseline.csv"))

    def test_years(self):
        got = self.lines(lambda period, sector: len(period) == 4 and sector == "All")
        self.assertEqual(got, self.expected("account_year_perf_baseline.csv"))


if __name__ == "__main__":
    unittest.main()
