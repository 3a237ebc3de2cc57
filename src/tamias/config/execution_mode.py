"""How a job is run: record by record without end, or over bounded input to its end."""

from __future__ import annotations

from enum import Enum

__all__ = ["RuntimeExecutionMode"]


class RuntimeExecutionMode(Enum):
    """STREAMING emits as records arrive; BATCH emits final results key by key; AUTOMATIC looks at the sources."""

    STREAMING = 0
    BATCH = 1
    AUTOMATIC = 2
