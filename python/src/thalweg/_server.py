"""A client of a server: the same names as the client of the program, over HTTP."""

from __future__ import annotations

import contextlib
import http.client
import ipaddress
import json
import os
import shutil
import ssl
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, Callable, Dict, Iterator, List, Mapping, Optional, Type

from ._client import Event, Param, RunInfo, RunResult, Validation, _need, _run_info, _run_result, _text
from ._errors import BugError, InterruptedRun, MachineError, Problem, ScriptError, ThalwegError, WaitingRun, error_of

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

REQUEST_SECONDS = 120.0
ANSWER_BYTES_MAX = 256 << 20
REPEATS = 3  # of an order whose answer was lost
PAUSE_SECONDS = (0.1, 1.0)  # between two looks at a run: the first, and the longest
EVENTS_PAGE = 1000
TOKENS_BYTES_MAX = 1 << 20


class Server:
    """Runs the scripts that a server has, and reads its tables.

    token is one of yours; where it is not given, THALWEG_TOKEN and what `thalweg login` has kept hold. It is sent over
    TLS or within this machine only, and to no address that the server redirects to.
    """

    def __init__(self, url: str, *, token: Optional[str] = None, workspace: str = "main", context: Optional[ssl.SSLContext] = None) -> None:
        parts = urllib.parse.urlsplit(url.rstrip("/"))
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.path or parts.query or "@" in parts.netloc:
            raise ScriptError("this is no address of a server", exit_code=2, hint="write https://HOST:PORT, and nothing else")
        if parts.scheme == "http" and not _loopback(parts.hostname):
            raise ScriptError("a token is not sent to %s without encryption" % parts.netloc, exit_code=2, hint="write https://")
        self.url = "%s://%s" % (parts.scheme, parts.netloc)
        self.workspace = workspace
        self._token = token or os.environ.get("THALWEG_TOKEN") or _kept_token(self.url)
        handlers: List[urllib.request.BaseHandler] = [_NoRedirect()]
        if context is not None:
            handlers.append(urllib.request.HTTPSHandler(context=context))
        self._opener = urllib.request.build_opener(*handlers)

    def version(self) -> str:
        """Return the version of the server's program."""
        return str(self._ask("GET", "/v1/version")["version"])

    def validate(self, script: str, *, params: Optional[Mapping[str, Param]] = None) -> Validation:
        """Return all problems of a script that the server has."""
        body: Dict[str, Any] = {"script": script}
        if params:
            body["params"] = {name: _text(name, value) for name, value in params.items()}
        said = self._ask("POST", self._path("validations"), body)
        return Validation(bool(said["ok"]), int(said["nodes"]), tuple(Problem.of(p) for p in said["diagnostics"]))

    def run(
        self,
        script: str,
        *,
        params: Optional[Mapping[str, Param]] = None,
        on_event: Optional[Callable[[Event], None]] = None,
        timeout: Optional[float] = None,
        **options: Any,
    ) -> RunResult:
        """Start a script that the server has, and wait. A run that fails is an exception.

        options are those of the API's start-run: start, note, deadline, priority, fresh. After timeout seconds, and
        when on_event raises, the run is stopped.
        """
        with self.start(script, params=params, **options) as run:
            return run.wait(timeout=timeout, on_event=on_event)

    def start(self, script: str, *, params: Optional[Mapping[str, Param]] = None, **options: Any) -> "ServerRun":
        """Start a script, and return while it works. Leaving the `with` block stops a run that is not over."""
        body: Dict[str, Any] = {"script": script, **options}
        if params:
            body["params"] = {name: _text(name, value) for name, value in params.items()}
        return ServerRun(self, int(self._order(self._path("runs"), body)["run"]))

    def resume(self, run: int, *, on_event: Optional[Callable[[Event], None]] = None, timeout: Optional[float] = None) -> RunResult:
        """Go on with a run that was stopped or has failed, from its own sources, until it is over."""
        return self._again("resume", run, on_event, timeout)

    def retry(self, run: int, *, on_event: Optional[Callable[[Event], None]] = None, timeout: Optional[float] = None) -> RunResult:
        """Do again what failed in a run, in a new one where the script or its inputs have changed."""
        return self._again("retry", run, on_event, timeout)

    def _again(self, kind: str, run: int, on_event: Optional[Callable[[Event], None]], timeout: Optional[float]) -> RunResult:
        after = self._last_event(run)
        said = self._order(self._path("runs", run, "orders"), {"kind": kind})
        number = int((said.get("submitted") or {"run": run})["run"])
        with ServerRun(self, number, after if number == run else 0) as again:
            return again.wait(timeout=timeout, on_event=on_event)

    def _last_event(self, run: int) -> int:
        after, more = 0, True
        while more:
            page = self._ask("GET", self._path("runs", run, "events") + "?after=%d&limit=%d" % (after, EVENTS_PAGE))
            after, more = page["events"][-1]["n"] if page["events"] else after, page["more"]
        return int(after)

    def stop(self, run: int, *, reason: str = "") -> None:
        """Stop a run, whichever processes work on it."""
        self._order(self._path("runs", run, "orders"), {"kind": "stop", "reason": reason})

    def history(self, limit: int = 20) -> List[RunInfo]:
        """Return the latest runs, the last of them last."""
        said = self._ask("GET", self._path("runs") + "?limit=%d" % limit)
        return [_run_info(one) for one in reversed(said["runs"])]

    def table(self, name: str, *, run: Optional[int] = None) -> "pyarrow.Table":
        """Return a table of the last run, or of one run."""
        path = self._path("runs", "last" if run is None else run, "tables", name, "download") + "?format=parquet"
        return self._read("GET", path, None)

    def arrow(self, query: str) -> "pyarrow.Table":
        """Return the rows of a query with all their types."""
        return self._read("POST", self._path("downloads"), {"sql": query, "format": "parquet"})

    def pandas(self, query: str) -> "pandas.DataFrame":
        """Return the rows of a query in columns of Arrow types, so that integers with NULL stay integers."""
        _need("pandas")
        import pandas

        frame: "pandas.DataFrame" = self.arrow(query).to_pandas(types_mapper=pandas.ArrowDtype)
        return frame

    def polars(self, query: str) -> "polars.DataFrame":
        """Return the rows of a query as a DataFrame of polars."""
        _need("polars")
        import polars

        with self._parquet("POST", self._path("downloads"), {"sql": query, "format": "parquet"}) as file:
            frame: "polars.DataFrame" = polars.read_parquet(file, memory_map=False)
        return frame

    def batches(self, query: str, *, rows: int = 65536) -> Iterator["pyarrow.RecordBatch"]:
        """Give the rows of a query in batches of Arrow, at most so many rows each: for what is larger than memory."""
        _need("pyarrow.parquet")
        import pyarrow.parquet

        body = {"sql": query, "format": "parquet"}
        with self._parquet("POST", self._path("downloads"), body) as path, pyarrow.parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=rows):
                yield pyarrow.RecordBatch.from_arrays(batch.columns, schema=batch.schema.remove_metadata())

    def _read(self, method: str, path: str, body: Optional[Mapping[str, Any]]) -> "pyarrow.Table":
        _need("pyarrow.parquet")
        import pyarrow.parquet

        with self._parquet(method, path, body) as file:
            table: "pyarrow.Table" = pyarrow.parquet.read_table(file, memory_map=False)
        return table.replace_schema_metadata(None)

    @contextlib.contextmanager
    def _parquet(self, method: str, path: str, body: Optional[Mapping[str, Any]]) -> Iterator[str]:
        with tempfile.TemporaryDirectory(prefix="thalweg-") as folder:
            file = Path(folder) / "rows.parquet"
            with self._open(method, path, body) as answer, file.open("wb") as out:
                try:
                    shutil.copyfileobj(answer, out)
                except (OSError, http.client.HTTPException) as error:
                    raise MachineError("the download was cut off: %s" % error, hint="try again; the server's log says why") from None
            yield str(file)

    def _path(self, *parts: object) -> str:
        return "/".join(["/v1/workspaces", *(urllib.parse.quote(str(part), safe="") for part in (self.workspace, *parts))])

    def _order(self, path: str, body: Mapping[str, Any]) -> Any:
        """Send an order with a key, and again if its answer is lost: it is done once."""
        key = uuid.uuid4().hex
        for attempt in range(1, REPEATS + 1):
            try:
                return self._ask("POST", path, body, key)
            except ThalwegError as error:
                if not error.retryable or attempt == REPEATS:
                    raise
                time.sleep(PAUSE_SECONDS[0])
        raise AssertionError("not reached")

    def _ask(self, method: str, path: str, body: Optional[Mapping[str, Any]] = None, key: str = "") -> Any:
        with self._open(method, path, body, key) as answer:
            try:
                said = answer.read(ANSWER_BYTES_MAX)
                return json.loads(said) if said else None
            except (ValueError, OSError, http.client.HTTPException):
                raise BugError("%s answers with what this package does not know" % self.url) from None

    def _open(self, method: str, path: str, body: Optional[Mapping[str, Any]] = None, key: str = "") -> IO[bytes]:
        headers = {"Accept": "application/json", "Authorization": "Bearer " + self._token}
        if body is not None:
            headers["Content-Type"] = "application/json"
        if key:
            headers["Idempotency-Key"] = key
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        try:
            answer: IO[bytes] = self._opener.open(request, timeout=REQUEST_SECONDS)
            return answer
        except urllib.error.HTTPError as error:
            with error:
                raise _problem(error, self.url) from None
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", error)
            if isinstance(reason, ssl.SSLCertVerificationError):
                raise ScriptError(
                    "%s has a certificate that is not trusted here: %s" % (self.url, reason.verify_message), exit_code=2, hint="give a context that trusts its authority"
                ) from None
            raise MachineError("the server %s cannot be reached: %s" % (self.url, reason), retryable=True) from None


