"""Where the program is, and what version this package has."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import sysconfig
from pathlib import Path
from typing import Iterator

try:
    VERSION = importlib.metadata.version("thalweg")
except importlib.metadata.PackageNotFoundError:  # the sources, not installed
    VERSION = "0.0.0"


def find_program() -> str:
    """Return what THALWEG_PROGRAM names, the program of this package, or what the PATH has."""
    named = os.environ.get("THALWEG_PROGRAM")
    if named:
        return named
    for folder in _folders():
        own = folder / "thalweg"
        if own.is_file():
            return str(own)
    found = shutil.which("thalweg")
    if found is None:
        raise FileNotFoundError("the program thalweg is neither beside this interpreter nor in the PATH; THALWEG_PROGRAM may name it")
    return found


def _folders() -> Iterator[Path]:
    """Give where pip puts programs: beside this package first, which may be in a folder of its own (--target, --prefix)."""
    packages = Path(__file__).absolute().parent.parent
    yield packages / "bin"
    if packages.name in ("site-packages", "dist-packages"):
        yield packages.parents[2] / "bin"  # PREFIX/lib/python3.x/site-packages
    yield Path(sysconfig.get_path("scripts"))
    yield Path(sysconfig.get_path("scripts", "%s_user" % os.name))
