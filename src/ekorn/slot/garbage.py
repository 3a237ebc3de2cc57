"""Collects cyclic garbage in a slot between two requests.

Python's own collector is off in a slot. An epoch can be long, above all in BATCH, so a thread also collects when the
memory of the process has grown (`ekorn/garbage.py`).
"""

from __future__ import annotations

import gc

__all__ = ["ProcessGarbage", "SlotGarbage"]

_EPOCHS_BETWEEN_FULL_COLLECTIONS = 512


class SlotGarbage:
    """What the server of a slot collects between two requests: nothing, where other code shares the process."""

    def deploying(self) -> None:
        """Prepare for an attempt that replaces the subtasks."""

    def deployed(self) -> None:
        """Collect what the last attempt left, and exempt restored state from collections."""

    def epoch_ended(self) -> None:
        """Collect garbage of the last epochs, and now and then of everything."""


class ProcessGarbage(SlotGarbage):
    """Collects in a process that belongs to one slot."""

    def __init__(self) -> None:
        self._epochs_run = 0

    def deploying(self) -> None:
        gc.unfreeze()

    def deployed(self) -> None:
        # Restored state lives as long as the attempt: keep the collector from walking it again.
        gc.collect()
        gc.freeze()

    def epoch_ended(self) -> None:
        self._epochs_run += 1
        gc.collect(2 if self._epochs_run % _EPOCHS_BETWEEN_FULL_COLLECTIONS == 0 else 1)
