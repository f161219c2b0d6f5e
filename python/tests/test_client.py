"""The client, with real runs of the program."""

import datetime
import importlib.util
import math
import re
import signal
import subprocess
import sys
import tempfile
import textwrap
import unittest
from decimal import Decimal
from pathlib import Path
from typing import List
from unittest import mock

import thalweg
from thalweg import DataError, Event, InterruptedRun, Param, ScriptError, Thalweg, ThalwegError

SCRIPT = """
nodes:
  read:
    type: file_table
    r: {urls: ["{file}"], types: {day: date, price: "decimal(10,4)", at: timestamptz, n: int, f: float}}
    w: rows
  write: {type: table_file, r: rows, w: out.csv}
"""
ROWS = """
name,day,price,at,n,f
é,2024-02-29,0.1001,2024-01-01T02:00:00.123456+02:00,9007199254740993,
b,0001-01-01,-123456.7890,1969-12-31T23:59:59Z,,0.1
"""
SLOW = """
nodes:
  read: {type: file_table, r: {urls: [in.csv], types: {n: int}}, w: numbers}
  slow:
    type: table_custom_tfm_table
    custom_proc_type: py_calc
    r: {table: numbers}
    p:
      python_code_urls: [slow.py]
      calculated_fields: {m: {expression: wait(r.n), type: int}}
    w: {name: slow, fields: {m: {expression: p.m, type: int}}}
"""
ECHO = """
nodes:
  read: {type: file_table, r: {urls: [in.csv], types: {}}, w: rows}
  write: {type: table_file, r: rows, w: {url_template: echo.csv, top: {limit: 1}, columns: [{v: '"{v}"'}]}}
"""


