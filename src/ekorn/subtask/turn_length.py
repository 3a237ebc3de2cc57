"""How many records a subtask takes in one turn: timers, checkpoints and requests wait for the end of the turn."""

from __future__ import annotations

__all__ = ["TurnLength"]

_TURN_S = 0.01
_FIRST = 256  # before it is known how long a record takes
_GROWTH = 4


class TurnLength:
    """As many records as the last turn has processed in 10 ms, and at least one.

    A turn that was slow by chance, because the machine was busy, makes the next one shorter. The turns after it grow
    again.
    """

    def __init__(self) -> None:
        self.records = _FIRST

    def measure(self, records: int, took_s: float) -> None:
        """Take note of how long the records of a turn took."""
        if records:
            affordable = int(_TURN_S * records / max(took_s, 1e-9))
            self.records = max(1, min(affordable, _GROWTH * self.records))
