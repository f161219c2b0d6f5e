"""The client: calls the program, and gives what it says as values."""

from __future__ import annotations

import contextlib
import datetime
import decimal
import importlib
import json
import numbers
import os
import queue
import signal
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, Callable, Iterator, List, Mapping, Optional, Sequence, Tuple, Type, Union

from ._errors import BugError, Problem, ScriptError, ThalwegError, error_of
from ._program import VERSION, find_program

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

AnyPath = Union[str, "os.PathLike[str]"]
One = Union[AnyPath, int, float, bool, decimal.Decimal, datetime.date]
Param = Union[One, Sequence[One]]

END_SECONDS = 30.0  # that a command has to end when it is interrupted, before it is killed
AGAIN_SECONDS = 5.0  # after which it is interrupted again; one that has heard it needs two at most
QUERY_BYTES_MAX = 1 << 20  # the program's own limit


@dataclass(frozen=True)
class Validation:
    """What is wrong with a script, or may be."""

    ok: bool
    nodes: int
    problems: Tuple[Problem, ...]


@dataclass(frozen=True)
class Event:
    """What a run has just done. `data` has all of it."""

    kind: str
    node: str = ""
    batch: int = -1
    data: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class NodeResult:
    name: str
    type: str
    status: str
    batches: int
    rows_in: int
    rows_out: int
    rows_bad: int
    bytes_out: int
    warnings: Tuple[str, ...] = ()
    reused_from: Optional[int] = None  # the run whose rows were taken over


@dataclass(frozen=True)
class OutputFile:
    url: str
    node: str
    rows: int
    bytes: int


@dataclass(frozen=True)
class RunResult:
    """A run that is over."""

    run: int
    workspace: str
    status: str
    elapsed: datetime.timedelta
    nodes: Tuple[NodeResult, ...]
    files: Tuple[OutputFile, ...]
    data: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class RunInfo:
    """A run as the history has it."""

    run: int
    workspace: str
    status: str
    script: str
    created: datetime.datetime
    finished: Optional[datetime.datetime]
    rows: int
    bytes: int
    data: Mapping[str, Any] = field(default_factory=dict, repr=False)


