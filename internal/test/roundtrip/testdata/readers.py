"""Writes generated tables, and reads what Thalweg has written, by pandas, pyarrow, openpyxl and Python's json.

The first argument is a JSON file: jobs, each {do, form, path, table, …}, and the tables. A table is
{columns: [{name, kind, p, scale}], rows: [[text or null]]}. Prints what differs, one line a job.
"""
import csv
import datetime as dt
import decimal
import gzip
import io
import json
import math
import os
import random
import re
import sys

import openpyxl
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.dataset as ds
import pyarrow.parquet as pq

decimal.getcontext().prec = 76
csv.field_size_limit(1 << 30)
UTC = dt.timezone.utc


def parse_time(text):
    """A text with or without a fraction, with T or a blank, with Z, an offset or nothing."""
    m = re.fullmatch(r"(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?(Z|\+00(?::?00)?)?", text)
    if not m:
        raise ValueError(f"no time: {text!r}")
    parts = [int(x) for x in m.groups()[:6]]
    return dt.datetime(*parts, int((m[7] or "0").ljust(6, "0")), UTC if m[8] else None)


def value(kind, text):
    """The value that a text of the table is."""
    if text is None:
        return None
    if kind == "int":
        return int(text)
    if kind == "float":
        return float(text)
    if kind == "bool":
        return {"true": True, "false": False}[text]
    if kind == "decimal":
        return decimal.Decimal(text)
    if kind == "date":
        return dt.date.fromisoformat(text)
    if kind in ("datetime", "timestamptz"):
        t = parse_time(text)
        if (t.tzinfo is not None) != (kind == "timestamptz"):
            raise ValueError(f"{text!r} is no {kind}")
        return t
    if kind in ("list", "texts"):
        return json.loads(text)
    if kind == "struct":
        return dated(json.loads(text))
    return text


def dated(of):
    """A struct with its date."""
    return {name: of[name] if name != "d" or of[name] is None else dt.date.fromisoformat(of[name]) for name in ("n", "t", "d", "l")}


def rows_of(table):
    return [[value(c["kind"], x) for c, x in zip(table["columns"], row)] for row in table["rows"]]


def arrow_type(c):
    return {
        "string": pa.string(), "int": pa.int64(), "float": pa.float64(), "bool": pa.bool_(), "date": pa.date32(),
        "list": pa.list_(pa.int64()), "texts": pa.list_(pa.string()),
        "struct": pa.struct([("n", pa.int64()), ("t", pa.string()), ("d", pa.date32()), ("l", pa.list_(pa.struct([("x", pa.int64())])))]),
        "datetime": pa.timestamp("ms"), "timestamptz": pa.timestamp("us", "UTC"),
    }.get(c["kind"]) or pa.decimal128(c["p"], c["scale"])


def arrow(table):
    rows = rows_of(table)
    return pa.table({c["name"]: pa.array([r[i] for r in rows], arrow_type(c)) for i, c in enumerate(table["columns"])})


# --- writing

def write_pandas(job, table):
    names = [c["name"] for c in table["columns"]]
    frame = pd.DataFrame(table["rows"], columns=names, dtype=object)
    encoding = {"pandas.latin1.csv": "latin-1", "pandas.cp1252.csv.gz": "cp1252", "pandas.utf-16.csv": "utf-16"}.get(job["form"], "utf-8")
    # The writer quotes a carriage return only where lines end in one, and a text's last would be a part of the line's end.
    returns = any(isinstance(value, str) and "\r" in value for name in frame for value in frame[name])
    end = random.choice(["\n", "\r\n"])
    frame.to_csv(job["path"], index=False, na_rep="<null>", encoding=encoding,
                 compression="gzip" if job["path"].endswith(".gz") else None, lineterminator="\r\n" if returns else end)


def write_pyarrow_csv(job, table):
    columns = {c["name"]: pa.array([r[i] for r in table["rows"]], pa.string()) for i, c in enumerate(table["columns"])}
    out = pa.OSFile(job["path"], "wb")
    if job["path"].endswith(".zst"):
        out = pa.CompressedOutputStream(out, "zstd")
    with out:
        pacsv.write_csv(pa.table(columns), out, pacsv.WriteOptions(delimiter=","))


def write_pyarrow_parquet(job, table):
    options = random.choice([
        {"compression": "snappy"}, {"compression": "zstd", "data_page_version": "2.0"}, {"compression": "gzip", "use_dictionary": False},
        {"compression": "none", "version": "1.0"}, {"compression": "brotli", "row_group_size": 7}, {"store_decimal_as_integer": True},
        {"write_page_index": True, "write_page_checksum": True}])
    pq.write_table(arrow(table), job["path"], **options)


def write_hive(job, table):
    os.makedirs(job["path"])
    if not job["by"]:
        pq.write_table(arrow(table), job["path"] + "/one.parquet")
        return
    by = ds.partitioning(pa.schema([(c["name"], arrow_type(c)) for c in job["by"]]), flavor="hive")
    ds.write_dataset(arrow(table), job["path"], format="parquet", partitioning=by)


