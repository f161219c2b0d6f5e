# The program that every interpreter of the pool runs. It reaches the interpreter
# on its standard input. The standard library is all it needs, on CPython 3.9 or
# later and on PyPy.
#
# The pool sends programs and chunks of rows on one inherited descriptor and reads
# results on another: standard output stays free for what formulas print. process.go
# and wire.go are the other ends of this file; the numbers in both must agree.

import array
import ast
import contextlib
import datetime
import decimal
import faulthandler
import gc
import importlib
import importlib.util
import inspect
import itertools
import json
import linecache
import math
import mmap
import operator
import os
import platform
import reprlib
import resource
import signal
import struct
import sys
import time
import traceback
import types

# Messages: two native 64-bit integers, kind and payload length, then the payload.
HEADER = struct.Struct("=QQ")
MSG_PROGRAM, MSG_FORGET, MSG_CHUNK = 1, 2, 3
MSG_HELLO, MSG_RESULT = 1, 2
CHUNK_HEADER = struct.Struct("=QQQ")  # program, sequence number, rows
RESULT_HEADER = struct.Struct("=QQQQQ")  # sequence number, ns for rows, ns for imports, rows, length of the JSON that follows
PROGRAM_HEADER = struct.Struct("=Q")

# Slots of the page shared with the pool, which watches them without asking.
SLOT_ROW, SLOT_SEQUENCE, SLOT_ACCUSED_ROW, SLOT_ACCUSED_SEQUENCE = 0, 1, 2, 3
ROW_NONE, ROW_IMPORT = -1, -2

PAGE_BYTES = 4096
MAX_MESSAGE_CHARS = 4 << 10
MAX_TRACEBACK_CHARS = 32 << 10
MAX_VALUE_CHARS = 200
SMALL_STRING_BYTES = 512  # on average; below it, strings are cut from one decoded text
MAX_CENTS = 10**18 - 1  # DECIMAL(18,2)
INT_MIN, INT_MAX = -(2**63), 2**63 - 1
FAST_ROUND_LIMIT = 1e9  # cents; below it the error of x * 100 is far less than FAST_ROUND_MARGIN
FAST_ROUND_MARGIN = 1e-5

EXPRESSIONS = "<expressions>"  # file name of the generated function's code
STACK_TITLE = "Stack when the time was over (most recent call first):"
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
MILLISECOND = datetime.timedelta(milliseconds=1)
CENT = decimal.Decimal("0.01")
WIDE = decimal.Context(prec=60)
RESERVE = bytearray()  # given back when memory is out, so that this can be said
RESERVE_BYTES = 4 << 20
LEAST_ROOM_BYTES = 16 << 20  # of address space that a worker needs beyond what is mapped when it begins


class RowTimeout(BaseException):
    """The pool found that a row, a call or an import takes too long. Not an Exception, so that formulas do not swallow it by accident."""


class BadValue(Exception):
    """A value that cannot be the result of a field."""

    def __init__(self, category, message):
        super().__init__(message)
        self.category = category


# ---------------------------------------------------------------------------
# Columns in
# ---------------------------------------------------------------------------


class Reader:
    """Cuts columns off a chunk's payload."""

    def __init__(self, payload, offset, rows):
        self.view = memoryview(payload)
        self.offset = offset
        self.rows = rows

    def take(self, size):
        start = self.offset
        self.offset = start + size
        return self.view[start : self.offset]

    def numbers(self, code, count):
        numbers = array.array(code)
        numbers.frombytes(self.take(8 * count))
        return numbers

    def raw_column(self, decode):
        """Return a byte for each row, 1 if it is NULL, or None if none is, and the values."""
        (has_nulls,) = struct.unpack("=Q", self.take(8))
        nulls = bytes(self.take(self.rows)) if has_nulls else None
        return nulls, decode(self)

    def column(self, decode):
        """Return a sequence of the column's values."""
        nulls, values = self.raw_column(decode)
        if nulls is not None:
            values = [None if null else value for null, value in zip(nulls, values)]
        return values


def read_ints(reader):
    return reader.numbers("q", reader.rows)


def read_floats(reader):
    return reader.numbers("d", reader.rows)


def read_bools(reader):
    return [byte != 0 for byte in bytes(reader.take(reader.rows))]


def read_strings(reader):
    ends = reader.numbers("q", reader.rows + 1)  # the first one is 0
    blob = reader.take(ends[-1])
    if len(blob) < SMALL_STRING_BYTES * reader.rows:
        text = str(blob, "utf-8")
        if len(text) == len(blob):  # ASCII: a byte is a character
            starts = iter(ends)
            next(starts)
            return [text[start:end] for start, end in zip(ends, starts)]
    return [str(blob[ends[i] : ends[i + 1]], "utf-8") for i in range(reader.rows)]


