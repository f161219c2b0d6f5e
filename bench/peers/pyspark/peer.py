"""The portfolio example with PySpark on one machine: DataFrames, and the formulas over Arrow batches.

Usage: peer.py --params params.json --out DIR [--processes N] [--memory 4GB]
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

sys.path.append(str(Path(__file__).resolve().parents[1]))

import rates  # noqa: E402

ACCOUNTS_A_BATCH = 16  # an account's history is half a megabyte
PARTITIONS_A_CORE = 8  # Spark's 200 are for a cluster
RESULT = "account_id string, period string, sector string, twr double, cagr double"


def activity(spark: SparkSession, params: dict) -> DataFrame:
    """One row an account: its transactions and its holdings as JSON arrays of packed texts."""
    start, end = F.to_date(F.lit(params["period_start"])), F.to_date(F.lit(params["period_end"]))
    accounts = (
        spark.read.parquet(*params["accounts_urls"])
        .where(F.col("earliest_period_start") <= start)
        .select("account_id")
    )
    txns = (
        spark.read.parquet(*params["txns_urls"])
        .where((F.col("ts") > start) & (F.col("ts") <= end))
        .select("account_id", packed("ts", "ticker", "qty", "price"))
    )
    holdings = (
        spark.read.parquet(*params["holdings_urls"])
        .where(F.col("d").between(start, end))
        .select("account_id", packed("d", "ticker", "qty"))
    )
    return (
        accounts.join(together(txns, "txns"), "account_id", "left")
        .join(together(holdings, "holdings"), "account_id", "left")
        .select("account_id", *(F.concat(F.lit("["), F.coalesce(name, F.lit("")), F.lit("]")).alias(name) for name in ("txns", "holdings")))
    )


def packed(*columns: str):
    return F.concat(F.lit('"'), F.concat_ws("|", *columns), F.lit('"')).alias("packed")


def together(rows: DataFrame, name: str) -> DataFrame:
    return rows.groupBy("account_id").agg(F.concat_ws(",", F.collect_list("packed")).alias(name))


def formulas(params: dict):
    """The function that Spark calls in its Python workers, with a partition's batches."""
    same = (params["period_start"], params["period_end"], params["prices_file"], params["companies_file"])
    peers = str(Path(rates.__file__).parent)

    def function(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        sys.path.append(peers)
        from rates import account_rates

        for batch in batches:
            rows = [row for account in zip(*(column.to_pylist() for column in batch.columns)) for row in account_rates(*account, *same)]
            if rows:
                yield pa.RecordBatch.from_arrays(
                    [pa.array(column) for column in zip(*rows)], names=["account_id", "period", "sector", "twr", "cagr"]
                )

    return function


def write(rows: DataFrame, path: Path) -> None:
    """Write one sorted file. Spark writes directories; the one part becomes the file."""
    columns = ["account_id", "period", "sector"]
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        (
            rows.select(*columns, F.format_string("%.2f", "cagr"))
            .toDF(*rates.COLUMNS)
            .repartition(1)
            .sortWithinPartitions(*rates.COLUMNS[:3])
            .write.csv(f"{folder}/csv", header=True)
        )
        (part,) = Path(folder, "csv").glob("part-*.csv")
        shutil.move(part, path)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--params", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--memory", default="4GB", help="heap of the JVM; Python workers come on top")
    args = parser.parse_args()

    os.environ["PYSPARK_PYTHON"] = sys.executable
    args.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=args.out.parent) as scratch:
        spark = (
            SparkSession.builder.master(f"local[{args.processes}]")
            .config("spark.driver.memory", args.memory.lower().removesuffix("b"))
            .config("spark.local.dir", scratch)
            .config("spark.ui.enabled", "false")
            .config("spark.sql.shuffle.partitions", args.processes * PARTITIONS_A_CORE)
            .config("spark.sql.execution.arrow.maxRecordsPerBatch", ACCOUNTS_A_BATCH)
            .getOrCreate()
        )
        params = json.loads(args.params.read_text())
        result = activity(spark, params).mapInArrow(formulas(params), RESULT).persist()
        write(result, args.out / rates.ROWS_FILE)
        write(result.where((F.length("period") == 4) & (F.col("sector") == "All")), args.out / rates.YEARS_FILE)
        spark.stop()


if __name__ == "__main__":
    main()