def json_value(c, text):
    if text is None:
        return "null"
    if c["kind"] in ("int", "float", "decimal", "bool"):
        return text
    if c["kind"] == "datetime":
        text = text.replace(" ", "T")
    if c["kind"] == "timestamptz":
        text = random.choice([text[:-3].replace(" ", "T") + "Z", text.replace(" ", "T") + ":00"])
    return json.dumps(text, ensure_ascii=random.random() < 0.5)


def write_json(job, table):
    def one(row):
        cells = list(zip(table["columns"], row))
        if random.random() < 0.3:
            random.shuffle(cells)
        return "{" + random.choice([", ", ","]).join(json.dumps(c["name"]) + ": " + json_value(c, x) for c, x in cells) + "}"
    rows = [one(r) for r in table["rows"]]
    text = "[\n" + ",\n ".join(rows) + "]\n" if ".json" in job["path"] else "".join(r + "\n" for r in rows)
    with (gzip.open if job["path"].endswith(".gz") else open)(job["path"], "wt", encoding="utf-8") as f:
        f.write(text)


def write_openpyxl(job, table):
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.append([c["name"] for c in table["columns"]])
    for n, row in enumerate(rows_of(table)):
        for i, (c, x) in enumerate(zip(table["columns"], row)):
            if x is None:
                continue
            cell = sheet.cell(n + 2, i + 1)
            if c["kind"] == "timestamptz":
                cell.value = x.isoformat()
            elif c["kind"] == "string":
                # a carriage return that XML has as it is would be read as a line feed
                cell.value = re.sub("_(?=x[0-9A-Fa-f]{4}_)", "_x005F_", x).replace("\r", "_x000D_")
                cell.data_type = "s"
            else:
                cell.value = x
    book.save(job["path"])


# --- reading: each gives rows of values

def from_texts(table, rows, null=None):
    return [[None if x is None or x == null else value(c["kind"], x) for c, x in zip(table["columns"], r)] for r in rows]


def read_csv_pandas(job, table, path):
    with pa.input_stream(path, compression=job["compression"]) as f:
        frame = pd.read_csv(io.BytesIO(f.read()), sep=job["separator"], dtype=str, keep_default_na=False, na_filter=False, encoding="utf-8")
    if list(frame.columns) != [c["name"] for c in table["columns"]]:
        raise ValueError(f"columns {list(frame.columns)}")
    return from_texts(table, frame.values.tolist(), "")


def read_csv_pyarrow(job, table, path):
    with pa.input_stream(path, compression=job["compression"]) as f:
        got = pacsv.read_csv(f, pacsv.ReadOptions(use_threads=False, block_size=1 << 26),
                             pacsv.ParseOptions(delimiter=job["separator"], newlines_in_values=True, ignore_empty_lines=False),
                             pacsv.ConvertOptions(column_types={c["name"]: pa.string() for c in table["columns"]}, strings_can_be_null=True,
                                                  quoted_strings_can_be_null=False, null_values=[""]))
    return from_texts(table, [list(r.values()) for r in got.to_pylist()])


def read_json(job, table, path):
    opened = {"gzip": lambda: gzip.open(path, "rb"), "zstd": lambda: pa.CompressedInputStream(pa.OSFile(path), "zstd"), None: lambda: open(path, "rb")}
    with opened[job["compression"]]() as f:
        text = f.read().decode("utf-8")
    rows = []
    for line in text.split("\n")[:-1]:
        of = json.loads(line, parse_float=decimal.Decimal)
        if list(of) != [c["name"] for c in table["columns"]]:
            raise ValueError(f"keys {list(of)}")
        row = []
        for c, x in zip(table["columns"], of.values()):
            if c["kind"] == "float" and x is not None:
                x = float(x)
            elif c["kind"] == "decimal" and x is not None:
                x = decimal.Decimal(x)
            elif c["kind"] in ("date", "datetime", "timestamptz") and x is not None:
                x = value(c["kind"], x)
            elif c["kind"] == "struct" and x is not None:
                x = dated(x)
            row.append(x)
        rows.append(row)
    return rows


