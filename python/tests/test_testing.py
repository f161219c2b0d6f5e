"""The helpers for tests of formulas, and that a run gives the same."""

import datetime
import importlib.util
import pickle
import tempfile
import unittest
from decimal import Decimal
from pathlib import Path

from thalweg import Thalweg
from thalweg.testing import FormulaError, Formulas, TableFunction

UTC = datetime.timezone.utc
CODE = """
import decimal

def half(x):
    return x / 2

def running(rows, start=0):
    total, out = start, []
    for n in rows["n"]:
        total += n
        out.append({"total": total, "note": None})
    return out

def doubled(frame):
    frame["total"] = frame["n"] * 2
    return frame[["total"]]
"""


class Helpers(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.dir = Path(folder.name)
        self.code = self.dir / "code.py"
        self.code.write_text(CODE)

    def test_values_as_a_run_has_them(self) -> None:
        cases = [
            ("int", 2**63 - 1, "r.x", "int", 2**63 - 1),
            ("int null", None, "0 if r.x is None else 1", "int", 0),
            ("float", 5.0, "half(r.x)", "int", 2),  # cut toward zero
            ("decimal2", Decimal("28.00"), "r.x + (type(r.x) is int)", "decimal2", Decimal("29.00")),
            ("decimal2", Decimal("2.01"), "half(r.x)", "decimal2", Decimal("1.01")),  # 1.005 is rounded away from zero
            ("decimal(10,4)", Decimal("0.1001"), "half(r.x) * 2", "decimal(10,4)", Decimal("0.1001")),
            ("date", datetime.date(2024, 2, 29), "r.x.replace(day=1)", "date", datetime.date(2024, 2, 1)),
            ("string", "é\0", "r.x * 2", "string", "é\0é\0"),
            ("bool", True, "not r.x", "bool", False),
            ("datetime", datetime.datetime(2024, 1, 2, 3, 4, 5, 6000), "r.x[:10] + 'T00:00:00.1239+02:00'", "datetime", datetime.datetime(2024, 1, 1, 22, 0, 0, 123000, UTC)),
            ("timestamptz", datetime.datetime(2024, 1, 2, tzinfo=UTC), "r.x", "timestamptz", datetime.datetime(2024, 1, 2, tzinfo=UTC)),
            ("int", 1, "None", "string null", None),
        ]
        for kind, value, expression, result, want in cases:
            with self.subTest(kind=kind, expression=expression):
                formulas = Formulas([self.code], inputs={"x": kind}, fields={"y": (expression, result)})
                self.assertEqual(formulas.row(x=value), {"y": want})

    def test_a_run_gives_the_same(self) -> None:
        (self.dir / "in.csv").write_text("x\n1.11\n2.01\n-0.01\n")
        (self.dir / "script.yaml").write_text(
            """
nodes:
  read: {type: file_table, r: {urls: [in.csv], types: {x: decimal2}}, w: rows}
  calc:
    type: table_custom_tfm_table
    custom_proc_type: py_calc
    r: {table: rows}
    p: {python_code_urls: [code.py], calculated_fields: {y: {expression: half(r.x), type: decimal2}}}
    w: {name: calc, fields: {y: {expression: p.y, type: decimal2}}}
  write: {type: table_file, r: calc, w: out.csv}
"""
        )
        Thalweg(cwd=self.dir).run("script.yaml")
        formulas = Formulas([self.code], inputs={"x": "decimal2"}, fields={"y": ("half(r.x)", "decimal2")})
        ours = formulas.rows([{"x": Decimal(x)} for x in ("1.11", "2.01", "-0.01")])
        self.assertEqual(["y", *(str(row["y"]) for row in ours)], (self.dir / "out.csv").read_text().split())

    def test_failures(self) -> None:
        formulas = Formulas([self.code], inputs={"x": "int"}, fields={"z": ("r.x", "int"), "y": ("1 / p.z", "float")})
        with self.assertRaises(FormulaError) as caught:
            formulas.rows([{"x": 1}, {"x": 0}])
        self.assertEqual((caught.exception.row, caught.exception.field), (1, "y"))
        self.assertIn("ZeroDivisionError", caught.exception.message)
        self.assertIn("Traceback", caught.exception.traceback)
        again = pickle.loads(pickle.dumps(caught.exception))  # as tests in several processes do
        self.assertEqual((str(again), again.row, again.field), (str(caught.exception), 1, "y"))
        for expression, kind in [("'a'", "int"), ("None", "int"), ("2**63", "int"), ("1.23456", "decimal(10,4)"), ("True", "int")]:
            with self.subTest(expression=expression), self.assertRaises(FormulaError):
                Formulas([self.code], inputs={"x": "int"}, fields={"y": (expression, kind)}).row(x=1)
        with self.assertRaisesRegex(FormulaError, "loading the files"):
            Formulas([self.code], inputs={}, fields={"y": ("r.unknown", "int")})
        for kind, value in [("int", 1.5), ("int", None), ("decimal2", 1.234), ("date", "2024-01-01")]:
            with self.subTest(value=value), self.assertRaises(ValueError):
                Formulas([self.code], inputs={"x": kind}, fields={"y": ("1", "int")}).row(x=value)
        for given in ({}, {"x": 1, "y": 2}):
            with self.assertRaises(ValueError):
                formulas.rows([given])
        with self.assertRaises(ValueError):
            Formulas([self.code], inputs={"x": "integer"}, fields={})

    def test_functions_over_many_rows(self) -> None:
        function = TableFunction([self.code], "running", inputs={"n": "decimal2"}, returns={"total": "decimal2", "note": "string null"}, arguments={"start": 1})
        self.assertEqual(
            function.call([{"n": Decimal("0.10")}, {"n": Decimal("0.20")}]),
            [{"total": Decimal("1.10"), "note": None}, {"total": Decimal("1.30"), "note": None}],
        )
        self.assertEqual(function.call([]), [])
        with self.assertRaisesRegex(FormulaError, "there is a column 'note'"):
            TableFunction([self.code], "running", inputs={"n": "int"}, returns={"total": "int"}).call([{"n": 1}])
        with self.assertRaisesRegex(FormulaError, "there is no function"):
            TableFunction([self.code], "walking", inputs={"n": "int"}, returns={"total": "int"})

    @unittest.skipUnless(importlib.util.find_spec("pandas"), "pandas is not there")
    def test_frames(self) -> None:
        function = TableFunction([self.code], "doubled", inputs={"n": "int null"}, returns={"total": "int null"}, form="pandas")
        self.assertEqual(function.call([{"n": 2**62 - 1}, {"n": None}]), [{"total": 2**63 - 2}, {"total": None}])


if __name__ == "__main__":
    unittest.main()
