"""Lines about a job on a terminal that others write to as well.

The line of progress is written over in place, and it never shares its line with other text. While it is shown, the
driver's standard output and standard error are guarded if they are terminals: a text that the program, its log or a
printing sink writes there first erases the line of progress. The line comes back below, as soon as the other text has
ended its line. The output of slots passes through the driver (`engine/slots/slot_output.py`), so it is guarded too.
What another process writes to the terminal by itself is not.
"""

from __future__ import annotations

import os
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any, TextIO

__all__ = ["TerminalLines"]

_WIDTH = 160  # assumed for a terminal that does not report its width
_ERASED = "\r\x1b[K"  # also what the terminal echoed on the line, such as ^C


class TerminalLines:
    """Lines on a terminal, or in another stream of text."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._write_here: Callable[[str], Any] = stream.write  # before the stream is guarded

    def begin(self, line: str) -> None:
        self._line(line)

    def update(self, line: str) -> None:
        """Show the line of progress, unless another text or another job has the line."""
        with _screen.lock:
            if _screen.take(self):
                self._write(f"{_ERASED}{line[: self._width()]}")
                _screen.is_shown = True

    def erase(self) -> None:
        """Remove the line of progress from the terminal. The lock of the screen is held."""
        self._write(_ERASED)

    def end(self, line: str | None) -> None:
        with _screen.lock:
            if line is not None:
                self._line(line)
            _screen.leave(self)

    def _line(self, line: str) -> None:
        with _screen.lock:
            _screen.make_room()
            self._write(f"\n{line}\n" if _screen.is_in_line else f"{line}\n")

    def _width(self) -> int:
        """Return the longest line that does not wrap, because one that wraps cannot be written over."""
        try:
            columns = os.get_terminal_size(self._stream.fileno()).columns
        except (OSError, ValueError):  # not a terminal of this machine
            columns = 0
        return columns - 1 if columns > 1 else _WIDTH

    def _write(self, text: str) -> None:
        try:
            self._write_here(text)
            self._stream.flush()
        except (OSError, ValueError):  # the terminal is gone, or the stream was closed: the job runs on unwatched
            _screen.is_shown = False


class _Screen:
    """The terminal of this process: which job has the line of progress, and whether another text is on its line.

    Attributes:
        lock: Held by every thread that writes to the terminal. A text may be written while another one is.
        is_shown: Whether the line of progress is on the screen.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.is_shown = False
        self._owner: Callable[[], TerminalLines | None] = _nobody
        self._guarded: list[_Guard] = []

    def forked(self) -> None:
        """Forget the lock of the parent, which another thread of it may have held."""
        self.lock = threading.RLock()

    def take(self, lines: TerminalLines) -> bool:
        """Return whether the line of progress may be written now: one job has it at a time."""
        if self._owner() is None:
            self._let_go()
            self._owner = weakref.ref(lines)
            own = (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__)
            streams = {id(each): each for each in own if _is_terminal(each)}.values()
            self._guarded = [_Guard(self, each) for each in streams]
        return self._owner() is lines and not self.is_in_line

    @property
    def is_in_line(self) -> bool:
        """Whether a text of the program has not ended its line."""
        return any(each.is_in_line for each in self._guarded)

    def leave(self, lines: TerminalLines) -> None:
        """Erase the line of progress of a job and let other jobs have the line."""
        if self._owner() is lines:
            self.make_room()
            self._let_go()

    def _let_go(self) -> None:
        for each in self._guarded:
            each.remove()
        self._owner, self._guarded, self.is_shown = _nobody, [], False

    def make_room(self) -> None:
        """Erase the line of progress, for another text. The lock is held."""
        owner = self._owner()
        if self.is_shown and owner is not None:
            self.is_shown = False
            owner.erase()


class _Guard:
    """Lets a stream of this process make room on the screen before it writes.

    Its method `write` is replaced, not the stream: handlers of Python's logging hold the stream itself.

    Attributes:
        is_in_line: Whether the last text did not end its line.
    """

    def __init__(self, screen: _Screen, stream: Any) -> None:
        self._screen = screen
        self._stream = stream
        self._before = stream.__dict__.get("write") if hasattr(stream, "__dict__") else None
        self._passed_on = stream.write
        self.is_in_line = False
        try:
            stream.write = self._write
        except AttributeError:  # a stream of the program's own, whose texts may share the line
            self._stream = None

    def remove(self) -> None:
        """Let the stream write as before."""
        if self._stream is None or self._stream.__dict__.get("write") != self._write:
            return  # the program has replaced the method itself
        if self._before is None:
            del self._stream.write
        else:
            self._stream.write = self._before

    def _write(self, text: str) -> Any:
        with self._screen.lock:
            if text:
                self._screen.make_room()
                self.is_in_line = not text.endswith("\n")
            return self._passed_on(text)


def _is_terminal(stream: Any) -> bool:
    try:
        return bool(stream is not None and stream.isatty())
    except ValueError:  # the stream was closed
        return False


def _nobody() -> None:
    return None


_screen = _Screen()
os.register_at_fork(after_in_child=_screen.forked)
