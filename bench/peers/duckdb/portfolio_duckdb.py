"""The portfolio example, written by hand with DuckDB and multiprocessing.

The yardstick that Thalweg is measured against: what a capable user writes when
nothing but the result counts. It has no checkpoints, no retries, no history and
no tables to look into afterwards. Engine version, formulas (imported from
examples/portfolio/portfolio.py), inputs and results are the same.

What it does to be as fast as it honestly can:

  * SQL loads, filters, formats and groups on all cores, insertion order off. By
    default that is one statement, so that no row is stored between loading and
    grouping ("fused"); --plan staged writes it as the two steps of the script.
  * Order within an account is left to the engine: the formulas do not depend on
    it as long as an account trades a ticker once a day. Thalweg keeps the order.
  * Formulas run in worker processes that are forked before the engine starts
    and get one account at a time, so that no core idles at the end.

Usage: portfolio_duckdb.py --params params.json --out DIR [--python N]
                           [--plan fused|staged] [--json timings.json]
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import platform
import resource
import sys
import time
from pathlib import Path

FORMULAS = Path(__file__).resolve().parents[3] / "examples" / "portfolio"

PERIODS = ["2021", "2021Q1", "2021Q2", "2021Q3", "2021Q4", "2022", "2022Q1", "2022Q2", "2022Q3", "2022Q4"]
SECTORS = [
    "All",
    "Communication Services",
    "Consumer Cyclical",
    "Consumer Defensive",
    "Financial Services",
    "Healthcare",
    "Industrials",
    "Real Estate",
    "Technology",
]

# The result files have their header line ended by CRLF and the others by LF.
HEADER = "ARK fund,Period,Sector,Time-weighted annualized return %\r\n"
ROWS_FILE = "account_period_sector_perf.csv"
YEARS_FILE = "account_year_perf.csv"

TABLES = {
    "accounts": {"account_id": "VARCHAR", "earliest_period_start": "DATE"},
    "txns": {"ts": "DATE", "account_id": "VARCHAR", "ticker": "VARCHAR", "qty": "BIGINT", "price": "DECIMAL(18, 2)"},
    "holdings": {"account_id": "VARCHAR", "d": "DATE", "ticker": "VARCHAR", "qty": "BIGINT"},
}
ACCOUNTS_A_CHUNK = 8  # of the second, short formulas


# ---------------------------------------------------------------------------
# SQL
# ---------------------------------------------------------------------------


def reader(table: str, urls: list[str]) -> str:
    """Return the table function that reads the files; types are given, nothing is guessed."""
    files = ", ".join("'" + url.replace("'", "''") + "'" for url in urls)
    if urls[0].endswith(".parquet"):
        return f"read_parquet([{files}])"
    columns = ", ".join(f"'{name}': '{kind}'" for name, kind in TABLES[table].items())
    return f"read_csv([{files}], header = true, auto_detect = false, delim = ',', quote = '\"', columns = {{{columns}}})"


def queries(params: dict) -> dict[str, str]:
    """Return the three loading queries: rows in the period, packed as the formulas want them."""
    start, end = params["period_start"], params["period_end"]
    return {
        "accounts": f"""
            SELECT account_id FROM {reader("accounts", params["accounts_urls"])}
            WHERE earliest_period_start <= DATE '{start}'""",
        "txns": f"""
            SELECT account_id, concat('"', ts, '|', ticker, '|', qty, '|', price, '"') AS packed
            FROM {reader("txns", params["txns_urls"])}
            WHERE ts > DATE '{start}' AND ts <= DATE '{end}'""",
        "holdings": f"""
            SELECT account_id, concat('"', d, '|', ticker, '|', qty, '"') AS packed
            FROM {reader("holdings", params["holdings_urls"])}
            WHERE d >= DATE '{start}' AND d <= DATE '{end}'""",
    }


def join_query(accounts: str, txns: str, holdings: str) -> str:
    """Return the query for one row an account with two JSON arrays; each argument can stand in FROM."""
    return f"""
        SELECT a.account_id, concat('[', t.packed, ']'), concat('[', h.packed, ']')
        FROM {accounts} a
        LEFT JOIN (SELECT account_id, string_agg(packed, ',') AS packed FROM {txns} GROUP BY account_id) t
            USING (account_id)
        LEFT JOIN (SELECT account_id, string_agg(packed, ',') AS packed FROM {holdings} GROUP BY account_id) h
            USING (account_id)"""


# ---------------------------------------------------------------------------
# Formulas, in worker processes
# ---------------------------------------------------------------------------


def start_worker(formulas: str, period_start: str, period_end: str, prices: str, companies: str) -> None:
    global portfolio, perf_arguments
    sys.path.insert(0, formulas)
    import portfolio

    perf_arguments = (period_start, period_end, prices, companies)


def perf(row: tuple[str, str, str]) -> tuple[str, str]:
    account, txns, holdings = row
    return account, portfolio.calc_perf(txns, holdings, *perf_arguments)


def rates(row: tuple[str, str]) -> list[tuple[str, str, str, float, float]]:
    """Return one row for each period and sector that the account has, with both rates."""
    account, text = row
    return [
        (account, period, sector, portfolio.twr_pct(text, period, sector), portfolio.cagr_pct(text, period, sector))
        for period in PERIODS
        if f'"{period}":' in text
        for sector in SECTORS
        if f'"{sector}":' in text
    ]


def fetch(connection):
    """Yield result rows one at a time: a row holds an account's whole history."""
    while row := connection.fetchone():
        yield row


