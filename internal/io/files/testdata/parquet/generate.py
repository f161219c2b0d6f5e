"""Writes Parquet files and what must be read from them.

    generate.py DIRECTORY

Beside the files, DIRECTORY/expected.json holds for each file and column the
values in canonical text: None for NULL, whole numbers and datetimes (in
microseconds since 1970, rounded down) in digits, decimals without zeros at the
end, floats as repr, or {"refuse": "reason"} where no value may be given out.

Matrix files are compared with what pyarrow reads from them; crafted files,
which no writer of today makes, with what is computed here. Needs pyarrow;
polars, fastparquet and duckdb add their files if they are there.
"""

import datetime
import decimal
import io
import json
import math
import os
import struct
import sys

import pyarrow as pa
import pyarrow.parquet as pq

OUT = sys.argv[1]
EXPECTED = {}
D = decimal.Decimal
decimal.getcontext().prec = 100
I63 = 2**63
EPOCH = datetime.datetime(1970, 1, 1)
CODECS = ["none", "snappy", "gzip", "brotli", "zstd", "lz4"]

# The range of datetimes, in microseconds; see docs/parquet.md.
FIRST, LAST = -9_223_372_022_400_000_000, I63 - 2


def dec(v):
    v = v.normalize()
    return format(v if v != 0 else D(0), "f")


