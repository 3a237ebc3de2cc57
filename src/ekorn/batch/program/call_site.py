"""The line of the program that calls into ekorn."""

from __future__ import annotations

import os
import sys

import ekorn

__all__ = ["call_site"]

_EKORN = os.path.dirname(ekorn.__file__) + os.sep


def call_site() -> str:
    """Return the file and line of the innermost caller outside of ekorn, such as ``job.py:12``."""
    frame = sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_EKORN):
        frame = frame.f_back
    return f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"
