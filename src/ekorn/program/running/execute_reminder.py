"""Reminds a program that ends without `execute()` that nothing ran."""

from __future__ import annotations

import atexit
import sys
import weakref
from collections.abc import Sequence
from typing import Protocol


class Pending(Protocol):
    """A part of a program that waits for `execute()`."""

    @property
    def where(self) -> str:
        """Return its name, and the line of the program that drew it."""
        ...


class Drawn(Protocol):
    """What a program has drawn in one environment."""

    def pending(self) -> Sequence[Pending]:
        """Return the parts that no `execute()` has run yet."""
        ...


_drawn: weakref.WeakSet[Drawn] = weakref.WeakSet()


def remind_of_execute(drawn: Drawn) -> None:
    """Watch what a program draws until the program ends, or its environment is gone."""
    atexit.unregister(_remind)  # of environments that are gone: one line is enough
    atexit.register(_remind)
    _drawn.add(drawn)


def execute_failed(drawn: Drawn) -> None:
    """Stop watching what an `execute()` that raised an error did not run: the program knows that nothing ran."""
    _drawn.discard(drawn)


def _remind() -> None:
    if hasattr(sys, "ps1") or getattr(sys, "last_value", None) is not None:
        return  # an interactive session, or the program ended with an error of its own
    for drawn in _drawn:
        if pending := drawn.pending():
            declared = ", ".join(each.where for each in pending[:3]) + (" ..." if pending[3:] else "")
            print(f"ekorn: the program ended without env.execute(), so {declared} never ran", file=sys.stderr)
            return
