"""Where the program is."""

from __future__ import annotations

import os
import shutil
import sysconfig
from pathlib import Path


def find_program() -> str:
    """Return the program of this package; else THALWEG_PROGRAM, or what the PATH has."""
    named = os.environ.get("THALWEG_PROGRAM")
    if named:
        return named
    for folder in (sysconfig.get_path("scripts"), sysconfig.get_path("scripts", _user_scheme())):
        own = Path(folder) / "thalweg"
        if own.is_file():
            return str(own)
    found = shutil.which("thalweg")
    if found is None:
        raise FileNotFoundError("the program thalweg is neither beside this interpreter nor in the PATH; THALWEG_PROGRAM may name it")
    return found


def _user_scheme() -> str:
    return "%s_user" % os.name
