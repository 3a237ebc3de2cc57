"""Lines about a job in a notebook: one output of the cell that started the job, which changes in place.

It is no part of what the cell prints, so neither mixes with the other, and a saved notebook holds the last state alone.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, TextIO

__all__ = ["NotebookOutput", "is_notebook"]


def is_notebook(stream: TextIO) -> bool:
    """Return whether a stream is that of a notebook's cell."""
    return type(stream).__module__.startswith("ipykernel.")


class NotebookOutput:
    """The output of a cell.

    Args:
        display: IPython's function `display`; None to import it.
    """

    def __init__(self, display: Callable[..., Any] | None = None) -> None:
        self._display = display or importlib.import_module("IPython.display").display
        self._first = ""
        self._shown: Any = None

    def begin(self, line: str) -> None:
        self._first = line
        self._shown = self._display(_content(line), raw=True, display_id=True)

    def update(self, line: str) -> None:
        self._shown.update(_content(f"{self._first}\n{line}"), raw=True)

    def end(self, line: str | None) -> None:
        self._shown.update(_content(self._first if line is None else f"{self._first}\n{line}"), raw=True)


def _content(text: str) -> dict[str, str]:
    return {"text/plain": text}