def read_parquet(job, table, path):
    if by := job.get("by"):  # pyarrow has no decimals in names
        names = pa.schema([(c["name"], pa.string() if c["kind"] == "decimal" else arrow_type(c)) for c in by])
        got = ds.dataset(path, format="parquet", partitioning=ds.partitioning(names, flavor="hive")).to_table()
        for c in by:
            if c["kind"] == "decimal":
                i = got.schema.get_field_index(c["name"])
                got = got.set_column(i, c["name"], pa.array([value("decimal", x) for x in got.column(i).to_pylist()], arrow_type(c)))
    else:
        got = pq.read_table(path, partitioning=None)
    got = got.select([c["name"] for c in table["columns"]])
    for c, field in zip(table["columns"], got.schema):
        want = arrow_type(c)
        if c["kind"] == "datetime":
            fits = pa.types.is_timestamp(field.type) and field.type.tz is None
        else:
            fits = field.type in (want, pa.large_string()) or pa.types.is_nested(want) and pa.types.is_nested(field.type)
        if not fits:
            raise ValueError(f"column {c['name']} is {field.type}, not {want}")
    columns = []
    for c, column in zip(table["columns"], got.columns):
        if c["kind"] in ("datetime", "timestamptz"):  # to_pylist needs pandas for nanoseconds
            epoch = dt.datetime(1970, 1, 1, tzinfo=UTC if c["kind"] == "timestamptz" else None)
            micros = column.cast(pa.timestamp("us", "UTC" if c["kind"] == "timestamptz" else None)).cast(pa.int64()).to_pylist()
            columns.append([None if m is None else epoch + dt.timedelta(microseconds=m) for m in micros])
        else:
            columns.append(column.to_pylist())
    return [list(r) for r in zip(*columns)]


def sheet_row(table, row):
    out = []
    for c, x in zip(table["columns"], row):
        if isinstance(x, str) and c["kind"] == "string":
            x = openpyxl.utils.escape.unescape(x)
        if x is not None and not (isinstance(x, float) and math.isnan(x)) and x is not pd.NaT:
            if c["kind"] == "decimal":
                x = decimal.Decimal(repr(x))
            elif c["kind"] == "float":
                x = float(x)
            elif c["kind"] == "date":
                if x.time() != dt.time():
                    raise ValueError(f"{x} has a time")
                x = x.date()
            elif c["kind"] == "timestamptz":
                x = value("timestamptz", x)
        else:
            x = None
        out.append(x)
    return out


def read_openpyxl(job, table, path):
    sheet = openpyxl.load_workbook(path).worksheets[0]
    rows = [list(r) for r in sheet.iter_rows(values_only=True)]
    if rows[0] != [c["name"] for c in table["columns"]]:
        raise ValueError(f"header {rows[0]}")
    return [sheet_row(table, r + [None] * (len(rows[0]) - len(r))) for r in rows[1:]]


def read_excel_pandas(job, table, path):
    frame = pd.read_excel(path, dtype=object, keep_default_na=False, na_values=[], engine="openpyxl")
    rows = []
    for row in frame.values.tolist():
        rows.append(sheet_row(table, [None if x == "" else x.to_pydatetime() if isinstance(x, pd.Timestamp) else x for x in row]))
    return rows


# --- comparing

def same(a, b):
    if isinstance(a, float) and isinstance(b, float):
        return a == b and math.copysign(1, a) == math.copysign(1, b) or a != a and b != b
    return type(a) is type(b) and a == b


def key(row):
    return [(x is not None, str(x)) for x in row]


def differs(table, got, blank, ordered):
    want = rows_of(table)
    if blank:
        def fill(rows):
            return [["" if x is None and c["kind"] == "string" else x for c, x in zip(table["columns"], r)] for r in rows]
        want, got = fill(want), fill(got)
    if not ordered:
        want, got = sorted(want, key=key), sorted(got, key=key)
    if len(want) != len(got):
        return f"{len(got)} rows, not {len(want)}"
    for n, (w, g) in enumerate(zip(want, got)):
        for c, x, y in zip(table["columns"], w, g):
            if not same(x, y):
                return f"row {n} column {c['name']} ({c['kind']} {c.get('p', '')} {c['scale']}): {y!r}, not {x!r}"
    return ""


WRITE = {"pandas": write_pandas, "pyarrow.csv": write_pyarrow_csv, "pyarrow.csv.zst": write_pyarrow_csv, "pyarrow.parquet": write_pyarrow_parquet, "pyarrow.nested.parquet": write_pyarrow_parquet,
         "pyarrow.hive": write_hive, "python": write_json, "openpyxl": write_openpyxl}
READ = {"csv": [("pandas", read_csv_pandas, True), ("pyarrow", read_csv_pyarrow, False)], "json": [("json", read_json, False)],
        "parquet": [("pyarrow", read_parquet, False)], "xlsx": [("openpyxl", read_openpyxl, False), ("pandas", read_excel_pandas, False)]}


def main():
    with open(sys.argv[1], encoding="utf-8") as f:
        todo = json.load(f)
    random.seed(todo["seed"])
    for job in todo["jobs"]:
        table = todo["tables"][job["table"]]
        if job["do"] == "write":
            (WRITE.get(job["form"]) or WRITE[job["form"].split(".")[0]])(job, table)
            continue
        for name, read, blank in READ[job["kind"]]:
            try:
                got = []
                for path in job["paths"]:
                    got += read(job, table, path)
                said = differs(table, got, blank, not job.get("by"))
            except Exception as e:  # a reader's own: it is what differs
                said = f"{type(e).__name__}: {e}"
            if said:
                print(f"{job['paths'][0]}: {name}: {said}")


main()