def read_cents_as_numbers(reader):
    # As their text would be in a program: whole ones are ints. Division of two
    # ints is rounded once: the double nearest to the decimal.
    return [cents / 100 if cents % 100 else cents // 100 for cents in read_ints(reader)]


def read_cents_as_decimals(reader):
    make, exponent, context = decimal.Decimal, -2, WIDE
    return [make(cents).scaleb(exponent, context) for cents in read_ints(reader)]


def read_datetimes(reader):
    return [EPOCH + MILLISECOND * ms for ms in read_ints(reader)]


EPOCH_DAY = datetime.date(1970, 1, 1).toordinal()
MICROSECOND = datetime.timedelta(microseconds=1)


def read_dates(reader):
    return dates_of(read_ints(reader))


def dates_of(days):
    make = datetime.date.fromordinal
    return [make(EPOCH_DAY + day) for day in days]


def read_instants(reader):
    return instants_of(read_ints(reader))


def instants_of(us):
    return [EPOCH + MICROSECOND * value for value in us]


def read_exact(reader):
    return exact_of(read_strings(reader))


def exact_of(texts):
    make = decimal.Decimal
    return [make(text or 0) for text in texts]  # "" stands for NULL


def digits_of(kind):
    """Return the digits of a decimal, and those behind its point; None for other kinds."""
    if not kind.startswith("decimal:"):
        return None
    _, digits, scale = kind.split(":")
    return int(digits), int(scale)


def of_kind(table, kind):
    """Look a kind up; decimals with digits are all one."""
    tree = tree_of(kind)
    if tree is not None:
        return table["nested"](tree)
    return table["decimal" if digits_of(kind) else kind]


# Lists and structs travel as JSON, with a text for each value that is neither.

NESTED = "nested:"


def tree_of(kind):
    """Return how lists and structs are made: {"list": tree}, {"struct": [[name, tree], …]} or a kind; None for other kinds."""
    return json.loads(kind[len(NESTED) :]) if kind.startswith(NESTED) else None


def value_maker(tree):
    """Return what makes Python's own value of JSON's."""
    if isinstance(tree, str):
        if digits_of(tree):
            make = decimal.Decimal
        else:
            make = {
                "string": str,
                "int": int,
                "float": float,
                "bool": "true".__eq__,
                "datetime": lambda text: EPOCH + MILLISECOND * int(text),
                "instant": lambda text: EPOCH + MICROSECOND * int(text),
                "date": lambda text: datetime.date.fromordinal(EPOCH_DAY + int(text)),
            }[tree]
        return lambda value: None if value is None else make(value)
    if "list" in tree:
        each = value_maker(tree["list"])
        return lambda value: None if value is None else list(map(each, value))
    members = [(name, value_maker(inner)) for name, inner in tree["struct"]]
    return lambda value: None if value is None else {name: make(value[name]) for name, make in members}


def nested_of(tree):
    """Return what makes values of a column's texts; "" stands for NULL."""
    make = value_maker(tree)
    return lambda texts: [make(json.loads(text)) if text else None for text in texts]


def read_nested(tree):
    make = nested_of(tree)
    return lambda reader: make(read_strings(reader))


READERS = {
    "date": read_dates,
    "instant": read_instants,
    "decimal": read_exact,
    "string": read_strings,
    "int": read_ints,
    "float": read_floats,
    "bool": read_bools,
    "cents_number": read_cents_as_numbers,
    "cents_decimal": read_cents_as_decimals,
    "datetime": read_datetimes,
    "nested": read_nested,
}


# ---------------------------------------------------------------------------
# Columns out
# ---------------------------------------------------------------------------


def wrong_type(expected, value):
    return BadValue("type", "expected %s, got %s" % (expected, type(value).__name__))


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def finite(value):
    if not math.isfinite(value):
        raise BadValue("value", "%r is not a number that a field can hold" % (value,))
    return value


def as_str(value):
    if not isinstance(value, str):
        raise wrong_type("a str", value)
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise BadValue("value", "the text cannot be stored as UTF-8: %s" % error) from None
    return value


def as_int(value):
    if isinstance(value, bool):
        raise wrong_type("an int", value)
    if isinstance(value, float):
        value = int(finite(value))  # toward zero
    elif not isinstance(value, int):
        try:
            value = operator.index(value)  # integers of other libraries
        except TypeError:
            raise wrong_type("an int", value) from None
    if not INT_MIN <= value <= INT_MAX:
        raise BadValue("value", "%s does not fit into 64 bits" % short_repr(value))
    return value


def as_float(value):
    if not is_number(value):
        raise wrong_type("a float or an int", value)
    try:
        return finite(float(value))
    except OverflowError:
        raise BadValue("value", "%s does not fit into a float" % short_repr(value)) from None


EXACT_INTS = 2**53  # up to here a float holds every whole number


def as_exact_float(value):
    """As as_float, but a whole number keeps its digits."""
    number = as_float(value)
    if isinstance(value, int) and number != value:
        raise too_fine(value, "the digits of a float")
    return number


def as_bool(value):
    if not isinstance(value, bool):
        raise wrong_type("a bool", value)
    return value


def as_cents(value):
    """Round half away from zero; a float counts as the shortest decimal that is this float."""
    if isinstance(value, float):
        scaled = finite(value) * 100.0
        if -FAST_ROUND_LIMIT < scaled < FAST_ROUND_LIMIT:
            floor = math.floor(scaled)
            if not -FAST_ROUND_MARGIN < scaled - floor - 0.5 < FAST_ROUND_MARGIN:
                return floor + (scaled - floor > 0.5)
        value = decimal.Decimal(repr(float(value)))
    elif isinstance(value, int) and not isinstance(value, bool):
        cents = value * 100
        if -MAX_CENTS <= cents <= MAX_CENTS:
            return cents
        raise BadValue("value", "%s does not fit into 18 digits" % short_repr(value))
    elif not isinstance(value, decimal.Decimal):
        raise wrong_type("a float, an int or a Decimal", value)
    if not value.is_finite():
        raise BadValue("value", "%s is not a number that a field can hold" % value)
    if value.adjusted() > 18:
        raise BadValue("value", "%s does not fit into 18 digits" % short_repr(value))
    cents = int(value.quantize(CENT, decimal.ROUND_HALF_UP, WIDE).scaleb(2, WIDE))
    if not -MAX_CENTS <= cents <= MAX_CENTS:
        raise BadValue("value", "%s does not fit into 18 digits" % short_repr(value))
    return cents


def as_exact_cents(value):
    """As as_cents, but nothing is rounded."""
    cents = as_cents(value)
    exact = decimal.Decimal(repr(float(value))) if isinstance(value, float) else value
    if decimal.Decimal(cents).scaleb(-2, WIDE) != exact:
        raise too_fine(value, "the 2 digits behind the point of a decimal2")
    return cents


def too_fine(value, what):
    return BadValue("digits", "%s has more than %s" % (short_repr(value), what))


def quick_cents(values, exact):
    """Return cents for floats and ints that are easy, all of them, or None. exact: none is rounded."""
    try:
        scaled = [value * 100.0 for value in values]
        if not -FAST_ROUND_LIMIT < min(scaled) <= max(scaled) < FAST_ROUND_LIMIT:
            return None
        cents = list(map(round, scaled))
    except (ValueError, OverflowError):  # NaN or infinity
        return None
    if exact:
        return cents if all(map(operator.eq, values, [each / 100 for each in cents])) else None
    away = list(map(operator.sub, scaled, cents))
    if max(-min(away), max(away)) < 0.5 - FAST_ROUND_MARGIN:
        return cents
    return None  # something is too near to halfway between two cents


class FineTime(datetime.datetime):
    """A time of a library with digits below the microsecond, beside what Python's own holds of it."""

    nanosecond = 0
    text = ""

    def __repr__(self):
        return self.text

    __str__ = __repr__


FineTime.__name__ = "datetime"


def fine_time(value, text):
    """Return a datetime that says that it has more digits than it holds: those of text."""
    whole = (value.year, value.month, value.day, value.hour, value.minute, value.second, value.microsecond, value.tzinfo)
    fine = FineTime(*whole, fold=value.fold)
    fine.nanosecond, fine.text = 1, text
    return fine


def as_ms(value):
    if not isinstance(value, datetime.datetime):
        raise wrong_type("a datetime.datetime", value)
    if value.tzinfo is None:
        value = value.replace(tzinfo=datetime.timezone.utc)
    return (value - EPOCH) // MILLISECOND


def as_exact_ms(value):
    """As as_ms, but nothing is cut off."""
    ms = as_ms(value)
    aware = value if value.tzinfo is not None else value.replace(tzinfo=datetime.timezone.utc)
    if getattr(value, "nanosecond", 0) or aware - EPOCH != MILLISECOND * ms:
        raise too_fine(value, "the milliseconds of a datetime")
    return ms


def as_day(value):
    if isinstance(value, datetime.datetime):  # of libraries that have no dates
        if value.time() != datetime.time() or getattr(value, "nanosecond", 0) or value.utcoffset():
            raise BadValue("value", "%s has a time of the day, which a date does not have" % value)
        value = value.date()
    elif not isinstance(value, datetime.date):
        raise wrong_type("a datetime.date", value)
    return value.toordinal() - EPOCH_DAY


def as_us(value):
    if not isinstance(value, datetime.datetime):
        raise wrong_type("a datetime.datetime", value)
    if value.tzinfo is None:
        raise BadValue("value", "%s has no time zone: write value.replace(tzinfo=datetime.timezone.utc) if it is UTC" % value)
    if getattr(value, "nanosecond", 0):
        raise BadValue("digits", "%s has digits below the microsecond" % value)
    return as_rounded_us(value)


def as_rounded_us(value):
    """As as_us, but digits below the microsecond are cut off."""
    if not isinstance(value, datetime.datetime) or value.tzinfo is None:
        return as_us(value)  # which refuses it
    us = (value - EPOCH) // MICROSECOND
    if not FIRST_US <= us < END_US:
        raise BadValue("value", "%s is not of the years 1 to 9999 in UTC" % value)
    return us


FIRST_US = (datetime.datetime(1, 1, 1, tzinfo=datetime.timezone.utc) - EPOCH) // MICROSECOND
END_US = (datetime.datetime.max.replace(tzinfo=datetime.timezone.utc) - EPOCH) // MICROSECOND + 1


def as_exact(digits, scale, rounded):
    """Return what checks values of a decimal with so many digits, and makes text of them. rounded: half away from zero."""
    context = decimal.Context(prec=2 * 38 + 2)
    unit = decimal.Decimal(1).scaleb(-scale)
    end = decimal.Decimal(10) ** (digits - scale)
    name = "decimal(%d,%d)" % (digits, scale)

    def check(value):
        if isinstance(value, float):
            value = decimal.Decimal(repr(float(finite(value))))  # the shortest that is this float
        elif isinstance(value, int) and not isinstance(value, bool):
            value = decimal.Decimal(value)
        elif not isinstance(value, decimal.Decimal):
            raise wrong_type("a Decimal, an int or a float", value)
        if not value.is_finite():
            raise BadValue("value", "%s is not a number that a field can hold" % value)
        if not -end < value < end:
            raise BadValue("value", "%s does not fit into a %s" % (short_repr(value), name))
        kept = value.quantize(unit, decimal.ROUND_HALF_UP, context)
        if kept != value and not rounded:
            raise too_fine(value, "the %d digits behind the point of a %s" % (scale, name))
        if not -end < kept < end:
            raise BadValue("value", "%s does not fit into a %s" % (short_repr(value), name))
        return format(kept, "f")

    return check


def kind_of(name, rounded):
    """Return how results of a kind are checked and written."""
    digits, tree = digits_of(name), tree_of(name)
    if tree is not None:
        return Kind(None, as_nested(tree), "", write_strings)
    return Kind(None, as_exact(*digits, rounded), "0", write_strings) if digits else KINDS[name]


def write_numbers(code):
    def write(values):
        return [array.array(code, values).tobytes()]

    return write


def write_bools(values):
    return [bytes(values)]


def write_strings(values):
    text = "".join(values)
    blob = text.encode()
    if len(blob) == len(text):
        lengths = map(len, values)
    else:
        lengths = [len(value.encode()) for value in values]
    return [array.array("q", itertools.accumulate(lengths, initial=0)).tobytes(), blob]


class Kind:
    """How results of one kind are checked and written.

    exact is the type that needs no look at single values (None: look always),
    check turns any acceptable value into one of that type or raises BadValue,
    filler stands for NULL and for the value of a failed row.
    """

    def __init__(self, exact, check, filler, write):
        self.exact = exact
        self.check = check
        self.filler = filler
        self.write = write


KINDS = {
    "string": Kind(str, as_str, "", write_strings),
    "int": Kind(int, as_int, 0, write_numbers("q")),
    "float": Kind(float, as_float, 0.0, write_numbers("d")),
    "bool": Kind(bool, as_bool, False, write_bools),
    "cents": Kind(None, as_cents, 0, write_numbers("q")),
    "datetime": Kind(None, as_ms, 0, write_numbers("q")),
    "date": Kind(None, as_day, 0, write_numbers("q")),
    "instant": Kind(None, as_us, 0, write_numbers("q")),
}


def as_whole(value):
    """As as_int, but nothing is cut off: numbers that libraries have made floats count if they are whole."""
    if isinstance(value, float) and math.isfinite(value) and not value.is_integer():
        raise BadValue("value", "%r is not a whole number" % (value,))
    return as_int(value)


def as_nested(tree):
    """Return what checks lists and structs, and makes JSON of them."""
    convert = nested_checker(tree)
    return lambda value: json.dumps(convert(value), ensure_ascii=False)


def nested_checker(tree):
    if isinstance(tree, str):
        digits = digits_of(tree)
        check = as_exact(*digits, False) if digits else EXACT_KINDS.get(tree, KINDS.get(tree)).check
        text = {"bool": lambda flag: "true" if flag else "false", "float": repr}.get(tree, str)
        return lambda value: None if value is None else text(check(value))
    if "list" in tree:
        return list_checker(nested_checker(tree["list"]))
    return struct_checker([(name, nested_checker(inner)) for name, inner in tree["struct"]])


def list_checker(each):
    def check(value):
        if value is None:
            return None
        if isinstance(value, (str, bytes, dict)):
            raise wrong_type("a list", value)
        try:
            values = plain_values(value)
        except BadResult:
            raise wrong_type("a list", value) from None
        return [within("[%d]" % i, each, one) for i, one in enumerate(values)]

    return check


def struct_checker(members):
    names = {name for name, _ in members}

    def check(value):
        if value is None:
            return None
        if not isinstance(value, dict):
            raise wrong_type("a dict", value)
        for name in value:
            if name not in names:
                raise BadValue("type", "its struct has no member %s" % short_repr(name))
        for name in names:
            if name not in value:
                raise BadValue("type", "its member %s is missing" % short_repr(name))
        return {name: within("." + name, convert, value[name]) for name, convert in members}

    return check


def within(place, check, value):
    """Check a value within another, and say of a bad one where it is."""
    try:
        return check(own_scalar(value))
    except BadValue as error:
        text = str(error)
        path, mark, rest = text.partition(" of it: ")
        raise BadValue(error.category, (place + text) if mark and path[0] in ".[" else "%s of it: %s" % (place, text)) from None


NUMBERS = {float, int}  # the types of values that are numbers as they stand


def plain_floats(kind, values, found):
    """Tell whether values are floats as they stand, or become some without a loss where it is to be an error."""
    if kind.exact is not float or not found <= NUMBERS:
        return False
    return kind.check is as_float or -EXACT_INTS <= min(values) <= max(values) <= EXACT_INTS


# What functions over many rows return is not cut or rounded, unless the script says so.
EXACT_KINDS = {
    "int": Kind(int, as_whole, 0, write_numbers("q")),
    "float": Kind(float, as_exact_float, 0.0, write_numbers("d")),
    "cents": Kind(None, as_exact_cents, 0, write_numbers("q")),
    "datetime": Kind(None, as_exact_ms, 0, write_numbers("q")),
}


def write_column(field, values, failed):
    """Return the column's buffers, and (row, field, BadValue, value) of each value that cannot be taken.

    Such a value, and that of a row in failed, is replaced by a filler.
    """
    kind = field.kind
    found = set(map(type, values))
    if found == {kind.exact} or not values or plain_floats(kind, values, found):
        try:
            # A sum is finite only if all of its terms are.
            if kind.exact is not float or math.isfinite(sum(values)):
                return [struct.pack("=Q", 0)] + kind.write(values), []
        except (OverflowError, UnicodeEncodeError, ValueError):
            pass  # the search below says which value it was
    elif kind.check in (as_cents, as_exact_cents) and found <= NUMBERS:
        cents = quick_cents(values, kind.check is as_exact_cents)
        if cents is not None:
            return [struct.pack("=Q", 0)] + kind.write(cents), []
    checked = []
    nulls = bytearray(len(values))
    errors = []
    for row, value in enumerate(values):
        try:
            if row in failed:
                value = kind.filler
            elif value is None:
                if not field.nullable:
                    raise BadValue("none", "the result is None, and the field does not take NULL")
                nulls[row] = 1
                value = kind.filler
            else:
                value = kind.check(value)
        except BadValue as error:
            errors.append((row, field.index, error, value))
            value = kind.filler
        checked.append(value)
    if any(nulls):
        return [struct.pack("=Q", 1), bytes(nulls)] + kind.write(checked), errors
    return [struct.pack("=Q", 0)] + kind.write(checked), errors


# ---------------------------------------------------------------------------
# Programs
# ---------------------------------------------------------------------------


class Field:
    def __init__(self, index, spec):
        self.index = index
        self.name = spec["name"]
        self.expression = spec["expr"]
        self.kind = kind_of(spec["kind"], spec["round"])
        self.nullable = spec["nullable"]
        self.first_line = 0  # of its expression in the generated function


class Program:
    """User code in a module of its own, and the function that computes the fields row by row."""

    def __init__(self, number, spec):
        self.sources = {source["name"]: source["text"] for source in spec["files"]}
        self.readers = [of_kind(READERS, column["kind"]) for column in spec["inputs"]]
        self.inputs = [column["name"] for column in spec["inputs"]]
        self.fields = [Field(i, field) for i, field in enumerate(spec["fields"])]
        self.directory = spec["dir"]
        self.collect = spec["collect"]  # go on after a failed row
        self.module = types.ModuleType("thalweg_program_%d" % number)
        self.run = None
        self.loop_line = 0

    def load(self):
        """Import the user's files, in order and into one module, and compile the expressions."""
        self.show_lines()
        names = self.module.__dict__
        sys.modules[self.module.__name__] = self.module  # dataclasses and pickle look for it there
        for name, text in self.sources.items():
            names["__file__"] = name
            exec(compile(text, name, "exec", dont_inherit=True), names)
        self.run = self.compile_expressions(names)
        if hasattr(gc, "freeze"):
            gc.collect()
            gc.freeze()  # what is imported stays: spare the collector the walk

    def unload(self):
        sys.modules.pop(self.module.__name__, None)

    def show_lines(self):
        """Let tracebacks print lines of the user's files, and of expressions."""
        for name, text in self.sources.items():
            linecache.cache[name] = (len(text), None, text.splitlines(True), name)
        lines = "\n".join(field.expression for field in self.fields)
        linecache.cache[EXPRESSIONS] = (len(lines), None, lines.splitlines(True), EXPRESSIONS)

    def compile_expressions(self, names):
        """Make one function of all expressions: a call for each row would cost more than most of them.

        In it r.x and p.x are local variables called "r.x" and "p.x", with the dot:
        no name in the user's code can be the same.
        """
        line = 1
        assignments = []
        for field in self.fields:
            field.first_line = line
            try:
                value = self.parse_expression(field)
            except (SyntaxError, NameError, ValueError) as error:
                error.thalweg_field = field
                raise
            assign, append = ast.parse("target = 0\nappend_to(target)").body
            assign.value = value
            assign.targets[0].id = append.value.args[0].id = "p." + field.name
            append.value.func.id = "append." + field.name
            for node in (*ast.walk(assign.targets[0]), *ast.walk(append), assign):
                if hasattr(node, "lineno"):
                    ast.copy_location(node, value)
            assignments += [assign, append]
            line += field.expression.count("\n") + 1

        function = ast.parse(
            "def run(progress, rows):\n for row, in zip(rows):\n  progress[0] = row", EXPRESSIONS
        )
        (definition,) = function.body
        (loop,) = definition.body
        ast.increment_lineno(function, line)
        self.loop_line = line  # and above: no expression
        rename = {"progress": ".progress", "rows": ".rows", "row": ".row"}
        for node in ast.walk(function):
            if isinstance(node, ast.Name) and node.id in rename:
                node.id = rename[node.id]
            elif isinstance(node, ast.arg):
                node.arg = rename[node.arg]

        def at_loop(node):
            return ast.fix_missing_locations(ast.copy_location(node, loop))

        for name in self.inputs:
            definition.args.args.append(at_loop(ast.arg("in." + name, None)))
            loop.target.elts.append(at_loop(ast.Name("r." + name, ast.Store())))
            loop.iter.args.append(at_loop(ast.Name("in." + name, ast.Load())))
        for field in self.fields:
            definition.args.args.append(at_loop(ast.arg("append." + field.name, None)))
        # The built-in zip, whatever the user's module calls by that name.
        definition.args.args.append(at_loop(ast.arg(".zip", None)))
        loop.iter.func.id = ".zip"
        loop.body += assignments
        scope = {}
        code = compile(function, EXPRESSIONS, "exec", dont_inherit=True)
        exec(code, names, scope)
        return scope["run"]

    def parse_expression(self, field):
        if "\n" in field.expression:  # lines of an expression need parentheses to belong together
            tree = ast.parse("(\n%s\n)" % field.expression, EXPRESSIONS, mode="eval")
            ast.increment_lineno(tree, -1)
        else:
            tree = ast.parse(field.expression, EXPRESSIONS, mode="eval")
        for node in ast.walk(tree):
            if isinstance(node, (ast.Yield, ast.YieldFrom, ast.Await, ast.NamedExpr)):
                raise SyntaxError("this has no place in a field's expression: %s" % type(node).__name__)
        ast.increment_lineno(tree, field.first_line - 1)
        return References(self, field).visit(tree.body)

    def field_at(self, line):
        """Return the field whose expression has the line in the generated function."""
        found = None
        for field in self.fields:
            if field.first_line <= line < self.loop_line:
                found = field
        return found


class References(ast.NodeTransformer):
    """Turns r.x and p.x into the local variables that hold them."""

    def __init__(self, program, field):
        self.known = {"r": set(program.inputs), "p": {f.name for f in program.fields[: field.index]}}

    def visit_Attribute(self, node):
        owner = node.value
        if isinstance(owner, ast.Name) and owner.id in self.known:
            if node.attr not in self.known[owner.id]:
                raise NameError("%s.%s is not known here" % (owner.id, node.attr))
            return ast.copy_location(ast.Name(owner.id + "." + node.attr, ast.Load()), node)
        return self.generic_visit(node)


# ---------------------------------------------------------------------------
# Functions over many rows
# ---------------------------------------------------------------------------


class MissingModule(Exception):
    """The form of input that the script asks for needs a module that this interpreter does not have."""


class BadResult(Exception):
    """What a function gave back is not a table of the columns that it should have.

    row and column are -1 where it is not about one.
    """

    def __init__(self, bad, column=-1, row=-1, value=None):
        super().__init__(str(bad))
        self.bad = bad
        self.column = column
        self.row = row
        self.value = value


def make_lists(program, columns):
    return {
        name: list(of_kind(LIST_MAKERS, kind)(values)) if nulls is None else with_nulls(of_kind(LIST_MAKERS, kind)(values), nulls)
        for name, kind, nulls, values in columns
    }


def with_nulls(values, nulls):
    return [None if null else value for null, value in zip(nulls, values)]


def decimals_of(cents):
    make, exponent, context = decimal.Decimal, -2, WIDE
    return [make(value).scaleb(exponent, context) for value in cents]


def datetimes_of(ms):
    return [EPOCH + MILLISECOND * value for value in ms]


LIST_MAKERS = {
    "string": lambda values: values,
    "int": lambda values: values,
    "float": lambda values: values,
    "bool": lambda values: values,
    "cents": decimals_of,
    "datetime": datetimes_of,
    "date": dates_of,
    "instant": instants_of,
    "decimal": exact_of,
    "nested": nested_of,
}


def numpy_array(np, kind, values):
    """Return values as an array; those that stand for NULL are still fillers."""
    if kind == "string" or digits_of(kind) or tree_of(kind) is not None:
        array_of_objects = np.empty(len(values), dtype=object)
        for i, value in enumerate(of_kind(LIST_MAKERS, kind)(values)):  # one by one: lists would be taken for dimensions
            array_of_objects[i] = value
        return array_of_objects
    if kind == "bool":
        return np.array(values, dtype=bool)
    numbers = np.array(values, dtype=np.float64 if kind == "float" else np.int64)
    if kind == "cents":
        return numbers / 100  # rounded once: the double nearest to the decimal
    if kind == "datetime":
        return numbers.view("datetime64[ms]")
    if kind == "date":
        return numbers.view("datetime64[D]")
    if kind == "instant":
        return numbers.view("datetime64[us]")
    return numbers


def make_numpy(program, columns):
    np = program.library
    out = {}
    for name, kind, nulls, values in columns:
        values = numpy_array(np, kind, values)
        if nulls is not None:
            values = np.ma.MaskedArray(values, mask=np.frombuffer(nulls, dtype=bool))
        out[name] = values
    return out


def make_pandas(program, columns):
    pd = program.library
    np = importlib.import_module("numpy")
    out = {}
    for name, kind, nulls, values in columns:
        missing = None if nulls is None else np.frombuffer(nulls, dtype=bool)
        if kind == "string":
            series = pd.Series(values if nulls is None else with_nulls(values, nulls), dtype="string")
        elif kind in ("datetime", "instant"):
            series = pd.Series(numpy_array(np, kind, values)).dt.tz_localize("UTC")
        elif kind == "date" or digits_of(kind) or tree_of(kind) is not None:  # as pandas itself has them: objects
            values = of_kind(LIST_MAKERS, kind)(values)
            series = pd.Series(values if nulls is None else with_nulls(values, nulls), dtype=object)
            missing = None
        else:
            series = pd.Series(numpy_array(np, kind, values))
            if missing is not None:
                series = series.astype(PANDAS_NULLABLE[kind])
        if missing is not None and kind != "string":
            series[missing] = pd.NaT if kind in ("datetime", "instant") else pd.NA
        out[name] = series
    return pd.DataFrame(out)


PANDAS_NULLABLE = {"int": "Int64", "float": "Float64", "bool": "boolean", "cents": "Float64"}


def make_polars(program, columns):
    pl = program.library
    types = {
        "string": pl.String,
        "int": pl.Int64,
        "float": pl.Float64,
        "bool": pl.Boolean,
        "cents": pl.Decimal(18, 2),
        "datetime": pl.Datetime("ms", "UTC"),
        "date": pl.Date,
    }
    out = []
    for name, kind, nulls, values in columns:
        digits, tree = digits_of(kind), tree_of(kind)
        values = of_kind(LIST_MAKERS, kind)(values) if kind in ("cents", "date") or digits or tree is not None else list(values)
        if nulls is not None:
            values = with_nulls(values, nulls)
        if kind in ("datetime", "instant"):
            unit = "ms" if kind == "datetime" else "us"
            series = pl.Series(name, values, dtype=pl.Int64).cast(pl.Datetime(unit)).dt.replace_time_zone("UTC")
        elif tree is not None:
            series = pl.Series(name, values, dtype=polars_type(pl, tree))
        elif digits:
            series = pl.Series(name, values, dtype=pl.Decimal(*digits))
        else:
            series = pl.Series(name, values, dtype=types[kind])
        out.append(series)
    return pl.DataFrame(out)


def polars_type(pl, tree):
    if isinstance(tree, dict):
        if "list" in tree:
            return pl.List(polars_type(pl, tree["list"]))
        return pl.Struct({name: polars_type(pl, inner) for name, inner in tree["struct"]})
    if digits_of(tree):
        return pl.Decimal(*digits_of(tree))
    if tree in ("datetime", "instant"):
        return pl.Datetime("ms" if tree == "datetime" else "us", "UTC")
    return {"string": pl.String, "int": pl.Int64, "float": pl.Float64, "bool": pl.Boolean, "date": pl.Date}[tree]


def arrow_type(pa, tree):
    if isinstance(tree, dict):
        if "list" in tree:
            return pa.list_(arrow_type(pa, tree["list"]))
        return pa.struct([(name, arrow_type(pa, inner)) for name, inner in tree["struct"]])
    if digits_of(tree):
        return pa.decimal128(*digits_of(tree))
    if tree in ("datetime", "instant"):
        return pa.timestamp("ms" if tree == "datetime" else "us", tz="UTC")
    return {"string": pa.string(), "int": pa.int64(), "float": pa.float64(), "bool": pa.bool_(), "date": pa.date32()}[tree]


def make_arrow(program, columns):
    pa = program.library
    types = {
        "string": pa.string(),
        "int": pa.int64(),
        "float": pa.float64(),
        "bool": pa.bool_(),
        "cents": pa.decimal128(18, 2),
        "datetime": pa.timestamp("ms", tz="UTC"),
        "instant": pa.timestamp("us", tz="UTC"),
        "date": pa.date32(),
    }
    arrays, names = [], []
    for name, kind, nulls, values in columns:
        digits, tree = digits_of(kind), tree_of(kind)
        if kind == "cents" or kind == "date" or digits or tree is not None:
            values = of_kind(LIST_MAKERS, kind)(values)
        if nulls is not None:
            values = with_nulls(values, nulls)
        elif kind in ("int", "float"):
            values = memoryview(values)
        if tree is not None:
            types[kind] = arrow_type(pa, tree)
        arrays.append(pa.array(values, type=pa.decimal128(*digits) if digits else types[kind]))
        names.append(name)
    return pa.Table.from_arrays(arrays, names=names)


# Form of input -> module that it needs, and what makes it of columns.
INPUT_FORMS = {
    "lists": ("", make_lists),
    "numpy": ("numpy", make_numpy),
    "pandas": ("pandas", make_pandas),
    "polars": ("polars", make_polars),
    "arrow": ("pyarrow", make_arrow),
}


def library_of(value):
    """Return the name of the package that a value's type comes from."""
    return type(value).__module__.partition(".")[0]


def plain_values(value):
    """Return a column as a list of Python's own values, missing ones as None.

    Libraries that write a missing number as NaN mean None by it.
    """
    library = library_of(value)
    if library == "numpy" and hasattr(value, "dtype"):
        return numpy_values(value)
    if library == "pandas" and hasattr(value, "isna"):
        values = list(value)
        missing = list(value.isna())
        return [None if gone else v for v, gone in zip(values, missing)] if any(missing) else values
    if library == "pyarrow" and hasattr(value, "to_pylist"):
        return arrow_values(value)
    if library == "polars" and hasattr(value, "to_list"):
        if value.dtype.is_nested() and "time_unit='ns'" in str(value.dtype):
            raise BadResult("its times within lists and structs have nanoseconds, which would be cut: cast them to microseconds")
        values = value.to_list()
        return with_nanoseconds(values, value.to_physical().to_list()) if getattr(value.dtype, "time_unit", "") == "ns" else values
    if isinstance(value, array.array):
        return value.tolist()
    if isinstance(value, (list, tuple)):
        return list(value)
    raise BadResult("expected a list, a tuple or an array, got %s" % type(value).__name__)


def arrow_values(value):
    kind = str(value.type)
    if not kind.startswith("timestamp[ns"):
        return value.to_pylist()
    pa = sys.modules["pyarrow"]  # which makes Timestamps of pandas of them, or fails where there is no pandas
    coarse = value.cast(pa.timestamp("us", value.type.tz), safe=False).to_pylist()
    return with_nanoseconds(coarse, value.cast(pa.int64()).to_pylist())


def with_nanoseconds(values, nanoseconds):
    """Return datetimes that know whether they have been cut, by the nanoseconds since 1970 that they have been made of."""
    return [
        value if ns is None or not ns % 1000 else fine_time(value, "%s and %d ns" % (value, ns % 1000))
        for value, ns in zip(values, nanoseconds)
    ]


def numpy_times(np, data):
    """Return datetimes in UTC, which those of numpy are in where they say anything: that is how it gets them.

    Units finer than microseconds would become ints.
    """
    coarse = data.astype("datetime64[us]")
    utc = datetime.timezone.utc
    values = [value.replace(tzinfo=utc) if isinstance(value, datetime.datetime) else value for value in coarse.tolist()]
    fine = np.datetime_data(data.dtype)[0] in ("us", "ns", "ps", "fs", "as")
    lost = coarse != data if fine else coarse.astype(data.dtype) != data  # cut, or too far away for microseconds
    for i in np.flatnonzero(lost & ~np.isnat(data)).tolist():
        values[i] = fine_time(values[i], str(data[i])) if fine and isinstance(values[i], datetime.datetime) else data[i]
    return values


def numpy_floats(np, data):
    """Return floats, and as they are those of a wider type that a float does not hold."""
    coarse = data.astype(np.float64)
    values = coarse.tolist()
    if data.dtype.itemsize > 8:
        for i in np.flatnonzero((coarse != data) & ~np.isnan(data)).tolist():
            values[i] = data[i]
    return values


def numpy_values(value):
    if value.ndim != 1:
        raise BadResult("expected one dimension, got an array of %d" % value.ndim)
    np = sys.modules["numpy"]
    data = value.data if isinstance(value, np.ma.MaskedArray) else value
    if value.dtype.kind == "M":
        missing = np.isnat(data)
        values = numpy_times(np, np.asarray(data))
    elif value.dtype.kind == "f":
        missing = np.isnan(data)
        values = numpy_floats(np, np.asarray(data))
    else:
        missing = None
        values = np.asarray(data).tolist()
    if value is not data:
        mask = np.ma.getmaskarray(value)
        missing = mask if missing is None else missing | mask
    if missing is not None and missing.any():
        return [None if gone else v for v, gone in zip(values, missing.tolist())]
    return values


def own_scalar(value):
    """Return a scalar of numpy as Python's own value; others as they are."""
    if library_of(value) == "numpy" and hasattr(value, "dtype") and hasattr(value, "item"):
        np = sys.modules["numpy"]
        if value.dtype.kind == "M":
            return None if np.isnat(value) else numpy_times(np, np.asarray([value]))[0]
        if value.dtype.kind == "f":
            return numpy_floats(np, np.asarray([value]))[0]
        return value.item()
    if library_of(value) == "pandas" and type(value).__name__ in ("NaTType", "NAType"):
        return None
    return value


class TableProgram:
    """User code in a module of its own, and the function that is called with the rows of each group."""

    def __init__(self, number, spec):
        table = spec["table"]
        self.sources = {source["name"]: source["text"] for source in spec["files"]}
        self.inputs = [
            (column["name"], column["kind"], of_kind(TABLE_READERS, column["kind"]), column["nullable"] and table["input"] != "lists")
            for column in spec["inputs"]
        ]
        self.fields = [Field(i, field) for i, field in enumerate(spec["fields"])]
        for field, told in zip(self.fields, spec["fields"]):
            if not told["round"] or told["kind"] == "int":
                field.kind = EXACT_KINDS.get(told["kind"], field.kind)
            elif told["kind"] == "instant":
                field.kind = Kind(None, as_rounded_us, 0, write_numbers("q"))
        self.positions = {field.name: field.index for field in self.fields}
        self.directory = spec["dir"]
        self.module = types.ModuleType("thalweg_program_%d" % number)
        self.form = table["input"]
        self.needs, self.make = INPUT_FORMS[self.form]
        self.library = None
        self.function_name = table["function"]
        self.arguments = table["arguments"]
        self.function = None

    def load(self):
        """Import the module that the input needs, then the user's files, and find the function."""
        self.show_lines()
        if self.needs:
            with unlimited_memory():
                try:
                    self.library = importlib.import_module(self.needs)
                except ImportError as error:
                    raise MissingModule(str(error)) from None
        names = self.module.__dict__
        sys.modules[self.module.__name__] = self.module
        for name, text in self.sources.items():
            names["__file__"] = name
            exec(compile(text, name, "exec", dont_inherit=True), names)
        self.function = names.get(self.function_name)
        if not callable(self.function):
            raise NameError("there is no function %s in the Python files" % self.function_name)
        try:
            signature = inspect.signature(self.function)
        except (TypeError, ValueError):  # a function of another language does not say
            signature = None
        if signature is not None:
            try:
                signature.bind(None, **self.arguments)
            except TypeError as error:
                raise TypeError(
                    "%s cannot be called with the rows and p.arguments: %s" % (self.function_name, error)
                ) from None
        if hasattr(gc, "freeze"):
            gc.collect()
            gc.freeze()

    def unload(self):
        sys.modules.pop(self.module.__name__, None)

    def show_lines(self):
        for name, text in self.sources.items():
            linecache.cache[name] = (len(text), None, text.splitlines(True), name)

    def field_at(self, _line):
        return None

    def call(self, columns):
        """Return the buffers of the function's result for a group: number of rows, then each field's."""
        result = self.function(self.make(self, columns), **self.arguments)
        values, rows = self.columns_of(result)
        buffers = [struct.pack("=Q", rows)]
        if rows == 0:
            return buffers
        for field, column in zip(self.fields, values):
            written, errors = write_column(field, column, ())
            if errors:
                row, index, error, value = errors[0]
                if error.category == "none":
                    error = BadValue("none", "the value is missing (None, NaN or NaT), and the column does not take NULL")
                raise BadResult(error, index, row, value)
            buffers += written
        return buffers

    def columns_of(self, result):
        """Return a result as one list for each field, and the number of its rows."""
        if result is None:
            return None, 0
        library = library_of(result)
        if library in ("pandas", "polars") and type(result).__name__ == "DataFrame":
            named = {str(name): result[name] for name in result.columns}
            if library == "pandas" and len(named) != len(result.columns):
                raise BadResult("two columns of the DataFrame have the same name")
        elif library == "pyarrow" and hasattr(result, "column_names"):
            named = {name: result.column(i) for i, name in enumerate(result.column_names)}
        elif isinstance(result, dict):
            named = result
            if not named:
                return None, 0
        elif isinstance(result, (list, tuple)):
            return self.columns_of_rows(result)
        else:
            raise BadResult(
                "expected a dict of columns, a DataFrame, a Table, a list of dicts or None, got %s" % type(result).__name__
            )
        self.check_names(named, -1)
        columns = []
        for field in self.fields:
            try:
                values = plain_values(named[field.name])
            except BadResult as bad:
                raise BadResult(bad.bad, field.index) from None
            if any(kind.__module__.partition(".")[0] in ("numpy", "pandas") for kind in set(map(type, values))):
                values = list(map(own_scalar, values))
            if columns and len(values) != len(columns[0]):
                raise BadResult(
                    "it has %d values, but column %s has %d" % (len(values), self.fields[0].name, len(columns[0])), field.index
                )
            columns.append(values)
        return columns, len(columns[0])

    def columns_of_rows(self, result):
        for row, names in enumerate(result):
            if not isinstance(names, dict):
                raise BadResult("expected a dict for each row, got %s" % type(names).__name__, -1, row)
            self.check_names(names, row)
        return [[own_scalar(row[field.name]) for row in result] for field in self.fields], len(result)

    def check_names(self, named, row):
        if named.keys() == self.positions.keys():
            return
        for name in named:
            if name not in self.positions:
                raise BadResult("there is a column %s that p.returns does not list" % short_repr(name), -1, row)
        for field in self.fields:
            if field.name not in named:
                raise BadResult("column %s is missing" % field.name, field.index, row)


def read_numbers(code):
    return lambda reader: reader.numbers(code, reader.rows)


TABLE_READERS = {
    "string": read_strings,
    "int": read_numbers("q"),
    "float": read_numbers("d"),
    "bool": read_bools,
    "cents": read_numbers("q"),
    "datetime": read_numbers("q"),
    "date": read_numbers("q"),
    "instant": read_numbers("q"),
    "decimal": read_strings,
    "nested": lambda tree: read_strings,
}


def compute_groups(program, page, payload, groups):
    """Call the function for each group of a chunk. Returns the failures, at most one, and buffers."""
    offset = CHUNK_HEADER.size
    buffers = []
    for group in range(groups):
        page[SLOT_ROW] = group
        try:
            (rows,) = struct.unpack_from("=Q", payload, offset)
            reader = Reader(payload, offset + 8, rows)
            columns = []
            for name, kind, decode, nullable in program.inputs:
                nulls, values = reader.raw_column(decode)
                if nulls is None and nullable:
                    nulls = bytes(rows)  # the type must not depend on the values
                columns.append((name, kind, nulls, values))
            offset = reader.offset
            buffers += program.call(columns)
        except BaseException as error:
            page[SLOT_ROW] = ROW_NONE
            if isinstance(error, (MemoryError, RowTimeout)):
                RESERVE.clear()
                reader = columns = None
            if isinstance(error, BadResult):
                return [describe_bad_result(group, error)], []
            return [describe(program, error, group)], []
    page[SLOT_ROW] = ROW_NONE
    return [], buffers


# ---------------------------------------------------------------------------
# Failures
# ---------------------------------------------------------------------------

_repr = reprlib.Repr()
_repr.maxstring = _repr.maxother = _repr.maxlong = MAX_VALUE_CHARS


def short_repr(value):
    return _repr.repr(value)[:MAX_VALUE_CHARS]


def move(error):
    """Say whose move it is: that of the script's author, of the data's, or of who runs the machine."""
    if isinstance(error, (MemoryError, RowTimeout, RecursionError, NotImplementedError)):
        return "script"
    if isinstance(error, MissingModule):
        return "environment"
    if isinstance(error, (NameError, AttributeError, SyntaxError, ImportError, TypeError, SystemExit)):
        return "script"
    if isinstance(error, OSError):
        return "environment"
    return "user_data"


def category(error):
    for kind, name in ((MemoryError, "memory"), (RowTimeout, "timeout"), (MissingModule, "module")):
        if isinstance(error, kind):
            return name
    return "exception"


def describe(program, error, row):
    """Return the failure of a row, or of loading the program if row is negative."""
    program.show_lines()
    trace = error.__traceback__
    field = None
    while trace is not None and trace.tb_frame.f_code.co_filename != EXPRESSIONS:
        trace = trace.tb_next
    if trace is not None:
        field = program.field_at(trace.tb_lineno)
    else:
        trace = skip_own_frames(error.__traceback__, program)
    field = field or getattr(error, "thalweg_field", None)
    file, line = "", 0
    step = trace
    while step is not None:
        if step.tb_frame.f_code.co_filename in program.sources:
            file, line = step.tb_frame.f_code.co_filename, step.tb_lineno
        if step.tb_next is not None and step.tb_next.tb_frame.f_code is Worker.on_timeout.__code__:
            step.tb_next = None
        step = step.tb_next
    if isinstance(error, SyntaxError) and error.filename in program.sources:
        file, line = error.filename, error.lineno or 0
    lines = traceback.format_exception(type(error), error, trace)
    return {
        "row": row,
        "field": field.index if field else -1,
        "move": move(error),
        "category": category(error),
        "type": type(error).__name__,
        "message": message_of(error),
        "traceback": shorten("".join(lines), MAX_TRACEBACK_CHARS),
        "file": file,
        "line": line,
    }


def skip_own_frames(trace, program):
    while trace is not None and trace.tb_frame.f_code.co_filename not in program.sources:
        trace = trace.tb_next
    return trace


def message_of(error):
    try:
        text = str(error)
    except Exception:  # a user's own exception class may do anything
        text = "(its text cannot be made)"
    return shorten(text, MAX_MESSAGE_CHARS)


def shorten(text, limit):
    """Keep both ends. What cannot be encoded is escaped, as the text travels as UTF-8."""
    text = text.encode("utf-8", "backslashreplace").decode("utf-8")
    if len(text) <= limit:
        return text
    return "%s\n[… %d characters …]\n%s" % (text[: limit // 2], len(text) - limit, text[-limit // 2 :])


def describe_bad_value(row, field, error, value):
    return {
        "row": row,
        "field": field,
        "move": "user_data" if error.category in ("value", "digits") else "script",
        "category": error.category,
        "type": "",
        "message": message_of(error),
        "traceback": "",
        "file": "",
        "line": 0,
        "value": shorten(short_repr(value), MAX_VALUE_CHARS * 2),
    }


def describe_bad_result(group, error):
    bad = error.bad if isinstance(error.bad, BadValue) else BadValue("type", str(error.bad))
    told = describe_bad_value(group, error.column, bad, error.value)
    if error.value is None:
        told["value"] = ""
    told["result_row"] = error.row + 1
    return told


# ---------------------------------------------------------------------------
# What else decides about results
# ---------------------------------------------------------------------------

MAX_MODULE_FILES = 20_000


def report(program, rows, failures):
    """Return the JSON part of an answer. Without rows the question was what the program is."""
    if rows or failures:
        return {"errors": failures}
    return {"errors": failures, "surroundings": surroundings(program)}


def surroundings(program):
    """Return what decides about results beside the program: the interpreter, and what the code imports.

    Of the standard library the interpreter's version says all; of installed packages their names and
    versions; of other modules their contents, and what these import. Imports are found in the text, also
    those inside of functions; what is imported by a computed name is not.
    """
    found = {"python": " ".join((platform.python_implementation(), sys.version, platform.machine()))}
    needs = getattr(program, "needs", None)
    texts = [field.expression for field in program.fields if field.expression] + (["import " + needs] if needs else [])
    todo = [("", text.strip()) for text in texts + list(reversed(list(program.sources.values())))]
    seen = set()
    while todo:
        package, text = todo.pop()
        names, doubt = look_at(text, package)
        if doubt:
            found.setdefault("doubt", doubt)
        for name in sorted(names):
            if name in seen:
                continue
            seen.add(name)
            todo += module(name, found)
    return found


# What gives something else at another time, or reads what nobody knows of: modules, and names of
# functions and attributes. It errs on the side of doubt.
DOUBTFUL_MODULES = frozenset(
    "random secrets uuid socket ssl urllib http ftplib smtplib requests httpx aiohttp subprocess multiprocessing sqlite3 "
    "tempfile fileinput shelve dbm ctypes linecache getpass platform "
    "locale zoneinfo threading concurrent asyncio resource tracemalloc psutil "
    "duckdb psycopg psycopg2 pyodbc pymysql pymongo redis sqlalchemy boto3 botocore fsspec s3fs gcsfs paramiko grpc websockets".split()
)
DOUBTFUL_NAMES = frozenset(
    "open popen system now today utcnow time time_ns monotonic perf_counter localtime gmtime environ getenv urandom getpid "
    "listdir scandir walk glob rglob iterdir stat exists isfile isdir getmtime getsize loadtxt genfromtxt memmap fromfile "
    "random default_rng sample import_module __import__ eval exec "
    "load load_workbook get_data parse getcwd uname getlogin cpu_count getctime getatime lstat fstat access readlink "
    "expanduser expandvars gettz".split()
)
DOUBTFUL_OF_TIME = frozenset("ctime asctime strftime".split())  # of the module time; a date's are not
DOUBTFUL_TEXTS = ("now", "today")  # libraries of data frames read the clock for these
DOUBTFUL_PREFIXES = ("read_", "scan_")  # of the libraries of data frames, and of pathlib


def doubtful(name):
    return name in DOUBTFUL_NAMES or name.startswith(DOUBTFUL_PREFIXES)


def look_at(text, package):
    """Return the names of the modules that a text imports, as far as it says so, and what in it may give something else each time."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return set(), "code that cannot be read"
    names = set()
    doubt = ""
    for node in ast.walk(tree):
        name = ""
        if isinstance(node, ast.Import):
            tops = [alias.name.partition(".")[0] for alias in node.names]
            names.update(tops)
            name = next((part for alias in node.names for part in alias.name.split(".") if part in DOUBTFUL_MODULES), "")
        elif isinstance(node, ast.ImportFrom):
            if not node.level and node.module:
                top = node.module.partition(".")[0]
                names.add(top)
                name = next((part for part in node.module.split(".") if part in DOUBTFUL_MODULES), "")
            whole = node.module == "datetime"  # its time is a type
            name = name or next((alias.name for alias in node.names if doubtful(alias.name) and not (whole and alias.name == "time")), "")
            if node.module == "time":
                name = name or next((alias.name for alias in node.names if alias.name in DOUBTFUL_OF_TIME), "")
        elif isinstance(node, ast.Attribute):
            of_time = isinstance(node.value, ast.Name) and node.value.id == "time" and node.attr in DOUBTFUL_OF_TIME
            name = node.attr if of_time or doubtful(node.attr) else ""
        elif isinstance(node, ast.Call):
            given = node.args + [keyword.value for keyword in node.keywords]
            name = "id" if isinstance(node.func, ast.Name) and node.func.id == "id" else ""  # an address in memory
            name = name or next((each.value for each in given if isinstance(each, ast.Constant) and each.value in DOUBTFUL_TEXTS), "")
        elif isinstance(node, ast.Name):
            name = node.id if node.id in ("open", "eval", "exec", "__import__") else ""
        if name and not doubt:
            doubt = "%s (line %d)" % (name, node.lineno)
    names.discard(package)  # all files of a package are looked at together
    return names, doubt


def module(name, found):
    """Note a module by its top-level name, and return the texts in it that may import others."""
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError, AttributeError):
        spec = None
    if spec is None:
        found["module " + name] = "not there"
        return []
    folders = list(spec.submodule_search_locations or [])
    if not folders and (not spec.has_location or not spec.origin):
        return []  # built in
    places = folders or [spec.origin]
    if all(standard(place) for place in places):
        return []
    if all(installed(place) for place in places):
        found["packages"] = packages()
        found["version " + name] = version(name, os.path.dirname(places[0])) or contents_of(places, folders)
        if folders:
            found["module " + name] = identity(files_of(folders), False)
            return []
    files = files_of(folders) if folders else [spec.origin]
    found["module " + name] = identity(files, True)
    texts = []
    for path in files:
        if path.endswith(".py"):
            with contextlib.suppress(OSError, UnicodeDecodeError):
                with open(path, encoding="utf-8") as file:
                    texts.append((name, file.read()))
    return texts


def version(name, folder):
    """Return which version of which package a module is of, as what installed it says beside it; "" if nothing does."""
    records = []
    with contextlib.suppress(OSError):
        records = sorted(entry for entry in os.listdir(folder) if entry.endswith(".dist-info"))
    for entry in records:
        package, _, number = entry[: -len(".dist-info")].partition("-")
        if package.lower().replace("-", "_") == name.lower():
            return package + " " + number
    for entry in records:
        package, _, number = entry[: -len(".dist-info")].partition("-")
        if name in lines_of(os.path.join(folder, entry, "top_level.txt")):
            return package + " " + number
        tops = (name + "/", name + ".py,", name + ".cpython", name + ".abi3")
        if any(line.startswith(tops) for line in lines_of(os.path.join(folder, entry, "RECORD"))):
            return package + " " + number
    return ""


def lines_of(path):
    with contextlib.suppress(OSError, UnicodeDecodeError):
        with open(path, encoding="utf-8") as file:
            return file.read().splitlines()
    return []


def contents_of(places, folders):
    """Return what tells a module from others wherever it is installed."""
    root = os.path.dirname(places[0])
    parts = []
    for path in files_of(folders) if folders else places:
        with contextlib.suppress(OSError):
            parts.append("%s %d" % (os.path.relpath(path, root), os.stat(path).st_size))
    return digest(parts)


def standard(path):
    return path.startswith(os.path.dirname(os.__file__) + os.sep) and not installed(path)


def installed(path):
    return "site-packages" in path.split(os.sep) or "dist-packages" in path.split(os.sep)


def packages():
    """Return what is installed: pip and its like name a directory by package and version."""
    names = []
    for folder in sys.path:
        with contextlib.suppress(OSError):
            names += [name for name in os.listdir(folder) if name.endswith((".dist-info", ".egg-info", ".egg-link", ".pth"))]
    return digest(sorted(names))


def files_of(folders):
    files = []
    for folder in folders:
        for place, below, names in os.walk(folder):
            below[:] = sorted(each for each in below if each != "__pycache__")
            files += [os.path.join(place, name) for name in sorted(names) if not name.endswith(".pyc")]
            if len(files) > MAX_MODULE_FILES:
                return files[:MAX_MODULE_FILES]
    return files


def identity(files, contents):
    """Return what tells files from others: their contents, or their sizes and times."""
    parts = []
    for path in files:
        try:
            status = os.stat(path)
            parts.append("%s %d" % (path, status.st_size))
            if contents:
                with open(path, "rb") as file:
                    parts.append(digest([file.read().hex()]))
            else:
                parts.append(str(status.st_mtime_ns))
        except OSError as error:
            parts.append("%s %s" % (path, error.errno))
    return digest(parts)


def digest(parts):
    import hashlib  # only here: importing it takes longer than most programs

    return hashlib.sha256("\n".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]


# ---------------------------------------------------------------------------
# The loop
# ---------------------------------------------------------------------------


class Worker:
    def __init__(self, settings):
        self.requests = os.fdopen(settings["requests_fd"], "rb", buffering=1 << 16)
        self.responses = settings["responses_fd"]
        self.page = open_page(settings["progress_fd"])
        self.crash_fd = settings["crash_fd"]
        self.unit = "row"  # what the page counts, once the program is imported
        self.pid = os.getpid()
        self.programs = {}  # number -> Program, or its description until it is loaded
        self.directory = ""  # of the last program

    def watch(self):
        """Make the pool's signals work: one asks the running row to stop, the other only shows where it is."""
        faulthandler.enable(file=self.crash_fd)
        if hasattr(faulthandler, "register"):
            faulthandler.register(signal.SIGUSR2, file=self.crash_fd, all_threads=True)
        else:
            signal.signal(signal.SIGUSR2, signal.SIG_IGN)
        signal.signal(signal.SIGUSR1, self.on_timeout)

    def on_timeout(self, _number, frame):
        page = self.page
        accused = (page[SLOT_ACCUSED_SEQUENCE], page[SLOT_ACCUSED_ROW])
        if accused != (page[SLOT_SEQUENCE], page[SLOT_ROW]):
            return  # the row has ended meanwhile
        # If the row does not care for the exception, this is what there is to see of it.
        os.write(self.crash_fd, stack_text(frame).encode("utf-8", "replace"))
        step = "its import" if accused[1] == ROW_IMPORT else "one " + self.unit
        raise RowTimeout("the time for %s is over" % step)

    def send(self, kind, buffers):
        if os.getpid() != self.pid:
            os._exit(1)  # a child that a formula has forked and let go on: its answers would be taken for ours
        size = sum(map(len, buffers))
        head = HEADER.pack(kind, size)
        if size < 1 << 20:
            buffers = (b"".join((head, *buffers)),)
        else:
            buffers = (head, *buffers)
        for buffer in buffers:
            view = memoryview(buffer)
            while view:
                view = view[os.write(self.responses, view) :]

    def serve(self, room):
        read = self.requests.read
        self.page[SLOT_ROW] = ROW_NONE
        hello = {
            "version": list(sys.version_info[:3]),
            "implementation": platform.python_implementation(),
            "pid": self.pid,
            **room,
        }
        self.send(MSG_HELLO, [json.dumps(hello).encode()])
        if room["too_small"]:
            return  # the pool says so
        while True:
            head = read(HEADER.size)
            if len(head) < HEADER.size:
                return  # the pool has closed its end
            kind, size = HEADER.unpack(head)
            payload = read(size)
            if len(payload) < size:
                return
            if kind == MSG_CHUNK:
                self.send(MSG_RESULT, self.chunk(payload))
            elif kind == MSG_PROGRAM:
                (number,) = PROGRAM_HEADER.unpack_from(payload)
                self.programs[number] = json.loads(payload[PROGRAM_HEADER.size :])
            elif kind == MSG_FORGET:
                (number,) = PROGRAM_HEADER.unpack_from(payload)
                program = self.programs.pop(number, None)
                if isinstance(program, (Program, TableProgram)):
                    program.unload()
            flush_prints()

    def chunk(self, payload):
        began = time.perf_counter_ns()
        number, sequence, rows = CHUNK_HEADER.unpack_from(payload)
        page = self.page
        page[SLOT_ROW] = ROW_IMPORT
        page[SLOT_SEQUENCE] = sequence
        self.unit = "row"
        fresh = isinstance(self.programs[number], dict)
        program, failure = self.enter(number)
        loaded = time.perf_counter_ns() if fresh else began
        if failure:
            page[SLOT_ROW] = ROW_NONE
            return result(sequence, began, loaded, 0, {"load_error": failure}, [])
        page[SLOT_ROW] = ROW_NONE
        if isinstance(program, TableProgram):
            self.unit = "call"
            failures, buffers = compute_groups(program, page, payload, rows)
            return result(sequence, began, loaded, 0 if failures else rows, report(program, rows, failures), buffers)
        columns = []
        try:
            reader = Reader(payload, CHUNK_HEADER.size, rows)
            for decode in program.readers:
                columns.append(reader.column(decode))
            failures, buffers = compute(program, page, columns, rows)
        except (MemoryError, RowTimeout) as error:
            RESERVE.clear()
            columns = None
            failures, buffers = [describe(program, error, 0)], []
        page[SLOT_ROW] = ROW_NONE
        return result(sequence, began, loaded, rows if buffers else 0, report(program, rows, failures), buffers)

    def enter(self, number):
        """Return the program, loaded and in its directory, and None, or None and why that cannot be."""
        program = spec = self.programs[number]
        if isinstance(spec, dict):
            program = TableProgram(number, spec) if spec["table"] else Program(number, spec)
        try:
            if program.directory and program.directory != self.directory:
                os.chdir(program.directory)
                self.directory = program.directory
            if program is not spec:
                program.load()
        except BaseException as error:  # sys.exit() at the top of a file must not end the worker
            if program is not spec:
                program.unload()
            return None, describe(program, error, -1)
        self.programs[number] = program
        return program, None


def compute(program, page, columns, rows):
    """Run the formulas over the rows.

    Returns the failures in the order of rows, and the buffers of all columns. Without
    program.collect there is at most one failure, the first. Buffers are missing when
    nothing is to be done with them: a failure ends the run.
    """
    outs = [[] for _ in program.fields]
    appends = [out.append for out in outs]
    whole = columns
    failures = {}  # row -> description
    fatal = None
    start = 0
    while start < rows:
        try:
            program.run(page, range(start, rows), *columns, *appends, zip)
            break
        except BaseException as error:  # SystemExit, RowTimeout and the like are failures of the row, too
            row = page[SLOT_ROW]
            page[SLOT_ROW] = ROW_NONE
            if isinstance(error, (MemoryError, RowTimeout)):
                RESERVE.clear()
                fatal = describe(program, error, row)
                failures[row] = fatal
            else:
                failures[row] = describe(program, error, row)
            if not program.collect:
                failures[row]["value"] = row_values(program, failures[row]["field"], columns, row - start)
        for out, field in zip(outs, program.fields):
            del out[row:]
            out.append(field.kind.filler)
        if fatal or not program.collect:
            break
        columns = [column[row + 1 - start :] for column in columns]
        start = row + 1
    page[SLOT_ROW] = ROW_NONE
    if fatal and program.collect:
        return [fatal], []

    buffers = []
    raised = set(failures)
    for out, field in zip(outs, program.fields):
        written, errors = write_column(field, out, raised)
        buffers += written
        for row, index, error, value in errors:
            failures.setdefault(row, describe_bad_value(row, index, error, value))
    ordered = [failures[row] for row in sorted(failures)]
    if ordered and not program.collect:
        first = ordered[0]
        if first["field"] >= 0 and "value" in first and first["category"] in ("type", "value", "digits", "none"):
            first["given"] = row_values(program, first["field"], whole, first["row"])
        return ordered[:1], []
    return ordered, buffers


def row_values(program, field, columns, row):
    """Show the columns of a row that an expression names, or all of them."""
    expression = program.fields[field].expression if field >= 0 else ""
    shown = [(name, column) for name, column in zip(program.inputs, columns) if "r." + name in expression]
    try:
        text = ", ".join("r.%s = %s" % (name, short_repr(column[row])) for name, column in shown)
    except BaseException:  # the failure itself is told, whatever its row is like
        return ""
    return shorten(text, MAX_VALUE_CHARS * 2)


def stack_text(frame):
    """Return a stack as faulthandler writes it; PyPy's own does not know the lines."""
    lines = [STACK_TITLE]
    while frame is not None and len(lines) < 100:
        code = frame.f_code
        lines.append('  File "%s", line %d in %s' % (code.co_filename, frame.f_lineno, code.co_name))
        frame = frame.f_back
    return "\n".join(lines) + "\n"


def result(sequence, began, loaded, rows, report, buffers):
    # Only a chunk that cannot be used, or one with failed rows, has anything to say.
    text = json.dumps(report).encode() if any(report.values()) else b""
    busy = time.perf_counter_ns() - loaded
    return [RESULT_HEADER.pack(sequence, busy, loaded - began, rows, len(text)), text, *buffers]


def flush_prints():
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:  # closed or replaced by a formula: its own affair
            pass


def open_page(descriptor):
    """Map the page shared with the pool as a sequence of 64-bit integers."""
    page = mmap.mmap(descriptor, PAGE_BYTES)
    if platform.python_implementation() == "PyPy" and importlib.util.find_spec("_cffi_backend"):
        # A store through a memoryview takes PyPy about a hundred times longer.
        import _cffi_backend as cffi

        integers = cffi.new_array_type(cffi.new_pointer_type(cffi.new_primitive_type("int64_t")), None)
        return cffi.from_buffer(integers, page)
    return memoryview(page).cast("q")


def limit_memory(size):
    """Let allocation fail before the machine runs out. A core file of a crash would fill the disk.

    Returns the limit, what is mapped already, and whether that leaves too little to work with: then
    there is no limit, so that it can be said.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    mapped = mapped_bytes()
    room = {"mapped": mapped, "limit": 0, "too_small": False}
    if not size:
        return room
    if platform.python_implementation() == "PyPy":
        # Its collector keeps to PYPY_GC_MAX, which the pool has set to size, and cannot bear
        # that the system refuses memory. It moves objects, so it needs room for two.
        size *= 2
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    if hard != resource.RLIM_INFINITY:
        size = min(size, hard)  # somebody else's limit
    room["limit"] = size
    room["too_small"] = mapped + LEAST_ROOM_BYTES > size
    if not room["too_small"]:
        resource.setrlimit(resource.RLIMIT_AS, (size, hard))  # soft: see unlimited_memory
        RESERVE.extend(bytes(RESERVE_BYTES))
    return room


@contextlib.contextmanager
def unlimited_memory():
    """Let a library be imported, and raise the limit by the address space that it has mapped.

    Some map gigabytes that they never touch.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    before = mapped_bytes()
    if soft == resource.RLIM_INFINITY or not before:
        yield
        return
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
    try:
        yield
    finally:
        grown = max(mapped_bytes() - before, 0)
        limit = soft + grown
        if hard != resource.RLIM_INFINITY:
            limit = min(limit, hard)
        resource.setrlimit(resource.RLIMIT_AS, (limit, hard))


def mapped_bytes():
    """Return the size of this process's address space; 0 if the system does not say."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[0]) * resource.getpagesize()
    except (OSError, ValueError):
        return 0


def main():
    settings = json.loads(sys.argv[1])
    sys.argv = ["thalweg"]
    sys.path[:] = [folder for folder in sys.path if folder]  # no modules from the current directory
    worker = Worker(settings)
    worker.watch()
    worker.serve(limit_memory(settings["memory_bytes"]))


if __name__ == "__main__":  # the package for Python (python/) imports this file, for tests of formulas
    main()
