"""Shows an error that ends a program without the frames inside this package, and says how many are left out."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any

from ekorn.errors.frames import ShownFrames, left_out_note, without_own_frames

__all__ = ["show_errors", "shown_frames"]


def show_errors(*, all_frames: bool) -> None:
    """Choose which frames are shown of an error that ends the program, or a cell of a notebook. The last choice counts.

    A hook that the program has set stays in place, and gets all frames.
    """
    ShownFrames.all_frames = all_frames
    if sys.excepthook is sys.__excepthook__:
        sys.excepthook = _show
    shell = _notebook_shell()
    if shell is not None and not shell.custom_exceptions:
        shell.set_custom_exc((Exception,), _show_in_notebook)


def _notebook_shell() -> Any:
    """Return the shell of IPython that runs the program; None without one."""
    ipython = sys.modules.get("IPython")
    return None if ipython is None else ipython.get_ipython()


def _show(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print an error that ends the program. A debugger finds all of its frames afterwards."""
    shown = shown_frames(error, trace)
    error.__traceback__ = shown  # Python prints these frames
    try:
        sys.__excepthook__(kind, error, shown)
    finally:
        error.__traceback__ = trace


def _show_in_notebook(
    shell: Any,
    kind: type[BaseException],
    error: BaseException,
    trace: TracebackType | None,
    tb_offset: int | None = None,
) -> None:
    """Show an error of a cell as IPython does. `%debug` finds all of its frames afterwards."""
    shown = shown_frames(error, trace)
    error.__traceback__ = shown  # errors that render themselves show these frames
    try:
        shell.showtraceback((kind, error, shown), tb_offset=tb_offset, running_compiled_code=True)
    finally:
        error.__traceback__ = sys.last_traceback = trace


def shown_frames(error: BaseException, trace: TracebackType | None) -> TracebackType | None:
    """Return the frames of an error that a user sees. A note of the error says how many are left out."""
    if ShownFrames.all_frames:
        return trace
    shown, left_out = without_own_frames(error, trace)
    if left_out:
        note = left_out_note(left_out)
        if note not in getattr(error, "__notes__", ()):
            error.add_note(note)
    return shown
