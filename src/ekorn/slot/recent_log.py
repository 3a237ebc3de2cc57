"""The last that a slot has logged and printed, for the driver to read over the slot's connection."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Iterable
from typing import Any, TextIO

from ekorn.slot_protocol.diagnostics import SlotLog

__all__ = ["RecentLog", "RecentOutput"]

_MOST_CHARACTERS = 1 << 20
_PIECE_CHARACTERS = 4096


class RecentLog(logging.Handler):
    """Keeps the last lines in memory. Thread-safe, as every handler of Python's logging is."""

    def __init__(self, most_characters: int = _MOST_CHARACTERS) -> None:
        super().__init__()
        self._most = most_characters
        self._lines: deque[str] = deque()
        self._characters = 0
        self._last_ms = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a line; forget the oldest ones that no longer fit."""
        try:
            line = self.format(record)[: self._most] + "\n"
        except Exception:  # the user's message does not fit its arguments; logging reports it
            self.handleError(record)
            return
        self._lines.append(line)
        self._characters += len(line)
        self._last_ms = round(time.time() * 1000)
        while self._characters > self._most and len(self._lines) > 1:
            self._characters -= len(self._lines.popleft())

    def read(self) -> SlotLog:
        """Return the lines."""
        self.acquire()
        try:
            return SlotLog("".join(self._lines), self._last_ms)
        finally:
            self.release()


class RecentOutput:
    """Stands for standard output: passes everything on, and keeps the last characters in memory. Thread-safe.

    What another program or a library in C writes to the file descriptor passes it by.
    """

    def __init__(self, stream: TextIO | None = None, most_characters: int = _MOST_CHARACTERS) -> None:
        self._stream = stream
        self._most = most_characters
        self._lock = threading.Lock()
        self._texts: deque[str] = deque()
        self._characters = 0
        self._last_ms = 0

    def write(self, text: str) -> int:
        """Write to the stream, and keep the text; forget the oldest texts that no longer fit."""
        if self._stream is not None:
            self._stream.write(text)
        kept = text[-self._most :]
        with self._lock:
            if self._texts and len(self._texts[-1]) < _PIECE_CHARACTERS:  # `print` writes a line in several parts
                self._texts[-1] += kept
            else:
                self._texts.append(kept)
            self._characters += len(kept)
            self._last_ms = round(time.time() * 1000)
            while self._characters - len(self._texts[0]) >= self._most:
                self._characters -= len(self._texts.popleft())
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write texts."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)  # `flush`, `fileno`, `buffer`, ...

    def read(self) -> SlotLog:
        """Return what is kept."""
        with self._lock:
            return SlotLog("".join(self._texts)[-self._most :], self._last_ms)
