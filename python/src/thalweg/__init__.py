"""Thalweg from Python: run scripts, wait for them, read their tables.

    from thalweg import Thalweg

    project = Thalweg(cwd="project")
    project.run("script.yaml", params={"month": "2026-01"})
    project.polars("SELECT shop, sum(value) AS value FROM sales GROUP BY shop")

`thalweg.testing` calls the formulas of a script as a run does.
"""

from ._client import Event, NodeResult, OutputFile, Param, Run, RunInfo, RunResult, Thalweg, Validation
from ._errors import (
    BugError,
    DataError,
    InterruptedRun,
    MachineError,
    Place,
    Problem,
    ScriptError,
    ThalwegError,
    WaitingRun,
)
from ._program import VERSION as __version__
from ._program import find_program
from ._server import Server, ServerRun

__all__ = [
    "BugError",
    "DataError",
    "Event",
    "InterruptedRun",
    "MachineError",
    "NodeResult",
    "OutputFile",
    "Param",
    "Place",
    "Problem",
    "Run",
    "RunInfo",
    "RunResult",
    "ScriptError",
    "Server",
    "ServerRun",
    "Thalweg",
    "ThalwegError",
    "Validation",
    "__version__",
    "WaitingRun",
    "find_program",
]
