"""What goes wrong, as exceptions: what, where, and the way out."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from typing import Any, Mapping, Optional, Sequence


@dataclass(frozen=True)
class Place:
    """Where something went wrong, as far as it is known."""

    file: str = ""
    line: int = 0
    column: int = 0
    record: int = 0
    field: str = ""
    value: str = ""
    expr: str = ""
    node: str = ""
    origin: Optional["Place"] = None  # the record of an input file that the row of a table comes from

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> "Place":
        known = {name: said[name] for name in cls.__dataclass_fields__ if name in said}
        if known.get("origin") is not None:
            known["origin"] = cls.of(known["origin"])
        return cls(**known)

    def __str__(self) -> str:
        parts = [self.file]
        if self.line:
            parts.append(str(self.line))
            if self.column:
                parts.append(str(self.column))
        text = ":".join(part for part in parts if part)
        if self.record and not self.line:
            text += " row %d" % self.record
        if self.origin is not None and not self.line:
            text += ", from %s" % self.origin
        return text


@dataclass(frozen=True)
class Problem:
    """A mistake in a script, or a warning about it."""

    severity: str
    message: str
    file: str = ""
    line: int = 0
    column: int = 0
    path: str = ""
    hint: str = ""

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> "Problem":
        return cls(**{name: said[name] for name in cls.__dataclass_fields__ if name in said})


class ThalwegError(Exception):
    """A failure that Thalweg told of. Its subclasses say whose move it is."""

    def __init__(
        self,
        message: str,
        *,
        exit_code: int = 1,
        place: Place = Place(),
        hint: str = "",
        detail: str = "",
        node: str = "",
        batch: int = -1,
        retryable: bool = False,
        next_step: str = "",
        run: int = 0,
        problems: Sequence[Problem] = (),
    ) -> None:
        where = str(place)
        text = "%s: %s" % (where, message) if where else message
        super().__init__(text + ("\nhint: " + hint if hint else ""))
        self.message = message
        self.exit_code = exit_code
        self.place = place
        self.hint = hint
        self.detail = detail
        self.node = node
        self.batch = batch
        self.retryable = retryable
        self.next_step = next_step
        self.run = run
        self.problems = tuple(problems)


class ScriptError(ThalwegError):
    """The script, its parameters, its Python code or the call must change."""


class DataError(ThalwegError):
    """A row or a file of the input must change, or the script must expect it."""


class MachineError(ThalwegError):
    """Disk, memory, permissions, a service, an interpreter: the surroundings must change."""


class BugError(ThalwegError):
    """A defect of Thalweg, or an ending that it could not tell of."""


class InterruptedRun(ThalwegError):
    """The run was interrupted or stopped. `Thalweg.resume` goes on with it."""


class WaitingRun(ThalwegError):
    """The run is paused, or waits at a gate for people. Nothing of it is under way."""


_KINDS = {
    "script": ScriptError,
    "user_data": DataError,
    "environment": MachineError,
    "bug": BugError,
    "canceled": InterruptedRun,
}
_CODES = {1: MachineError, 2: ScriptError, 3: WaitingRun, 4: InterruptedRun, 130: InterruptedRun}


def error_of(said: Optional[Mapping[str, Any]], words: str, *, exit_code: int, run: int = 0) -> ThalwegError:
    """Return the exception for a failure as JSON, or for an ending without one: words is what was printed."""
    if said is None:
        if exit_code < 0:
            # An interruption that came before the program was ready for one has no other sign.
            ended = InterruptedRun if -exit_code in (signal.SIGINT, signal.SIGTERM) else BugError
            return ended("thalweg was ended by signal %d" % -exit_code, exit_code=exit_code, run=run, detail=words)
        kind = _CODES.get(exit_code, BugError)
        return kind(words or "thalweg ended with code %d" % exit_code, exit_code=exit_code, run=run)
    kind = _KINDS.get(str(said.get("kind")), BugError)
    return kind(
        str(said.get("message", "")),
        exit_code=int(said.get("exit_code", exit_code)),
        place=Place.of(said.get("place") or {}),
        hint=str(said.get("hint", "")),
        detail=str(said.get("detail", "")),
        node=str(said.get("node", "")),
        batch=int(said.get("batch", -1)),
        retryable=bool(said.get("retryable", False)),
        next_step=str(said.get("next", "")),
        run=run,
        problems=[Problem.of(one) for one in said.get("diagnostics") or ()],
    )
