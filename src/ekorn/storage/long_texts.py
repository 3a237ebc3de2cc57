"""Cuts the texts of a user's exceptions, which may have any length, before they travel to the driver and into logs.

The first long text of a process is kept whole in a private file of the temporary directory, whose path the cut texts
name. The folder of a slot would not do: it is removed with the job, and the error is read after that.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
from pathlib import Path

from ekorn.errors.base import shortened

__all__ = ["LongTexts", "cut_texts"]

LONGEST = 20_000  # characters of a message or a traceback
_PREFIX, _SUFFIX = "ekorn-long-error-", ".txt"
_MOST_FILES = 8  # of one user; the oldest are removed
_MOST_KEPT = 64 << 20  # characters of the whole text


class LongTexts:
    """Cuts texts, and keeps the first one whole. Thread-safe.

    Args:
        folder: Where the file goes; None for the temporary directory.
    """

    def __init__(self, folder: str | None = None) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._note: str | None = None  # where the first long text is

    def cut(self, *texts: str) -> tuple[str, ...]:
        """Return texts of one error, each cut if it is long; the longest is kept, unless one was kept before."""
        longest = max(texts, key=len)
        if len(longest) <= LONGEST:
            return texts
        with self._lock:
            if self._note is None:
                note = self._note = self._kept(longest)
            else:
                note = self._note.replace("the whole text is", "the whole text of the first such error is")
        return tuple(shortened(text, LONGEST, note) for text in texts)

    def _kept(self, text: str) -> str:
        """Write a text to a private file; return a note of where it is."""
        try:
            fd, path = tempfile.mkstemp(_SUFFIX, _PREFIX, self._folder)
            with open(fd, "w", encoding="utf-8", errors="replace") as file:
                file.write(text[:_MOST_KEPT])
            self._drop_old(Path(path).parent)
        except OSError as error:
            return f"; they could not be kept: {error.strerror}"
        return f"; the whole text is in {path}"

    def _drop_old(self, folder: Path) -> None:
        found: list[tuple[int, Path]] = []
        for each in folder.glob(f"{_PREFIX}*{_SUFFIX}"):
            with contextlib.suppress(OSError):  # it was removed just now
                if (status := each.lstat()).st_uid == os.getuid():
                    found.append((status.st_mtime_ns, each))
        for _, each in sorted(found, reverse=True)[_MOST_FILES:]:
            each.unlink(missing_ok=True)


_of_process = LongTexts()


def cut_texts(*texts: str) -> tuple[str, ...]:
    """Return texts of one error, cut; the first long one of this process is kept in a file."""
    return _of_process.cut(*texts)