class ServerRun:
    """A run that workers of a server do."""

    def __init__(self, server: Server, number: int, after: int = 0) -> None:
        self.number = number
        self._server = server
        self._after = after
        self._over = False

    def events(self, timeout: Optional[float] = None) -> Iterator[Event]:
        """Give what happens to the run until it is over or waits. Raises TimeoutError after so many seconds."""
        end = None if timeout is None else time.monotonic() + timeout
        pause, over = PAUSE_SECONDS[0], False
        while True:
            page = self._server._ask("GET", self._path("events") + "?after=%d&limit=%d" % (self._after, EVENTS_PAGE))
            for line in page["events"]:
                self._after = int(line["n"])
                yield Event(_kind(line), str(line.get("node", "")), int(line.get("batch", -1)), line)
            if page["events"]:
                pause = PAUSE_SECONDS[0]
                continue
            if over:
                self._over = True
                return
            standing = self._server._ask("GET", self._path("standing"))
            over = bool(standing["over"])
            if over:
                continue
            if end is not None and time.monotonic() >= end:
                raise TimeoutError("the run is not over after %s s" % timeout)
            time.sleep(pause if end is None else max(0.0, min(pause, end - time.monotonic())))
            pause = min(2 * pause, PAUSE_SECONDS[1])

    def wait(self, timeout: Optional[float] = None, on_event: Optional[Callable[[Event], None]] = None) -> RunResult:
        """Wait until the run is over. Raises what it failed with, or TimeoutError: then it still works."""
        for event in self.events(timeout):
            if on_event is not None:
                on_event(event)
        said = self._server._ask("GET", self._path("summary"))["run"]
        status = said["status"]
        if status == "complete":
            return _run_result(said)
        if status in ("waiting", "paused"):
            raise WaitingRun("run %d is %s" % (self.number, status), exit_code=3, run=self.number)
        failure = said.get("failure")
        if status == "failed" and failure:
            kind = failure.get("kind")
            raise error_of({**failure, "exit_code": 2 if kind in ("script", "user_data") else 1}, "", exit_code=1, run=self.number)
        raise InterruptedRun("run %d was stopped" % self.number, exit_code=4, run=self.number)

    def interrupt(self) -> None:
        """Stop the run. What it has committed is kept."""
        if not self._over:
            with contextlib.suppress(ScriptError):  # it is over meanwhile
                self._server.stop(self.number, reason="interrupted")

    def _path(self, *parts: object) -> str:
        return self._server._path("runs", self.number, *parts)

    def __enter__(self) -> "ServerRun":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        self.interrupt()


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: another address must not get the token."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None


