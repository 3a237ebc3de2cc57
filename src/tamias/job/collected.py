"""Collected records on their way to the program: kept back until no failure can take them back."""

from __future__ import annotations

from typing import Any

from tamias.job.handle import JobHandle


class CollectedRecords:
    """The records of epochs that are over, in order, until they are released."""

    def __init__(self, handle: JobHandle) -> None:
        self._handle = handle
        self._held: list[tuple[int, list[Any]]] = []

    def hold(self, epoch: int, records: list[Any]) -> None:
        """Keep an epoch's records."""
        self._held.append((epoch, records))

    def release(self, epoch: int) -> None:
        """Hand over what was collected up to an epoch: nothing can take it back now."""
        for number, records in self._held:
            if number <= epoch:
                self._handle.deliver(records)
        self._held = [(n, r) for n, r in self._held if n > epoch]

    def drop(self) -> None:
        """Forget what a failed attempt collected: it will be collected again."""
        self._held.clear()
