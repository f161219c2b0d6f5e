"""Runs a file of DuckDB statements: the peer of a single step, or what makes its input.

{in}, {out} and {rows} in the statements are replaced; an existing directory
is expected for each. The engine keeps its defaults but for the memory limit.

Usage: sql.py FILE --in DIR --out DIR --rows N [--memory 1GB] [--json timings.json]
"""

from __future__ import annotations

import argparse
import json
import platform
import tempfile
import time
from pathlib import Path

import duckdb


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("file", type=Path)
    parser.add_argument("--in", dest="source", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--rows", type=int, required=True)
    parser.add_argument("--memory")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()

    text = args.file.read_text()
    for name, value in (("in", args.source), ("out", args.out), ("rows", str(args.rows))):
        text = text.replace("{" + name + "}", value.replace("'", "''"))
    started = time.perf_counter()
    with tempfile.TemporaryDirectory(dir=args.out) as spill:
        engine = duckdb.connect()
        engine.execute(f"SET temp_directory = '{spill}'")
        if args.memory:
            engine.execute(f"SET memory_limit = '{args.memory}'")
        engine.execute(text)
        engine.close()
    if args.json:
        args.json.write_text(
            json.dumps(
                {
                    "steps": {},
                    "total": time.perf_counter() - started,
                    "plan": args.file.parent.name,
                    "processes": 1,
                    "rows": args.rows,
                    "duckdb": duckdb.__version__,
                    "python": platform.python_version(),
                }
            )
        )


if __name__ == "__main__":
    main()
