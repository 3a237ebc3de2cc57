"""`RuntimeExecutionMode`: whether a job emits results as records arrive or only final ones."""

from __future__ import annotations

from enum import Enum

__all__ = ["RuntimeExecutionMode"]


class RuntimeExecutionMode(Enum):
    """When results are emitted.

    STREAMING emits them as records arrive, BATCH emits final ones key by key. AUTOMATIC chooses by the sources.
    """

    STREAMING = 0
    BATCH = 1
    AUTOMATIC = 2