def has(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


class Client(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.dir = Path(folder.name)
        self.write("script.yaml", SCRIPT)
        self.write("in.csv", ROWS)
        self.thalweg = Thalweg(cwd=self.dir)

    def write(self, name: str, text: str) -> None:
        (self.dir / name).write_text(textwrap.dedent(text).lstrip("\n"), encoding="utf-8")

    def run_it(self) -> None:
        self.thalweg.run("script.yaml", params={"file": "in.csv"})

    def test_a_run_and_its_history(self) -> None:
        events: List[Event] = []
        done = self.thalweg.run("script.yaml", params={"file": "in.csv"}, on_event=events.append, flags=["--cores", "1"])
        self.assertEqual((done.run, done.status), (1, "complete"))
        self.assertEqual([(n.name, n.rows_out) for n in done.nodes], [("read", 2), ("write", 2)])
        self.assertEqual([(Path(f.url).name, f.rows) for f in done.files], [("out.csv", 2)])
        self.assertEqual((events[0].kind, events[-1].kind), ("run_started", "run_finished"))
        self.assertIn(("batch_finished", "write"), [(e.kind, e.node) for e in events])
        (info,) = self.thalweg.history()
        self.assertEqual((info.run, info.status, info.script), (1, "complete", "script.yaml"))
        self.assertLess(abs(datetime.datetime.now(datetime.timezone.utc) - info.created), datetime.timedelta(minutes=5))

    def test_problems_of_a_script(self) -> None:
        self.assertTrue(self.thalweg.validate("script.yaml", params={"file": "in.csv"}).ok)
        self.write("bad.yaml", "nodes:\n  a: {type: file_table, r: {urlz: [x.csv], types: {}}, w: t}\n")
        said = self.thalweg.validate("bad.yaml")
        self.assertFalse(said.ok)
        (problem,) = [p for p in said.problems if "urlz" in p.message]
        self.assertEqual((problem.file, problem.line, problem.column), ("bad.yaml", 2, 29))
        with self.assertRaises(ScriptError) as caught:
            self.thalweg.run("bad.yaml")
        self.assertEqual((caught.exception.exit_code, caught.exception.place.line), (2, 2))
        self.assertIn(problem, caught.exception.problems)

    def test_a_bad_row(self) -> None:
        self.write("in.csv", ROWS + "c,2024-01-01,1.00001,2024-01-01T00:00:00Z,1,1\n")
        with self.assertRaises(DataError) as caught:
            self.run_it()
        error = caught.exception
        self.assertEqual((error.exit_code, error.node, error.run, error.place.line, error.place.value), (2, "read", 1, 4, "1.00001"))
        self.assertTrue(error.place.file.endswith("in.csv"))
        self.assertTrue(error.hint)

    def test_a_bad_row_of_a_table(self) -> None:
        self.write("numbers.csv", "n\n1\n0\n")
        self.write(
            "halves.yaml",
            "nodes:\n"
            "  read: {type: file_table, r: {urls: [numbers.csv], columns: {n: int}}, w: numbers}\n"
            "  half: {type: table_table, r: numbers, w: {name: halves, fields: [{half: 10 / r.n}]}}\n",
        )
        with self.assertRaises(DataError) as caught:
            self.thalweg.run("halves.yaml")
        place = caught.exception.place
        self.assertEqual((place.file, place.record, place.value), ("table numbers", 2, "r.n = 0"))
        assert place.origin is not None
        self.assertEqual((place.origin.file, place.origin.line), ("numbers.csv", 3))
        self.assertEqual(str(place), "table numbers row 2, from numbers.csv:3")

    @unittest.skipUnless(has("pyarrow"), "pyarrow is not there")
    def test_rows_keep_their_types(self) -> None:
        self.run_it()
        want = [
            {
                "name": "é",
                "day": datetime.date(2024, 2, 29),
                "price": Decimal("0.1001"),
                "at": datetime.datetime(2024, 1, 1, 0, 0, 0, 123456, datetime.timezone.utc),
                "n": 9007199254740993,
                "f": None,
            },
            {
                "name": "b",
                "day": datetime.date(1, 1, 1),
                "price": Decimal("-123456.7890"),
                "at": datetime.datetime(1969, 12, 31, 23, 59, 59, 0, datetime.timezone.utc),
                "n": None,
                "f": 0.1,
            },
        ]
        self.assertEqual(self.thalweg.table("rows", run=1).to_pylist(), want)
        self.assertEqual(self.thalweg.arrow("FROM rows -- all").to_pylist(), want)
        (total,) = self.thalweg.arrow("SELECT sum(n) AS n FROM rows").to_pylist()
        self.assertEqual(total, {"n": Decimal(9007199254740993)})
        self.assertEqual(self.thalweg.arrow("SELECT * FROM rows WHERE false").num_rows, 0)
        self.assertEqual(self.thalweg.arrow("FROM range(2500)").num_rows, 2500)
        if has("polars"):
            frame = self.thalweg.polars("FROM rows")
            self.assertEqual([{**row, "at": row["at"].astimezone(datetime.timezone.utc)} for row in frame.to_dicts()], want)
        if has("pandas"):
            data = self.thalweg.pandas("FROM rows")
            self.assertEqual(data["n"].tolist()[0], 9007199254740993)
            self.assertEqual((data["price"].tolist(), data["day"].tolist()), ([r["price"] for r in want], [r["day"] for r in want]))
            self.assertEqual(data["f"].isna().tolist(), [True, False])

    @unittest.skipUnless(has("pyarrow"), "pyarrow is not there")
    def test_a_query_that_is_wrong(self) -> None:
        self.run_it()
        with self.assertRaises(ScriptError) as caught:
            self.thalweg.arrow("SELECT * FROM nope")
        self.assertIn("nope", caught.exception.message)
        self.assertIn("tables: rows", caught.exception.hint)
        with self.assertRaises(ScriptError):
            self.thalweg.arrow("SELECT INTERVAL 1 DAY AS i")
        with self.assertRaises(ValueError):
            self.thalweg.arrow("-" * (1 << 20) + "\nSELECT 1")
        with self.assertRaisesRegex(ScriptError, "no run 7|run7"):
            self.thalweg.table("rows", run=7)

    def test_parameters(self) -> None:
        self.write("echo.yaml", ECHO)
        values: List[Param] = ["a b=ü", 3, True, Decimal("1.10"), Decimal("1E+3"), datetime.date(2024, 1, 2), datetime.datetime(2024, 1, 2, 3, 4), Path("a/b")]
        for value, want in zip(values, ["a b=ü", "3", "true", "1.10", "1000", "2024-01-02", "2024-01-02 03:04:00", "a/b"]):
            self.thalweg.run("echo.yaml", params={"v": value})
            self.assertEqual((self.dir / "echo.csv").read_text().split("\n")[1].strip(), want)
        with self.assertRaisesRegex(ValueError, "commas"):
            self.thalweg.run("script.yaml", params={"file": ["a,b", "c"]})
        with self.assertRaises(TypeError):
            self.thalweg.run("script.yaml", params={"file": None})  # type: ignore[dict-item]

    def test_what_is_empty_selects_nothing(self) -> None:
        for project in (Thalweg(state=""), Thalweg(workspace=""), Thalweg(env=""), Thalweg(cluster="")):
            with self.assertRaisesRegex(ScriptError, "--(state|workspace|env|cluster) is empty"):
                project.history()
        with self.assertRaisesRegex(ScriptError, "--node has an empty item"):
            Thalweg().run("script.yaml", flags=["--node", "a,"])

    def test_an_interrupted_run_goes_on(self) -> None:
        self.write("slow.yaml", SLOW)
        self.write("in.csv", "n\n1\n")
        # The file that the formula waits for is made only behind the interruption.
        self.write("slow.py", "import os, time\ndef wait(n):\n    while not os.path.exists('go'):\n        time.sleep(0.01)\n    return n\n")
        with self.thalweg.start("slow.yaml") as run:
            for event in run.events():
                if (event.kind, event.node) == ("batch_started", "slow"):
                    with self.assertRaises(TimeoutError):
                        run.wait(timeout=0)
                    run.interrupt()
            with self.assertRaises(InterruptedRun) as caught:
                run.wait()
        self.assertEqual((caught.exception.exit_code, caught.exception.run), (130, 1))
        self.write("go", "")
        self.assertEqual(self.thalweg.resume(1).status, "complete")

    def test_a_run_that_is_asked_for_late(self) -> None:
        self.write("slow.yaml", SLOW)
        self.write("in.csv", "n\n1\n")
        self.write("slow.py", "import threading\ndef wait(n):\n    threading.Event().wait()\n")
        # The second one as behind a shell's &, where the program hears nothing before it is ready.
        for disposition in (signal.SIG_DFL, signal.SIG_IGN):
            before = signal.signal(signal.SIGINT, disposition)
            try:
                run = self.thalweg.start("slow.yaml")
            finally:
                signal.signal(signal.SIGINT, before)
            with mock.patch("thalweg._client.AGAIN_SECONDS", 1.0), run:
                pass
            with self.assertRaises(InterruptedRun):
                run.wait()

    def test_a_failed_run_is_tried_again(self) -> None:
        self.write("in.csv", ROWS + "c,2024-01-01,x,2024-01-01T00:00:00Z,1,1\n")
        with self.assertRaises(DataError):
            self.run_it()
        self.write("in.csv", ROWS)
        self.assertEqual(self.thalweg.retry(1).status, "complete")

    def test_a_run_is_stopped_by_another(self) -> None:
        self.write("slow.yaml", SLOW)
        self.write("in.csv", "n\n1\n")
        self.write("slow.py", "import threading\ndef wait(n):\n    threading.Event().wait()\n")
        with self.thalweg.start("slow.yaml") as run:
            for event in run.events():
                if (event.kind, event.node) == ("batch_started", "slow"):
                    self.thalweg.stop(run.number, reason="a test")
            with self.assertRaises(InterruptedRun):
                run.wait()

    @unittest.skipUnless(has("pyarrow"), "pyarrow is not there")
    def test_more_rows_than_memory(self) -> None:
        self.run_it()
        rows = self.thalweg.batches("SELECT range AS n FROM range(300000)", rows=1000)
        sizes = [(batch.num_rows, batch.schema.metadata) for batch in rows]
        self.assertEqual((sum(n for n, _ in sizes), max(n for n, _ in sizes), {m for _, m in sizes}), (300000, 1000, {None}))
        first = next(self.thalweg.batches("FROM rows"))
        self.assertEqual(first.to_pylist(), self.thalweg.table("rows").to_pylist())

    @unittest.skipUnless(has("pyarrow"), "pyarrow is not there")
    def test_lists_and_extremes(self) -> None:
        self.run_it()
        texts = {
            "12345678901234567890123456789012345678::DECIMAL(38,0)": Decimal("12345678901234567890123456789012345678"),
            "-0.0000000001::DECIMAL(38,10)": Decimal("-1E-10"),
            "TIMESTAMP '2024-01-01 00:00:00.123456'": datetime.datetime(2024, 1, 1, 0, 0, 0, 123456),
            "DATE '9999-12-31'": datetime.date(9999, 12, 31),
            "TIME '23:59:59.999999'": datetime.time(23, 59, 59, 999999),
            "[{'b': [1, NULL]}, NULL]": [{"b": [1, None]}, None],
            "[]::INT[]": [],
            "'x'::BLOB": b"x",
            "18446744073709551615::UBIGINT": 2**64 - 1,
        }
        columns = ", ".join("%s AS c%d" % (text, i) for i, text in enumerate(texts))
        query = "SELECT %s UNION ALL SELECT %s" % (columns, ", ".join(["NULL"] * len(texts)))
        want = [list(texts.values()), [None] * len(texts)]
        self.assertEqual([list(row.values()) for row in self.thalweg.arrow(query).to_pylist()], want)
        if has("polars"):
            self.assertEqual([list(row.values()) for row in self.thalweg.polars(query).to_dicts()], want)
        if has("pandas"):
            frame = self.thalweg.pandas(query)
            self.assertEqual(list(frame.iloc[0]), want[0])
            self.assertTrue(frame.iloc[1].isna().all())

    @unittest.skipUnless(has("pyarrow"), "pyarrow is not there")
    def test_a_query_that_does_not_end(self) -> None:
        self.run_it()
        with self.assertRaises(TimeoutError):
            for _ in self.thalweg.batches("SELECT count(*) FROM range(10000000) a, range(10000000) b", timeout=0.1):
                pass

    def test_a_program_that_is_not_interrupted(self) -> None:
        self.write("deaf", "#!/bin/sh\ntrap '' INT\nexec sleep 600\n")
        deaf = self.dir / "deaf"
        deaf.chmod(0o700)
        with mock.patch("thalweg._client.END_SECONDS", 0.1), self.assertRaises(TimeoutError):
            Thalweg(program=deaf).arrow("SELECT 1", timeout=0.1)

    def test_another_program(self) -> None:
        for program in ("/bin/true", "/bin/echo"):
            with self.assertRaisesRegex(ThalwegError, "is it thalweg %s" % re.escape(thalweg.__version__)):
                Thalweg(program=program).version()

    def test_nothing_is_loaded_that_is_not_asked_for(self) -> None:
        code = "import sys, thalweg, thalweg.testing; print([m for m in ('numpy', 'pandas', 'polars', 'pyarrow') if m in sys.modules])"
        self.assertEqual(subprocess.check_output([sys.executable, "-c", code], text=True).strip(), "[]")

    def test_what_cannot_be_begun(self) -> None:
        with self.assertRaises(ScriptError):
            self.thalweg.run("script.yaml", params={"file": "in.csv"}, flags=["--no-such-flag"])
        with self.assertRaises(FileNotFoundError):
            Thalweg(program=self.dir / "nothing").version()
        self.assertFalse(math.isnan(len(self.thalweg.version())))


if __name__ == "__main__":
    unittest.main()