class Thalweg:
    """Runs scripts of one state directory or cluster, and reads their tables.

    state, cluster, workspace and env are those of the command line; where they are not
    given, the program's own rules hold: THALWEG_STATE, THALWEG_ENV, `.thalweg` of the
    working directory. cwd is the directory that relative names are seen from; variables
    are added to the environment.
    """

    def __init__(
        self,
        state: Optional[AnyPath] = None,
        *,
        cluster: Optional[AnyPath] = None,
        workspace: Optional[str] = None,
        env: Optional[str] = None,
        cwd: Optional[AnyPath] = None,
        variables: Optional[Mapping[str, str]] = None,
        program: Optional[AnyPath] = None,
    ) -> None:
        self.program = os.fspath(program) if program is not None else find_program()
        self.cwd = None if cwd is None else os.fspath(cwd)
        self._environment = None if variables is None else {**os.environ, **variables}
        self._env = ["--env", env] if env is not None else []
        self._state = ["--state", os.fspath(state)] if state is not None else []
        if cluster is not None:
            self._state += ["--cluster", os.fspath(cluster)]
        if workspace is not None:
            self._state += ["--workspace", workspace]

    def version(self) -> str:
        """Return the program's version."""
        return str(self._json(["version", "--json"])["version"])

    def validate(self, script: AnyPath, *, params: Optional[Mapping[str, Param]] = None, connect: bool = False) -> Validation:
        """Return all problems of a script. A script that is wrong is no exception here."""
        args = ["validate", "--json", *self._env, *_params(params)] + (["--connect"] if connect else [])
        said = self._json([*args, "--", os.fspath(script)], codes=(0, 2))
        return Validation(bool(said["ok"]), int(said["nodes"]), tuple(Problem.of(p) for p in said["diagnostics"]))

    def run(
        self,
        script: AnyPath,
        *,
        params: Optional[Mapping[str, Param]] = None,
        on_event: Optional[Callable[[Event], None]] = None,
        flags: Sequence[str] = (),
        timeout: Optional[float] = None,
    ) -> RunResult:
        """Run a script until it is over. A run that fails is an exception.

        flags are further ones of the command line, e.g. ["--memory", "2GB", "--fresh"].
        After timeout seconds, and when on_event raises, the run is interrupted.
        """
        with self.start(script, params=params, flags=flags) as run:
            return run.wait(timeout=timeout, on_event=on_event)

    def start(self, script: AnyPath, *, params: Optional[Mapping[str, Param]] = None, flags: Sequence[str] = ()) -> "Run":
        """Begin a run, and return while it works. Leaving the `with` block interrupts one that is not over."""
        return self._begin(["run", "--json", *self._env, *self._state, *_params(params), *flags, "--", os.fspath(script)])

    def resume(
        self, run: int, *, flags: Sequence[str] = (), on_event: Optional[Callable[[Event], None]] = None, timeout: Optional[float] = None
    ) -> RunResult:
        """Go on with a run that was stopped or has failed, from its own sources, until it is over."""
        return self._again("resume", run, flags, on_event, timeout)

    def retry(
        self, run: int, *, flags: Sequence[str] = (), on_event: Optional[Callable[[Event], None]] = None, timeout: Optional[float] = None
    ) -> RunResult:
        """Do again what failed in a run, in a new one where the script or its inputs have changed."""
        return self._again("retry", run, flags, on_event, timeout)

    def _again(
        self, verb: str, run: int, flags: Sequence[str], on_event: Optional[Callable[[Event], None]], timeout: Optional[float]
    ) -> RunResult:
        with self._begin([verb, "--json", *self._env, *self._state, *flags, "--", str(run)]) as again:
            return again.wait(timeout=timeout, on_event=on_event)

    def stop(self, run: int, *, reason: str = "") -> None:
        """Stop a run, whichever processes work on it. One that was begun here is stopped by `Run.interrupt`, too."""
        self._json(["stop", "--json", *self._env, *self._state, *(["--reason", reason] if reason else []), "--", str(run)])

    def history(self, limit: int = 20) -> List[RunInfo]:
        """Return the latest runs, the last of them last."""
        said = self._json(["history", "--json", "--limit", str(limit), *self._env, *self._state])
        return [_run_info(one) for one in said]

    def arrow(self, query: str, *, memory: Optional[str] = None, timeout: Optional[float] = None) -> "pyarrow.Table":
        """Return all rows of a query as an Arrow table, with the types that they have."""
        _need("pyarrow.parquet")
        import pyarrow.parquet

        with self._parquet(query, memory, timeout) as path:
            table: "pyarrow.Table" = pyarrow.parquet.read_table(path, memory_map=False)
        # What is left of Parquet says nothing about the rows.
        return table.replace_schema_metadata(None)

    def batches(
        self, query: str, *, rows: int = 65536, memory: Optional[str] = None, timeout: Optional[float] = None
    ) -> Iterator["pyarrow.RecordBatch"]:
        """Give the rows of a query in batches of Arrow, at most so many rows each: for what is larger than memory.

        They lie in a temporary file until the last is given, or the iterator is closed.
        """
        _need("pyarrow.parquet")
        import pyarrow.parquet

        with self._parquet(query, memory, timeout) as path, pyarrow.parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=rows):
                yield pyarrow.RecordBatch.from_arrays(batch.columns, schema=batch.schema.remove_metadata())

    def pandas(self, query: str, *, memory: Optional[str] = None, timeout: Optional[float] = None) -> "pandas.DataFrame":
        """Return all rows of a query as a DataFrame of Arrow's types: decimals, dates and missing values stay what they are."""
        _need("pandas")
        import pandas

        frame: "pandas.DataFrame" = self.arrow(query, memory=memory, timeout=timeout).to_pandas(types_mapper=pandas.ArrowDtype)
        return frame

    def polars(self, query: str, *, memory: Optional[str] = None, timeout: Optional[float] = None) -> "polars.DataFrame":
        """Return all rows of a query as a DataFrame of polars."""
        _need("polars")
        import polars

        with self._parquet(query, memory, timeout) as path:
            frame: "polars.DataFrame" = polars.read_parquet(path, memory_map=False)
        return frame

    def table(self, name: str, *, run: Optional[int] = None) -> "pyarrow.Table":
        """Return a table of the last run that completed it, or of one run."""
        return self.arrow("FROM %s%s" % ("" if run is None else "run%d." % run, quote(name)))

    @contextlib.contextmanager
    def _parquet(self, query: str, memory: Optional[str], timeout: Optional[float]) -> Iterator[str]:
        data = query.encode()
        if len(data) > QUERY_BYTES_MAX:
            raise ValueError("the query is longer than %d bytes" % QUERY_BYTES_MAX)
        with tempfile.TemporaryDirectory(prefix="thalweg-") as folder:
            path = str(Path(folder) / "rows.parquet")
            args = ["sql", "--json", "--format", "parquet", "-o", path, *self._env, *self._state]
            if memory is not None:
                args += ["--memory", memory]
            self._call([*args, "--", "-"], data, timeout=timeout)
            yield path

    def _json(self, args: Sequence[str], codes: Tuple[int, ...] = (0,)) -> Any:
        said = self._call(args, codes=codes)
        try:
            return json.loads(said)
        except ValueError:
            text = said.decode("utf-8", "replace").strip()
            raise BugError("%s answers %s with what this package does not know: is it thalweg %s?" % (self.program, args[0], VERSION), detail=text) from None

    def _call(self, args: Sequence[str], data: bytes = b"", codes: Tuple[int, ...] = (0,), timeout: Optional[float] = None) -> bytes:
        with subprocess.Popen(
            [self.program, *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=self.cwd, env=self._environment
        ) as process:
            try:
                said, words = process.communicate(data, timeout)
            except subprocess.TimeoutExpired:
                _end(process, lambda seconds: process.communicate(timeout=seconds))
                raise TimeoutError("thalweg %s has not ended after %s s" % (args[0], timeout)) from None
            except BaseException:
                _end(process, lambda seconds: process.communicate(timeout=seconds))
                raise
        if process.returncode not in codes or (process.returncode and not said):
            raise error_of(*_failure(words), exit_code=process.returncode)
        return said

    def _begin(self, args: Sequence[str]) -> "Run":
        return Run([self.program, *args], self.cwd, self._environment)


class Run:
    """A run that works in a process of its own."""

    def __init__(self, args: Sequence[str], cwd: Optional[str], environment: Optional[Mapping[str, str]]) -> None:
        self.number = 0  # until it has begun
        self._last: Mapping[str, Any] = {}
        self._said = b""  # of them, behind the end
        self._words: IO[bytes] = tempfile.TemporaryFile()
        # A session of its own: Ctrl-C is passed on by who waits, once.
        self._process = subprocess.Popen(
            args, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self._words, cwd=cwd, env=environment, start_new_session=True
        )
        self._lines: "queue.Queue[Optional[bytes]]" = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def events(self, timeout: Optional[float] = None) -> Iterator[Event]:
        """Give what the run does, as it does it, until it is over. Raises TimeoutError after so many seconds."""
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            try:
                line = self._lines.get(timeout=None if end is None else max(0.0, end - time.monotonic()))
            except queue.Empty:
                raise TimeoutError("the run is not over after %s s" % timeout) from None
            if line is None:
                self._lines.put(None)
                return
            try:
                said = json.loads(line)
            except ValueError:  # the program was killed within a line: how it ended says more
                continue
            self.number = int(said.get("run") or self.number)
            if said["event"] == "run_finished":
                self._last = said
            yield Event(str(said["event"]), str(said.get("node", "")), int(said.get("batch", -1)), said)

    def wait(self, timeout: Optional[float] = None, on_event: Optional[Callable[[Event], None]] = None) -> RunResult:
        """Wait until the run is over. Raises what it failed with, or TimeoutError: then it still works."""
        for event in self.events(timeout):
            if on_event is not None:
                on_event(event)
        code = self._process.wait()
        if code != 0:
            raise self._error(code)
        return _run_result(self._last)

    def interrupt(self) -> None:
        """Ask the run to stop, as Ctrl-C does. What it has committed is kept."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)

    def _error(self, code: int) -> ThalwegError:
        if not self._words.closed:
            self._words.seek(0)
            self._said = self._words.read()
        return error_of(*_failure(self._said), exit_code=code, run=self.number)

    def __enter__(self) -> "Run":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        _end(self._process, self._process.wait)
        self._reader.join()
        assert self._process.stdout is not None
        self._process.stdout.close()
        if not self._words.closed:
            self._words.seek(0)
            self._said = self._words.read()
            self._words.close()


def _end(process: "subprocess.Popen[bytes]", wait: Callable[[float], object]) -> None:
    """End a command as Ctrl-C does, so that it leaves nothing behind. One that does not end is killed.

    An interruption that comes before the program is ready for one is lost if this process was started to
    ignore them, as a shell does behind &: so it is repeated.
    """
    until = time.monotonic() + END_SECONDS
    while process.poll() is None:
        process.send_signal(signal.SIGINT)
        try:
            wait(min(AGAIN_SECONDS, END_SECONDS))
        except subprocess.TimeoutExpired:
            if time.monotonic() >= until:
                process.kill()
                process.wait()


def quote(name: str) -> str:
    """Return a name as SQL writes it."""
    return '"%s"' % name.replace('"', '""')


def _failure(said: bytes) -> Tuple[Optional[Mapping[str, Any]], str]:
    """Return the failure of a command with --json, its last line of standard error, and all that it printed."""
    text = said.decode("utf-8", "replace").strip()
    try:
        last = json.loads(text.rpartition("\n")[2])
        return last["error"], text
    except (ValueError, KeyError, TypeError):
        return None, text


def _params(params: Optional[Mapping[str, Param]]) -> List[str]:
    args: List[str] = []
    for name, value in (params or {}).items():
        args += ["--param", "%s=%s" % (name, _text(name, value))]
    return args


def _text(name: str, value: Param) -> str:
    if isinstance(value, (list, tuple)):
        texts = [_text(name, one) for one in value]
        if any("," in text for text in texts):
            raise ValueError("parameter %s: commas separate the values of a list; write this one into a file of parameters" % name)
        return ",".join(texts)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime.datetime):
        return value.isoformat(" ")
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, numbers.Integral):  # numpy's, too
        return str(int(value))
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, decimal.Decimal):
        return format(value, "f")  # without an exponent
    if isinstance(value, (float, datetime.date)):
        return str(value)
    raise TypeError("parameter %s: a value cannot be of type %s" % (name, type(value).__name__))


def _run_result(said: Mapping[str, Any]) -> RunResult:
    nodes = [
        NodeResult(
            name=n["node"],
            type=n["type"],
            status=n["status"],
            batches=n["batches"],
            rows_in=n["rows_in"],
            rows_out=n["rows_out"],
            rows_bad=n["rows_bad"],
            bytes_out=n["bytes_out"],
            warnings=tuple(n.get("warnings") or ()),
            reused_from=(n.get("reused_from") or {}).get("run"),
        )
        for n in said["nodes"]
    ]
    files = [OutputFile(f["url"], f["node"], f["rows"], f["bytes"]) for f in said["files"] or () if not f.get("manifest")]
    elapsed = datetime.timedelta(milliseconds=said["elapsed_ms"])
    return RunResult(said["run"], said["workspace"], said["status"], elapsed, tuple(nodes), tuple(files), said)


def _run_info(said: Mapping[str, Any]) -> RunInfo:
    finished = said.get("finished")
    return RunInfo(
        run=said["run"],
        workspace=said["workspace"],
        status=said["status"],
        script=said.get("script", ""),
        created=_moment(said["created"]),
        finished=_moment(finished) if finished else None,
        rows=said.get("rows", 0),
        bytes=said.get("bytes", 0),
        data=said,
    )


def _moment(text: str) -> datetime.datetime:
    """Read a moment in UTC with any number of digits behind the second."""
    whole, _, digits = text.rstrip("Z").partition(".")
    micros = int((digits + "000000")[:6])
    return datetime.datetime.strptime(whole, "%Y-%m-%dT%H:%M:%S").replace(microsecond=micros, tzinfo=datetime.timezone.utc)


def _need(name: str) -> None:
    """Say which extra has a package, if it is not there."""
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = error.name or name
        extra = "arrow" if missing.startswith("pyarrow") else missing
        raise ScriptError("there is no package %s" % missing, exit_code=2, hint="install thalweg[%s]" % extra) from None
