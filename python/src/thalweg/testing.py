"""Calls formulas as a run does, without one: for tests of Python files of a script.

The values are converted, checked and rounded by the code that the interpreters of a run
have: what passes here is what a run gives, and what a field cannot take is an error here.

    from thalweg.testing import Formulas

    prices = Formulas(["prices.py"], inputs={"qty": "int"}, fields={"total": ("price(r.qty)", "decimal2")})
    assert prices.rows([{"qty": 3}]) == [{"total": Decimal("7.50")}]

Types are the script's: string, int, float, bool, decimal2, datetime, date, timestamptz and
decimal(p,s); `int null` is one whose values may be None. round_off is `round: true` of the fields. Time and memory have no limits here.
"""

from __future__ import annotations

import array
import datetime
import importlib
import itertools
import os
import re
import struct
from pathlib import Path
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple, Union

_worker: Any = importlib.import_module("thalweg._worker")
_numbers = itertools.count(1)

AnyPath = Union[str, "os.PathLike[str]"]
Row = Mapping[str, Any]

_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")
_SIMPLE = {"string": "string", "int": "int", "float": "float", "bool": "bool", "date": "date", "timestamptz": "instant"}


class FormulaError(Exception):
    """A formula that raised, or a result that its field cannot take. row counts from 0; -1: before any row."""

    def __init__(self, message: str, *, row: int, field: str, traceback: str) -> None:
        where = "row %d" % row if row >= 0 else "loading the files"
        super().__init__("%s%s: %s" % (where, ", field %s" % field if field else "", message))
        self.message = message
        self.row = row
        self.field = field
        self.traceback = traceback

    def __reduce__(self) -> Tuple[Any, ...]:  # tests may run in other processes
        return _failed, (self.message, self.row, self.field, self.traceback)


def _failed(message: str, row: int, field: str, traceback: str) -> FormulaError:
    return FormulaError(message, row=row, field=field, traceback=traceback)


class _Type:
    """A type of the script, and how its values travel."""

    def __init__(self, said: str, table: bool) -> None:
        name, null = said.strip(), ""
        if name.endswith(" null"):
            name, null = name[: -len(" null")].rstrip(), "null"
        if " " in name.replace(", ", ","):
            raise ValueError("%r is no type: write one like `int` or `int null`" % said)
        self.name = name
        self.nullable = bool(null)
        self.text_datetime = name == "datetime" and not table
        exact = _DECIMAL.fullmatch(name)
        if exact:
            self.sent = self.read = "decimal:%s:%s" % exact.groups()
        elif name == "decimal2":
            self.sent, self.read = "cents", "cents" if table else "cents_number"
        elif name == "datetime":
            self.sent = self.read = "datetime" if table else "string"
        elif name in _SIMPLE:
            self.sent = self.read = _SIMPLE[name]
        else:
            raise ValueError("there is no type %r" % name)

    def encode(self, name: str, values: List[Any]) -> List[bytes]:
        """Return the column as a run sends it."""
        if self.text_datetime:
            values = [None if v is None else _datetime_text(v) for v in values]
        column = _worker.Field(0, {"name": name, "expr": "", "kind": self.sent, "nullable": self.nullable, "round": False})
        column.kind = _worker.EXACT_KINDS.get(self.sent, column.kind)  # an input is what it is
        buffers, errors = _worker.write_column(column, values, ())
        if errors:
            row, _, bad, value = errors[0]
            raise ValueError("input %s, row %d: %s (%r)" % (name, row, bad, value))
        return list(buffers)

    def decode(self, reader: Any) -> List[Any]:
        """Read a column of results."""
        if self.sent == "cents":
            return list(reader.column(_worker.read_cents_as_decimals))
        values = list(reader.column(_worker.of_kind(_worker.READERS, self.sent)))
        return [None if v is None else _parse_datetime(v) for v in values] if self.text_datetime else values


class _Called:
    def __init__(self, spec: Dict[str, Any], inputs: Mapping[str, str], fields: Mapping[str, str], table: bool) -> None:
        self._inputs = {name: _Type(said, table) for name, said in inputs.items()}
        self._fields = {name: _Type(said, table) for name, said in fields.items()}
        self._names = list(fields)
        spec["inputs"] = [{"name": n, "kind": t.read, "nullable": t.nullable} for n, t in self._inputs.items()]
        number = next(_numbers)
        self._page = array.array("q", [_worker.ROW_NONE, 0, 0, 0])
        made = _worker.TableProgram if table else _worker.Program
        self._program = made(number, spec)
        try:
            self._program.load()
        except Exception as error:
            self._raise(_worker.describe(self._program, error, -1))

    def _raise(self, failure: Mapping[str, Any]) -> None:
        field = self._names[failure["field"]] if failure.get("field", -1) >= 0 else ""
        message = str(failure.get("message", ""))
        if failure.get("category") == "exception" and failure.get("type"):
            message = "%s: %s" % (failure["type"], message)
        raise FormulaError(message, row=int(failure["row"]), field=field, traceback=str(failure.get("traceback", "")))

    def _encode(self, rows: Sequence[Row]) -> List[bytes]:
        for row, given in enumerate(rows):
            unknown = sorted(given.keys() - self._inputs.keys())
            if unknown:
                raise ValueError("row %d: there is no input %s" % (row, unknown[0]))
            missing = [name for name, kind in self._inputs.items() if name not in given and not kind.nullable]
            if missing:
                raise ValueError("row %d: input %s is missing" % (row, missing[0]))
        buffers: List[bytes] = []
        for name, kind in self._inputs.items():
            buffers += kind.encode(name, [row.get(name) for row in rows])
        return buffers

    def _decode(self, data: bytes, offset: int, rows: int) -> List[Dict[str, Any]]:
        reader = _worker.Reader(data, offset, rows)
        columns = {name: kind.decode(reader) for name, kind in self._fields.items()}
        return [{name: column[row] for name, column in columns.items()} for row in range(rows)]


