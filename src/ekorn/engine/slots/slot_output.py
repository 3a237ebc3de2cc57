"""What slots on the driver's machine print, on the driver's terminal.

Slots inherit the driver's standard output and standard error. Where those are a terminal, the driver shows a line of
progress there, which a slot cannot know of. So the slots get pipes in place of a terminal, and the driver writes what
comes out of them to its own streams, where it makes room first.
"""

from __future__ import annotations

import codecs
import contextlib
import os
import sys
import threading
from collections.abc import Callable
from typing import TextIO

__all__ = ["SlotOutput"]

_LAST_TEXTS_S = 1.0  # a process that user code has left behind may hold the pipe open


class SlotOutput:
    """The pipes of the slots of one job.

    Attributes:
        stdout: The file descriptor for the standard output of a slot; None if it inherits the driver's.
        stderr: The file descriptor for the standard error of a slot; None if it inherits the driver's.
    """

    def __init__(self) -> None:
        self._threads: list[threading.Thread] = []
        self.stdout = self._pipe_in_place_of(1, lambda: sys.__stdout__)
        self.stderr = self._pipe_in_place_of(2, lambda: sys.__stderr__)

    def _pipe_in_place_of(self, number: int, stream: Callable[[], TextIO | None]) -> int | None:
        if not os.isatty(number) or stream() is None:
            return None
        ours, theirs = os.pipe()
        thread = threading.Thread(target=_pass_on, args=(ours, stream), name=f"ekorn-slot-output-{number}", daemon=True)
        self._threads.append(thread)
        thread.start()
        return theirs

    def close(self) -> None:
        """Write what the slots have printed last. They have ended."""
        for each in (self.stdout, self.stderr):
            if each is not None:
                os.close(each)
        self.stdout = self.stderr = None
        for thread in self._threads:
            thread.join(_LAST_TEXTS_S)
        self._threads = []


def _pass_on(pipe: int, stream: Callable[[], TextIO | None]) -> None:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")  # a part may end in the middle of a character
    with open(pipe, "rb", buffering=0) as parts:
        while part := parts.read(1 << 16):
            to = stream()
            with contextlib.suppress(OSError, ValueError):  # the terminal is gone; the slots must not wait for it
                if to is not None:
                    to.write(decoder.decode(part))
                    to.flush()
