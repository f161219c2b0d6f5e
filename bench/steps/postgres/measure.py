"""Times psql's COPY of a table out of and into PostgreSQL, or Thalweg's run of the same.

measure.py psql|thalweg DIR ROWS TIMINGS [THALWEG SCRIPT]; the server is THALWEG_TEST_POSTGRES.
"""
import json
import os
import subprocess
import sys
import time

ROWS = """
CREATE TABLE bench_rows AS SELECT g AS id, 'customer ' || (g * 7919 % 100003) AS name, (g % 1000) / 7.0::float8 AS rate,
  ((g * 31 % 1000000) / 100.0)::numeric(12,2) AS price, g % 3 = 0 AS ok, timestamp '2024-01-01' + g * interval '1 second' AS at,
  CASE WHEN g % 10 > 0 THEN g % 97 END AS k FROM generate_series(1::bigint, {rows}) AS g
"""


def psql(sql: str) -> str:
    done = subprocess.run(["psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", os.environ["THALWEG_TEST_POSTGRES"], "-c", sql],
                          check=True, capture_output=True, text=True)
    return done.stdout.strip()


def prepare(rows: int) -> None:
    if psql("SELECT to_regclass('bench_rows') IS NULL") == "t" or psql("SELECT count(*) FROM bench_rows") != str(rows):
        psql("DROP TABLE IF EXISTS bench_rows")
        psql(ROWS.format(rows=rows))
    psql("DROP TABLE IF EXISTS bench_copied, bench_appended, bench_replaced")
    psql("VACUUM bench_rows")
    psql("CHECKPOINT")


def timed(work) -> float:
    began = time.monotonic()
    work()
    return time.monotonic() - began


def main() -> None:
    kind, directory, rows, timings = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
    prepare(rows)
    steps = {}
    if kind == "psql":
        file = os.path.join(directory, "rows.csv")
        psql("CREATE TABLE bench_copied (LIKE bench_rows)")
        steps["in"] = timed(lambda: psql(f"\\copy bench_rows TO '{file}' (FORMAT csv)"))
        steps["out"] = timed(lambda: psql(f"\\copy bench_copied FROM '{file}' (FORMAT csv)"))
        # What it takes to have the rows in place of others: as much, in a table that has some.
        steps["replace"] = timed(lambda: psql_lines(file))
        os.remove(file)
    else:
        def run(*flags: str) -> None:
            subprocess.run([sys.argv[5], "run", sys.argv[6], *flags],
                           check=True, cwd=directory, stdout=subprocess.DEVNULL)
        steps["in"] = timed(run)
        steps["out"] = timed(lambda: run("--start", "append"))
        run("--start", "replace")
        steps["replace"] = timed(lambda: run("--start", "replace"))
        assert psql("SELECT count(*) FROM bench_appended") == str(rows)
        assert psql("SELECT count(*) FROM bench_replaced") == str(rows)
    with open(timings, "w", encoding="utf-8") as out:
        json.dump({"steps": steps, "total": sum(steps.values()), "rows": rows}, out)


def psql_lines(file: str) -> None:
    subprocess.run(["psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", os.environ["THALWEG_TEST_POSTGRES"]], check=True, text=True,
                   input=f"BEGIN;\nTRUNCATE bench_copied;\n\\copy bench_copied FROM '{file}' (FORMAT csv)\nCOMMIT;\n")


if __name__ == "__main__":
    main()