class Formulas(_Called):
    """The calculated fields of a `py_calc` node: fields maps a name to its expression and its type.

    A field may use those before it: `p.name`.
    """

    def __init__(self, files: Iterable[AnyPath], *, inputs: Mapping[str, str], fields: Mapping[str, Tuple[str, str]], round_off: bool = False) -> None:
        types = {name: said for name, (_, said) in fields.items()}
        kinds = {name: _Type(said, False) for name, said in types.items()}
        spec = {
            "files": _sources(files),
            "dir": "",
            "collect": False,
            "fields": [{"name": n, "expr": e, "kind": kinds[n].sent, "nullable": kinds[n].nullable, "round": round_off} for n, (e, _) in fields.items()],
        }
        super().__init__(spec, inputs, types, False)

    def rows(self, rows: Sequence[Row]) -> List[Dict[str, Any]]:
        """Return the fields of each row."""
        payload = b"".join(self._encode(rows))
        reader = _worker.Reader(payload, 0, len(rows))
        columns = [reader.column(decode) for decode in self._program.readers]
        failures, buffers = _worker.compute(self._program, self._page, columns, len(rows))
        if failures:
            self._raise(failures[0])
        return self._decode(b"".join(bytes(b) for b in buffers), 0, len(rows))

    def row(self, **values: Any) -> Dict[str, Any]:
        """Return the fields of one row."""
        return self.rows([values])[0]


class TableFunction(_Called):
    """The function of a `py_table` node: form is `lists`, `numpy`, `pandas`, `polars` or `arrow`, as p.input."""

    def __init__(
        self,
        files: Iterable[AnyPath],
        function: str,
        *,
        inputs: Mapping[str, str],
        returns: Mapping[str, str],
        form: str = "lists",
        round_off: bool = False,
        arguments: Optional[Mapping[str, Any]] = None,
    ) -> None:
        if form not in _worker.INPUT_FORMS:
            raise ValueError("there is no form %r: %s" % (form, ", ".join(_worker.INPUT_FORMS)))
        kinds = {name: _Type(said, True) for name, said in returns.items()}
        spec = {
            "files": _sources(files),
            "dir": "",
            "collect": False,
            "fields": [{"name": n, "expr": "", "kind": k.sent, "nullable": k.nullable, "round": round_off} for n, k in kinds.items()],
            "table": {"function": function, "input": form, "arguments": dict(arguments or {})},
        }
        super().__init__(spec, inputs, returns, True)

    def call(self, rows: Sequence[Row]) -> List[Dict[str, Any]]:
        """Call the function with these rows, as with those of one group."""
        payload = [bytes(_worker.CHUNK_HEADER.size), struct.pack("=Q", len(rows)), *self._encode(rows)]
        failures, buffers = _worker.compute_groups(self._program, self._page, b"".join(payload), 1)
        if failures:
            self._raise(failures[0])
        data = b"".join(bytes(b) for b in buffers)
        (count,) = struct.unpack_from("=Q", data)
        return self._decode(data, 8, count) if count else []


def _sources(files: Iterable[AnyPath]) -> List[Dict[str, str]]:
    return [{"name": os.fspath(file), "text": Path(file).read_text(encoding="utf-8")} for file in files]


def _datetime_text(value: Any) -> str:
    """Return a datetime as formulas see it: in UTC, to the millisecond."""
    if not isinstance(value, datetime.datetime):
        raise ValueError("expected a datetime.datetime, got %s" % type(value).__name__)
    if value.tzinfo is not None:
        value = value.astimezone(datetime.timezone.utc)
    if value.microsecond % 1000:
        raise ValueError("%s: a datetime has no digits below the millisecond" % value)
    return "%s.%03d+00:00" % (value.strftime("%Y-%m-%dT%H:%M:%S").rjust(19, "0"), value.microsecond // 1000)


_DATETIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:[.,](\d+))?(Z|[+-]\d\d:\d\d)")


def _parse_datetime(text: str) -> datetime.datetime:
    """Read a result as a run does: any offset, and what is below the millisecond is cut off."""
    found = _DATETIME.fullmatch(text)
    if not found:
        raise FormulaError("the text %r is not a datetime like 2006-01-02T15:04:05.000+00:00" % text, row=-1, field="", traceback="")
    whole, digits, zone = found.groups()
    value = datetime.datetime.fromisoformat(whole + ("+00:00" if zone == "Z" else zone))
    return value.astimezone(datetime.timezone.utc) + datetime.timedelta(milliseconds=int(((digits or "") + "000")[:3]))
