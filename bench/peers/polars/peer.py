"""The portfolio example with Polars: one lazy query on the streaming engine, formulas in processes.

Usage: peer.py --params params.json --out DIR [--processes N]
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import polars as pl

sys.path.append(str(Path(__file__).resolve().parents[1]))

import rates  # noqa: E402

ACCOUNTS_A_BATCH = 16  # an account's history is half a megabyte


def activity(params: dict) -> pl.LazyFrame:
    """One row an account: its transactions and its holdings as JSON arrays of packed texts."""
    start, end = date.fromisoformat(params["period_start"]), date.fromisoformat(params["period_end"])
    accounts = (
        pl.scan_parquet(params["accounts_urls"])
        .filter(pl.col("earliest_period_start") <= start)
        .select("account_id")
    )
    txns = (
        pl.scan_parquet(params["txns_urls"])
        .filter(pl.col("ts") > start, pl.col("ts") <= end)
        .select("account_id", packed=pl.format('"{}|{}|{}|{}"', "ts", "ticker", "qty", "price"))
    )
    holdings = (
        pl.scan_parquet(params["holdings_urls"])
        .filter(pl.col("d").is_between(start, end))
        .select("account_id", packed=pl.format('"{}|{}|{}"', "d", "ticker", "qty"))
    )
    return (
        accounts.join(together(txns, "txns"), on="account_id", how="left")
        .join(together(holdings, "holdings"), on="account_id", how="left")
        .select("account_id", *(pl.format("[{}]", pl.col(name).fill_null("")) for name in ("txns", "holdings")))
    )


def together(rows: pl.LazyFrame, name: str) -> pl.LazyFrame:
    return rows.group_by("account_id").agg(pl.col("packed").str.join(",").alias(name))


def accounts(query: pl.LazyFrame) -> Iterator[tuple[str, str, str]]:
    for batch in query.collect_batches(chunk_size=ACCOUNTS_A_BATCH, engine="streaming"):
        yield from batch.iter_rows()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--params", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    args = parser.parse_args()

    params = json.loads(args.params.read_text())
    same = (params["period_start"], params["period_end"], params["prices_file"], params["companies_file"])
    work = ((*account, *same) for account in accounts(activity(params)))
    rows = [row for found in rates.in_processes(rates.account_rates, work, args.processes) for row in found]

    account, period, sector, cagr = rates.COLUMNS
    result = pl.DataFrame(
        rows, schema={account: pl.String, period: pl.String, sector: pl.String, "twr": pl.Float64, cagr: pl.Float64}, orient="row"
    )
    result = result.drop("twr").sort(account, period, sector)
    years = result.filter(pl.col(period).str.len_chars() == 4, pl.col(sector) == "All")
    args.out.mkdir(parents=True, exist_ok=True)
    result.write_csv(args.out / rates.ROWS_FILE, float_precision=2)
    years.write_csv(args.out / rates.YEARS_FILE, float_precision=2)


if __name__ == "__main__":
    main()