def _loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _kept_token(url: str) -> str:
    """Return the token that `thalweg login` has kept for a server."""
    path = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "thalweg" / "tokens.json"
    try:
        is_ = path.stat()
        if not is_.st_mode & 0o077 and is_.st_size <= TOKENS_BYTES_MAX:
            token = json.loads(path.read_text(encoding="utf-8")).get(url)
            if token:
                return str(token)
    except (OSError, ValueError, AttributeError):
        pass  # there is none that can be used
    raise ScriptError("there is no token for %s" % url, exit_code=2, hint="give token=, or set THALWEG_TOKEN, or use `thalweg login --server %s`" % url)


def _problem(error: urllib.error.HTTPError, url: str) -> ThalwegError:
    """Return the exception for an answer that is none of success."""
    try:
        said = json.loads(error.read(ANSWER_BYTES_MAX))
        kind = str(said["kind"])
    except (ValueError, KeyError, TypeError, OSError, http.client.HTTPException):
        return MachineError("the answer of %s is %d" % (url, error.code), hint="does Thalweg answer at this address?")
    message = str(said.get("detail", ""))
    for one in said.get("errors") or ():
        message += "; %s: %s" % (one.get("location", ""), one.get("message", ""))
    code = 2 if kind in ("script", "user_data") else 1
    told = {**said, "message": message, "detail": said.get("evidence", ""), "exit_code": code, "retryable": error.code == 503, "next": ""}
    return error_of(told, "", exit_code=code)


_KINDS = {"batch_claimed": "batch_started", "run_completed": "run_finished"}
_ENDED = {"succeeded": "batch_finished", "released": "batch_released", "lost": "batch_lost"}


def _kind(line: Mapping[str, Any]) -> str:
    """Return what an event of the state is called among those of a run that works here."""
    kind, status = str(line["kind"]), line.get("status")
    if kind == "batch_ended":
        return _ENDED.get(str(status), "batch_retried" if (line.get("failure") or {}).get("again") else "batch_failed")
    if kind == "node_moved" and status in ("succeeded", "waiting"):
        return "node_finished" if status == "succeeded" else "node_waiting"
    return _KINDS.get(kind, kind)
