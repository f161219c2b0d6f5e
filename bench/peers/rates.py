"""What all peers that call the example's formulas from Python share.

account_rates() is one account's work: from its packed transactions and holdings to
its rows of the result. in_processes() does that for many accounts on all cores.
"""

from __future__ import annotations

import json
import multiprocessing
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "examples" / "portfolio"))

import portfolio  # noqa: E402

ROWS_FILE = "account_period_sector_perf.csv"
YEARS_FILE = "account_year_perf.csv"
IN_FLIGHT = 4  # accounts for each process: enough to keep it busy, few enough to keep memory small

# The columns of the result files, as the script names them.
COLUMNS = ["ARK fund", "Period", "Sector", "Time-weighted annualized return %"]


def account_rates(
    account: str, txns: str, holdings: str, period_start: str, period_end: str, prices: str, companies: str
) -> list[tuple[str, str, str, float, float]]:
    """Return (account, period, sector, twr, cagr) for each period and sector, rates in percent."""
    text = portfolio.calc_perf(txns, holdings, period_start, period_end, prices, companies)
    return [
        (account, period, sector, portfolio.twr_pct(text, period, sector), portfolio.cagr_pct(text, period, sector))
        for period, sectors in json.loads(text).items()
        for sector in sectors
    ]


def in_processes(function: Callable, arguments: Iterable[tuple], processes: int) -> Iterator:
    """Yield function(*a) for each of the arguments, in any order, a few of them at a time.

    An executor's own map() takes all of its arguments before it starts. Processes are
    not forked from this one, which may have an engine's threads.
    """
    context = multiprocessing.get_context("forkserver")
    with ProcessPoolExecutor(processes, context) as pool:
        pending = set()
        for each in arguments:
            if len(pending) >= processes * IN_FLIGHT:
                done, pending = wait(pending, return_when=FIRST_COMPLETED)
                for future in done:
                    yield future.result()
            pending.add(pool.submit(function, *each))
        for future in pending:
            yield future.result()
