"""The stacks of a process's threads, which show people what the process is doing."""

from __future__ import annotations

import sys
import threading
import traceback
from dataclasses import dataclass

__all__ = ["ThreadStack", "thread_stacks"]


@dataclass(frozen=True, slots=True)
class ThreadStack:
    """The stack of one thread as text, the innermost call last."""

    name: str
    ident: int
    stack: str


def thread_stacks() -> list[ThreadStack]:
    """Return the stacks of this process's threads."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    return [
        ThreadStack(names.get(ident, str(ident)), ident, "".join(traceback.format_stack(frame)))
        for ident, frame in sys._current_frames().items()
    ]