def canonical(column):
    """Texts of a pyarrow column."""
    t = column.type
    if pa.types.is_dictionary(t):
        return canonical(column.cast(t.value_type))
    if pa.types.is_timestamp(t):
        factor = {"s": 1_000_000, "ms": 1_000, "us": 1, "ns": None}[t.unit]
        raw = column.combine_chunks().view(pa.int64()).to_pylist() if hasattr(column, "combine_chunks") else column.view(pa.int64()).to_pylist()
        micros = [v if v is None else (v // 1000 if factor is None else v * factor) for v in raw]
        return [v if v is None else (str(v) if FIRST <= v <= LAST else {"refuse": "does not fit datetime"}) for v in micros]
    if pa.types.is_date32(t):
        raw = column.combine_chunks().view(pa.int32()).to_pylist()
        micros = [v if v is None else v * 86_400_000_000 for v in raw]
        return [v if v is None else (str(v) if FIRST <= v <= LAST else {"refuse": "does not fit datetime"}) for v in micros]
    out = []
    for v in column.to_pylist():
        if v is None:
            out.append(None)
        elif isinstance(v, bool):
            out.append("true" if v else "false")
        elif isinstance(v, int):
            out.append(str(v) if -I63 <= v < I63 else {"refuse": "does not fit int"})
        elif isinstance(v, float):
            out.append(repr(v))
        elif isinstance(v, D):
            out.append(dec(v) if abs(v) < D(10) ** 16 else {"refuse": "does not fit decimal2"})
        elif isinstance(v, bytes):
            out.append(v.decode())
        else:
            out.append(str(v))
    return out


def expect(name, columns, about):
    EXPECTED[name] = {"about": about, "columns": columns}


# ---------------------------------------------------------------- pyarrow

def ints(low, high):
    return [0, 1, -1 if low < 0 else 2, low, high, low + 1, high - 1, 42]


def stamps(unit):
    v = [0, -1, 1, -1001, 1_700_000_000_123, -62_135_596_800, 253_402_300_799, -1_500]
    return v


TYPES = {}
for bits in (8, 16, 32, 64):
    TYPES[f"int{bits}"] = (getattr(pa, f"int{bits}")(), ints(-2 ** (bits - 1), 2 ** (bits - 1) - 1))
    TYPES[f"uint{bits}"] = (getattr(pa, f"uint{bits}")(), ints(0, 2 ** min(bits, 63) - 1))
TYPES["bool"] = (pa.bool_(), [True, False, True, True, False, False, False, True])
TYPES["float"] = (pa.float32(), [0.0, -0.0, 1.5, -2.25, math.inf, -math.inf, math.nan, 16777216.0])
TYPES["double"] = (pa.float64(), [0.1, -0.0, 1e308, -5e-324, math.inf, -math.inf, math.nan, 1 / 3])
TYPES["string"] = (pa.string(), ["", "a", "José", "x\ny", "long " * 30, "a", "漢字", " blank "])
TYPES["large_string"] = (pa.large_string(), ["", "a", "José", "x\ny", "long " * 30, "a", "漢字", " blank "])
TYPES["binary"] = (pa.binary(), [b"", b"a", "é".encode(), b"x\ny", b"long " * 30, b"a", b"z", b" "])
TYPES["date32"] = (pa.date32(), [0, -1, 1, 19000, -719162, 2932896, -141427, 11016])
TYPES["date64"] = (pa.date64(), [v * 86_400_000 for v in [0, -1, 1, 19000, -719162, 2932896, -141427, 11016]])
for unit in ("s", "ms", "us", "ns"):
    TYPES[f"timestamp_{unit}"] = (pa.timestamp(unit), stamps(unit))
    TYPES[f"timestamp_{unit}_utc"] = (pa.timestamp(unit, "UTC"), stamps(unit))
TYPES["timestamp_us_zone"] = (pa.timestamp("us", "Asia/Kathmandu"), stamps("us"))
for p, s in [(1, 0), (2, 2), (4, 1), (4, 2), (5, 5), (9, 2), (9, 0), (10, 4), (17, 2), (18, 2), (18, 0), (18, 6), (19, 2), (25, 10), (38, 2), (38, 10), (38, 18), (38, 22)]:
    whole = min(p - s, 16)
    top = D(10 ** (whole + s) - 1).scaleb(-s)
    TYPES[f"decimal_{p}_{s}"] = (pa.decimal128(p, s), [D(0), top, -top, D(1).scaleb(-s), D(-1).scaleb(-s), top / 2 // D(1).scaleb(-s) * D(1).scaleb(-s), D(0), D(1).scaleb(-s)])
for p, s in [(39, 2), (50, 18), (76, 2), (76, 22)]:
    top = D(10 ** (16 + s) - 1).scaleb(-s)
    TYPES[f"decimal256_{p}_{s}"] = (pa.decimal256(p, s), [D(0), top, -top, D(1).scaleb(-s), D(-1).scaleb(-s), D("1.25"), D("-1.25"), D(7)])
TYPES["dictionary"] = (pa.dictionary(pa.int32(), pa.string()), ["b", "a", "b", "", "c", "c", "a", "b"])


def make(t, values):
    if pa.types.is_timestamp(t) or pa.types.is_date64(t):
        return pa.array(values, pa.int64()).view(t)
    if pa.types.is_date32(t):
        return pa.array(values, pa.int32()).view(t)
    if pa.types.is_dictionary(t):
        return pa.array(values, t.value_type).dictionary_encode()
    return pa.array(values, t)


def nulled(values):
    return [None if i in (1, 4) else v for i, v in enumerate(values)]


def encodings(name, t, integers):
    yield "plain", {"use_dictionary": False}
    yield "dictionary", {"use_dictionary": True}
    physical_int = pa.types.is_integer(t) or pa.types.is_temporal(t) or pa.types.is_decimal(t) and integers
    if pa.types.is_dictionary(t):
        return
    if physical_int:
        yield "delta", {"use_dictionary": False, "column_encoding": "DELTA_BINARY_PACKED"}
        yield "split", {"use_dictionary": False, "column_encoding": "BYTE_STREAM_SPLIT"}
    elif pa.types.is_floating(t):
        yield "split", {"use_dictionary": False, "column_encoding": "BYTE_STREAM_SPLIT"}
    elif pa.types.is_decimal(t):
        yield "delta_texts", {"use_dictionary": False, "column_encoding": "DELTA_BYTE_ARRAY"}
        yield "split", {"use_dictionary": False, "column_encoding": "BYTE_STREAM_SPLIT"}
    elif pa.types.is_boolean(t):
        yield "rle", {"use_dictionary": False, "column_encoding": "RLE"}
    else:
        yield "delta_lengths", {"use_dictionary": False, "column_encoding": "DELTA_LENGTH_BYTE_ARRAY"}
        yield "delta_texts", {"use_dictionary": False, "column_encoding": "DELTA_BYTE_ARRAY"}


def pyarrow_files():
    turn = 0
    for name, (t, values) in TYPES.items():
        for integers in ((False, True) if pa.types.is_decimal128(t) and t.precision <= 18 else (False,)):
            for encoding, options in encodings(name, t, integers):
                for version in ("1.0", "2.0"):
                    codec = CODECS[turn % len(CODECS)]
                    turn += 1
                    about = {"writer": "pyarrow", "type": name + ("_as_int" if integers else ""), "encoding": encoding, "codec": codec, "pages": version, "checksums": turn % 3 == 0}
                    file = f"pa_{about['type']}_{encoding}_{codec}_v{version[0]}.parquet"
                    t_null, t_full = make(t, nulled(values)), make(t, values)
                    schema = pa.schema([pa.field("n", t_null.type), pa.field("r", t_full.type, nullable=False)])
                    table = pa.Table.from_arrays([t_null, t_full], schema=schema)
                    opts = dict(options)
                    if "column_encoding" in opts:
                        opts["column_encoding"] = {"n": opts["column_encoding"], "r": opts["column_encoding"]}
                    try:
                        pq.write_table(table, os.path.join(OUT, file), compression=codec, data_page_version=version, version="2.6", store_schema=False,
                                       write_page_checksum=about["checksums"], store_decimal_as_integer=integers, row_group_size=5,
                                       write_statistics=turn % 2 == 0, **opts)
                    except (OSError, pa.ArrowNotImplementedError, pa.ArrowInvalid):
                        os.path.exists(os.path.join(OUT, file)) and os.remove(os.path.join(OUT, file))
                        continue  # pyarrow does not write it
                    compare_with_pyarrow(file, about)
    for codec in CODECS:  # the old timestamps
        file = f"pa_int96_{codec}.parquet"
        table = pa.table({"n": make(pa.timestamp("ns"), nulled([v * 1000 for v in stamps("ns")])), "r": make(pa.timestamp("ns"), [v * 1000 for v in stamps("ns")])})
        pq.write_table(table, os.path.join(OUT, file), compression=codec, use_deprecated_int96_timestamps=True, use_dictionary=codec in ("gzip", "zstd"))
        compare_with_pyarrow(file, {"writer": "pyarrow", "type": "int96", "encoding": "dictionary" if codec in ("gzip", "zstd") else "plain", "codec": codec, "pages": "1.0", "checksums": False})


def compare_with_pyarrow(file, about, written=None):
    try:
        table = pq.read_table(os.path.join(OUT, file))
    except OSError:  # some of DuckDB's own encodings are too much for it
        if written is None:
            raise
        table = written
    expect(file, {c: canonical(table[c]) for c in table.column_names}, about)


# ---------------------------------------------------------------- other writers

def other_writers():
    sample = {
        "i8": pa.array([1, None, -128, 127], pa.int8()), "i16": pa.array([1, None, -32768, 32767], pa.int16()),
        "i32": pa.array([1, None, -2**31, 2**31 - 1], pa.int32()), "i64": pa.array([1, None, -I63, I63 - 1], pa.int64()),
        "u8": pa.array([1, None, 0, 255], pa.uint8()), "u16": pa.array([1, None, 0, 65535], pa.uint16()),
        "u32": pa.array([1, None, 0, 2**32 - 1], pa.uint32()), "u64": pa.array([1, None, 0, I63 - 1], pa.uint64()),
        "f32": pa.array([1.5, None, -0.0, math.inf], pa.float32()), "f64": pa.array([0.1, None, math.nan, -1e300], pa.float64()),
        "b": pa.array([True, None, False, True]), "s": pa.array(["a", None, "", "José"]),
        "d": pa.array([0, None, -1, 19000], pa.int32()).view(pa.date32()),
        "ms": pa.array([0, None, -1, 10**12], pa.int64()).view(pa.timestamp("ms")),
        "us": pa.array([0, None, -1, 10**15], pa.int64()).view(pa.timestamp("us")),
        "ns": pa.array([0, None, -1, 10**18], pa.int64()).view(pa.timestamp("ns")),
        "dec": pa.array([D("1.25"), None, D("-0.01"), D("9999999999999.99")], pa.decimal128(15, 2)),
        "wide": pa.array([D("1.25"), None, D("-0.01"), D("9999999999999999.99")], pa.decimal128(38, 2)),
    }
    table = pa.table(sample)
    try:
        import polars as pl
        for codec in ("uncompressed", "snappy", "gzip", "brotli", "zstd", "lz4"):
            for page in (None, 64):
                file = f"polars_{codec}_{page or 'one'}.parquet"
                pl.from_arrow(table).write_parquet(os.path.join(OUT, file), compression=codec, data_page_size=page, statistics=page is None)
                compare_with_pyarrow(file, {"writer": "polars", "type": "all", "encoding": "its own", "codec": codec, "pages": "1.0", "checksums": False})
    except ImportError:
        pass
    try:
        import duckdb
        con = duckdb.connect()
        con.register("t", table)
        for codec in ("uncompressed", "snappy", "gzip", "brotli", "zstd", "lz4_raw"):
            for version in ("V1", "V2"):
                file = f"duckdb_{codec}_{version}.parquet"
                con.execute(f"COPY (SELECT * FROM t) TO '{os.path.join(OUT, file)}' (FORMAT parquet, CODEC '{codec}', PARQUET_VERSION {version})")
                compare_with_pyarrow(file, {"writer": "duckdb", "type": "all", "encoding": "its own", "codec": codec, "pages": version[1:] + ".0", "checksums": False}, table)
    except ImportError:
        pass
    try:
        import fastparquet
        frame = table.drop_columns(["dec", "wide", "d", "b"]).to_pandas()
        for codec in ("UNCOMPRESSED", "SNAPPY", "GZIP", "BROTLI", "ZSTD", "LZ4_RAW"):
            for times in ("int64", "int96"):
                file = f"fastparquet_{codec.lower()}_{times}.parquet"
                fastparquet.write(os.path.join(OUT, file), frame, compression=codec, times=times, object_encoding="utf8", row_group_offsets=[0, 2])
                compare_with_pyarrow(file, {"writer": "fastparquet", "type": "all", "encoding": "its own", "codec": codec.lower(), "pages": "1.0", "checksums": False})
    except ImportError:
        pass


# ---------------------------------------------------------------- crafted

class Raw:
    """A Parquet file byte by byte: plain, uncompressed pages, one row group."""

    def __init__(self):
        self.columns, self.bodies = [], []

    def add(self, name, physical, values, length=None, converted=None, scale=None, precision=None, logical=None, statistics=None):
        body = b"".join(values)
        self.columns.append(dict(name=name, physical=physical, length=length, converted=converted, scale=scale, precision=precision, logical=logical, rows=len(values), statistics=statistics))
        self.bodies.append(body)
        return self

    def write(self, file):
        out = io.BytesIO()
        out.write(b"PAR1")
        chunks = []
        for c, body in zip(self.columns, self.bodies):
            at = out.tell()
            head = struct_([(1, 5, 0), (2, 5, len(body)), (3, 5, len(body)), (5, 12, struct_([(1, 5, c["rows"]), (2, 5, 0), (3, 5, 3), (4, 5, 3)]))])
            out.write(head + body)
            meta = [(1, 5, c["physical"]), (2, 9, list_(5, [zigzag(0), zigzag(3)])), (3, 9, list_(8, [text(c["name"])])), (4, 5, 0), (5, 6, c["rows"]),
                    (6, 6, len(head) + len(body)), (7, 6, len(head) + len(body)), (9, 6, at)]
            if c["statistics"]:
                low, high = c["statistics"]
                meta.append((12, 12, struct_([(3, 6, 0), (5, 8, high), (6, 8, low)])))
            chunks.append(struct_([(2, 6, at), (3, 12, struct_(meta))]))
        rows = self.columns[0]["rows"]
        schema = [struct_([(4, 8, b"schema"), (5, 5, len(self.columns))])]
        for c in self.columns:
            e = [(1, 5, c["physical"])]
            e += [(2, 5, c["length"])] if c["length"] is not None else []
            e += [(3, 5, 0), (4, 8, c["name"].encode())]
            for number, key in ((6, "converted"), (7, "scale"), (8, "precision")):
                e += [(number, 5, c[key])] if c[key] is not None else []
            e += [(10, 12, c["logical"])] if c["logical"] else []
            schema.append(struct_(e))
        foot = struct_([(1, 5, 1), (2, 9, list_(12, schema)), (3, 6, rows), (4, 9, list_(12, [struct_([(1, 9, list_(12, chunks)), (2, 6, sum(map(len, self.bodies))), (3, 6, rows)])]))])
        out.write(foot + struct.pack("<I", len(foot)) + b"PAR1")
        with open(os.path.join(OUT, file), "wb") as f:
            f.write(out.getvalue())


def uvarint(n):
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes(out + bytes([n]))


def zigzag(n):
    return uvarint(n << 1 if n >= 0 else (-n << 1) - 1)


def text(s):
    raw = s if isinstance(s, bytes) else s.encode()
    return uvarint(len(raw)) + raw


def list_(of, items):
    head = bytes([len(items) << 4 | of]) if len(items) < 15 else bytes([0xF0 | of]) + uvarint(len(items))
    return head + b"".join(items)


def struct_(fields):
    out, last = b"", 0
    for number, kind, value in fields:
        out += bytes([number - last << 4 | kind])
        last = number
        out += zigzag(value) if kind in (5, 6) else text(value) if kind == 8 else value
    return out + b"\0"


def i32(v):
    return struct.pack("<i", v)


def i64(v):
    return struct.pack("<q", v)


def crafted():
    BOOL, INT32, INT64, INT96, BYTES, FIXED = 0, 1, 2, 3, 6, 7

    def about(kind):
        return {"writer": "crafted", "type": kind, "encoding": "plain", "codec": "none", "pages": "1.0", "checksums": False}

    def decimals(values, scale):
        return [dec(D(v).scaleb(-scale)) if abs(D(v).scaleb(-scale)) < D(10) ** 16 and scale <= 22 else {"refuse": "does not fit decimal2"} for v in values]

    def fits18(values, scale):  # 64-bit decimals of more than two digits after the point keep 18 digits
        return [dec(D(v).scaleb(-scale)) if abs(v) < 10**18 and abs(D(v).scaleb(-scale)) < D(10) ** 16 else {"refuse": "does not fit decimal2"} for v in values]

    big = [0, 1, -1, 49000000, 123456789, -123456789, 10**15, -10**17, 10**18 - 1, 10**18, -10**18, I63 - 1, -I63]
    for p, s in [(1, 0), (2, 2), (4, 2), (2, 4), (0, 2), (9, 2), (9, 4), (10, 2), (12, 0), (15, 0), (17, 1), (18, 2), (18, 0), (18, 6), (18, 18), (19, 2), (38, 2)]:
        file = f"x_int64_decimal_{p}_{s}.parquet"
        r = Raw()
        columns = {}
        for i, v in enumerate(big):
            r.add(f"v{i}", INT64, [i64(0), i64(v)], converted=5, scale=s, precision=p)
            columns[f"v{i}"] = ["0"] + (fits18 if 2 < s < 18 and p <= 18 else decimals)([v], s)
        r.write(file)
        expect(file, columns, about("INT64 decimal of other precision"))
    small = [0, 1, -1, 32767, 32768, -32769, 10**9 - 1, 10**9, 2**31 - 1, -2**31]
    for p, s in [(1, 0), (2, 2), (4, 2), (4, 4), (5, 2), (9, 2), (9, 9), (2, 4)]:
        file = f"x_int32_decimal_{p}_{s}.parquet"
        Raw().add("v", INT32, [i32(v) for v in small], converted=5, scale=s, precision=p).write(file)
        expect(file, {"v": decimals(small, s)}, about("INT32 decimal of other precision"))
    for n in (1, 2, 4, 5, 8, 9, 12, 15, 16, 17, 20, 32):
        for p, s in [(2, 2), (9, 2), (18, 2), (38, 2), (38, 18), (40, 2), (76, 4)]:
            file = f"x_fixed{n}_decimal_{p}_{s}.parquet"
            most = 2 ** (8 * n - 1) - 1
            values = [0, min(125, most), max(-125, -most), min(10**(16 + s) - 1, most), max(-(10**(16 + s)) + 1, -most), most, -most - 1]
            r, columns = Raw(), {}
            for i, v in enumerate(values):
                r.add(f"v{i}", FIXED, [(1).to_bytes(n, "big", signed=True), v.to_bytes(n, "big", signed=True)], length=n, converted=5, scale=s, precision=p)
                narrow = p <= 18 and n <= 8 and 2 < s < 18
                columns[f"v{i}"] = [dec(D(1).scaleb(-s))] + (fits18 if narrow else decimals)([v], s)
            r.write(file)
            expect(file, columns, about("FIXED_LEN_BYTE_ARRAY decimal"))
    for p, s in [(2, 2), (18, 2), (38, 18), (50, 2)]:
        file = f"x_bytes_decimal_{p}_{s}.parquet"
        values = [(0, 1), (125, 1), (-125, 1), (-125, 16), (125, 20), (-125, 33), (10**(16 + s) - 1, 16), (-10**(16 + s), 16), (10**40, 20), (-10**40, 20)]
        r, columns = Raw(), {}
        for i, (v, n) in enumerate(values):
            raw = v.to_bytes(n, "big", signed=True)
            r.add(f"v{i}", BYTES, [struct.pack("<I", n) + raw], converted=5, scale=s, precision=p)
            columns[f"v{i}"] = decimals([v], s)
        r.add("none", BYTES, [struct.pack("<I", 0)], converted=5, scale=s, precision=p)
        columns["none"] = [{"refuse": "does not fit decimal2"}]
        r.write(file)
        expect(file, columns, about("BYTE_ARRAY decimal"))
    for converted, name in [(11, "UINT_8"), (12, "UINT_16"), (13, "UINT_32"), (15, "INT_8"), (16, "INT_16"), (17, "INT_32")]:
        for physical, pack, most in [(INT32, i32, 2**31 - 1), (INT64, i64, I63 - 1)]:
            values = [0, 1, 127, 128, 255, 256, 300, 32768, 65535, 65536, most]
            values += [-1, -129, -32769, -most - 1] if converted >= 15 else []
            file = f"x_{name.lower()}_in_int{32 if physical == INT32 else 64}.parquet"
            Raw().add("v", physical, [pack(v) for v in values], converted=converted).write(file)
            expect(file, {"v": [str(v) for v in values]}, about("small integers that are larger"))
    Raw().add("u32", INT32, [i32(-1), i32(-2**31), i32(5)], converted=13).add("u64", INT64, [i64(5), i64(I63 - 1), i64(0)], converted=14).add("large", INT64, [i64(0), i64(-1), i64(-I63)], converted=14).write("x_unsigned.parquet")
    expect("x_unsigned.parquet", {"u32": [str(2**32 - 1), str(2**31), "5"], "u64": ["5", str(I63 - 1), "0"], "large": ["0", {"refuse": "does not fit int"}, {"refuse": "does not fit int"}]}, about("unsigned integers"))

    unit = {"ms": 1, "us": 2, "ns": 3}
    for name, number in unit.items():
        for utc in (True, False):
            ends = [0, -1, -1001, 999, -1000, I63 - 1, I63 - 2, -I63, -I63 + 1, -I63 + 2, (I63 - 1) // 1000, (I63 - 1) // 1000 + 1, -(I63 // 1000), -(I63 // 1000) - 1,
                    FIRST, FIRST - 1, FIRST // 1000, FIRST // 1000 - 1, LAST, LAST + 1]
            r, columns = Raw(), {}
            for i, v in enumerate(ends):
                logical = struct_([(8, 12, struct_([(1, 1 if utc else 2, b""), (2, 12, struct_([(number, 12, struct_([]))]))]))])
                # A boolean's value is its type: nothing follows.
                r.add(f"v{i}", INT64, [i64(0), i64(v)], logical=logical)
                micros = {"ms": v * 1000, "us": v, "ns": v // 1000}[name]
                columns[f"v{i}"] = ["0", str(micros) if FIRST <= micros <= LAST else {"refuse": "does not fit datetime"}]
            file = f"x_timestamp_{name}_{'utc' if utc else 'local'}_ends.parquet"
            r.write(file)
            expect(file, columns, about("timestamps at the ends"))
    days = [0, -1, 106751991, 106751992, -106751991, -106751992, 2**31 - 1, -2**31 + 1, -2**31, 2**31 - 2]
    r, columns = Raw(), {}
    for i, v in enumerate(days):
        r.add(f"v{i}", INT32, [i32(0), i32(v)], converted=6)
        micros = v * 86_400_000_000
        columns[f"v{i}"] = ["0", str(micros) if FIRST <= micros <= LAST else {"refuse": "does not fit datetime"}]
    r.write("x_date_ends.parquet")
    expect("x_date_ends.parquet", columns, about("dates at the ends"))
    old = [(2440588, 0), (2440587, 86_399_999_999_999), (0, 0), (1721426, 0), (5373485, 86_399_999_999_999), (2**24 - 1, 0), (2**24, 0), (2**31, 0), (2**32 - 1, 0), (2440588, 2**63 - 1), (2440588, -1), (2440588, 999), (2440588, 86_400_000_000_000)]
    r, columns = Raw(), {}
    for i, (day, nanos) in enumerate(old):
        r.add(f"v{i}", INT96, [struct.pack("<qI", 0, 2440588), struct.pack("<qI", nanos, day)])
        micros = (day - 2440588) * 86_400_000_000 + nanos // 1000
        columns[f"v{i}"] = ["0", str(micros) if day < 2**24 and 0 <= nanos < 2**48 else {"refuse": "does not fit datetime"}]
    r.write("x_int96_ends.parquet")
    expect("x_int96_ends.parquet", columns, about("INT96 at the ends"))

    def named(file, *names):
        r = Raw()
        for i, n in enumerate(names):
            r.add(n, INT64, [i64(i), i64(100 + i)])
        r.write(file)
        expect(file, {n: [str(i), str(100 + i)] if names.count(n) == 1 else [{"refuse": "the file has"}] for i, n in enumerate(names)}, about("names"))

    named("x_names_shared.parquet", "a", "a", "a_1", "a_2")
    named("x_names_case.parquet", "a", "A", "b", "B_1", "b_1")
    named("x_names_hide.parquet", "file_row_number", "FILE_INDEX", "filename", "x")
    named("x_names_odd.parquet", "", " ", "a.b", "c\"d", "é", "E\u0301")
    lie = (i64(1), i64(3))
    Raw().add("v", INT64, [i64(v) for v in (1, 2, 1_000_000, 7)], statistics=lie).write("x_statistics_lie.parquet")
    expect("x_statistics_lie.parquet", {"v": ["1", "2", "1000000", "7"]}, about("wrong statistics"))


pyarrow_files()
other_writers()
crafted()
with open(os.path.join(OUT, "expected.json"), "w") as f:
    json.dump(EXPECTED, f, ensure_ascii=False, indent=0, sort_keys=True)
print(len(EXPECTED), "files")