# ---------------------------------------------------------------------------
# Steps
# ---------------------------------------------------------------------------


class Timer:
    """Wall seconds of each step."""

    def __init__(self):
        self.seconds: dict[str, float] = {}
        self.last = time.perf_counter()

    def step(self, name: str) -> None:
        now = time.perf_counter()
        self.seconds[name] = now - self.last
        self.last = now


def load_and_join(connection, params: dict, plan: str, timer: Timer) -> None:
    """Leave a pending result with one row an account on the connection."""
    load = queries(params)
    if plan == "staged":
        for table, query in load.items():
            connection.execute(f"CREATE TABLE {table} AS {query}")
        timer.step("load")
        connection.execute(join_query(*load))
    else:
        timer.step("load")  # nothing yet: join does it all
        connection.execute(join_query(*(f"({query})" for query in load.values())))
    timer.step("join")


def write(rows: list[tuple[str, str, str, float, float]], out: Path) -> None:
    rows.sort(key=lambda row: row[:3])
    out.mkdir(parents=True, exist_ok=True)
    with (out / ROWS_FILE).open("w", newline="") as file:
        file.write(HEADER)
        file.writelines(f"{account},{period},{sector},{cagr:.2f}\n" for account, period, sector, _, cagr in rows)
    with (out / YEARS_FILE).open("w", newline="") as file:
        file.write(HEADER)
        file.writelines(
            f"{account},{period},{sector},{cagr:.2f}\n"
            for account, period, sector, _, cagr in rows
            if len(period) == 4 and sector == "All"
        )


def run(arguments: argparse.Namespace) -> dict:
    timer = Timer()
    began = timer.last
    params = json.loads(Path(arguments.params).read_text())
    setup = (
        arguments.formulas,
        params["period_start"],
        params["period_end"],
        params["prices_file"],
        params["companies_file"],
    )
    # Processes come first: a fork of a process with engine threads is not safe.
    with multiprocessing.Pool(arguments.python, start_worker, setup) as pool:
        import duckdb

        connection = duckdb.connect()
        connection.execute("SET preserve_insertion_order = false")
        connection.execute("SET enable_progress_bar = false")
        timer.step("start")
        load_and_join(connection, params, arguments.plan, timer)
        perfs = list(pool.imap_unordered(perf, fetch(connection)))
        connection.close()
        timer.step("python1")
        rows = [row for found in pool.imap_unordered(rates, perfs, ACCOUNTS_A_CHUNK) for row in found]
        timer.step("tag_python2")
        pool.close()
        pool.join()
    write(rows, Path(arguments.out))
    timer.step("write")
    unit = 1 if sys.platform == "darwin" else 1024
    return {
        "steps": {name: round(seconds, 4) for name, seconds in timer.seconds.items()},
        "total": round(timer.last - began, 4),
        "plan": arguments.plan,
        "processes": arguments.python,
        "accounts": len(perfs),
        "rows": len(rows),
        "peak_rss_self_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit,
        "peak_rss_largest_child_bytes": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * unit,
        "duckdb": duckdb.__version__,
        "python": platform.python_version(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--params", required=True, help="params.json of the generator")
    parser.add_argument("--out", required=True, help="directory for the two result files")
    parser.add_argument("--python", type=int, default=os.cpu_count() or 1, help="worker processes")
    parser.add_argument("--plan", choices=["fused", "staged"], default="fused")
    parser.add_argument("--formulas", default=str(FORMULAS), help="directory of portfolio.py")
    parser.add_argument("--json", help="file for the timings; - is standard output")
    arguments = parser.parse_args()
    result = run(arguments)
    text = json.dumps(result, indent=2)
    if arguments.json == "-":
        print(text)
        return
    if arguments.json:
        Path(arguments.json).write_text(text + "\n")
    for name, seconds in [*result["steps"].items(), ("total", result["total"])]:
        print(f"{name:12} {seconds:9.3f} s")
    for name in ("self", "largest_child"):
        print(f"peak memory, {name.replace('_', ' ')}: {result[f'peak_rss_{name}_bytes'] / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
