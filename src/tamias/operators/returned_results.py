"""What functions of several results return instead of yielding: an iterable of results, or a single value by mistake.

A `str`, a `dict` or a `Row` can be iterated over, so a function that returns one instead of yielding it would emit its
characters, keys or fields. Such a result is refused.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from tamias.codegen.code_builder import CodeBuilder
from tamias.errors import preview
from tamias.types.row import Row

_SINGLE = frozenset({str, bytes, bytearray, dict, Row, int, float, bool})


def generate_check(code: CodeBuilder, function: Callable[..., Any], results: str) -> None:
    """Generate the check of what a function returned; none for a generator function, which cannot be mistaken."""
    if not inspect.isgeneratorfunction(function):
        single, refuse = code.bind(_SINGLE, "single"), code.bind(_refuse, "refuse_single")
        code.line(f"if {results}.__class__ in {single}: {refuse}({results})")


def checked_results(results: Any) -> Any:
    """Return what a function returned, for a loop over it; refuse a single value."""
    if results.__class__ in _SINGLE:
        _refuse(results)
    return results


def _refuse(result: Any) -> None:
    raise TypeError(
        f"the function returned one {type(result).__name__}, {preview(result, 80)}, where an iterable of results is "
        "expected: yield each result, or return a list of results"
    )
